//! `--ops FILE`: reads user-defined operators.

use crate::shell::CommandError;
use crate::source;
use std::path::PathBuf;
use tamis_ir::algebra::Op;
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::program::parse_operators_with;

const FORM: &str = "write `@op` or `@op(commutative, associative, identity=0)`, then `def name(a, b):`, then `return` and an expression of `a` and `b`";

/// All operators that the files define; each file may use those of the files before it.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Op>, CommandError> {
    let mut operators = Vec::new();
    for path in paths {
        let text = source::file("file with operators", path, "check the path after --ops")?;
        let defines = |line: &str| line.trim_start().starts_with('@') && line.contains("op");
        if !text.text.lines().any(defines) {
            let d = Diagnostic::new(Code::E0110, "there are no operators in this file");
            return Err(d.in_file(text.name.clone()).help(FORM).into());
        }
        operators = parse_operators_with(&text, &operators)?;
    }
    Ok(operators)
}
