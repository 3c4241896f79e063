//! Tests of the documentation: generated pages are current, links and paths lead somewhere, pages
//! of levels are true, Rust runs.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tamis_ir::DType;
use tamis_ir::algebra::{Constant, Domain, NanPolicy, OpInfo, TABLE, Ty, Typing};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn constant(c: Option<Constant>) -> &'static str {
    match c {
        // Only user-defined operators have their own numbers.
        None | Some(Constant::Number(_)) => "",
        Some(Constant::Zero) => "0",
        Some(Constant::One) => "1",
        Some(Constant::Ones) => "true (all bits)",
        Some(Constant::Least) => "least",
        Some(Constant::Greatest) => "greatest",
    }
}

fn operators() -> String {
    let mut page = String::from(
        "# Operators\n\n\
         Every operator of index notation and of loop programs: how it is written, which types it takes, its\n\
         laws, and what it does with NaN. The laws decide what is skipped and reordered; each is tested on\n\
         every type.\n\n\
         Laws: **c**ommutative, **a**ssociative (floats: up to rounding), **i**dempotent.\n\n\
         NaN: *propagates*, a NaN operand gives NaN; *unordered*, comparisons with NaN are false, but for `!=`,\n\
         which is true; *ordinary*, NaN is a value like any other.\n\n\
         Besides these, the name of a value type converts: `f32(x)`; operators of your own are defined\n\
         [in the program](programs.md#your-own-operators).\n\n\
         Generated from the operator table by\n`TAMIS_BLESS=1 cargo test -p tamis-tests --test suite -- book`.\n\n\
         | name | written | meaning | takes | laws | identity | annihilator | distributes over | NaN |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let takes = match row.typing {
            Typing::Arithmetic { complex: true } | Typing::Magnitude | Typing::Part => "numbers",
            Typing::Arithmetic { complex: false } | Typing::Rounding => "real numbers",
            Typing::Division => "numbers; gives floats",
            Typing::Float { complex: true } => "numbers; gives floats",
            Typing::Float { complex: false } => "real numbers; gives floats",
            Typing::Comparison { ordered: false } | Typing::Predicate => "anything; gives bool",
            Typing::Comparison { ordered: true } => "real numbers; gives bool",
            Typing::Logical => "truth values",
            Typing::Bitwise => "integers, bool",
            Typing::Shift => "integers",
            Typing::Ordered => "real numbers, bool",
            Typing::Select | Typing::Coalesce | Typing::Choice | Typing::Conversion(_) | Typing::Defined(_) => {
                "anything"
            }
        };
        let laws = [(row.commutative, "c"), (row.associative, "a"), (row.idempotent, "i")];
        let laws: Vec<&str> = laws.iter().filter(|(holds, _)| *holds).map(|(_, law)| *law).collect();
        let identity = match (row.left_identity, row.right_identity) {
            (Some(_), right) => constant(right).to_string(),
            (None, Some(right)) => format!("{} (right)", constant(Some(right))),
            (None, None) => String::new(),
        };
        let over: Vec<String> = row
            .distributes_over
            .iter()
            .map(|(op, domain)| format!("{}{}", op.info().name, if *domain == Domain::All { "" } else { " (floats)" }))
            .collect();
        let nan = match row.nan {
            NanPolicy::Propagates => "propagates",
            NanPolicy::Unordered => "unordered",
            NanPolicy::Ordinary => "ordinary",
        };
        let symbol = row.symbol.map(|s| format!("`{}`", s.replace('|', "\\|"))).unwrap_or_default();
        // Stars would be emphasis.
        let summary = row.summary.replace('|', "\\|").replace('*', "\\*");
        let _ = writeln!(
            page,
            "| `{}` | {symbol} | {summary} | {takes} | {} | {identity} | {} | {} | {nan} |",
            row.name,
            laws.join(" "),
            if row.absorbing.is_empty() { constant(row.annihilator) } else { "inf, -inf (floats)" },
            over.join(", "),
        );
    }
    page += "\n## Pairs of operators\n\nWhat a fill makes of an operator may be what a reduction leaves alone. Then the reduction skips what is not stored:\n\n| reduction | of | fill |\n|---|---|---|\n";
    let skips = |reduction: &OpInfo, dtype: DType| {
        let mut rows = Vec::new();
        for inner in TABLE.iter().filter(|row| row.arity.0 <= 2 && row.arity.1 >= 2) {
            let takes = inner.op.type_of(&[Ty::strong(dtype); 2]).is_ok_and(|t| t.operand == dtype);
            let fills = [Constant::Zero, Constant::Ones, Constant::Least, Constant::Greatest];
            for fill in fills.iter().filter_map(|c| c.value(dtype)).filter(|_| takes) {
                let sides: Vec<usize> = (0..2).filter(|k| inner.idle_under(reduction.op, dtype, *k, fill)).collect();
                let of = match sides[..] {
                    [0, 1] => "on either side",
                    [0] => "on the left",
                    [1] => "on the right",
                    _ => continue,
                };
                rows.push(format!("| `{}` | `{}` | {fill} {of} ({dtype}) |", reduction.name, inner.name));
            }
        }
        rows.dedup();
        rows
    };
    for (name, dtype) in [
        ("add", DType::F64),
        ("min", DType::F64),
        ("max", DType::F64),
        ("logical_and", DType::Bool),
        ("logical_or", DType::Bool),
        ("bitand", DType::U8),
        ("bitor", DType::U8),
        ("bitxor", DType::U8),
    ] {
        for reduction in TABLE.iter().filter(|row| row.name == name) {
            skips(reduction, dtype).iter().for_each(|row| page += &format!("{row}\n"));
        }
    }
    page
}

