//! Programs that the command compiles: engines, times, the cache on disk, and `tamis explain
//! PROGRAM`.

use crate::common::{SPMV, folder, status, tamis, transcript};
use std::path::Path;

/// The same for every machine: times are not shown, nor how they are aligned.
fn without_times(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let shown = |k: usize| if words.get(k + 1) == Some(&"ms") { "#" } else { words[k] };
        (0..words.len()).map(shown).collect::<Vec<_>>().join(" ") + "\n"
    };
    text.lines().map(line).collect()
}

fn program(folder: &Path) {
    std::fs::write(folder.join("spmv.py"), SPMV).unwrap();
}

/// The standard output of a command line.
fn output(line: &[&str], folder: &Path) -> String {
    let output = tamis(line).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_engine_gives_the_same() {
    let folder = folder();
    program(folder.path());
    // Whole numbers, so that sums are the same in whatever order.
    let line = ["run", "spmv.py", "A=laplacian(6)", "x=ones", "--json"];
    let compiled = output(&line, folder.path());
    for option in ["--interpret", "--check", "--strict"] {
        assert_eq!(output(&[&line[..], &[option]].concat(), folder.path()), compiled, "{option}");
    }
    for format in ["csr", "csc", "dcsr", "coo", "dense", "dense, bytemap", "hash, hash"] {
        let format = format!("A={format}");
        assert_eq!(output(&[&line[..], &["-f", &format, "--check"]].concat(), folder.path()), compiled, "{format}");
    }
    assert_eq!(status(&[&line[..], &["--check", "--interpret"]].concat(), folder.path()), 2);
}

const GUSTAVSON: &str = "def gustavson(A, B):
    C = tensor(\"csr\")
    for i in _:
        w = tensor(\"bytemap\")
        for j, k in _:
            w[k] += A[i,j] * B[j,k]
        for k in _:
            C[i,k] = w[k]
    return C
";

/// A check that would take hours is refused after the checked code has run.
#[test]
fn checks_that_would_never_end_are_refused() {
    let folder = folder();
    program(folder.path());
    std::fs::write(folder.path().join("gustavson.py"), GUSTAVSON).unwrap();
    let large = ["run", "gustavson.py", "A=rand(5000,5000; 0.0002; 1)", "B=rand(5000,5000; 0.0002; 2)"];
    let large = [&large[..], &["-f", "A=csr", "-f", "B=csr", "--check", "-o", "C=C.tns"]].concat();
    let small = ["run", "spmv.py", "A=v1.mtx", "x=ones", "--check", "--check-limit"];
    let limited = |limit| [&small[..], &[limit]].concat();
    let lines: &[&[&str]] = &[
        &large,
        &[&large[..], &["--json"]].concat(),
        &limited("3"),
        &limited("none"),
        &limited("1000"),
        &limited("-1"),
        &limited("many"),
        &["run", "spmv.py", "A=v1.mtx", "x=ones", "--check-limit", "5"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    assert!(!folder.path().join("C.tns").exists(), "what was not checked is not written");
    insta::assert_snapshot!(shown.join("\n"));
    // An access that leaves its tensor is found whatever the limit.
    let gather = "def f(x, I):\n    y = tensor(\"dense\")\n    for i in _:\n        y[i] = x[I[i]]\n    return y\n";
    std::fs::write(folder.path().join("gather.py"), gather).unwrap();
    std::fs::write(folder.path().join("far.txt"), "7\n").unwrap();
    let line = ["run", "gather.py", "x=ones(3)", "I=far.txt", "--check", "--check-limit", "0", "--json"];
    let text = tamis(&line).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("\"E1001\""), "{text}");
}

#[test]
fn times_are_shown() {
    let folder = folder();
    program(folder.path());
    let line = ["run", "spmv.py", "A=v1.mtx", "x=ones", "-f", "A=csr"];
    let of = |options: &[&str]| without_times(&output(&[&line[..], options].concat(), folder.path()));
    let shown = [
        of(&["--time"]),
        of(&["--time", "--interpret"]),
        of(&["--time", "--check"]),
        of(&["--time-passes", "--interpret"]),
    ];
    insta::assert_snapshot!(shown.join("\n"));
    let passes = of(&["--time-passes"]);
    for name in ["check", "lower", "verify", "emit", "parse", "optimise", "generate", "link", "total"] {
        assert!(passes.contains(&format!("\n{name} # ms")), "{name}: {passes}");
    }
    assert!(passes.ends_with("machine code was not in the cache\n"), "{passes}");
}

#[test]
fn times_as_json() {
    let folder = folder();
    program(folder.path());
    let line = ["run", "spmv.py", "A=v1.mtx", "x=ones", "--json", "--time", "--time-passes"];
    let document: serde_json::Value = serde_json::from_str(&output(&line, folder.path())).unwrap();
    for step in ["parse", "read", "compile", "kernel", "finish", "write"] {
        assert!(document["seconds"][step].as_f64().is_some_and(|t| t >= 0.0), "{step}: {document}");
    }
    let compile = &document["compile"];
    assert_eq!((&compile["cache"], &compile["interpreted"]), (&"miss".into(), &serde_json::Value::Null));
    let passes = compile["passes"].as_array().unwrap();
    assert!(passes.iter().any(|pass| pass["name"] == "lower" && pass["statements"].as_u64() > Some(0)), "{compile}");
    let sum: f64 = passes.iter().filter_map(|pass| pass["seconds"].as_f64()).sum();
    assert!(compile["seconds"].as_f64().unwrap() >= 0.99 * sum, "{compile}");
}

/// Machine code is kept in the folder that `TAMIS_CACHE` names, for the next process; a damaged
/// file is no obstacle.
#[test]
fn the_next_process_finds_it_on_disk() {
    let folder = folder();
    program(folder.path());
    let line = ["run", "spmv.py", "A=v1.mtx", "x=ones", "--json", "--time-passes"];
    let cache = folder.path().join("cache");
    let found = |line: &[&str]| {
        let output = tamis(line).current_dir(folder.path()).env("TAMIS_CACHE", &cache).output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["results"][0]["values"], serde_json::json!([3.0, 0.0, 3.0]));
        document["compile"]["cache"].as_str().unwrap().to_string()
    };
    assert_eq!(found(&line), "miss");
    assert_eq!(found(&line), "disk");
    assert_eq!(found(&[&line[..], &["-f", "A=csc"]].concat()), "miss", "another format is another kernel");
    assert_eq!(found(&[&line[..], &["--check"]].concat()), "miss", "checked code is other code");
    for entry in std::fs::read_dir(&cache).unwrap() {
        std::fs::write(entry.unwrap().path(), "damaged").unwrap();
    }
    assert_eq!(found(&line), "miss");
    assert_eq!(found(&line), "disk");
}

#[test]
fn stages_are_explained() {
    let folder = folder();
    program(folder.path());
    let lines: &[&[&str]] = &[
        &["explain", "spmv.py", "-f", "A=csr", "--emit", "program"],
        &["explain", "spmv.py", "-f", "A=csr", "-f", "y=csr", "--emit", "c"],
        &["explain", "spmv.py", "-f", "A=sparse", "--emit", "c"],
        &["explain", "spmv.py", "--dtype", "x=f33"],
        &["explain", "spmv.py", "--dtype", "x"],
        &["explain", "spmv.py", "--dtype", "x=bool", "-f", "x=dense; pattern", "-f", "X=csr"],
        &["explain", "spmv.py", "--emit", "schedule"],
    ];
    let shown: Vec<String> = lines.iter().map(|line| transcript(line, folder.path())).collect();
    insta::assert_snapshot!(shown.join("\n"));
    let all =
        output(&["explain", "spmv.py", "-f", "A=csr", "--emit", "asm,c,kernel,program,llvm,looplets"], folder.path());
    let places: Vec<Option<usize>> = ["program", "looplets", "kernel", "c", "llvm", "asm"]
        .iter()
        .map(|name| all.find(&format!("== {name} ==\n")))
        .collect();
    assert!(places.is_sorted() && places[0] == Some(0), "{places:?}");
    for part in ["def spmv(A, x):", "A1_pos", "#include", "define "] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let json = output(&["explain", "spmv.py", "-f", "A=csr", "--emit", "c,asm", "--json"], folder.path());
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(document["c"].as_str().unwrap().contains("A1_crd") && document["asm"].as_str().is_some(), "{json}");
    // One stage alone has no heading, so that another program can read it.
    assert!(!output(&["explain", "spmv.py", "--emit", "c"], folder.path()).contains("=="));
    let single = output(&["explain", "spmv.py", "--dtype", "A=f32", "--dtype", "x=f32", "--emit", "c"], folder.path());
    assert!(single.contains("float") && !single.contains("double"), "{single}");
}

/// Every example can be explained from the formats that its own command states, or says why it is
/// interpreted.
#[test]
fn examples_are_explained() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let command = text.lines().nth(1).unwrap_or_default();
        let header = text.lines().find(|line| line.starts_with("def ")).unwrap();
        let params = header.split_once('(').unwrap().1.trim_end_matches("):");
        let mut line = vec!["explain", path.to_str().unwrap(), "--emit", "c,kernel"];
        for option in command.split("-f ").skip(1) {
            // Quoted where there are spaces.
            let format = match option.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap(),
                None => option.split(' ').next().unwrap(),
            };
            if params.split(", ").any(|param| format.starts_with(&format!("{param}="))) {
                line.extend(["-f", format]);
            }
        }
        let output = tamis(&line).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        // Without data, numbers are taken to be floating-point; some examples subscript with
        // theirs.
        assert!(output.status.success() || text.contains("E0605") || text.contains("E0305"), "{line:?}: {text}");
        count += 1;
    }
    assert!(count >= 8);
}

