//! Visit counts: instrumentation of loop bodies, and the loop of the program that each variable
//! belongs to.
//!
//! A loop of the kernel whose every iteration runs the body is marked, and counted when the kernel
//! is complete (`counts`), so instrumentation does not change its optimisation. Bodies that run at
//! single coordinates (of merges, spikes, windows) increment a counter.

use super::Lowerer;
use tamis_ir::Value;
use tamis_ir::algebra::DType;
use tamis_ir::kernel::{BufferId, Elem, Origin, Role, Stmt, VarId};
use tamis_ir::program::IndexId;

impl Lowerer<'_> {
    /// Enables counting from here on.
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

    /// Removes the counter from the body of a loop that runs it in every iteration; the loop is
    /// counted instead.
    pub(super) fn visited_by(&mut self, index: IndexId, counter: VarId, mut body: Vec<Stmt>) -> Vec<Stmt> {
        let Some(Some(visits)) = self.visits.as_ref().map(|visits| visits[index.index()]) else { return body };
        let marked = |stmt: &Stmt| matches!(stmt, Stmt::Assign { var, .. } if *var == visits);
        // Names may be bound before the counter.
        if let Some(place) = body.iter().position(marked) {
            body.remove(place);
            self.b.set_origin(counter, Some(Origin { index: index.0, visits: true }));
        }
        body
    }

    /// Assigns variables from this one on to a loop, unless they belong to an inner one.
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

    /// Stores the counters at the end of the kernel, by index.
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
