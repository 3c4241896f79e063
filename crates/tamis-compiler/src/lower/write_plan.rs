//! Write plans: the way in which each tensor of a program is written, by the order of its elements.
//!
//! In: the steps of the program. Out: a plan for each declared tensor, and marks on assignments
//! that are the first ones to their elements. A tensor is written *in order* if its subscripts,
//! outermost level first, are fixed by the outermost loops around the writes, one loop after the
//! other, each increasing. Then each element is visited once, and coordinates can be appended.
//! Tensors that are read while they are written, or written out of order, need computed positions
//! or a workspace.

use super::Lowerer;
use super::bind::{BoundStorage, chain_head};
use super::node::{Node, Step, Sub, WriteTarget};
use super::shared_sparsity::{SharedSparsity, StepUses};
use tamis_ir::algebra::{Op, Value};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::format::Leaf;
use tamis_ir::kernel::Merge;
use tamis_ir::program::{IndexId, TensorId};
use tamis_tensor::levels::{Placement, level_type, tree};

/// The write plan of a tensor.
///
/// ```
/// # use tamis_compiler::lower::WriteMode;
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let compilation = pipeline::compile(&program, &params, &layouts, Default::default())?;
/// let plan = compilation.lowered.plans[1].as_ref().unwrap();
/// assert!(plan.in_order && plan.mode != WriteMode::Scatter);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WritePlan {
    /// The place of its elements while it is written.
    pub mode: WriteMode,
    /// Its elements are written in storage order.
    pub in_order: bool,
    /// For each level, the loop that fixes its coordinate, if the tensor is written in order.
    pub fixed_by: Vec<IndexId>,
    /// For each level: true if its subscript is that loop's index alone.
    pub bare: Vec<bool>,
    /// The merge of several entries of one element, if elements come in any order.
    pub merge: Merge,
    /// True if some update depends on the presence of an element's dense fiber.
    pub tests_fibers: bool,
    /// The shared levels, if the tensor has the sparsity pattern of an operand.
    pub shared_sparsity: Option<SharedSparsity>,
}

/// The place of a tensor's elements while it is written.
///
/// ```
/// # use tamis_compiler::lower::WriteMode;
/// # use tamis_compiler::{lower::ParamLayout, pipeline};
/// # use tamis_ir::{Format, Notation, Value, interp};
/// # use tamis_tensor::Tensor;
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// # let values = vec![0.0, 5.0, 0.0, 7.0].into();
/// let a = Tensor::from_dense(&[2, 2], values, &Format::csr(), Value::F64(0.0))?;
/// let (params, layouts) = ([interp::param_type(&a)], [ParamLayout::of(&a)]);
/// let compilation = pipeline::compile(&program, &params, &layouts, Default::default())?;
/// assert_ne!(compilation.lowered.plans[1].as_ref().unwrap().mode, WriteMode::Scatter);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// In order: coordinates are appended to its levels, each when it is complete.
    Append,
    /// At positions computed from coordinates.
    Insert,
    /// In a workspace, in any order; `freeze` sorts the entries and appends them to the levels.
    Scatter,
}

impl WritePlan {
    /// The levels whose coordinates a loop fixes.
    pub(super) fn fixed(&self, index: IndexId) -> Vec<usize> {
        (0..self.fixed_by.len()).filter(|k| self.fixed_by[*k] == index).collect()
    }
}

/// The writes to one tensor, as they are collected.
#[derive(Clone, Debug, Default)]
struct TensorWrites {
    /// The number of loops around the declaration.
    depth: usize,
    /// The order of the first write, and its subscripts; `None` once writes differ.
    storage_order: Option<(Vec<IndexId>, Vec<Sub>)>,
    count: usize,
    /// The outermost loop around the first write, and its subscripts.
    first: Option<(Option<IndexId>, Vec<Sub>)>,
    /// True if another write in that loop may precede the first one to an element.
    mixed: bool,
    /// True if some write may make an element false that was true.
    unsets: bool,
    /// The merge of several entries of one element, as far as all writes agree.
    merge: Option<Merge>,
    /// True if some update is annihilated by the fill value.
    kept_by_fill: bool,
}

