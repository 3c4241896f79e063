//! Programs on their way to kernels: expressions whose accesses are resolved level by level.

use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::kernel::{BufferId, ExprId};
use tamis_ir::looplet::{Edge, Looplet};
use tamis_ir::program::{EntryPart, IndexId, Protocol, StmtId, TensorId, VarId};

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Computed already.
    Value(ExprId),
    /// Known without looking at stored data.
    Known(Value),
    /// A loop index.
    Index(IndexId),
    /// A bound name.
    Var(VarId),
    /// The size of a dimension.
    Size(TensorId, usize),
    /// An element that is not resolved yet.
    Access(Box<Access>),
    /// Something about the stored entries of a parameter.
    Entry(Box<Entry>),
    /// An operator, with the type it computes in.
    Call(Op, DType, Vec<Node>),
    /// Out of bounds of a permissive access.
    Missing,
}

/// A question about stored entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The parameter.
    pub tensor: TensorId,
    /// What is asked.
    pub what: EntryPart,
    /// The number of the entry, or coordinates.
    pub at: Vec<Node>,
    /// The number is known to be one of an entry.
    pub inside: bool,
    /// The statement it stands in.
    pub stmt: StmtId,
}

/// An access, resolved down to some level.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Tells accesses apart. Those that a loop leads to the same place share that of the first, as long as that loop is lowered.
    pub id: u32,
    /// Its own, whatever loop is lowered.
    pub own: u32,
    /// What is accessed.
    pub source: Source,
    /// The next level to resolve.
    pub level: usize,
    /// The position below the levels that are resolved.
    pub position: Option<ExprId>,
    /// One past the last position, where it is a group of them.
    pub group_stop: Option<ExprId>,
    /// Whether anything is stored there; certainly, if there is no condition.
    pub present: Option<ExprId>,
    /// The position may be looked at, whether or not anything is stored there.
    pub safe: bool,
    /// What is asked of the next level is a window, one end of which is known, and how many of the loops that move it are
    /// around when that is so.
    pub window: Option<(Edge, usize)>,
    /// Where windows over levels further below begin, while those above are open.
    pub fibers: Vec<Fibers>,
    /// Where this holds, it lies outside of the tensor.
    pub missing: Option<ExprId>,
    /// The statement it stands in.
    pub stmt: StmtId,
    /// The structure along the loop that is being lowered.
    pub looplet: Option<Looplet>,
}

/// Several fibers that windows move over together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fibers {
    /// The level that they belong to.
    pub level: usize,
    /// For each of them, by the position that it lies below, one end of what the window may hold.
    pub cursors: BufferId,
    /// The first of the positions that they lie below.
    pub first: ExprId,
    /// It is the last position, not the first.
    pub mirrored: bool,
    /// How many of the loops that move the window are around when that is so.
    pub loops: usize,
}

/// What an access reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A tensor, with its subscripts in storage order.
    Tensor(TensorId, Vec<Sub>),
    /// A comparison of an index (on the left) with something that does not depend on it.
    Mask(Op, IndexId, Box<Node>),
}

/// A subscript.
#[derive(Clone, Debug, PartialEq)]
pub struct Sub {
    /// The dimension it belongs to.
    pub dim: usize,
    /// The coordinate.
    pub node: Node,
    /// Reads out of bounds are permitted.
    pub permissive: bool,
    /// How the level is to be traversed, where that is written.
    pub protocol: Option<Protocol>,
    /// Known to be inside the dimension.
    pub inside: bool,
    /// What of the coordinate the level stores.
    pub part: Part,
}

/// What a level stores of a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The quotient by a number.
    Quotient(u64),
    /// The remainder; what is left after the piece of that length that an index numbers, if there is one.
    Remainder(u64, Option<IndexId>),
    /// The difference to the coordinate of another dimension, counted from the least there is.
    Minus(Box<Sub>),
}

impl Sub {
    /// The expressions that it is computed from.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let other = match &self.part {
            Part::Minus(other) => Some(&other.node),
            _ => None,
        };
        std::iter::once(&self.node).chain(other)
    }

    /// Rewrites the expressions that it is computed from.
    pub fn map(mut self, f: &mut dyn FnMut(Node) -> Node) -> Sub {
        self.node = self.node.map(f);
        if let Part::Minus(other) = self.part {
            self.part = Part::Minus(Box::new(other.map(f)));
        }
        self
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Makes a tensor anew: all of it is this fill.
    Declare(TensorId, Value),
    /// Writing is over for now: the tensor is read next, or returned.
    Freeze(TensorId),
    /// Binds a name.
    Let(VarId, Node),
    /// A loop.
    For(IndexId, Bounds, Vec<Step>),
    /// A conditional.
    If(Node, Vec<Step>, Vec<Step>),
    /// Stores or updates an element, whose subscripts are in storage order.
    Assign(Target, Option<Update>, Node),
}

