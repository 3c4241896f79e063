//! Kernels that do a part of the outermost loop, so that several threads do all of it, each with the same code.
//!
//! Such a kernel takes the first and the last turn of the loop as numbers. A result whose outermost level has the loop's index is built
//! in pieces that follow each other: the kernel writes those rows alone, numbered from 0 where they are not listed. One that has the levels
//! of an operand is written where the operand's entries are, whatever the part. Any other result is one of its own for each part, and
//! these are combined by the operator that it is updated by.

use super::Lowerer;
use super::bind::Stored;
use super::node::{self, Bounds, Node, Step, visit_assigns};
use super::write_plan::Mode;
use crate::schedule::legal;
use tamis_ir::algebra::{Constant, DType, Kind, Op};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::format::DimExpr;
use tamis_ir::kernel::{ExprId, Fact};
use tamis_ir::program::{IndexId, LoopExtent, StmtKind, TensorId};
use tamis_tensor::levels::Placement;

/// How the parts of a loop become the whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The loop that is cut.
    pub index: IndexId,
    /// For each result of the program, in its order, what the parts have of it.
    pub shares: Vec<Share>,
}

/// What a part has of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// Rows of the outermost level: so many for each turn of the loop, but for the last.
    Rows(u64),
    /// Values at positions of entries of an operand, which no other part has.
    Places,
    /// A result of its own; those of two parts are combined by this operator.
    Own(Op),
}

/// The numbers that a part is given after the sizes: the first turn, the one after the last, and its share of the whole in
/// [`SHARES`].
pub const PART_SCALARS: [&str; 3] = ["part_start", "part_stop", "part_share"];

/// What all parts together have of the work.
pub const SHARES: i64 = 1 << 16;

/// The part that a kernel does.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) index: IndexId,
    pub(super) start: ExprId,
    pub(super) stop: ExprId,
    share: ExprId,
    /// For each tensor whose outermost level has no list of its own rows, the first row of the part.
    first_rows: Vec<Option<ExprId>>,
    pub(super) cut: Cut,
}