#[test]
fn operators_page_is_current() {
    let path = root().join("docs/reference/operators.md");
    let page = operators();
    if std::env::var_os("TAMIS_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page, "bless docs/reference/operators.md");
}

/// The chapters of the page on diagnostics, by the first two digits of a code.
const CHAPTERS: &[(&str, &str)] = &[
    ("E01", "Syntax"),
    ("E02", "Names"),
    ("E03", "Types"),
    ("E04", "Dimensions"),
    ("E05", "Lifecycles"),
    ("E06", "Formats and levels"),
    ("E07", "Data"),
    ("E08", "Files"),
    ("E09", "Inputs and the command line"),
    ("E10", "Run time"),
    ("E11", "Internal errors"),
    ("E12", "Schedules"),
    ("E13", "Text of kernels"),
];

/// A line of an explanation, with links to the pages of the reference that it names by their paths.
fn with_links(line: &str) -> String {
    let mut parts = line.split("`docs/reference/");
    let mut linked = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (path, rest) = part.split_once('`').expect("a path ends in the line that it begins in");
        match path.strip_suffix(".md") {
            Some(name) => linked += &format!("[{name}]({path}){rest}"),
            // The pages of the levels are listed by the page on formats.
            None => linked += &format!("[{path}](formats.md#{path}){rest}"),
        }
    }
    linked
}

/// The page on diagnostics: what `tamis explain CODE` prints, for each code.
fn diagnostics() -> String {
    let mut page = String::from(
        "# Diagnostics\n\n\
         Every diagnostic has a stable code. This page explains each: what it means, and what to do.\n\
         `tamis explain CODE` and `tm.describe(\"CODE\")` print the same.\n\n\
         Generated from the table of codes by\n`TAMIS_BLESS=1 cargo test -p tamis-tests --test suite -- book`.\n",
    );
    let mut chapter = "";
    for code in tamis_ir::Code::ALL {
        let (prefix, title) = CHAPTERS.iter().find(|(prefix, _)| code.name().starts_with(prefix)).unwrap();
        if *prefix != chapter {
            chapter = prefix;
            let _ = write!(page, "\n## {title}\n");
        }
        let _ = write!(page, "\n### {code}\n\n**{}**\n\n", code.title());
        // Programs are indented, which Markdown would show without their language.
        let mut fenced = false;
        for line in code.explanation().lines() {
            let indented = line.starts_with("    ");
            if indented != fenced && !line.is_empty() {
                page += if indented { "```text\n" } else { "```\n" };
                fenced = indented;
            }
            match line.strip_prefix("    ") {
                Some(program) => page += program,
                None => page += &with_links(line),
            }
            page.push('\n');
        }
        page += if fenced { "```\n" } else { "" };
    }
    page
}