/// How far a loop goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Bounds {
    /// As far as the dimensions that the index subscripts.
    Inferred,
    /// Computed.
    Range(Node, Node),
}

/// What is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The tensor.
    pub tensor: TensorId,
    /// Its subscripts, in storage order.
    pub subs: Vec<Sub>,
    /// The element was not written before and is not written again by this statement; it holds this fill.
    pub fresh: Option<Value>,
    /// The statement.
    pub stmt: StmtId,
}

/// The operator of an update, the type it computes in, and operands after the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The operator.
    pub op: Op,
    /// The type it computes in.
    pub operand: DType,
    /// Operands after the value.
    pub extra: Vec<Node>,
    /// It is done so many times over.
    pub times: Vec<ExprId>,
    /// The fill value that the tensor starts with, if all its updates are by this operator of a semilattice: updating by a
    /// value that leaves the fill value as it is changes nothing.
    pub absorbed: Option<Value>,
    /// Whether the operator's identity leaves the old value as it is; see [`tamis_ir::program::Types::identity_keeps`].
    pub keeps: bool,
}

impl Node {
    /// Rewrites bottom-up.
    pub fn map(self, f: &mut dyn FnMut(Node) -> Node) -> Node {
        let node = match self {
            Node::Call(op, dtype, operands) => Node::Call(op, dtype, operands.into_iter().map(|n| n.map(f)).collect()),
            Node::Entry(mut entry) => {
                entry.at = std::mem::take(&mut entry.at).into_iter().map(|n| n.map(f)).collect();
                Node::Entry(entry)
            }
            Node::Access(mut access) => {
                match &mut access.source {
                    Source::Tensor(_, subs) => {
                        let given = std::mem::take(subs);
                        *subs = given.into_iter().map(|sub| sub.map(f)).collect();
                    }
                    Source::Mask(_, _, other) => {
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
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Node)) {
        f(self);
        match self {
            Node::Call(_, _, operands) => operands.iter().for_each(|n| n.visit(f)),
            Node::Entry(entry) => entry.at.iter().for_each(|n| n.visit(f)),
            Node::Access(access) => match &access.source {
                Source::Tensor(_, subs) => subs.iter().flat_map(Sub::nodes).for_each(|n| n.visit(f)),
                Source::Mask(_, _, other) => other.visit(f),
            },
            _ => {}
        }
    }
}

/// Rewrites every expression of some steps, bottom-up.
pub fn map_steps(steps: Vec<Step>, f: &mut dyn FnMut(Node) -> Node) -> Vec<Step> {
    let subs =
        |subs: Vec<Sub>, f: &mut dyn FnMut(Node) -> Node| -> Vec<Sub> { subs.into_iter().map(|s| s.map(f)).collect() };
    steps
        .into_iter()
        .map(|step| match step {
            step @ (Step::Declare(..) | Step::Freeze(_)) => step,
            Step::Let(var, value) => Step::Let(var, value.map(f)),
            Step::For(index, bounds, body) => {
                let bounds = match bounds {
                    Bounds::Range(start, stop) => Bounds::Range(start.map(f), stop.map(f)),
                    whole => whole,
                };
                Step::For(index, bounds, map_steps(body, f))
            }
            Step::If(cond, then, otherwise) => Step::If(cond.map(f), map_steps(then, f), map_steps(otherwise, f)),
            Step::Assign(target, update, value) => {
                let target = Target { subs: subs(target.subs, f), ..target };
                let update = update.map(|u| Update { extra: u.extra.into_iter().map(|n| n.map(f)).collect(), ..u });
                Step::Assign(target, update, value.map(f))
            }
        })
        .collect()
}

/// Visits every expression of some steps.
pub fn visit_steps<'a>(steps: &'a [Step], f: &mut dyn FnMut(&'a Node)) {
    for step in steps {
        match step {
            Step::Declare(..) | Step::Freeze(_) => {}
            Step::Let(_, value) => value.visit(f),
            Step::For(_, bounds, body) => {
                if let Bounds::Range(start, stop) = bounds {
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
pub fn visit_targets<'a>(steps: &'a [Step], f: &mut dyn FnMut(&'a Target)) {
    visit_assigns(steps, &mut |target, _| f(target));
}

/// Calls `f` for every assignment, with its update.
pub fn visit_assigns<'a>(steps: &'a [Step], f: &mut dyn FnMut(&'a Target, Option<&'a Update>)) {
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
