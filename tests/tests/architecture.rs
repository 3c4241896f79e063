//! Architecture tests: the invariants of docs/ARCHITECTURE.md that a test can check, and its terms.

mod examples;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The crates in dependency order: each may depend only on those before it.
const ORDER: &[&str] =
    &["tamis-ir", "tamis-tensor", "tamis-compiler", "tamis-backend", "tamis-macros", "tamis", "tamis-py", "tamis-cli"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    files(folder, &["rs"], found);
}

/// The files below a folder with one of these extensions, without build outputs.
fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    const OUTPUTS: [&str; 5] = ["target", "__pycache__", "_build", ".venv", "node_modules"];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !OUTPUTS.contains(&name.as_str()) {
                files(&path, extensions, found);
            }
        } else if path.extension().is_some_and(|e| extensions.iter().any(|other| e == *other)) {
            found.push(path);
        }
    }
}

/// The path of a file relative to the workspace, with slashes.
fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

#[test]
fn dependencies_point_down() {
    for (k, name) in ORDER.iter().enumerate() {
        let manifest = std::fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
        for (other_k, other) in ORDER.iter().enumerate() {
            let named = dependencies
                .lines()
                .any(|line| line.starts_with(&format!("{other}.")) || line.starts_with(&format!("{other} ")));
            assert!(!named || other_k < k, "{name} must not depend on {other}");
        }
    }
}

#[test]
fn the_interpreter_and_the_program_name_no_tensor_crate() {
    let mut found = Vec::new();
    sources(&root().join("crates/tamis-ir/src"), &mut found);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("tamis_tensor"), "{}", path.display());
    }
}

/// The tests of a crate are modules of one binary: a file that no module names would never run.
#[test]
fn every_file_of_tests_runs() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in crates.chain([root().join("tests")]) {
        let Ok(suite) = std::fs::read_to_string(folder.join("tests/suite.rs")) else { continue };
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for entry in std::fs::read_dir(folder.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            if path.extension().is_some_and(|kind| kind == "rs") {
                let named = suite.lines().any(|line| line == format!("mod {name};"));
                assert!(named || manifest.contains(&format!("path = \"tests/{name}.rs\"")), "{}", path.display());
            }
        }
    }
}

/// The lowerer sees looplets; the set of levels is data.
#[test]
fn the_lowerer_names_no_level() {
    let mut found = Vec::new();
    sources(&root().join("crates/tamis-compiler/src/lower"), &mut found);
    assert!(found.len() > 5);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("LevelKind"), "{}", path.display());
    }
}

/// The arrays of a level are data, too: the compiler and the library ask for roles and guarantees,
/// never for names. Variables of kernels may have the same names, and so may commands and costs.
#[test]
fn the_compiler_names_no_array_of_a_level() {
    let mut found = Vec::new();
    for folder in ["crates/tamis-compiler/src", "crates/tamis/src"] {
        sources(&root().join(folder), &mut found);
    }
    assert!(found.len() > 50);
    let other_words = ["schedule/parse.rs", "schedule/print.rs", "auto/model.rs"];
    found.retain(|path| !other_words.iter().any(|file| path.ends_with(file)));
    let arrays = tamis_tensor::levels::LEVELS.iter().flat_map(|level| level.arrays);
    let names: Vec<String> = arrays.map(|array| format!("\"{}\"", array.name)).collect();
    assert!(names.contains(&"\"crd\"".to_string()));
    let variables = ["name(", "new_var(", "variable(", "variable_from(", "seek("];
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        // Tests build levels from arrays.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (k, line) in text.lines().enumerate() {
            let is_variable = variables.iter().any(|call| line.contains(call));
            let named = !is_variable && names.iter().any(|name| line.contains(name));
            assert!(!named, "ask for the role of the array: {}:{}: {line}", path.display(), k + 1);
        }
    }
}