#[test]
fn a_processor_that_does_not_exist() {
    let folder = folder();
    program(folder.path());
    let line = ["run", "spmv.py", "A=v1.mtx", "x=ones"];
    let run = |cpu: &str| tamis(&line).current_dir(folder.path()).env("TAMIS_CPU", cpu).output().unwrap();
    for name in ["no such thing", "i386", "x86_64"]
        .into_iter()
        .filter(|name| cfg!(target_arch = "x86_64") || name.contains(' '))
    {
        let output = run(name);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && text.contains("E0906") && text.contains("unset TAMIS_CPU"),
            "{text}"
        );
    }
    assert!(run("native").status.success());
    assert!(run("x86-64").status.success() || cfg!(not(target_arch = "x86_64")));
}

/// A result that does not fit is a diagnostic, compiled or not.
#[test]
fn results_that_do_not_fit() {
    let folder = folder();
    let text = "def f(x):\n    A = tensor(\"dense\")\n    for i, j in _:\n        A[i,j] = x[i] * x[j]\n    return A\n";
    std::fs::write(folder.path().join("outer.py"), text).unwrap();
    let shown = transcript(&["run", "outer.py", "x=rand(3000000; 0.000001)"], folder.path());
    assert!(shown.contains("[1]") && shown.contains("E0706") && shown.contains("72.0 TB"), "{shown}");
}

