//! How each tensor of a program is written: in storage order or not, and where its elements come from.
//!
//! A tensor is written *in order* if its subscripts, outermost level first, are fixed by the outermost loops around the
//! writes, one loop after the other, each going up; then each element is visited once, and coordinates can be appended.

use super::Lowerer;
use super::bind::{Stored, chain_head};
use super::node::{Node, Step, Sub, Target};
use super::shared_sparsity::Alike;
use tamis_ir::algebra::{Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::format::Leaf;
use tamis_ir::kernel::Merge;
use tamis_ir::program::{IndexId, TensorId};
use tamis_tensor::levels::{Placement, level_type, tree};

/// How a tensor is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Where its elements are while it is written.
    pub mode: Mode,
    /// Its elements are written in storage order.
    pub in_order: bool,
    /// For each level, the loop that fixes its coordinate, if the tensor is written in order.
    pub fixed_by: Vec<IndexId>,
    /// For each level, whether its subscript is that loop's index alone.
    pub bare: Vec<bool>,
    /// How entries of one element become one, if elements come in any order.
    pub merge: Merge,
    /// Some update gives something else where the dense fiber of an element is not stored yet.
    pub fibers_matter: bool,
    /// The operand whose levels it has, if it stores what that stores.
    pub alike: Option<Alike>,
}

/// Where the elements of a tensor are while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Coordinates are appended to its levels, each when it is complete.
    Append,
    /// Positions are computed from coordinates.
    Insert,
    /// In a workspace, in any order; freezing sorts them and appends them to the levels.
    Scatter,
}

impl Plan {
    /// The levels whose coordinates a loop fixes.
    pub fn fixed(&self, index: IndexId) -> Vec<usize> {
        (0..self.fixed_by.len()).filter(|k| self.fixed_by[*k] == index).collect()
    }
}

/// Writes of one tensor, as they are found.
#[derive(Clone, Debug, Default)]
struct Writes {
    /// Loops around the declaration.
    depth: usize,
    /// The order of the first write, and its subscripts; `None` once there is none.
    order: Option<(Vec<IndexId>, Vec<Sub>)>,
    count: usize,
    /// The outermost loop around the first write, and its subscripts.
    first: Option<(Option<IndexId>, Vec<Sub>)>,
    /// Another write in that loop may come before the first one to an element.
    mixed: bool,
    /// Some write may make an element false that was true.
    unsets: bool,
    /// How entries of one element become one, as far as all writes agree.
    merge: Option<Merge>,
    /// Some update is annihilated by the fill.
    kept_by_fill: bool,
}