/// The how-to page says that an operator takes two files by hand and three that are generated.
/// Derivatives of reductions are rules of their own, which the page names.
#[test]
fn an_operator_takes_two_files() {
    let output = std::process::Command::new("git")
        .args([
            "grep",
            "--untracked",
            "-lwi",
            "logaddexp2",
            "--",
            "crates/*/src/*",
            ":!crates/tamis-ir/src/notation/adjoint",
            "docs/reference",
            "python/tamis",
        ])
        .current_dir(root())
        .output();
    // A source archive has no repository.
    let Ok(output) = output.map(|output| String::from_utf8(output.stdout).unwrap()) else { return };
    let found: Vec<&str> = output.lines().collect();
    let expected = [
        "crates/tamis-ir/src/algebra/scalar.rs",
        "crates/tamis-ir/src/algebra/table.rs",
        "docs/reference/api.md",
        "docs/reference/operators.md",
        "python/tamis/_functions.pyi",
    ];
    assert_eq!(found, expected, "docs/how-to/add-an-operator.md says otherwise");
    let page = std::fs::read_to_string(root().join("docs/how-to/add-an-operator.md")).unwrap();
    assert!(expected.iter().all(|file| page.contains(file)), "the page names all of {expected:?}");
}

/// One subject per file. Past 800 lines, split by subject.
#[test]
fn files_have_one_subject() {
    let mut found = Vec::new();
    for folder in ["crates", "tests", "benches"] {
        sources(&root().join(folder), &mut found);
    }
    assert!(found.len() > 50);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() <= 800, "{} has more than 800 lines", path.display());
        assert!(text.starts_with("//!"), "{} does not say what belongs there", path.display());
    }
}

