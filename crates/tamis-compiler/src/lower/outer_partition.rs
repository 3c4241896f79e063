//! Outer-loop partition: kernels that run one partition of the outermost loop, so that several
//! threads with the same code run all of it.
//!
//! In: a program whose outermost loop `schedule::legal` certifies. Out: a kernel with the first and
//! last iteration as parameters, and the way in which results combine. A result whose outermost
//! level the loop subscripts is concatenated: the kernel writes its own rows, counted from 0 unless
//! the level lists them. A result with shared sparsity is written in place, at the positions of its
//! operand. Any other result is privatised, and reduced by the operator that updates it.

use super::Lowerer;
use super::bind::BoundStorage;
use super::node::{self, LoopBounds, Node, Step, visit_assigns};
use super::write_plan::WriteMode;
use crate::schedule::legal;
use tamis_ir::algebra::{Constant, DType, Kind, Op};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::format::DimExpr;
use tamis_ir::kernel::{Assumption, ExprId};
use tamis_ir::program::{IndexId, LoopExtent, StmtKind, TensorId};
use tamis_tensor::levels::{LevelType, Placement};

/// A partition of the outermost loop, and how its results combine.
///
/// ```
/// # use tamis_compiler::lower::{Policy, lower_partition, outer_partition::ResultShare};
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let lowered = lower_partition(&program, &program.check(&params)?, &layouts, Policy::default())?;
/// assert_eq!(lowered.partition.unwrap().shares, [ResultShare::Rows(1)]);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OuterPartition {
    /// The partitioned loop.
    pub index: IndexId,
    /// For each result of the program, in its order, the share of a partition.
    pub shares: Vec<ResultShare>,
}

/// A partition's share of a result.
///
/// ```
/// use tamis_compiler::lower::outer_partition::ResultShare;
/// use tamis_ir::algebra::Op;
/// assert_ne!(ResultShare::Private(Op::Add), ResultShare::Private(Op::Max));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResultShare {
    /// Rows of the outermost level: this many for each iteration, except in the last one.
    Rows(u64),
    /// Values at the positions of an operand, disjoint from those of all other partitions.
    Positions,
    /// A private copy; two of them are reduced by this operator.
    Private(Op),
}

/// The scalar parameters of a partition, after the sizes: the first iteration, one past the last
/// iteration, and its share of the work in units of 1 / [`WHOLE_SHARE`].
pub(crate) const PARTITION_SCALARS: [&str; 3] = ["part_start", "part_stop", "part_share"];

/// The share of all partitions together.
///
/// ```
/// use tamis_compiler::lower::outer_partition::WHOLE_SHARE;
/// let halves = [WHOLE_SHARE / 2, WHOLE_SHARE - WHOLE_SHARE / 2];
/// assert_eq!(halves[0] + halves[1], WHOLE_SHARE);
/// ```
pub const WHOLE_SHARE: i64 = 1 << 16;

/// The loop that a kernel runs a partition of.
#[derive(Clone, Debug)]
pub(super) struct PartitionedLoop {
    pub(super) index: IndexId,
    pub(super) start: ExprId,
    pub(super) stop: ExprId,
    result_share: ExprId,
    /// For each tensor whose outermost level does not list its rows, the first row of the
    /// partition.
    first_rows: Vec<Option<ExprId>>,
    pub(super) partition: OuterPartition,
}