impl Lowerer<'_> {
    /// Finds how each declared tensor is written, and which assignments are the first to their elements.
    pub(super) fn classify(&mut self, steps: &mut [Step]) {
        let mut found = vec![Writes::default(); self.program.tensors.len()];
        self.find_writes(steps, &mut Vec::new(), &mut found);
        forget_fresh(steps, &found);
        for (k, writes) in found.into_iter().enumerate() {
            let Stored::Levels { format, .. } = self.bound[k].storage.clone() else { continue };
            if self.program.params.contains(&TensorId(k as u32)) {
                continue;
            }
            let placements: Vec<Placement> = format
                .levels()
                .iter()
                .filter_map(|level| level_type(level.kind).ok())
                .map(|row| row.write.placement())
                .collect();
            let lists = format.levels().iter().any(|l| level_type(l.kind).is_ok_and(|row| row.write.lists()));
            let pattern = format.leaf() == Leaf::Pattern;
            // Without levels there is nothing that could be left out. Others are written as formats that leave it out.
            if pattern && (format.levels().is_empty() || tree::pads(format.levels())) {
                self.refuse_full_pattern(TensorId(k as u32));
            }
            let computed = placements.iter().all(|p| *p == Placement::Computed);
            // The coordinates of a level that holds one share the fiber below it, so visiting it in order is not enough.
            let shared = (1..placements.len()).any(|k| {
                placements[k - 1] == Placement::Parent && !format.levels()[chain_head(&format, k - 1)].nonunique
            });
            let in_order = writes.count > 0 && writes.order.is_some() && !placements.is_empty() && !shared;
            // What is read as soon as it is written is in its place from the beginning.
            let read = self.program.is_read_while_written(TensorId(k as u32));
            let mode = match (computed, in_order) {
                (true, true) if !lists && !read => Mode::Append,
                // What is listed stays listed.
                (true, _) if pattern && writes.unsets => Mode::Scatter,
                (true, _) => Mode::Insert,
                (false, true) => Mode::Append,
                // Nothing is ever written to it.
                (false, false) if writes.count == 0 => Mode::Append,
                (false, false) => Mode::Scatter,
            };
            let (fixed_by, subs) = writes.order.unwrap_or_default();
            // An index that stands for two dimensions goes along a diagonal.
            let bare =
                |(k, sub): (usize, &Sub)| sub.node == Node::Index(fixed_by[k]) && !fixed_by[..k].contains(&fixed_by[k]);
            let bare = subs.iter().enumerate().take(fixed_by.len()).map(bare).collect();
            let merge = writes.merge.unwrap_or(Merge::Never);
            let mut plan =
                Plan { mode, in_order, fixed_by, bare, merge, fibers_matter: writes.kept_by_fill, alike: None };
            plan.alike = self.find_alike(TensorId(k as u32), &plan, steps);
            self.plans[k] = Some(plan);
        }
    }

    fn refuse_full_pattern(&mut self, tensor: TensorId) {
        let name = &self.program.tensor(tensor).name;
        let d = Diagnostic::new(
            Code::E0604,
            format!("`{name}` is a pattern over levels that store unwritten elements, which would be true"),
        )
        .label(self.program.origin.tensor(tensor), "declared here");
        let d = match self.program.tensor(tensor).rank {
            0 => d.help("write `scalar(False)`"),
            _ => d
                .help("let the last level be `bytemap`, `sparse` or `hash`, as in `bytemap; pattern`")
                .help("or store booleans: `dense` with `dtype=\"bool\"`"),
        };
        self.errors.push(self.program.origin.attach(d));
    }

    fn find_writes(&mut self, steps: &mut [Step], loops: &mut Vec<Loop>, found: &mut [Writes]) {
        for step in steps {
            match step {
                Step::Declare(tensor, _) => found[tensor.index()].depth = loops.len(),
                Step::For(index, _, body) => {
                    let unordered = self.reads_unordered(*index, body);
                    loops.push(Loop {
                        index: *index,
                        piece_of: self.pieces[index.index()].map(|(number, _)| number),
                        unordered,
                    });
                    self.find_writes(body, loops, found);
                    loops.pop();
                }
                Step::If(_, then, otherwise) => {
                    self.find_writes(then, loops, found);
                    self.find_writes(otherwise, loops, found);
                }
                Step::Assign(target, update, value) => {
                    let sets = match (&*update, &*value) {
                        (Some(update), _) => matches!(update.op, Op::Or | Op::BitOr | Op::Max),
                        (None, Node::Known(value)) => value.is_truthy(),
                        _ => false,
                    };
                    let merge = self.merging(target.tensor, update.as_ref(), value);
                    let kept = update.as_ref().is_some_and(|u| self.annihilating_fill(target.tensor, u).is_some());
                    let writes = &mut found[target.tensor.index()];
                    writes.kept_by_fill |= kept;
                    let loops = &loops[writes.depth.min(loops.len())..];
                    let around = &around(target, loops)[..];
                    let unordered = |index: IndexId| loops.iter().any(|l| l.index == index && l.unordered);
                    let order = order(target, around).filter(|by| !self.loses_order(target, by, unordered));
                    let first = writes.count == 0;
                    writes.count += 1;
                    writes.unsets |= !sets;
                    writes.merge = Some(writes.merge.filter(|m| *m != merge).map_or(merge, |_| Merge::Never));
                    let outermost = around.first().copied();
                    match &writes.first {
                        Some((there, subs)) => writes.mixed |= *there == outermost && *subs != target.subs,
                        None => writes.first = Some((outermost, target.subs.clone())),
                    }
                    if first {
                        let in_order = order.as_ref().is_some_and(|fixed_by| fixed_by.last() == around.last());
                        if in_order || visits_once(target, around) {
                            target.fresh = Some(self.bound[target.tensor.index()].fill);
                        }
                        writes.order = order.map(|fixed_by| (fixed_by, target.subs.clone()));
                    } else {
                        let same = |(fixed_by, subs): &(Vec<IndexId>, Vec<Sub>)| {
                            order.as_ref() == Some(fixed_by) && *subs == target.subs
                        };
                        writes.order = writes.order.take().filter(same);
                    }
                }
                _ => {}
            }
        }
    }
}