/// Every diagnostic code is raised somewhere, by a crate or by the Python package.
#[test]
fn codes_are_used() {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    let text: String = found
        .iter()
        .filter(|path| !path.ends_with("diag/codes.rs"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let package: String = std::fs::read_dir(root().join("python/tamis"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py") && !path.ends_with("_errors.py"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    for code in tamis_ir::Code::ALL {
        let raised = text.contains(&format!("Code::{code}")) || package.contains(&format!("\"{code}\""));
        assert!(raised, "{code} is never raised");
    }
}

/// Words that only this project would use, and the field's words for them. A phrase matches whole
/// words in comments, identifiers (`turned_back`, `TurnedBack`) and strings. Words with an ordinary
/// meaning beside the private one (turn, piece, part, list, full) are matched in phrases only.
const PRIVATE_WORDS: &[(&[&str], &str)] = &[
    (&["turns of", "a turn of", "each turn", "every turn", "first turn", "last turn", "turn of the loop"], "iteration"),
    (&["what is left of"], "the tail, or the remainder"),
    (&["asked for ahead"], "prefetched"),
    (&["asked for"], "requested"),
    (&["stretch", "stretches"], "contiguous range"),
    (&["list of coordinates", "lists of coordinates"], "coordinate list"),
    (&["neighbouring"], "adjacent, or contiguous"),
    (&["told"], "reported"),
    (&["remembers", "remembered", "remembering"], "cached, memoised or recorded"),
    (&["is said", "are said", "said of"], "specified"),
    (&["wish", "wishes", "wished"], "request"),
    (&["settle", "settles", "settled", "settling"], "finalize"),
    (&["keeper"], "memory pool"),
    (&["pace"], "parallelisation heuristic"),
    (&["makes room", "make room", "room for"], "reserves capacity"),
    (&["promise", "promises", "promised"], "assumption, precondition or guarantee"),
    (&["alike"], "shared pattern, or equal"),
    (&["lanes apart"], "gathered lanes"),
    (&["told apart", "tell apart", "tells apart"], "distinguished"),
    (&["turned", "parted"], "reversed, rotated, transposed or split"),
    (&["unask"], "drop redundant guards"),
    (&["whoever", "somebody", "nobody"], "the name of the subject"),
];

/// The words of a text in lower case, with their lines: identifiers are split at underscores and
/// capitals.
fn words(text: &str) -> Vec<(&str, usize)> {
    let (bytes, mut words, mut line, mut at) = (text.as_bytes(), Vec::new(), 1, 0);
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_uppercase() {
            at += 1;
        }
        // The last capital of several begins the next word: `IRBuilder`.
        if at > start + 1 && at < bytes.len() && bytes[at].is_ascii_lowercase() {
            at -= 1;
        } else {
            while at < bytes.len() && bytes[at].is_ascii_lowercase() {
                at += 1;
            }
        }
        if at > start {
            words.push((&text[start..at], line));
        } else {
            line += usize::from(bytes[at] == b'\n');
            at += 1;
        }
    }
    words
}

/// A private word or phrase, with the field's term.
struct PrivatePhrase {
    words: Vec<&'static str>,
    text: &'static str,
    term: &'static str,
}

/// Newcomers search for the terms of the field, so files use these.
#[test]
fn texts_use_the_terms_of_the_field() {
    let mut phrases: HashMap<&str, Vec<PrivatePhrase>> = HashMap::new();
    for (private, term) in PRIVATE_WORDS {
        for phrase in *private {
            let words: Vec<&str> = phrase.split(' ').collect();
            phrases.entry(words[0]).or_default().push(PrivatePhrase { words, text: phrase, term });
        }
    }
    let mut paths = Vec::new();
    for folder in ["crates", "python", "tests", "benches", "docs"] {
        files(&root().join(folder), &["rs", "py", "pyi", "md", "toml", "snap"], &mut paths);
    }
    assert!(paths.len() > 500);
    let mut mistakes = Vec::new();
    for path in paths {
        let name = relative(&path);
        if name == "tests/tests/architecture.rs" {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let words = words(&text);
        for (k, (word, line)) in words.iter().enumerate() {
            let lower;
            let word = match word.bytes().any(|byte| byte.is_ascii_uppercase()) {
                true => {
                    lower = word.to_ascii_lowercase();
                    lower.as_str()
                }
                false => word,
            };
            for phrase in phrases.get(word).into_iter().flatten() {
                let matches = words[k..].len() >= phrase.words.len()
                    && words[k..].iter().zip(&phrase.words).all(|((word, _), part)| word.eq_ignore_ascii_case(part));
                if matches {
                    mistakes.push(format!("{name}:{line}: `{}`: the field says {}", phrase.text, phrase.term));
                }
            }
        }
    }
    assert!(mistakes.is_empty(), "private words:\n{}", mistakes.join("\n"));
}

/// Line 1 names the subject of a file; a question does not.
#[test]
fn first_lines_name_their_subject() {
    let mut found = Vec::new();
    for folder in ["crates", "tests", "benches"] {
        sources(&root().join(folder), &mut found);
    }
    for path in found {
        let name = relative(&path);
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("//!").trim_start();
        let opening = first.split(' ').next().unwrap_or_default();
        let question = ["What", "How", "Where", "Which", "Whether", "Whoever"].contains(&opening);
        assert!(!question, "{name}:1: opens with `{opening}`: write the textbook name of the subject");
    }
}

/// Nouns that name several types, and the reason.
const SHARED_NOUNS: &[(&str, &str)] = &[
    ("Block", "each representation has its own, named with its module: `kernel::Block`"),
    ("Expr", "each representation has its own"),
    ("Extent", "the syntax tree and the program have the same forms"),
    ("Options", "each entry point has its own, named with its module: `opt::Options`"),
    ("Stmt", "each representation has its own"),
    ("StmtKind", "each representation has its own"),
];

/// One noun names one type in the workspace, so that a search finds one definition.
#[test]
fn nouns_name_one_type() {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut found);
    }
    for path in found {
        let name = relative(&path);
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if file.starts_with("tests") {
            continue;
        }
        for (k, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            let line = match line.strip_prefix("pub(") {
                Some(rest) => rest.split_once(") ").map_or(rest, |(_, item)| item),
                None => line.strip_prefix("pub ").unwrap_or(line),
            };
            let item =
                ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|kind| line.strip_prefix(kind));
            if let Some(item) = item {
                let noun: String = item.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
                types.entry(noun).or_default().push(format!("{name}:{}", k + 1));
            }
        }
    }
    assert!(types.len() > 500);
    let shared = |noun: &str| SHARED_NOUNS.iter().any(|(other, _)| *other == noun);
    let several: Vec<String> = types
        .iter()
        .filter(|(noun, places)| places.len() > 1 && !shared(noun))
        .map(|(noun, places)| format!("`{noun}` names several types: {}", places.join(", ")))
        .collect();
    assert!(several.is_empty(), "rename all but one, or state the reason in SHARED_NOUNS:\n{}", several.join("\n"));
    for (noun, _) in SHARED_NOUNS {
        assert!(types.get(*noun).is_some_and(|places| places.len() > 1), "`{noun}` names one type: remove it here");
    }
}
