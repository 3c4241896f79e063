//! Counting how often the bodies of loops run, where that is asked for: which variables belong to which loop of the program, and
//! counters where no loop of the kernel has as many turns.
//!
//! A loop of the kernel whose every turn runs the body is marked, and counted when the kernel is done (`counts`): nothing is added
//! to it, so that it is optimised like any other. Bodies that run at single coordinates (of merges, spikes, windows) have a counter.

use super::Lowerer;
use tamis_ir::Value;
use tamis_ir::algebra::DType;
use tamis_ir::kernel::{BufferId, Elem, Origin, Role, Stmt, VarId};
use tamis_ir::program::IndexId;

impl Lowerer<'_> {
    /// Visits are counted from here on.
    pub(super) fn count_visits(&mut self) {
        self.visits = Some(vec![None; self.program.indices.len()]);
    }

    /// The body of a loop at one coordinate, with a counter.
    pub(super) fn with_visit(&mut self, index: IndexId, mut block: Vec<Stmt>) -> Vec<Stmt> {
        let Some(known) = self.visits.as_ref().filter(|_| !block.is_empty()).map(|visits| visits[index.index()]) else {
            return block;
        };
        let var = match known {
            Some(var) => var,
            None => {
                let name = format!("{}_visits", self.program.indices[index.index()]);
                let var = self.b.new_var(name, DType::I64, true);
                let value = self.b.int(0);
                self.prologue.push(Stmt::Let { var, value });
                if let Some(visits) = &mut self.visits {
                    visits[index.index()] = Some(var);
                }
                var
            }
        };
        let (before, one) = (self.b.get(var), self.b.int(1));
        let value = self.b.add(before, one);
        block.insert(0, Stmt::Assign { var, value });
        block
    }

    /// The body of a loop of the kernel that runs in each of its turns: the loop is counted, so the body is not.
    pub(super) fn visited_by(&mut self, index: IndexId, counter: VarId, mut body: Vec<Stmt>) -> Vec<Stmt> {
        let Some(Some(visits)) = self.visits.as_ref().map(|visits| visits[index.index()]) else { return body };
        let marked = |stmt: &Stmt| matches!(stmt, Stmt::Assign { var, .. } if *var == visits);
        // Names may be bound before it.
        if let Some(place) = body.iter().position(marked) {
            body.remove(place);
            self.b.set_origin(counter, Some(Origin { index: index.0, visits: true }));
        }
        body
    }

    /// Variables from this one on belong to a loop, unless they belong to one inside.
    pub(super) fn own_variables(&mut self, index: IndexId, first: usize) {
        if self.visits.is_none() {
            return;
        }
        for k in first..self.b.kernel().vars.len() {
            if self.b.kernel().vars[k].origin.is_none() {
                self.b.set_origin(VarId(k as u32), Some(Origin { index: index.0, visits: false }));
            }
        }
    }

    /// Writes the counters at the end of the kernel, each at the number of its index.
    pub(super) fn store_visits(&mut self) -> Option<BufferId> {
        let visits = self.visits.take()?;
        let buffer = self.b.buffer("counts", Elem::Value(DType::I64), Role::Output);
        let len = self.b.int(visits.len() as i64);
        self.b.emit(Stmt::Grow { buffer, len, fill: Some(Value::I64(0)) });
        for (k, var) in visits.into_iter().enumerate() {
            if let Some(var) = var {
                let (place, value) = (self.b.int(k as i64), self.b.get(var));
                self.b.store(buffer, place, value);
            }
        }
        Some(buffer)
    }
}
