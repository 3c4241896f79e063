//! Prediction: the iteration counts that the cost model expects of a scheduled program, for
//! comparison with measured counts. The final program differs from the one that the order search
//! saw: loops were tiled, fused, and given workspaces. So the model is evaluated again for each
//! assignment in its enclosing loops.

use super::formats::expect;
use super::model::Costs;
use super::operand::OperandStatistics;
use super::order::Problem;
use super::sets::{OperandAccess, Set, combined};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use tamis_ir::algebra::Constant;
use tamis_ir::algebra::Op;
use tamis_ir::program::{
    Access, Block, Checked, Expr, ExprId, IndexId, LoopExtent, Program, StmtKind, TensorId, VarId,
};
use tamis_ir::{DType, Format, Value};

/// The maximum loop depth: sets of loops are bit masks.
const DEEPEST: usize = 32;

/// The budget of visited operands per assignment, since bound names can expand exponentially.
const PATIENCE: usize = 10_000;

/// The prediction for a loop.
///
/// ```
/// use tamis_compiler::auto::Prediction;
/// let dense = Prediction { trips: 100.0, from: Vec::new() };
/// assert!(dense.from.is_empty(), "no sparse tensor decides it");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// The number of executions of its body.
    pub trips: f64,
    /// The sparse tensors that the prediction is based on, and whether their statistics were
    /// measured.
    pub from: Vec<(String, bool)>,
}

/// The predictions for all loops, by index id; none where the model has no estimate. `operands`:
/// statistics of the parameters.
///
/// ```
/// use tamis_compiler::auto::{Costs, describe, predict};
/// use tamis_ir::{Format, Notation, Value};
/// use tamis_tensor::Tensor;
/// let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (types, operands) = describe(&[&a]);
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let loops = predict(&program, &program.check(&types)?, &operands, &Costs::default());
/// assert_eq!(loops[0].as_ref().unwrap().trips, 2.0, "two rows");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub fn predict(
    program: &Program,
    checked: &Checked,
    operands: &[OperandStatistics],
    costs: &Costs,
) -> Vec<Option<Prediction>> {
    let mut known: FxHashMap<TensorId, OperandStatistics> =
        program.params.iter().copied().zip(operands.iter().cloned()).collect();
    let mut lets: FxHashMap<VarId, ExprId> = FxHashMap::default();
    program.visit(&mut |stmt| {
        if let StmtKind::Let { var, value } = &stmt.kind {
            lets.insert(*var, *value);
        }
    });
    let mut found = vec![None; program.indices.len()];
    let mut walk = Walk {
        program,
        checked,
        costs,
        lets,
        left: Cell::new(0),
        declared: FxHashMap::default(),
        known: &mut known,
        found: &mut found,
    };
    walk.block(&program.body, &mut Vec::new());
    found
}

