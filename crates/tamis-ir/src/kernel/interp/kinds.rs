//! Interpretation of loops by their kinds: parallel iterations in another order, watched by the race
//! detector, and vector iterations in lockstep.

use super::races::Log;
use super::{Failure, KernelInterpreter};
use crate::algebra::{Value, eval};
use crate::kernel::loops::{Reduction, reductions};
use crate::kernel::{ExprId, LoopKind, Stmt, Tail, VarId};

/// The variables of one lane.
type Lane = Vec<Option<Value>>;

impl KernelInterpreter<'_> {
    /// Runs the iterations from the last to the first, up to each barrier; no two may race.
    pub(super) fn concurrent(
        &mut self,
        var: VarId,
        (start, stop): (i64, i64),
        kind: LoopKind,
        body: &[Stmt],
    ) -> Result<(), Failure> {
        let kernel = self.kernel;
        self.logs.get_mut().push(Log::new(kernel.var(var).name.clone(), kind));
        for segment in body.split(|stmt| matches!(stmt, Stmt::Barrier)) {
            for i in (start..stop.max(start)).rev() {
                self.vars[var.index()] = Some(Value::I64(i));
                self.counts[var.index()] += 1;
                if let Some(log) = self.logs.get_mut().last_mut() {
                    log.iteration = i;
                }
                self.block(segment)?;
            }
            if let Some(log) = self.logs.get_mut().last_mut() {
                log.clear(|buffer| kernel.buffers[buffer].role.space());
            }
        }
        self.logs.get_mut().pop();
        Ok(())
    }

    /// Runs `lanes` iterations at once. Each lane has an accumulator for each reduction, which are
    /// combined behind the loop.
    pub(super) fn vector_loop(
        &mut self,
        var: VarId,
        range: (i64, i64),
        (lanes, tail): (u16, Tail),
        body: &[Stmt],
    ) -> Result<(), Failure> {
        let (mut at, stop) = range;
        let lanes = i64::from(lanes);
        let mut declared = Vec::new();
        body.iter().for_each(|stmt| stmt.visit(&mut |stmt| declared.extend(stmt.declares())));
        let found = match reductions(self.kernel, body, &declared) {
            Ok(found) => found,
            Err(var) => return self.wrong(format!("`{}` is no reduction", self.kernel.var(var).name)),
        };
        let before: Vec<Option<Value>> = found.iter().map(|reduction| self.vars[reduction.var.index()]).collect();
        let mut sums: Vec<Vec<Value>> = Vec::new();
        for Reduction { var, op } in &found {
            let identity = op.info().left_identity.and_then(|e| e.value(self.kernel.var(*var).dtype));
            let Some(identity) = identity else { return self.wrong("a reduction has no identity".into()) };
            sums.push(vec![identity; lanes as usize]);
        }
        let enough = stop.saturating_sub(at) >= lanes;
        while at < stop {
            let left = (stop - at).min(lanes);
            let (first, count) = match tail {
                _ if left == lanes => (at, lanes),
                Tail::Masked => (at, left),
                Tail::Overlapping if enough => (stop - lanes, lanes),
                Tail::Overlapping | Tail::Remainder => (at, 1),
            };
            let mut states: Vec<Lane> = (0..count).map(|k| self.lane(var, first + k, &found, &sums, k)).collect();
            self.counts[var.index()] += count as u64;
            let active: Vec<usize> = (0..states.len()).collect();
            self.lockstep(body, &mut states, &active)?;
            for (Reduction { var, .. }, sums) in found.iter().zip(&mut sums) {
                for (sum, state) in sums.iter_mut().zip(&states) {
                    *sum = state[var.index()].unwrap_or(*sum);
                }
            }
            at = first + count;
        }
        for ((Reduction { var, op }, sums), before) in found.iter().zip(sums).zip(before) {
            let dtype = self.kernel.var(*var).dtype;
            let sum = halved(sums, |a, b| eval(*op, dtype, &[a, b]));
            self.vars[var.index()] = before.zip(sum).map(|(before, sum)| eval(*op, dtype, &[before, sum]));
        }
        Ok(())
    }

    /// The variables of a lane before its iteration.
    fn lane(&self, var: VarId, i: i64, found: &[Reduction], sums: &[Vec<Value>], k: i64) -> Lane {
        let mut state = self.vars.clone();
        state[var.index()] = Some(Value::I64(i));
        for (reduction, sums) in found.iter().zip(sums) {
            state[reduction.var.index()] = sums.get(k as usize).copied();
        }
        state
    }

    /// Runs each statement for all active lanes before the next one: first all lanes evaluate its
    /// expressions, then all write.
    fn lockstep(&mut self, block: &[Stmt], states: &mut [Lane], active: &[usize]) -> Result<(), Failure> {
        for stmt in block {
            self.budget = self.budget.checked_sub(1).ok_or(Failure::Budget)?;
            match stmt {
                Stmt::Let { var, value } | Stmt::Assign { var, value } => {
                    let values = self.in_lanes(*value, states, active)?;
                    for (k, value) in active.iter().zip(values) {
                        states[*k][var.index()] = Some(value);
                    }
                }
                Stmt::Store { buffer, index, value } => {
                    let places = self.in_lanes(*index, states, active)?;
                    let values = self.in_lanes(*value, states, active)?;
                    for (place, value) in places.into_iter().zip(values) {
                        self.store(buffer.index(), place.as_i64().unwrap_or(-1), value)?;
                    }
                }
                Stmt::Update { buffer, index, op, value } => {
                    let places = self.in_lanes(*index, states, active)?;
                    let values = self.in_lanes(*value, states, active)?;
                    for (place, value) in places.into_iter().zip(values) {
                        self.update(buffer.index(), place.as_i64().unwrap_or(-1), *op, value)?;
                    }
                }
                Stmt::If { cond, then, otherwise } => {
                    let holds = self.in_lanes(*cond, states, active)?;
                    let lanes = active.iter().copied().zip(holds.iter().map(|value| value.is_truthy()));
                    let (yes, no): (Vec<_>, Vec<_>) = lanes.partition(|(_, holds)| *holds);
                    let lanes = |of: Vec<(usize, bool)>| of.into_iter().map(|(k, _)| k).collect::<Vec<_>>();
                    self.lockstep(then, states, &lanes(yes))?;
                    self.lockstep(otherwise, states, &lanes(no))?;
                }
                Stmt::Prefetch { .. } => {}
                _ => return self.wrong(format!("{} cannot be in a vector loop", stmt.kind())),
            }
        }
        Ok(())
    }

    /// The value of an expression in each active lane.
    fn in_lanes(&mut self, id: ExprId, states: &mut [Lane], active: &[usize]) -> Result<Vec<Value>, Failure> {
        let mut values = Vec::with_capacity(active.len());
        for k in active {
            std::mem::swap(&mut self.vars, &mut states[*k]);
            let value = self.eval(id);
            std::mem::swap(&mut self.vars, &mut states[*k]);
            values.push(value?);
        }
        Ok(values)
    }

    /// All lanes of an expression, as many as another one has.
    pub(super) fn all_lanes(&self, id: ExprId, like: ExprId) -> Result<Vec<Value>, Failure> {
        (0..self.kernel.exprs.lanes(like)).map(|lane| self.eval_at(id, lane)).collect()
    }

    /// The lanes of a reduction across lanes, combined.
    pub(super) fn reduced(&self, op: crate::algebra::Op, value: ExprId) -> Result<Value, Failure> {
        let dtype = self.kernel.exprs.dtype(value);
        let lanes = self.all_lanes(value, value)?;
        match halved(lanes, |a, b| eval(op, dtype, &[a, b])) {
            Some(value) => Ok(value),
            None => self.wrong("a vector has no lanes".into()),
        }
    }
}

/// Values combined with those half their number behind, until one remains.
fn halved(mut values: Vec<Value>, combine: impl Fn(Value, Value) -> Value) -> Option<Value> {
    while values.len() > 1 {
        let upper = values.split_off(values.len() / 2);
        values.iter_mut().zip(upper).for_each(|(a, b)| *a = combine(*a, b));
    }
    values.pop()
}