/// Kernels between passes, and a compilation that ends behind one.
#[test]
fn kernels_after_passes() {
    let folder = folder();
    program(folder.path());
    let line = ["explain", "spmv.py", "-f", "A=csr"];
    let after = |options: &[&str]| output(&[&line[..], options].concat(), folder.path());
    let lowered = after(&["--print-after", "lower"]);
    assert!(lowered.starts_with("kernel spmv\n") && lowered.contains("let y0_skipped: bool"), "{lowered}");
    let runs = after(&["--print-after", "const_prop", "--print-after", "cse"]);
    for heading in ["== after const_prop, run 1 of 3 ==", "== after const_prop, run 3 of 3 ==", "== after cse =="] {
        assert!(runs.contains(heading), "{runs}");
    }
    // Later stages show what the kernel would be without the passes behind it.
    assert_eq!(after(&["--stop-after", "lower"]), lowered);
    assert_eq!(after(&["--stop-after", "compact_ids", "--emit", "c"]), after(&["--emit", "c"]));
    let notation = ["explain", "y[i] = A[i,j] * x[j]", "-f", "A=csr", "--print-after", "scalar_promotion"];
    assert!(output(&notation, folder.path()).contains("for i in 0..A_n0\n"));
    let unknown = transcript(&[&line[..], &["--print-after", "csee"]].concat(), folder.path());
    for part in ["there is no pass `csee`", "did you mean `cse`?", "the passes are, in order: lower, const_prop"] {
        assert!(unknown.contains(part), "{unknown}");
    }
    assert_eq!(status(&[&line[..], &["--stop-after", "csee"]].concat(), folder.path()), 2);
    assert_eq!(status(&["explain", "E0402", "--stop-after", "cse"], folder.path()), 2);
}
