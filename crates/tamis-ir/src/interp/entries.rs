//! Queries of stored entries (`A.nnz`, `A.coords`, `A.data`, `A.first`), in storage order.

use super::{Operand, ProgramInterpreter, Seen};
use crate::algebra::Value;
use crate::diag::{Code, Diagnostic, Result};
use crate::program::{Entry, EntryPart, Program};

/// All entries of a tensor.
pub(super) struct StoredEntries {
    /// For each entry, its coordinates in the order of levels.
    stored: Vec<(Vec<u64>, Value)>,
    /// The dimension that each level stores.
    order: Vec<usize>,
}

impl StoredEntries {
    fn of(operand: &dyn Operand) -> StoredEntries {
        let order = operand.storage_order();
        let mut stored = Vec::new();
        operand.for_each_stored(&mut |coordinates, value| {
            stored.push((order.iter().map(|dim| coordinates[*dim]).collect(), value));
        });
        StoredEntries { stored, order }
    }

    /// The entries of the parameters that a program queries.
    pub(super) fn of_all(program: &Program, params: &[&dyn Operand]) -> Vec<Option<StoredEntries>> {
        let mut found: Vec<Option<StoredEntries>> = program.tensors.iter().map(|_| None).collect();
        for id in program.exprs.ids() {
            if let crate::program::Expr::Entry(entry) = program.expr(id)
                && let Some(param) = program.params.iter().position(|other| *other == entry.tensor)
            {
                found[entry.tensor.index()].get_or_insert_with(|| StoredEntries::of(params[param]));
            }
        }
        found
    }

    /// The number of stored elements before these coordinates of the outermost levels.
    fn before(&self, coordinates: &[i64]) -> usize {
        self.stored.partition_point(|(stored, _)| {
            let pairs = stored.iter().map(|c| i128::from(*c)).zip(coordinates.iter().map(|c| i128::from(*c)));
            pairs.into_iter().find(|(a, b)| a != b).is_some_and(|(a, b)| a < b)
        })
    }
}

impl ProgramInterpreter<'_> {
    /// Answers a query about stored elements.
    pub(super) fn entry(&mut self, entry: &Entry) -> Result<Seen> {
        let at = entry.at.iter().map(|e| self.integer(*e)).collect::<Result<Vec<i64>>>()?;
        let known = |value| Ok(Seen { value: Some(value), structural: false });
        let Some(entries) = &self.entries[entry.tensor.index()] else { return known(Value::I64(0)) };
        let count = entries.stored.len();
        let found = match (entry.what, at.first()) {
            (EntryPart::Count, _) => return known(Value::I64(count as i64)),
            (EntryPart::First, _) => return known(Value::I64(entries.before(&at) as i64)),
            (_, Some(number)) => usize::try_from(*number).ok().and_then(|number| entries.stored.get(number)),
            (_, None) => None,
        };
        let Some((coordinates, value)) = found else {
            let name = &self.program.tensor(entry.tensor).name;
            let (shown, number) = match (entry.at.first(), at.first()) {
                (Some(expr), Some(number)) => (self.program.show(*expr), *number),
                _ => (String::new(), 0),
            };
            let message = format!("`{shown}` is {number}, but `{name}` stores {count} elements");
            let mut d = Diagnostic::new(Code::E1001, message);
            if let Some(expr) = entry.at.first() {
                d = d.label(self.program.origin.expr(self.stmt, *expr), format!("is {number} here"));
            }
            if !self.program.indices.is_empty() {
                d = d.note(self.where_loops_stand());
            }
            return Err(d.help(format!("positions start at 0: loop over `range({name}.nnz)`")));
        };
        match entry.what {
            EntryPart::Coordinate(dim) => {
                let level = entries.order.iter().position(|d| *d == dim).unwrap_or(0);
                known(Value::I64(coordinates[level] as i64))
            }
            _ => known(*value),
        }
    }
}