#[test]
fn diagnostics_page_is_current() {
    let path = root().join("docs/reference/diagnostics.md");
    let page = diagnostics();
    if std::env::var_os("TAMIS_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page, "bless docs/reference/diagnostics.md");
}

/// The pages of the book, with those at the root of the repository.
fn pages() -> Vec<PathBuf> {
    fn markdown(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Pages of the API are made from docstrings when the site is built.
                if !path.ends_with("reference/api") {
                    markdown(&path, found);
                }
            } else if path.extension().is_some_and(|kind| kind == "md") {
                found.push(path);
            }
        }
    }
    let mut found: Vec<PathBuf> = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "python/README.md"]
        .iter()
        .map(|page| root().join(page))
        .collect();
    markdown(&root().join("docs"), &mut found);
    found.sort();
    found
}

/// The text of a page without fenced blocks.
fn without_blocks(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose += line;
            prose.push('\n');
        }
    }
    prose
}

/// The anchor of a heading in links: lower case, words joined by hyphens, punctuation dropped; a
/// repeated name gets a number.
fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    for line in without_blocks(text).lines() {
        let Some(heading) = line.strip_prefix('#') else { continue };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut numbered = name.clone();
        for k in 1.. {
            if found.insert(numbered) {
                break;
            }
            numbered = format!("{name}-{k}");
        }
    }
    found
}

/// The targets of links in a page: `[text](target)`, and definitions `[text]: target`.
fn links(text: &str) -> Vec<String> {
    let text = without_blocks(text);
    // Text between backticks is code: `sum[j](x[j])` is no link. A link's own text may be code, so
    // its end stays.
    let prose: String = text.split('`').enumerate().map(|(k, part)| if k % 2 == 0 { part } else { "" }).collect();
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let defined = prose.lines().filter(|line| line.starts_with('[')).filter_map(|line| line.split_once("]: "));
    let defined = defined.map(|(_, target)| target.trim());
    inline.chain(defined).map(String::from).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut checked = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            if link.contains("://") {
                continue;
            }
            checked += 1;
            let (file, anchor) =
                link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if let Some(anchor) = anchor {
                let text = std::fs::read_to_string(&target).unwrap();
                assert!(anchors(&text).contains(anchor), "{}: {link}: there is no such heading", page.display());
            }
        }
    }
    assert!(checked > 200, "{checked}");
}

/// A page without links is not read: each is in the table of contents of the site, and is
/// reached from the front page.
#[test]
fn pages_are_listed() {
    let contents = std::fs::read_to_string(root().join("docs/_toc.yml")).unwrap();
    let front = std::fs::read_to_string(root().join("docs/index.md")).unwrap();
    for page in pages() {
        let name = page.strip_prefix(root()).unwrap().with_extension("").display().to_string();
        if name == "python/README" {
            continue;
        }
        let entry = format!(" {name}\n");
        assert!(contents.contains(&entry), "docs/_toc.yml does not list {name}");
        if let Some(inside) = name.strip_prefix("docs/").filter(|name| *name != "index") {
            assert!(front.contains(&format!("({inside}.md)")), "docs/index.md does not lead to {inside}");
        }
    }
}

/// Paths of the source that pages name in code exist, so that no reader is sent to a file that was
/// renamed.
#[test]
fn paths_exist() {
    let mut checked = 0;
    for page in pages() {
        let text = without_blocks(&std::fs::read_to_string(&page).unwrap());
        for code in text.split('`').skip(1).step_by(2) {
            let top = ["crates/", "tests/", "python/", "examples/", "benches/", "docs/"];
            let path = code.trim_end_matches('/');
            if top.iter().any(|top| code.starts_with(top)) && !path.contains(['*', ' ']) && !path.contains("NAME") {
                checked += 1;
                assert!(root().join(path).exists(), "{}: `{path}` does not exist", page.display());
            }
        }
    }
    assert!(checked > 30, "{checked}");
}