impl Lowerer<'_> {
    /// Cuts the only loop of a program, or says why it cannot be.
    pub(super) fn cut_loop(&mut self, body: &[Step]) -> Result<(), Diagnostic> {
        let cut = self.find_cut(body)?;
        let zero = self.b.int(0);
        let [start, stop, share] = PART_SCALARS.map(|name| {
            let var = self.b.param(name, DType::I64);
            self.b.at_least(var, zero);
            self.b.get(var)
        });
        for (low, high) in [(zero, start), (start, stop)] {
            let fact = self.b.call_in(Op::Le, DType::I64, &[low, high]);
            self.b.promise(Fact::Holds(fact));
        }
        let mut first_rows = vec![None; self.bound.len()];
        for (id, share) in self.program.results.iter().zip(&cut.shares) {
            let k = id.index();
            let Share::Rows(unit) = share else { continue };
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
        self.part = Some(Part { index: cut.index, start, stop, share, first_rows, cut });
        Ok(())
    }

    fn find_cut(&self, body: &[Step]) -> Result<Cut, Diagnostic> {
        let mut loops = Vec::new();
        for step in body {
            match step {
                Step::Declare(..) | Step::Freeze(_) => {}
                Step::For(index, bounds, body) => loops.push((*index, bounds, body)),
                _ => return Err(self.uncut("it has statements outside its loops")),
            }
        }
        let (index, bounds, inside) = match loops[..] {
            [] => return Err(self.uncut("it has no loop")),
            [only] => only,
            // What is scattered into a workspace, and copied from it.
            [first, (_, _, copy)] if self.copied(copy).is_some() => first,
            _ => return Err(self.uncut("it has several sequential loops")),
        };
        let extent = self.checked.extents.loops[index.index()];
        if !matches!(bounds, Bounds::Inferred) && !matches!(extent, LoopExtent::Static { .. }) {
            return Err(self.uncut("the extent of its outermost loop is computed"));
        }
        let nest =
            self.program.body.iter().find(|stmt| matches!(stmt.kind, StmtKind::For { index: i, .. } if i == index));
        if let Some(nest) = nest {
            let formats = &self.checked.formats;
            legal::parts(self.program, nest, index, formats).map_err(|why| self.uncut(&why))?;
        }
        let copied = loops.get(1).and_then(|(_, _, copy)| self.copied(copy));
        let mut shares = Vec::new();
        for id in &self.program.results {
            shares.push(match copied {
                None => self.share(*id, index, inside)?,
                Some((workspace, result)) if result == *id => Share::Own(self.combined(workspace, inside)?),
                Some(_) => return Err(self.uncut("it has several sequential loops")),
            });
        }
        Ok(Cut { index, shares })
    }

    /// The workspace and the result of a nest that does nothing but copy one to the other, element by element.
    fn copied(&self, nest: &[Step]) -> Option<(TensorId, TensorId)> {
        match nest {
            [Step::For(_, Bounds::Inferred, body)] => self.copied(body),
            [Step::Assign(target, None, Node::Access(access))] => {
                let node::Source::Tensor(from, subs) = &access.source else { return None };
                let plain = |sub: &node::Sub| {
                    !sub.permissive && sub.part == node::Part::Whole && matches!(sub.node, Node::Index(_))
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

    fn share(&self, tensor: TensorId, index: IndexId, body: &[Step]) -> Result<Share, Diagnostic> {
        if self.alike(tensor).is_some() {
            return Ok(Share::Places);
        }
        if let Some(unit) = self.rows(tensor, index, body) {
            return Ok(Share::Rows(unit));
        }
        Ok(Share::Own(self.combined(tensor, body)?))
    }

    /// The operator by which the tensors of parts become one, if each part can have its own.
    fn combined(&self, tensor: TensorId, body: &[Step]) -> Result<Op, Diagnostic> {
        let name = &self.program.tensor(tensor).name;
        let mut ops: Vec<Option<Op>> = Vec::new();
        visit_assigns(body, &mut |target, update| {
            // Subtracting is adding.
            let op = update.map(|update| if update.op == Op::Sub { Op::Add } else { update.op });
            if target.tensor == tensor && !ops.contains(&op) {
                ops.push(op);
            }
        });
        let [Some(op)] = ops[..] else {
            return Err(self.uncut(&format!("the outermost loop does not subscript the rows of `{name}`")));
        };
        let info = op.info();
        let (dtype, fill) = (self.bound[tensor.index()].dtype, self.bound[tensor.index()].fill);
        let identity = |e: Option<Constant>| e.and_then(|e| e.value(dtype)).is_some_and(|e| e.same_number(fill));
        let rounds = matches!(dtype.kind(), Kind::Float | Kind::Complex) && !info.idempotent;
        if self.policy.strict && rounds {
            return Err(self.uncut(&format!("partial results of `{name}` would be rounded in another order")));
        }
        // Numbers that no part has touched would be made truth values.
        let keeps = self.checked.types.identity_keeps(tensor, op.operand_type(dtype));
        let starts = (info.idempotent && keeps) || identity(info.left_identity) || identity(info.right_identity);
        if !starts {
            return Err(
                self.uncut(&format!("`{name}` starts at {fill}, which every partial result would include again"))
            );
        }
        match &self.bound[tensor.index()].storage {
            // Whether anything was written to it is not known any more.
            Stored::Scalar { written: Some(_), .. } => Err(self.uncut(&format!("`{name}` may be missing"))),
            _ => Ok(op),
        }
    }

    /// How many rows of a tensor each turn of a loop writes, if it writes these alone.
    fn rows(&self, tensor: TensorId, index: IndexId, body: &[Step]) -> Option<u64> {
        let Stored::Levels { format, arrays, .. } = &self.bound[tensor.index()].storage else { return None };
        let row = self.row(tensor, 0)?;
        let plan = self.plans[tensor.index()].as_ref()?;
        let known = |name: &&'static str| matches!(*name, "pos" | "crd" | "start" | "end");
        let joins = arrays.iter().flatten().all(|(name, _)| known(name));
        let listed = row.write.placement() != Placement::Computed || arrays[0].is_empty();
        if plan.mode == Mode::Scatter || row.write.takes_runs() || !joins || !listed {
            return None;
        }
        if row.write.placement() == Placement::Parent || !matches!(format.map().first(), Some(DimExpr::Dim(_))) {
            return None;
        }
        let mut unit = None;
        let mut alike = true;
        visit_assigns(body, &mut |target, _| {
            if target.tensor != tensor {
                return;
            }
            let plain = |sub: &&node::Sub| !sub.permissive && sub.part == node::Part::Whole;
            let rows = match target.subs.first().filter(plain).map(|sub| &sub.node) {
                Some(Node::Index(i)) if *i == index => Some(1),
                Some(Node::Index(i)) => {
                    self.pieces[i.index()].filter(|(number, _)| *number == index).map(|(_, length)| length)
                }
                _ => None,
            };
            alike &= rows.is_some() && (unit.is_none() || unit == rows);
            unit = unit.or(rows);
        });
        unit.filter(|_| alike)
    }

    fn uncut(&self, why: &str) -> Diagnostic {
        Diagnostic::new(Code::E1206, format!("`{}` runs on one thread: {why}", self.program.name)).help(
            "split it into programs of one loop nest each, whose outermost index subscripts the rows of the result",
        )
    }

    /// The region of a loop that is cut.
    pub(super) fn turns_of_part(&self, index: IndexId) -> Option<(ExprId, ExprId)> {
        self.part.as_ref().filter(|part| part.index == index).map(|part| (part.start, part.stop))
    }

    /// A row of a tensor as the part numbers it that the kernel writes.
    pub(super) fn row_of_part(&mut self, tensor: TensorId, coordinate: ExprId) -> ExprId {
        match self.part.as_ref().and_then(|part| part.first_rows[tensor.index()]) {
            Some(first) => self.b.sub(coordinate, first),
            None => coordinate,
        }
    }

    /// What a part is expected to need of something.
    pub(super) fn share_of(&mut self, all: ExprId) -> ExprId {
        let Some(share) = self.part.as_ref().map(|part| part.share) else { return all };
        let shares = self.b.int(SHARES);
        let product = self.times(all, share);
        self.b.call_in(Op::FloorDiv, DType::I64, &[product, shares])
    }
}