struct Walk<'a> {
    program: &'a Program,
    checked: &'a Checked,
    costs: &'a Costs,
    lets: FxHashMap<VarId, ExprId>,
    /// The remaining budget of visited operands.
    left: Cell<usize>,
    /// The loop depth of each tensor's declaration.
    declared: FxHashMap<TensorId, usize>,
    /// Statistics of tensors; of temporaries from their first assignment on.
    known: &'a mut FxHashMap<TensorId, OperandStatistics>,
    found: &'a mut [Option<Prediction>],
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, around: &mut Vec<IndexId>) {
        for stmt in block {
            match &stmt.kind {
                StmtKind::For { index, body, .. } => {
                    around.push(*index);
                    self.block(body, around);
                    around.pop();
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.block(then, around);
                    self.block(otherwise, around);
                }
                StmtKind::Assign { target, update, value } => {
                    self.assignment(target, update.as_ref().map(|update| update.op), *value, around);
                }
                StmtKind::Declare(tensor) => {
                    self.declared.insert(*tensor, around.len());
                }
                StmtKind::Let { .. } => {}
            }
        }
    }

    fn assignment(&mut self, target: &Access, update: Option<Op>, value: ExprId, around: &[IndexId]) {
        if around.is_empty() || around.len() > DEEPEST {
            return;
        }
        self.left.set(PATIENCE);
        let mut places = Vec::new();
        let (set, constant) = self.differs(value, around, &mut places);
        let idle = match update {
            // Coordinates where the value is the identity are not visited.
            Some(op) => {
                let operand = op.operand_type(DType::F64);
                let identity = if op == Op::Sub { Some(Constant::Zero) } else { op.info().right_identity };
                let identity = identity.and_then(|constant| constant.value(operand));
                constant.zip(identity).is_some_and(|(c, i)| c.cast(operand).same_number(i))
            }
            None => constant.is_some_and(|c| c.cast(DType::F64).same_number(self.fill(target.tensor))),
        };
        let set = if idle { set } else { Set::All };
        let extents: Vec<f64> = around.iter().map(|index| self.extent(*index)).collect();
        let mask = |access: &Access| access.subscripts.iter().map(|s| self.mask(s.expr, around)).collect::<Vec<u32>>();
        let written = mask(target);
        // A tensor declared inside a loop is fresh in each iteration.
        let depth = self.declared.get(&target.tensor).map_or(0, |depth| (*depth).min(around.len()));
        let outside = (0..depth).fold(0u32, |all, k| all | 1 << k);
        let problem = Problem {
            indices: around.iter().map(|index| self.program.indices[index.index()].clone()).collect(),
            extents,
            free: written.iter().fold(outside, |all, mask| all | mask),
            places,
            set,
            everywhere: false,
            operations: 1.0,
            target: Vec::new(),
            dense: true,
            expected: 1.0,
            stored: None,
        };
        let order: Vec<usize> = (0..around.len()).collect();
        let trips = problem.trips(self.costs, &order);
        let from: Vec<(String, bool)> = problem
            .places
            .iter()
            .filter(|place| !place.operand.is_dense())
            .map(|place| (place.tensor.clone(), place.operand.measured))
            .collect();
        for (index, trips) in around.iter().zip(trips) {
            let row = self.found[index.index()].get_or_insert_default();
            // The iteration space of a shared loop is the union over its statements.
            row.trips = row.trips.max(trips);
            for source in &from {
                if !row.from.contains(source) {
                    row.from.push(source.clone());
                }
            }
        }
        // Later statements see the statistics of its result.
        let before = written.iter().rev().skip(1).fold(outside, |all, mask| all | mask);
        let times = if outside == 0 { 1.0 } else { problem.points(outside) };
        let expected = expect(&problem, before, problem.free);
        self.learn(target.tensor, if times > 0.0 { expected / times } else { 0.0 });
    }

    fn learn(&mut self, tensor: TensorId, entries: f64) {
        let k = tensor.index();
        let shape: Vec<f64> = self.checked.extents.shapes[k].iter().map(|n| *n as f64).collect();
        let cells: f64 = shape.iter().product();
        let format = self.checked.formats[k].clone().unwrap_or_else(|| Format::dense(shape.len()));
        let dtype = self.checked.types.tensors[k];
        let entries = if format.is_all_dense() { cells } else { entries.min(cells) };
        let entries = self.known.get(&tensor).map_or(entries, |before| before.entries.max(entries));
        let fill = self.fill(tensor);
        let mut operand =
            OperandStatistics { format, dtype, fill, shape, entries, prefixes: Vec::new(), measured: false };
        operand.spread();
        self.known.insert(tensor, operand);
    }

    fn fill(&self, tensor: TensorId) -> Value {
        match self.known.get(&tensor) {
            Some(operand) => operand.fill.cast(DType::F64),
            None => match self.checked.formats[tensor.index()].as_ref().map(|format| format.leaf()) {
                Some(tamis_ir::format::Leaf::Element(Some(fill))) => fill.cast(DType::F64),
                _ => Value::F64(0.0),
            },
        }
    }

    fn extent(&self, index: IndexId) -> f64 {
        match self.checked.extents.loops[index.index()] {
            LoopExtent::Static { start, stop } => (stop - start).max(0) as f64,
            LoopExtent::Dynamic => 1.0,
        }
    }

    fn goes_on(&self) -> bool {
        self.left.replace(self.left.get().saturating_sub(1)) > 0
    }

    /// The loops whose indices occur in an expression.
    fn mask(&self, expr: ExprId, around: &[IndexId]) -> u32 {
        if !self.goes_on() {
            return 0;
        }
        match self.program.expr(expr) {
            Expr::Index(index) => around.iter().position(|other| other == index).map_or(0, |k| 1 << k),
            Expr::Var(var) => self.lets.get(var).map_or(0, |value| self.mask(*value, around)),
            other => other.operands().into_iter().fold(0, |all, operand| all | self.mask(operand, around)),
        }
    }

    /// The set where an expression differs from its constant background, and that constant.
    fn differs(&self, expr: ExprId, around: &[IndexId], places: &mut Vec<OperandAccess>) -> (Set, Option<Value>) {
        if !self.goes_on() {
            return (Set::All, None);
        }
        match self.program.expr(expr) {
            Expr::Literal(value) => (Set::Nothing, Some(*value)),
            Expr::Var(var) => match self.lets.get(var) {
                Some(value) => self.differs(*value, around, places),
                None => (Set::All, None),
            },
            Expr::Read(access) => {
                let operand = self.known.get(&access.tensor).filter(|o| o.shape.len() == access.subscripts.len());
                let Some(operand) = operand else { return (Set::All, None) };
                let background = operand.background();
                let place = OperandAccess {
                    mask: false,
                    tensor: self.program.tensor(access.tensor).name.clone(),
                    subscripts: Vec::new(),
                    dims: access.subscripts.iter().map(|s| self.mask(s.expr, around)).collect(),
                    operand: operand.clone(),
                    relaid: false,
                    kept: false,
                    extents: around.iter().map(|index| self.extent(*index)).collect(),
                };
                let same = |other: &OperandAccess| other.tensor == place.tensor && other.dims == place.dims;
                let number = places.iter().position(same).unwrap_or(places.len());
                if number == places.len() {
                    places.push(place);
                }
                match background {
                    Some(fill) => (Set::Stored(number), Some(fill)),
                    None => (Set::All, None),
                }
            }
            Expr::Call(op, operands) => {
                combined(*op, operands.iter().map(|operand| self.differs(*operand, around, places)).collect())
            }
            Expr::Index(_) | Expr::Size(..) | Expr::Entry(_) => (Set::All, None),
        }
    }
}