impl Lowerer<'_> {
    /// Determines the write plan of each declared tensor, and the assignments that are first to
    /// their elements.
    pub(super) fn classify(&mut self, steps: &mut [Step]) {
        let mut found = vec![TensorWrites::default(); self.program.tensors.len()];
        self.collect_writes(steps, &mut Vec::new(), &mut found);
        clear_fresh(steps, &found);
        let read_while_written = self.program.read_while_written();
        let uses = StepUses::of(steps, self.program.tensors.len());
        for (k, writes) in found.into_iter().enumerate() {
            let BoundStorage::Levels { format, .. } = self.bound[k].storage.clone() else { continue };
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
            // A tensor without levels always stores its element. Padded formats are written as
            // formats without padding.
            if pattern && (format.levels().is_empty() || tree::pads(format.levels())) {
                self.reject_dense_pattern(TensorId(k as u32));
            }
            let computed = placements.iter().all(|p| *p == Placement::Computed);
            // Coordinates of a singleton share the fiber below it, so visiting them in order is not
            // enough.
            let shared = (1..placements.len()).any(|k| {
                placements[k - 1] == Placement::Parent && !format.levels()[chain_head(&format, k - 1)].nonunique
            });
            let in_order = writes.count > 0 && writes.storage_order.is_some() && !placements.is_empty() && !shared;
            // A tensor that is read while it is written needs its elements in place.
            let read = read_while_written[k];
            let mode = match (computed, in_order) {
                (true, true) if !lists && !read => WriteMode::Append,
                // Listed coordinates cannot be removed again.
                (true, _) if pattern && writes.unsets => WriteMode::Scatter,
                (true, _) => WriteMode::Insert,
                (false, true) => WriteMode::Append,
                // There are no writes.
                (false, false) if writes.count == 0 => WriteMode::Append,
                (false, false) => WriteMode::Scatter,
            };
            let (fixed_by, subs) = writes.storage_order.unwrap_or_default();
            // An index that subscripts two dimensions moves along a diagonal.
            let bare =
                |(k, sub): (usize, &Sub)| sub.node == Node::Index(fixed_by[k]) && !fixed_by[..k].contains(&fixed_by[k]);
            let bare = subs.iter().enumerate().take(fixed_by.len()).map(bare).collect();
            let merge = writes.merge.unwrap_or(Merge::Never);
            let mut plan = WritePlan {
                mode,
                in_order,
                fixed_by,
                bare,
                merge,
                tests_fibers: writes.kept_by_fill,
                shared_sparsity: None,
            };
            plan.shared_sparsity = self.find_shared_sparsity(TensorId(k as u32), &plan, steps, &uses);
            self.plans[k] = Some(plan);
        }
    }

    fn reject_dense_pattern(&mut self, tensor: TensorId) {
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

    fn collect_writes(&mut self, steps: &mut [Step], loops: &mut Vec<Loop>, found: &mut [TensorWrites]) {
        for step in steps {
            match step {
                Step::Declare(tensor, _) => found[tensor.index()].depth = loops.len(),
                Step::For(index, _, body) => {
                    let unordered = self.reads_unordered(*index, body);
                    loops.push(Loop {
                        index: *index,
                        chunk_of: self.chunks[index.index()].map(|(chunk, _)| chunk),
                        unordered,
                    });
                    self.collect_writes(body, loops, found);
                    loops.pop();
                }
                Step::If(_, then, otherwise) => {
                    self.collect_writes(then, loops, found);
                    self.collect_writes(otherwise, loops, found);
                }
                Step::Assign(target, update, value) => {
                    let sets = match (&*update, &*value) {
                        (Some(update), _) => matches!(update.op, Op::Or | Op::BitOr | Op::Max),
                        (None, Node::Known(value)) => value.is_truthy(),
                        _ => false,
                    };
                    let merge = self.merge_of(target.tensor, update.as_ref(), value);
                    let kept = update.as_ref().is_some_and(|u| self.annihilating_fill(target.tensor, u).is_some());
                    let writes = &mut found[target.tensor.index()];
                    writes.kept_by_fill |= kept;
                    let loops = &loops[writes.depth.min(loops.len())..];
                    let around = &around(target, loops)[..];
                    let unordered = |index: IndexId| loops.iter().any(|l| l.index == index && l.unordered);
                    let storage_order =
                        storage_order(target, around).filter(|by| !self.loses_order(target, by, unordered));
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
                        let in_order = storage_order.as_ref().is_some_and(|fixed_by| fixed_by.last() == around.last());
                        if in_order || visits_once(target, around) {
                            target.fresh = Some(self.bound[target.tensor.index()].fill);
                        }
                        writes.storage_order = storage_order.map(|fixed_by| (fixed_by, target.subs.clone()));
                    } else {
                        let same = |(fixed_by, subs): &(Vec<IndexId>, Vec<Sub>)| {
                            storage_order.as_ref() == Some(fixed_by) && *subs == target.subs
                        };
                        writes.storage_order = writes.storage_order.take().filter(same);
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
    /// The loop runs over a chunk, all of one length, that this index counts.
    chunk_of: Option<IndexId>,
    /// True if it moves along a level whose coordinates are in any order.
    unordered: bool,
}

/// The loops around a write; a strip-mined pair of loops counts as one.
fn around(target: &WriteTarget, loops: &[Loop]) -> Vec<IndexId> {
    let uses = |index: IndexId| {
        let mut used = false;
        target.subs.iter().for_each(|sub| sub.node.visit(&mut |n| used |= *n == Node::Index(index)));
        used
    };
    let counts_chunks = |k: usize| {
        let Loop { index, .. } = loops[k];
        loops.get(k + 1).is_some_and(|next| next.chunk_of == Some(index)) && !uses(index)
    };
    (0..loops.len()).filter(|k| !counts_chunks(*k)).map(|k| loops[k].index).collect()
}

/// Removes the marks of first assignments to tensors where another write may precede them.
fn clear_fresh(steps: &mut [Step], found: &[TensorWrites]) {
    for step in steps {
        match step {
            Step::For(_, _, body) => clear_fresh(body, found),
            Step::If(_, then, otherwise) => {
                clear_fresh(then, found);
                clear_fresh(otherwise, found);
            }
            Step::Assign(target, _, _) if found[target.tensor.index()].mixed => target.fresh = None,
            _ => {}
        }
    }
}

/// True if every element is written at most once: each enclosing loop is a subscript of its own.
fn visits_once(target: &WriteTarget, loops: &[IndexId]) -> bool {
    !loops.is_empty() && loops.iter().all(|index| target.subs.iter().any(|sub| sub.node == Node::Index(*index)))
}

/// The loops around a write that fix each level, if they do so in storage order.
fn storage_order(target: &WriteTarget, loops: &[IndexId]) -> Option<Vec<IndexId>> {
    let mut next = 0;
    let mut fixed_by: Vec<IndexId> = Vec::new();
    for sub in &target.subs {
        if sub.permissive {
            return None;
        }
        let innermost = innermost(&sub.node, loops)?;
        match innermost {
            // A loop of its own, with an increasing subscript.
            Some(at) if at == next && is_increasing(&sub.node, loops[at]) => {
                fixed_by.push(loops[at]);
                next += 1;
            }
            // Outer loops fix it already, so there is only one coordinate.
            Some(at) if at < next => fixed_by.push(*fixed_by.last()?),
            None => fixed_by.push(*fixed_by.last()?),
            _ => return None,
        }
    }
    Some(fixed_by)
}

/// The innermost loop that an affine subscript depends on.
fn innermost(node: &Node, loops: &[IndexId]) -> Option<Option<usize>> {
    match node {
        Node::Index(index) => Some(loops.iter().position(|i| i == index)),
        Node::Known(Value::I64(_)) | Node::Size(..) => Some(None),
        Node::Call(Op::Add | Op::Sub | Op::Mul, _, operands) => {
            let found: Option<Vec<Option<usize>>> = operands.iter().map(|n| innermost(n, loops)).collect();
            Some(found?.into_iter().flatten().max())
        }
        _ => None,
    }
}

/// True if an affine subscript increases strictly with an index.
pub(super) fn is_increasing(node: &Node, index: IndexId) -> bool {
    let constant = |n: &Node| {
        let mut depends = false;
        n.visit(&mut |n| depends |= *n == Node::Index(index));
        !depends
    };
    match node {
        Node::Index(i) => *i == index,
        Node::Call(Op::Add, _, operands) => match &operands[..] {
            [a, b] => (is_increasing(a, index) && constant(b)) || (constant(a) && is_increasing(b, index)),
            _ => false,
        },
        Node::Call(Op::Sub, _, operands) => match &operands[..] {
            [a, b] => is_increasing(a, index) && constant(b),
            _ => false,
        },
        Node::Call(Op::Mul, _, operands) => match &operands[..] {
            [Node::Known(Value::I64(k)), a] | [a, Node::Known(Value::I64(k))] => *k > 0 && is_increasing(a, index),
            _ => false,
        },
        _ => false,
    }
}
