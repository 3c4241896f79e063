//! The pages of the book that are made from tables, and the links between pages.

use std::fmt::Write;
use std::path::Path;
use tamis_ir::DType;
use tamis_ir::algebra::{Constant, Domain, NanPolicy, OpInfo, TABLE, Ty, Typing};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn constant(c: Option<Constant>) -> &'static str {
    match c {
        // Only operators that users define have numbers of their own.
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
        "# Operators\n\nMade from the operator table by `TAMIS_BLESS=1 cargo test -p tamis-tests --test book`. Every law is property-tested on \
         every type.\nLaws: **c**ommutative, **a**ssociative (floats: up to rounding), **i**dempotent. Besides these, the name of a value type converts: `f32(x)`;\noperators of your own are defined [in the program](programs.md#your-own-operators).\n\n\
         | name | written | takes | laws | identity | annihilator | distributes over | NaN | meaning |\n|---|---|---|---|---|---|---|---|---|\n",
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
        let summary = row.summary.replace('|', "\\|");
        let _ = writeln!(
            page,
            "| `{}` | {symbol} | {takes} | {} | {identity} | {} | {} | {nan} | {summary} |",
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

#[test]
fn links_lead_somewhere() {
    let mut pages = vec![root().join("README.md"), root().join("docs/ARCHITECTURE.md")];
    for folder in ["docs/reference", "docs/internals", "docs/reference/levels", "docs/how-to"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    }
    let mut links = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        // What stands between backticks is code: `sum[j](x[j])` is no link. A link's own text may be code, so its end stays.
        let text: String = text.split("```").step_by(2).collect();
        let prose: String = text.split('`').enumerate().map(|(k, part)| if k % 2 == 0 { part } else { "" }).collect();
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            links += 1;
            let target = page.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(target.exists(), "{}: {link}", page.display());
        }
    }
    assert!(links > 10);
}

/// Every level has a page, whose examples store and compute what it says.
#[test]
fn pages_of_levels_are_true() {
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

/// Programs in the book and in the examples parse.
#[test]
fn programs_parse() {
    let mut programs = Vec::new();
    for page in ["README.md", "docs/reference/programs.md", "docs/reference/schedules.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let blocks = text.split("```python\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_string());
        // What imports something is Python, and tested there.
        programs.extend(blocks.filter(|block| !block.lines().any(|line| line.starts_with("import "))));
    }
    assert!(programs.len() >= 2);
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "py") {
            programs.push(std::fs::read_to_string(path).unwrap());
        }
    }
    for text in programs {
        tamis_ir::Program::parse(&text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    }
}
