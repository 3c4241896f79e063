//! The lowerer's intermediate tree: statements and expressions whose accesses are resolved level by
//! level.
//!
//! `prepare` builds it from a program; `simplify` rewrites it; `emit` turns it into kernel
//! statements. Expressions carry the types that they compute in.

use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{BufferId, ExprId};
use tamis_ir::looplet::{Edge, Looplet};
use tamis_ir::program::{EntryPart, IndexId, Protocol, StmtId, TensorId, VarId};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// A value of the kernel.
    Value(ExprId),
    /// A constant: known without stored data.
    Known(Value),
    /// A loop index.
    Index(IndexId),
    /// A bound name.
    Var(VarId),
    /// The size of a dimension.
    Size(TensorId, usize),
    /// A read of an element, or of a mask, that is not fully resolved.
    Access(Box<PartialAccess>),
    /// A query about the stored elements of a parameter.
    Entry(Box<EntryQuery>),
    /// An operator, with the type it computes in.
    Call(Op, DType, Vec<Node>),
    /// Out of bounds of a permissive access.
    Missing,
}

/// A query about stored elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EntryQuery {
    /// The parameter.
    pub tensor: TensorId,
    /// The queried property.
    pub what: EntryPart,
    /// A position, or coordinates.
    pub at: Vec<Node>,
    /// The position is known to be below nnz.
    pub inside: bool,
    /// The statement that contains it.
    pub stmt: StmtId,
}

/// A read that is resolved down to some level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartialAccess {
    /// The identity of the access. Accesses that a loop moves along the same fiber in the same way
    /// share the id of the first one while that loop is lowered.
    pub id: u32,
    /// Its own identity, in all loops.
    pub own: u32,
    /// The tensor or mask that is read.
    pub source: ReadSource,
    /// The next level to resolve.
    pub level: usize,
    /// The position below the resolved levels.
    pub position: Option<ExprId>,
    /// One past the last position, if it is a group of positions.
    pub group_stop: Option<ExprId>,
    /// The condition that the position is stored; none if it always is.
    pub present: Option<ExprId>,
    /// The position may be loaded from even if it is not stored.
    pub safe: bool,
    /// The next level is read through a window with one known end, and this many of the loops that
    /// move it were entered when it became known.
    pub window: Option<(Edge, usize)>,
    /// Cursors of windows over lower levels, while windows over the levels above are open.
    pub fibers: Vec<FiberCursors>,
    /// The condition that the access is out of bounds, so that the value is missing.
    pub missing: Option<ExprId>,
    /// The statement that contains it.
    pub stmt: StmtId,
    /// The structure along the loop that is being lowered.
    pub looplet: Option<Looplet>,
}

/// The cursors of several fibers that windows move over together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FiberCursors {
    /// The level that they belong to.
    pub level: usize,
    /// For each fiber, by parent position: one end of the segments that the window may meet.
    pub cursors: BufferId,
    /// The first parent position.
    pub first: ExprId,
    /// The cursors are the ends of windows, not their starts.
    pub mirrored: bool,
    /// The number of loops that move the window and were entered when the cursors were set.
    pub loops: usize,
}

/// The object that an access reads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReadSource {
    /// A tensor, with its subscripts in storage order.
    Tensor(TensorId, Vec<Sub>),
    /// A comparison of an index (left) with a value that does not depend on it.
    Mask(Op, IndexId, Box<Node>),
}

/// A subscript.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sub {
    /// The dimension it belongs to.
    pub dim: usize,
    /// The coordinate.
    pub node: Node,
    /// Reads out of bounds are missing values.
    pub permissive: bool,
    /// The traversal protocol, if the program specifies one.
    pub protocol: Option<Protocol>,
    /// The subscript is known to be in bounds.
    pub inside: bool,
    /// The function of the coordinate that the level stores.
    pub projection: Projection,
}

/// The function of a dimension's coordinate that a level stores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Projection {
    /// The coordinate itself.
    Whole,
    /// The quotient by a constant.
    Quotient(u64),
    /// The remainder by a constant; relative to the start of the chunk that the index counts, if
    /// there is one.
    Remainder(u64, Option<IndexId>),
    /// The difference to the coordinate of another dimension, counted from the least difference.
    Minus(Box<Sub>),
}

impl Sub {
    /// The expressions that it is computed from.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        let other = match &self.projection {
            Projection::Minus(other) => Some(&other.node),
            _ => None,
        };
        std::iter::once(&self.node).chain(other)
    }

    /// Rewrites the expressions that it is computed from.
    pub(crate) fn map(mut self, f: &mut dyn FnMut(Node) -> Node) -> Sub {
        self.node = self.node.map(f);
        if let Projection::Minus(other) = self.projection {
            self.projection = Projection::Minus(Box::new(other.map(f)));
        }
        self
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Declares a tensor anew; every element is this fill value.
    Declare(TensorId, Value),
    /// Ends writing, for now: the tensor is read next, or returned.
    Freeze(TensorId),
    /// Binds a name.
    Let(VarId, Node),
    /// A loop.
    For(IndexId, LoopBounds, Vec<Step>),
    /// A conditional.
    If(Node, Vec<Step>, Vec<Step>),
    /// Stores or updates an element, whose subscripts are in storage order.
    Assign(WriteTarget, Option<UpdateOp>, Node),
}

/// The bounds of a loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoopBounds {
    /// The extent of the dimensions that the index subscripts.
    Inferred,
    /// Explicit bounds.
    Range(Node, Node),
}