/// A loop around a write.
#[derive(Clone, Copy, Debug)]
struct Loop {
    index: IndexId,
    /// It goes over one of the pieces, all of one length, that this index numbers.
    piece_of: Option<IndexId>,
    /// Something is read along it whose coordinates come in any order.
    unordered: bool,
}

/// The loops around a write, a loop over pieces and the one over what is in a piece taken together.
fn around(target: &Target, loops: &[Loop]) -> Vec<IndexId> {
    let uses = |index: IndexId| {
        let mut used = false;
        target.subs.iter().for_each(|sub| sub.node.visit(&mut |n| used |= *n == Node::Index(index)));
        used
    };
    let is_over_pieces = |k: usize| {
        let Loop { index, .. } = loops[k];
        loops.get(k + 1).is_some_and(|next| next.piece_of == Some(index)) && !uses(index)
    };
    (0..loops.len()).filter(|k| !is_over_pieces(*k)).map(|k| loops[k].index).collect()
}

/// The first assignment to a tensor is the first to each element only if no other one goes ahead of it.
fn forget_fresh(steps: &mut [Step], found: &[Writes]) {
    for step in steps {
        match step {
            Step::For(_, _, body) => forget_fresh(body, found),
            Step::If(_, then, otherwise) => {
                forget_fresh(then, found);
                forget_fresh(otherwise, found);
            }
            Step::Assign(target, _, _) if found[target.tensor.index()].mixed => target.fresh = None,
            _ => {}
        }
    }
}

/// Whether every element is written at most once: each loop around is a subscript of its own.
fn visits_once(target: &Target, loops: &[IndexId]) -> bool {
    !loops.is_empty() && loops.iter().all(|index| target.subs.iter().any(|sub| sub.node == Node::Index(*index)))
}

/// Which of the loops around a write fixes each level, if that is in storage order.
fn order(target: &Target, loops: &[IndexId]) -> Option<Vec<IndexId>> {
    let mut next = 0;
    let mut fixed_by: Vec<IndexId> = Vec::new();
    for sub in &target.subs {
        if sub.permissive {
            return None;
        }
        let deepest = deepest(&sub.node, loops)?;
        match deepest {
            // A loop of its own, which goes up.
            Some(at) if at == next && goes_up(&sub.node, loops[at]) => {
                fixed_by.push(loops[at]);
                next += 1;
            }
            // Fixed already, so that there is one coordinate only.
            Some(at) if at < next => fixed_by.push(*fixed_by.last()?),
            None => fixed_by.push(*fixed_by.last()?),
            _ => return None,
        }
    }
    Some(fixed_by)
}

/// The innermost loop that an affine subscript depends on.
fn deepest(node: &Node, loops: &[IndexId]) -> Option<Option<usize>> {
    match node {
        Node::Index(index) => Some(loops.iter().position(|i| i == index)),
        Node::Known(Value::I64(_)) | Node::Size(..) => Some(None),
        Node::Call(Op::Add | Op::Sub | Op::Mul, _, operands) => {
            let found: Option<Vec<Option<usize>>> = operands.iter().map(|n| deepest(n, loops)).collect();
            Some(found?.into_iter().flatten().max())
        }
        _ => None,
    }
}

/// Whether an affine subscript increases strictly with an index.
pub(super) fn goes_up(node: &Node, index: IndexId) -> bool {
    let constant = |n: &Node| {
        let mut depends = false;
        n.visit(&mut |n| depends |= *n == Node::Index(index));
        !depends
    };
    match node {
        Node::Index(i) => *i == index,
        Node::Call(Op::Add, _, operands) => match &operands[..] {
            [a, b] => (goes_up(a, index) && constant(b)) || (constant(a) && goes_up(b, index)),
            _ => false,
        },
        Node::Call(Op::Sub, _, operands) => match &operands[..] {
            [a, b] => goes_up(a, index) && constant(b),
            _ => false,
        },
        Node::Call(Op::Mul, _, operands) => match &operands[..] {
            [Node::Known(Value::I64(k)), a] | [a, Node::Known(Value::I64(k))] => *k > 0 && goes_up(a, index),
            _ => false,
        },
        _ => false,
    }
}
