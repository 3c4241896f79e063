//! Idle analysis: whether a loop body has no effect at coordinates that a tensor does not store.

use super::edit::ProgramEdit;
use super::legal::writes_each_once;
use super::pos::same;
use crate::lower::Policy;
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::{DType, Op, Value, eval};
use tamis_ir::format::{Format, Leaf};
use tamis_ir::program::{
    Access, Block, Expr, ExprId, IndexId, ParamType, Program, Stmt, StmtKind, TensorId, Types, VarId, visit_block,
};

/// The first statement of a loop that has an effect where an access to a parameter is the fill, and
/// that fill.
pub(super) fn busy(work: &ProgramEdit, index: IndexId, access: &Access, format: &Format) -> Option<(Stmt, Value)> {
    let (stmt, fills) = busy_without(work, index, &[(access, format)])?;
    Some((stmt, fills.first().copied().unwrap_or(Value::I64(0))))
}

/// The first statement of a loop that has an effect where all of these accesses are their fills,
/// and the fills.
pub(super) fn busy_without(
    work: &ProgramEdit,
    index: IndexId,
    accesses: &[(&Access, &Format)],
) -> Option<(Stmt, Vec<Value>)> {
    let stmt = work.loop_of(index).ok()?;
    let StmtKind::For { body, .. } = &stmt.kind else { return None };
    let program = &work.program;
    let checked = work.checked;
    let param = |id: &TensorId| {
        let shape = checked.extents.shapes.get(id.index()).map_or(Vec::new(), |s| s.iter().map(|n| Some(*n)).collect());
        let dtype = checked.types.tensors.get(id.index()).copied().unwrap_or(DType::F64);
        ParamType { dtype, shape, value: None, weak: false }
    };
    let params: Vec<ParamType> = program.params.iter().map(param).collect();
    let Ok(types) = program.infer_types(&params) else { return Some((stmt.clone(), Vec::new())) };
    let fill = |(access, format): &(&Access, &Format)| {
        let dtype = types.tensors.get(access.tensor.index()).copied().unwrap_or(DType::F64);
        match format.leaf() {
            Leaf::Pattern => Value::Bool(false),
            Leaf::Element(fill) => fill.map_or(Value::zero(dtype), |fill| fill.cast(dtype)),
        }
    };
    let fills: Vec<(&Access, Value)> = accesses.iter().map(|one| (one.0, fill(one))).collect();
    let mut private = FxHashSet::default();
    visit_block(body, &mut |stmt| {
        if let StmtKind::Declare(tensor) = &stmt.kind {
            private.insert(*tensor);
        }
    });
    let mut known =
        KnownValues { program, types: &types, fills: &fills, private, vars: FxHashMap::default(), policy: work.policy };
    known.busy(body).map(|stmt| (stmt, fills.iter().map(|(_, fill)| *fill).collect()))
}

/// KnownValues values at coordinates without stored elements.
struct KnownValues<'a> {
    program: &'a Program,
    types: &'a Types,
    fills: &'a [(&'a Access, Value)],
    /// Values that live for one iteration of the loop.
    private: FxHashSet<TensorId>,
    vars: FxHashMap<VarId, Value>,
    policy: Policy,
}

impl KnownValues<'_> {
    fn busy(&mut self, block: &Block) -> Option<Stmt> {
        block.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Declare(_) => None,
            StmtKind::Let { var, value } => {
                if let Some(value) = self.value(*value) {
                    self.vars.insert(*var, value);
                }
                None
            }
            StmtKind::For { body, .. } => self.busy(body),
            StmtKind::If { cond, then, otherwise } => match self.value(*cond).map(Value::is_truthy) {
                Some(true) => self.busy(then),
                Some(false) => self.busy(otherwise),
                None => self.busy(then).or_else(|| self.busy(otherwise)),
            },
            StmtKind::Assign { target, update, value } => {
                if self.private.contains(&target.tensor) {
                    return None;
                }
                let value = self.value(*value);
                let dtype = self.types.tensors.get(target.tensor.index()).copied().unwrap_or(DType::F64);
                let nothing = match update {
                    Some(update) => {
                        let operand = self.types.updates.get(&stmt.id).copied().unwrap_or(dtype);
                        let [_, identity] = self.policy.identities(update.op, operand);
                        let is = |value: Value| identity.is_some_and(|e| value.cast(operand).same_number(e));
                        let keeps = self.types.identity_keeps(target.tensor, operand);
                        update.extra.is_empty() && keeps && value.is_some_and(is)
                    }
                    None => {
                        let fill = self.types.fills.get(target.tensor.index()).copied();
                        let is = |value: Value| fill.is_some_and(|fill| value.cast(dtype).same_number(fill));
                        value.is_some_and(is) && writes_each_once(self.program, stmt)
                    }
                };
                (!nothing).then(|| stmt.clone())
            }
        })
    }

    /// The constant value of an expression, if it is known.
    fn value(&self, id: ExprId) -> Option<Value> {
        match self.program.expr(id) {
            Expr::Literal(value) => Some(*value),
            Expr::Var(var) => self.vars.get(var).copied(),
            Expr::Read(access) => self.fills.iter().find(|(other, _)| same(access, other)).map(|(_, fill)| *fill),
            Expr::Call(op, operands) => self.call(*op, self.types.operands.get(id.index()).copied()?, operands),
            Expr::Index(_) | Expr::Size(..) | Expr::Entry(_) => None,
        }
    }

    fn call(&self, op: Op, dtype: DType, operands: &[ExprId]) -> Option<Value> {
        let values: Vec<Option<Value>> = operands.iter().map(|e| self.value(*e)).collect();
        match op {
            Op::Select => {
                let chosen = match values.first().copied().flatten() {
                    Some(cond) => values.get(if cond.is_truthy() { 1 } else { 2 }).copied().flatten(),
                    None => match values[..] {
                        [_, Some(a), Some(b)] if a.cast(dtype).same_number(b.cast(dtype)) => Some(a),
                        _ => None,
                    },
                };
                return chosen.map(|value| value.cast(dtype));
            }
            Op::Coalesce => return values.first().copied().flatten().map(|value| value.cast(dtype)),
            _ => {}
        }
        if let Some(result) = self.policy.decided(op, dtype, values.iter().copied()) {
            return Some(result);
        }
        let values: Option<Vec<Value>> = values.into_iter().collect();
        Some(eval(op, dtype, &values?))
    }
}