impl Lowerer<'_> {
    /// Partitions the only loop nest of a program, or reports why that is impossible.
    pub(super) fn partition_loop(&mut self, body: &[Step]) -> Result<(), Diagnostic> {
        let partition = self.find_partition(body)?;
        let zero = self.b.int(0);
        let [start, stop, result_share] = PARTITION_SCALARS.map(|name| {
            let var = self.b.param(name, DType::I64);
            self.b.at_least(var, zero);
            self.b.get(var)
        });
        for (low, high) in [(zero, start), (start, stop)] {
            let fact = self.b.call_in(Op::Le, DType::I64, &[low, high]);
            self.b.assume(Assumption::Holds(fact));
        }
        let mut first_rows = vec![None; self.bound.len()];
        for (id, result_share) in self.program.results.iter().zip(&partition.shares) {
            let k = id.index();
            let ResultShare::Rows(unit) = result_share else { continue };
            if self.row(*id, 0).is_none_or(|row| row.write.placement() != Placement::Computed) {
                continue;
            }
            let (first, last) = match *unit {
                1 => (start, stop),
                unit => {
                    let unit = self.b.int(unit as i64);
                    let first = self.b.call_in(Op::Mul, DType::I64, &[start, unit]);
                    let last = self.b.call_in(Op::Mul, DType::I64, &[stop, unit]);
                    (first, self.b.call_in(Op::Min, DType::I64, &[last, self.bound[k].extents[0]]))
                }
            };
            first_rows[k] = Some(first);
            self.bound[k].extents[0] = self.b.sub(last, first);
        }
        self.partition =
            Some(PartitionedLoop { index: partition.index, start, stop, result_share, first_rows, partition });
        Ok(())
    }

    fn find_partition(&self, body: &[Step]) -> Result<OuterPartition, Diagnostic> {
        let mut loops = Vec::new();
        for step in body {
            match step {
                Step::Declare(..) | Step::Freeze(_) => {}
                Step::For(index, bounds, body) => loops.push((*index, bounds, body)),
                _ => return Err(self.not_partitioned("it has statements outside its loops")),
            }
        }
        let (index, bounds, inside) = match loops[..] {
            [] => return Err(self.not_partitioned("it has no loop")),
            [only] => only,
            // A nest that scatters into a workspace, and a nest that copies the workspace.
            [first, (_, _, copy)] if self.workspace_copy(copy).is_some() => first,
            _ => return Err(self.not_partitioned("it has several sequential loops")),
        };
        let extent = self.checked.extents.loops[index.index()];
        if !matches!(bounds, LoopBounds::Inferred) && !matches!(extent, LoopExtent::Static { .. }) {
            return Err(self.not_partitioned("the extent of its outermost loop is computed"));
        }
        let nest =
            self.program.body.iter().find(|stmt| matches!(stmt.kind, StmtKind::For { index: i, .. } if i == index));
        if let Some(nest) = nest {
            let formats = &self.checked.formats;
            legal::parts(self.program, nest, index, formats).map_err(|why| self.not_partitioned(&why))?;
        }
        let workspace_copy = loops.get(1).and_then(|(_, _, copy)| self.workspace_copy(copy));
        let mut shares = Vec::new();
        for id in &self.program.results {
            shares.push(match workspace_copy {
                None => self.result_share(*id, index, inside)?,
                Some((workspace, result)) if result == *id => {
                    ResultShare::Private(self.reduction_of(workspace, inside)?)
                }
                Some(_) => return Err(self.not_partitioned("it has several sequential loops")),
            });
        }
        Ok(OuterPartition { index, shares })
    }

    /// The workspace and the result of a nest that only copies one to the other, element by
    /// element.
    fn workspace_copy(&self, nest: &[Step]) -> Option<(TensorId, TensorId)> {
        match nest {
            [Step::For(_, LoopBounds::Inferred, body)] => self.workspace_copy(body),
            [Step::Assign(target, None, Node::Access(access))] => {
                let node::ReadSource::Tensor(from, subs) = &access.source else { return None };
                let plain = |sub: &node::Sub| {
                    !sub.permissive && sub.projection == node::Projection::Whole && matches!(sub.node, Node::Index(_))
                };
                let same = self.bound[from.index()].fill.same_number(self.bound[target.tensor.index()].fill)
                    && self.bound[from.index()].dtype == self.bound[target.tensor.index()].dtype;
                let all = |subs: &[node::Sub]| subs.iter().all(plain);
                (same && all(subs) && all(&target.subs) && !self.program.params.contains(from))
                    .then_some((*from, target.tensor))
            }
            _ => None,
        }
    }

    fn result_share(&self, tensor: TensorId, index: IndexId, body: &[Step]) -> Result<ResultShare, Diagnostic> {
        if self.shared_sparsity(tensor).is_some() {
            return Ok(ResultShare::Positions);
        }
        if let Some(unit) = self.rows_per_iteration(tensor, index, body) {
            return Ok(ResultShare::Rows(unit));
        }
        Ok(ResultShare::Private(self.reduction_of(tensor, body)?))
    }

    /// The operator that reduces private copies, if partitions may have such.
    fn reduction_of(&self, tensor: TensorId, body: &[Step]) -> Result<Op, Diagnostic> {
        let name = &self.program.tensor(tensor).name;
        let mut ops: Vec<Option<Op>> = Vec::new();
        visit_assigns(body, &mut |target, update| {
            // Private differences are added.
            let op = update.map(|update| if update.op == Op::Sub { Op::Add } else { update.op });
            if target.tensor == tensor && !ops.contains(&op) {
                ops.push(op);
            }
        });
        let [Some(op)] = ops[..] else {
            return Err(self.not_partitioned(&format!("the outermost loop does not subscript the rows of `{name}`")));
        };
        let info = op.info();
        let (dtype, fill) = (self.bound[tensor.index()].dtype, self.bound[tensor.index()].fill);
        let identity = |e: Option<Constant>| e.and_then(|e| e.value(dtype)).is_some_and(|e| e.same_number(fill));
        let rounds = matches!(dtype.kind(), Kind::Float | Kind::Complex) && !info.idempotent;
        if self.policy.strict && rounds {
            return Err(self.not_partitioned(&format!("partial results of `{name}` would be rounded in another order")));
        }
        // Numbers that no partition has updated would become truth values.
        let keeps = self.checked.types.identity_keeps(tensor, op.operand_type(dtype));
        let starts = (info.idempotent && keeps) || identity(info.left_identity) || identity(info.right_identity);
        if !starts {
            return Err(self.not_partitioned(&format!(
                "`{name}` starts at {fill}, which every partial result would include again"
            )));
        }
        match &self.bound[tensor.index()].storage {
            // A private copy does not tell whether it was written.
            BoundStorage::Scalar { written: Some(_), .. } => {
                Err(self.not_partitioned(&format!("`{name}` may be missing")))
            }
            _ => Ok(op),
        }
    }

    /// The number of rows that each iteration of a loop writes, if it writes no others.
    fn rows_per_iteration(&self, tensor: TensorId, index: IndexId, body: &[Step]) -> Option<u64> {
        let BoundStorage::Levels { format, arrays, .. } = &self.bound[tensor.index()].storage else { return None };
        let row = self.row(tensor, 0)?;
        let plan = self.plans[tensor.index()].as_ref()?;
        let concatenates = |row: &LevelType| row.arrays.iter().all(|array| array.role.concatenates());
        let joins = (0..arrays.len()).all(|level| self.row(tensor, level).is_some_and(concatenates));
        let listed = row.write.placement() != Placement::Computed || arrays[0].is_empty();
        if plan.mode == WriteMode::Scatter || row.write.takes_runs() || !joins || !listed {
            return None;
        }
        if row.write.placement() == Placement::Parent || !matches!(format.map().first(), Some(DimExpr::Dim(_))) {
            return None;
        }
        let mut unit = None;
        let mut uniform = true;
        visit_assigns(body, &mut |target, _| {
            if target.tensor != tensor {
                return;
            }
            let plain = |sub: &&node::Sub| !sub.permissive && sub.projection == node::Projection::Whole;
            let rows_per_iteration = match target.subs.first().filter(plain).map(|sub| &sub.node) {
                Some(Node::Index(i)) if *i == index => Some(1),
                Some(Node::Index(i)) => {
                    self.chunks[i.index()].filter(|(chunk, _)| *chunk == index).map(|(_, length)| length)
                }
                _ => None,
            };
            uniform &= rows_per_iteration.is_some() && (unit.is_none() || unit == rows_per_iteration);
            unit = unit.or(rows_per_iteration);
        });
        unit.filter(|_| uniform)
    }

    fn not_partitioned(&self, why: &str) -> Diagnostic {
        Diagnostic::new(Code::E1206, format!("`{}` runs on one thread: {why}", self.program.name)).help(
            "split it into programs of one loop nest each, whose outermost index subscripts the rows of the result",
        )
    }

    /// The iterations of a loop that is partitioned.
    pub(super) fn partition_range(&self, index: IndexId) -> Option<(ExprId, ExprId)> {
        self.partition
            .as_ref()
            .filter(|partitioned| partitioned.index == index)
            .map(|partitioned| (partitioned.start, partitioned.stop))
    }

    /// A row of a tensor, relative to the first row of the partition.
    pub(super) fn partition_row(&mut self, tensor: TensorId, coordinate: ExprId) -> ExprId {
        match self.partition.as_ref().and_then(|partitioned| partitioned.first_rows[tensor.index()]) {
            Some(first) => self.b.sub(coordinate, first),
            None => coordinate,
        }
    }

    /// The expected share of a partition in a total.
    pub(super) fn partition_share(&mut self, all: ExprId) -> ExprId {
        let Some(result_share) = self.partition.as_ref().map(|partitioned| partitioned.result_share) else {
            return all;
        };
        let shares = self.b.int(WHOLE_SHARE);
        let product = self.bounded_product(all, result_share);
        self.b.call_in(Op::FloorDiv, DType::I64, &[product, shares])
    }
}
