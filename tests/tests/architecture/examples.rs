//! Documentation examples: every public item of a documented file has one in its doc comment.
//!
//! The doc tests run the examples; this test finds items without one. The list of documented files
//! is data: a file joins it when all of its public items have examples.

use super::{relative, root, sources};

/// Files and folders in which every public item has an example.
const DOCUMENTED: &[&str] = &[
    "crates/tamis-backend/src/c/mod.rs",
    "crates/tamis-backend/src/cache/mod.rs",
    "crates/tamis-backend/src/failure.rs",
    "crates/tamis-backend/src/llvm/mod.rs",
    "crates/tamis-backend/src/llvm/outline.rs",
    "crates/tamis-backend/src/llvm/target_machine.rs",
    "crates/tamis-backend/src/runtime/arrays.rs",
    "crates/tamis-backend/src/runtime/memory.rs",
    "crates/tamis-backend/src/runtime/pool.rs",
    "crates/tamis-backend/src/runtime/scratch.rs",
    "crates/tamis-backend/src/runtime/workspace",
    "crates/tamis-compiler/src/auto/fit.rs",
    "crates/tamis-compiler/src/auto/mod.rs",
    "crates/tamis-compiler/src/auto/model.rs",
    "crates/tamis-compiler/src/auto/operand.rs",
    "crates/tamis-compiler/src/auto/predict.rs",
    "crates/tamis-compiler/src/counts/mod.rs",
    "crates/tamis-compiler/src/counts/prefix.rs",
    "crates/tamis-compiler/src/counts/read.rs",
    "crates/tamis-compiler/src/lower",
    "crates/tamis-compiler/src/opt",
    "crates/tamis-compiler/src/pipeline.rs",
    "crates/tamis-compiler/src/schedule/array_renaming.rs",
    "crates/tamis-compiler/src/schedule/classify.rs",
    "crates/tamis-compiler/src/schedule/copy_in.rs",
    "crates/tamis-compiler/src/schedule/guarded_windows.rs",
    "crates/tamis-compiler/src/schedule/insert.rs",
    "crates/tamis-compiler/src/schedule/mod.rs",
    "crates/tamis-compiler/src/schedule/print.rs",
    "crates/tamis-ir/src/algebra",
    "crates/tamis-ir/src/diag",
    "crates/tamis-ir/src/format",
    "crates/tamis-ir/src/interp",
    "crates/tamis-ir/src/kernel",
    "crates/tamis-ir/src/looplet",
    "crates/tamis-ir/src/notation",
    "crates/tamis-ir/src/program",
    "crates/tamis-ir/src/text",
    "crates/tamis-macros/src/lib.rs",
    "crates/tamis-tensor/src/arrays.rs",
    "crates/tamis-tensor/src/buffer.rs",
    "crates/tamis-tensor/src/construct.rs",
    "crates/tamis-tensor/src/convert/finalize.rs",
    "crates/tamis-tensor/src/convert/mod.rs",
    "crates/tamis-tensor/src/convert/permutation.rs",
    "crates/tamis-tensor/src/coordinates.rs",
    "crates/tamis-tensor/src/gallery",
    "crates/tamis-tensor/src/io",
    "crates/tamis-tensor/src/levels/arrays.rs",
    "crates/tamis-tensor/src/levels/mod.rs",
    "crates/tamis-tensor/src/levels/positions.rs",
    "crates/tamis-tensor/src/levels/tree.rs",
    "crates/tamis-tensor/src/levels/write.rs",
    "crates/tamis-tensor/src/memory.rs",
    "crates/tamis-tensor/src/operand.rs",
    "crates/tamis-tensor/src/stats.rs",
    "crates/tamis-tensor/src/structure",
    "crates/tamis-tensor/src/tensor.rs",
    "crates/tamis-tensor/src/tensor/display.rs",
    "crates/tamis-tensor/src/tensor/permute.rs",
    "crates/tamis-tensor/src/threads.rs",
    "crates/tamis-tensor/src/typed.rs",
    "crates/tamis/src",
];

/// The kind and the name of the item that a line declares, if it is public outside of its crate.
fn public_item(line: &str) -> Option<(&str, &str)> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split_whitespace().peekable();
    // `const fn`, `unsafe extern "C" fn`: the kind is the last of these words.
    let mut kind = words.next()?;
    while ["const", "unsafe", "async", "extern", "\"C\""].contains(&kind)
        && words.peek().is_some_and(|word| ["unsafe", "async", "extern", "\"C\"", "fn", "trait"].contains(word))
    {
        kind = words.next()?;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    let kinds = ["fn", "struct", "enum", "trait", "type", "union", "const", "static"];
    (kinds.contains(&kind) && end > 0).then(|| (kind, &name[..end]))
}

/// The public items of a text with their lines, and whether their doc comments have an example.
fn items(text: &str) -> Vec<(usize, String, bool)> {
    let (mut found, mut example, mut hidden) = (Vec::new(), false, false);
    for (k, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        // Tests follow the items of a file.
        if trimmed == "mod tests {" {
            break;
        }
        if trimmed.starts_with("///") {
            example |= trimmed.starts_with("/// ```");
        } else if trimmed.starts_with("#[") {
            hidden |= trimmed.starts_with("#[doc(hidden)]") || trimmed.starts_with("#[cfg(test)]");
        } else {
            if let Some((kind, name)) = public_item(line).filter(|_| !hidden) {
                found.push((k + 1, format!("{kind} {name}"), example));
            }
            (example, hidden) = (false, false);
        }
    }
    found
}

/// `cargo test --doc` runs the examples.
#[test]
fn documented_files_have_examples() {
    let mut paths = Vec::new();
    for documented in DOCUMENTED {
        let path = root().join(documented);
        match path.is_dir() {
            true => sources(&path, &mut paths),
            false => paths.push(path),
        }
    }
    let (mut mistakes, mut count) = (Vec::new(), 0);
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for (line, item, example) in items(&text) {
            count += 1;
            if !example {
                mistakes.push(format!("{}:{line}: `{item}`", relative(&path)));
            }
        }
    }
    assert!(count > 1000, "{count} items");
    assert!(mistakes.is_empty(), "write an example, of one to six lines, for:\n{}", mistakes.join("\n"));
}

#[test]
fn items_are_recognised() {
    let text = "\
/// One.
///
/// ```
/// assert!(true);
/// ```
#[derive(Clone)]
pub struct One(pub u32);
/// Two.
pub const unsafe extern \"C\" fn two<T>() {}
    /// Three.
    #[doc(hidden)]
    pub fn three() {}
pub(crate) fn four() {}
pub const FIVE: u32 = 5;
pub use six::Six;
    pub field: u32,
#[cfg(test)]
pub fn seven() {}
mod tests {
    pub fn eight() {}
";
    let found: Vec<(usize, String, bool)> = items(text);
    let expected = [(7, "struct One", true), (9, "fn two", false), (14, "const FIVE", false)];
    assert!(found.iter().map(|(line, item, example)| (*line, item.as_str(), *example)).eq(expected), "{found:?}");
}