/// The element that an assignment writes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WriteTarget {
    /// The tensor.
    pub tensor: TensorId,
    /// Its subscripts, in storage order.
    pub subs: Vec<Sub>,
    /// The first and only write of this statement to the element, which holds this fill value
    /// before.
    pub fresh: Option<Value>,
    /// The statement.
    pub stmt: StmtId,
}

/// The operator of an update, the type that it computes in, and operands after the value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UpdateOp {
    /// The operator.
    pub op: Op,
    /// The type it computes in.
    pub operand: DType,
    /// Operands after the value.
    pub extra: Vec<Node>,
    /// The numbers of collapsed iterations: the update is applied as often as their product.
    pub times: Vec<ExprId>,
    /// The fill value of the tensor, if all its updates are by this one semilattice operator: an
    /// update by a value that the fill value absorbs changes nothing.
    pub absorbed: Option<Value>,
    /// True if the operator's identity leaves the old value unchanged; see
    /// [`tamis_ir::program::Types::identity_keeps`].
    pub keeps: bool,
}

impl Node {
    /// Rewrites bottom-up.
    pub(crate) fn map(self, f: &mut dyn FnMut(Node) -> Node) -> Node {
        let node = match self {
            Node::Call(op, dtype, operands) => Node::Call(op, dtype, operands.into_iter().map(|n| n.map(f)).collect()),
            Node::Entry(mut entry) => {
                entry.at = std::mem::take(&mut entry.at).into_iter().map(|n| n.map(f)).collect();
                Node::Entry(entry)
            }
            Node::Access(mut access) => {
                match &mut access.source {
                    ReadSource::Tensor(_, subs) => {
                        let given = std::mem::take(subs);
                        *subs = given.into_iter().map(|sub| sub.map(f)).collect();
                    }
                    ReadSource::Mask(_, _, other) => {
                        let node = std::mem::replace(other.as_mut(), Node::Missing);
                        **other = node.map(f);
                    }
                }
                Node::Access(access)
            }
            other => other,
        };
        f(node)
    }

    /// Visits all nodes, outer ones first.
    pub(crate) fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Node)) {
        f(self);
        match self {
            Node::Call(_, _, operands) => operands.iter().for_each(|n| n.visit(f)),
            Node::Entry(entry) => entry.at.iter().for_each(|n| n.visit(f)),
            Node::Access(access) => match &access.source {
                ReadSource::Tensor(_, subs) => subs.iter().flat_map(Sub::nodes).for_each(|n| n.visit(f)),
                ReadSource::Mask(_, _, other) => other.visit(f),
            },
            _ => {}
        }
    }
}

/// Rewrites every expression of some steps, bottom-up.
pub(crate) fn map_steps(steps: Vec<Step>, f: &mut dyn FnMut(Node) -> Node) -> Vec<Step> {
    let subs =
        |subs: Vec<Sub>, f: &mut dyn FnMut(Node) -> Node| -> Vec<Sub> { subs.into_iter().map(|s| s.map(f)).collect() };
    steps
        .into_iter()
        .map(|step| match step {
            step @ (Step::Declare(..) | Step::Freeze(_)) => step,
            Step::Let(var, value) => Step::Let(var, value.map(f)),
            Step::For(index, bounds, body) => {
                let bounds = match bounds {
                    LoopBounds::Range(start, stop) => LoopBounds::Range(start.map(f), stop.map(f)),
                    whole => whole,
                };
                Step::For(index, bounds, map_steps(body, f))
            }
            Step::If(cond, then, otherwise) => Step::If(cond.map(f), map_steps(then, f), map_steps(otherwise, f)),
            Step::Assign(target, update, value) => {
                let target = WriteTarget { subs: subs(target.subs, f), ..target };
                let update = update.map(|u| UpdateOp { extra: u.extra.into_iter().map(|n| n.map(f)).collect(), ..u });
                Step::Assign(target, update, value.map(f))
            }
        })
        .collect()
}

/// Visits every expression of some steps.
pub(crate) fn visit_steps<'a>(steps: &'a [Step], f: &mut dyn FnMut(&'a Node)) {
    for step in steps {
        match step {
            Step::Declare(..) | Step::Freeze(_) => {}
            Step::Let(_, value) => value.visit(f),
            Step::For(_, bounds, body) => {
                if let LoopBounds::Range(start, stop) = bounds {
                    start.visit(f);
                    stop.visit(f);
                }
                visit_steps(body, f);
            }
            Step::If(cond, then, otherwise) => {
                cond.visit(f);
                visit_steps(then, f);
                visit_steps(otherwise, f);
            }
            Step::Assign(target, update, value) => {
                target.subs.iter().for_each(|s| s.node.visit(f));
                value.visit(f);
                update.iter().flat_map(|u| &u.extra).for_each(|n| n.visit(f));
            }
        }
    }
}

/// Visits every assignment of some steps.
pub(crate) fn visit_targets<'a>(steps: &'a [Step], f: &mut dyn FnMut(&'a WriteTarget)) {
    visit_assigns(steps, &mut |target, _| f(target));
}

/// Calls `f` for every assignment, with its update.
pub(crate) fn visit_assigns<'a>(steps: &'a [Step], f: &mut dyn FnMut(&'a WriteTarget, Option<&'a UpdateOp>)) {
    for step in steps {
        match step {
            Step::Assign(target, update, _) => f(target, update.as_ref()),
            Step::For(_, _, body) => visit_assigns(body, f),
            Step::If(_, then, otherwise) => {
                visit_assigns(then, f);
                visit_assigns(otherwise, f);
            }
            _ => {}
        }
    }
}