/// Paths that pages shorten (`opt/cse.rs`, `runtime/workspace/`) are the end of a path in the repository.
#[test]
fn shortened_paths_exist() {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if path.is_dir() && !hidden && !path.ends_with("target") {
                walk(&path, found);
            }
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.push(if path.is_dir() { format!("/{name}/") } else { format!("/{name}") });
        }
    }
    let mut all = Vec::new();
    walk(root(), &mut all);
    let mut checked = 0;
    for page in pages() {
        let text = without_blocks(&std::fs::read_to_string(&page).unwrap());
        // A changelog speaks of files as they were.
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        for code in text.split('`').skip(1).step_by(2) {
            let is_path = code.chars().all(|c| c.is_ascii_alphanumeric() || "_/.-".contains(c));
            let is_source = code.ends_with(".rs") || (code.ends_with('/') && code.len() > 1 && !code.starts_with('/'));
            if is_path && is_source && !code.contains("NAME") && !code.starts_with("target/") {
                checked += 1;
                let end = format!("/{}", code.trim_start_matches("./"));
                assert!(all.iter().any(|path| path.ends_with(&end)), "{}: `{code}` does not exist", page.display());
            }
        }
    }
    assert!(checked > 40, "{checked}");
}

/// The modules that the page on architecture lists for a crate exist.
#[test]
fn modules_exist() {
    let page = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let mut checked = 0;
    for section in page.split("\n### `").skip(1) {
        let (krate, text) = section.split_once('`').unwrap();
        let text = text.split("\n#").next().unwrap();
        for row in text.lines().filter_map(|line| line.strip_prefix("| `")) {
            let module = row.split('`').next().unwrap();
            let source = root().join("crates").join(krate).join("src");
            checked += 1;
            let exists = source.join(module).is_dir() || source.join(format!("{module}.rs")).exists();
            assert!(exists, "docs/ARCHITECTURE.md: `{krate}` has no module `{module}`");
        }
    }
    assert!(checked > 20, "{checked}");
}

/// Every level has a page, whose examples store and compute as documented.
#[test]
fn pages_of_levels_match_the_levels() {
    let folder = root().join("docs/reference/levels");
    let mut names: Vec<&str> = tamis_ir::format::LevelKind::ALL.iter().map(|kind| kind.name()).collect();
    names.push("maps");
    for name in names {
        let path = folder.join(format!("{name}.md"));
        let failures = tamis_tests::filetest::run_file(&path);
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
        let text = std::fs::read_to_string(&path).unwrap();
        for what in ["*Invariant", "**Use", "**Do not use", "```storage", "```result"] {
            assert!(text.contains(what), "{}: {what} is missing", path.display());
        }
        let formats = std::fs::read_to_string(root().join("docs/reference/formats.md")).unwrap();
        assert!(formats.contains(&format!("(levels/{name}.md)")), "formats.md does not lead to {name}");
    }
}

/// Programs of the examples parse; those of the book are run by `python/tests/test_book.py`.
#[test]
fn examples_parse() {
    let mut programs = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "py") {
            programs += 1;
            let text = std::fs::read_to_string(path).unwrap();
            tamis_ir::Program::parse(&text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
        }
    }
    assert!(programs > 30, "{programs}");
}

/// The Rust of the book is the text of `book_snippets.rs` and of the example that it runs.
#[test]
fn rust_of_the_book_runs() {
    let blank = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace()).collect() };
    let example = include_str!("../../crates/tamis/examples/quickstart.rs");
    let snippets = blank(include_str!("book_snippets.rs")) + &blank(example);
    let mut blocks = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            blocks += 1;
            // The file says this once, at its top.
            let block = block.replace("use tamis::prelude::*;", "");
            assert!(snippets.contains(&blank(&block)), "{}: not in book_snippets.rs:\n{block}", page.display());
        }
    }
    assert!(blocks > 5, "{blocks}");
}
