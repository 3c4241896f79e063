//! Diagnostics of a schedule in the words of its notation.
//!
//! In: a diagnostic about the program of a plan, which may name conversions of operands, inserted
//! workspaces and loops over blocks. Out: the same diagnostic with the names that the notation has.

use super::{Conversion, NotationPlan};
use tamis_ir::Diagnostic;

impl NotationPlan {
    /// A diagnostic about the program, with the notation's names: an operand that was converted is
    /// called by its own name, and a note says that it was converted.
    ///
    /// ```
    /// # use tamis_compiler::auto::{Conversion, Costs, Pins, describe, schedule};
    /// # use tamis_ir::{Code, Diagnostic, Format, Notation, Value};
    /// # use tamis_tensor::Tensor;
    /// # let values = vec![1.0, 0.0, 0.0, 4.0].into();
    /// # let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
    /// # let (types, operands) = describe(&[&a]);
    /// # let sums = Notation::parse("y[i] = A[i,j]")?;
    /// let mut plan = schedule(&sums, &types, &operands, &Costs::default(), &Pins::default())?;
    /// let conversion = Conversion { source: "A".into(), name: "A_csc".into(), format: Format::csc() };
    /// plan.conversions.push(conversion);
    /// let d = plan.in_notation(&Diagnostic::warning(Code::E0607, "`A_csc` is searched"));
    /// assert_eq!(d.message, "`A` is searched");
    /// assert!(d.notes[0].contains("`A` was converted to `csc`"));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn in_notation(&self, d: &Diagnostic) -> Diagnostic {
        let mut d = d.clone();
        let mentions =
            |text: &str, name: &str| text.contains(&format!("`{name}`")) || text.contains(&format!("`{name}["));
        for Conversion { source, name, format } in &self.conversions {
            if !mentions(&d.message, name) && !d.labels.iter().any(|label| mentions(&label.message, name)) {
                continue;
            }
            // Its format was chosen for these loops, not by the user.
            d.help.retain(|help| !help.starts_with(&format!("store `{name}` as")));
            d.notes.push(format!("`{source}` was converted to `{format}` for the order of the loops"));
        }
        let renamed = |text: &str| {
            let mut text = text.to_string();
            for Conversion { source, name, .. } in &self.conversions {
                text = text.replace(&format!("`{name}`"), &format!("`{source}`"));
                text = text.replace(&format!("`{name}["), &format!("`{source}["));
            }
            for info in self.meaning.tensors.iter().filter(|info| info.declaration.is_some()) {
                text = text.replace(&format!("`{}_w`", info.name), &format!("the workspace of `{}`", info.name));
            }
            for index in &self.meaning.indices {
                text = text.replace(&format!("`{index}_block`"), &format!("blocks of `{index}`"));
            }
            text
        };
        d.message = renamed(&d.message);
        d.notes = d.notes.iter().map(|note| renamed(note)).collect();
        d.help = d.help.iter().map(|help| renamed(help)).collect();
        for label in &mut d.labels {
            label.message = renamed(&label.message);
        }
        d
    }
}
