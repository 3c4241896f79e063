//! Shared sparsity: results with the sparsity pattern of an operand, such as a scaled matrix or a
//! sampled product.
//!
//! If the outermost loops iterate over the stored elements of one operand, and each of them is
//! written once, the result shares the coordinate arrays of the operand. The kernel then writes
//! values only, each at the position of its operand's element. Elements below which the operand
//! stores nothing hold the fill value. The operand must be a parameter, sorted and without
//! duplicates, and nothing may be written where it stores nothing.

use super::Lowerer;
use super::bind::BoundStorage;
use super::node::{LoopBounds, Node, PartialAccess, Projection, ReadSource, Step, Sub, visit_steps, visit_targets};
use super::write_plan::{WriteMode, WritePlan};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::format::{DimExpr, Format};
use tamis_ir::kernel::{Elem, ExprId, Stmt};
use tamis_ir::program::{Declaration, IndexId, ScalarKind, Storage, TensorId};
use tamis_tensor::levels::{ArrayRole, ArraySpec, Placement, level_type};

/// The levels that a result shares with an operand.
///
/// ```
/// use tamis_compiler::lower::SharedSparsity;
/// use tamis_ir::program::TensorId;
/// let shared = SharedSparsity { of: TensorId(0), levels: 2 };
/// assert_eq!(shared.of.index(), 0, "the pattern of the first parameter");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSparsity {
    /// The operand, a parameter of the program.
    pub of: TensorId,
    /// The number of shared levels, from the outermost on. All further levels of the result are
    /// dense.
    pub levels: usize,
}

/// A loop index with the loop's body.
type EnclosingLoop<'a> = (IndexId, &'a [Step]);

impl Lowerer<'_> {
    /// The operand whose levels a tensor with this write plan can share, if there is one.
    pub(super) fn find_shared_sparsity(
        &mut self,
        tensor: TensorId,
        plan: &WritePlan,
        steps: &[Step],
        uses: &StepUses,
    ) -> Option<SharedSparsity> {
        let BoundStorage::Levels { format, .. } = self.bound[tensor.index()].storage.clone() else { return None };
        let declared = self.checked.formats[tensor.index()].as_ref() == Some(&format);
        let plain = plan.mode == WriteMode::Append && plan.in_order && plan.bare.iter().all(|bare| *bare);
        if !declared || !plain || !self.program.results.contains(&tensor) || self.values(tensor).is_none() {
            return None;
        }
        let nests = loop_path(tensor, plan, steps, uses)?;
        let accesses = self.plain_accesses(nests[0].1).filter(|_| !uses.read[tensor.index()])?;
        let lists = |k: usize| self.row(tensor, k).is_some_and(|row| row.write.placement() == Placement::Appended);
        let listed: Vec<usize> = (0..format.levels().len()).filter(|k| lists(*k)).collect();
        let needed = listed.last()? + 1;
        let of = accesses.iter().find(|(tensor, _)| !self.is_dense(*tensor))?.0;
        if accesses.iter().any(|(tensor, _)| *tensor != of && !self.is_dense(*tensor)) {
            return None;
        }
        let driving: Vec<&PartialAccess> =
            accesses.iter().filter(|(tensor, _)| *tensor == of).map(|(_, a)| a).collect();
        let leads = |access: &&PartialAccess| self.leads(access, plan, needed);
        if !self.program.params.contains(&of) || !driving.iter().all(leads) || !self.same_levels(of, &format, needed) {
            return None;
        }
        // All levels below are dense, and all their elements are written.
        let below: Vec<IndexId> = plan.fixed_by[needed..].to_vec();
        let whole = driving.iter().all(|access| below.iter().all(|index| self.is_dense_along(access, *index)));
        if !whole || !(needed..format.levels().len()).all(|k| self.is_dense_level(tensor, k)) {
            return None;
        }
        // Nothing is written where the operand stores nothing.
        let ids: Vec<u32> = driving.iter().map(|access| access.id).collect();
        let idle = listed.into_iter().all(|k| self.idle_without(nests[k].1, &ids));
        idle.then_some(SharedSparsity { of, levels: needed })
    }

    /// The tensors that a nest reads, with their accesses, if every loop executes all its
    /// statements in every iteration.
    fn plain_accesses(&self, nest: &[Step]) -> Option<Vec<(TensorId, PartialAccess)>> {
        let mut plain = is_unconditional(nest);
        let mut found = Vec::new();
        visit_steps(nest, &mut |node| match node {
            Node::Access(access) => match &access.source {
                ReadSource::Tensor(read, subs) => {
                    plain &= subs.iter().all(|sub| !sub.permissive) && self.is_plain_tensor(*read);
                    found.push((*read, (**access).clone()));
                }
                ReadSource::Mask(..) => plain = false,
            },
            Node::Entry(_) | Node::Missing => plain = false,
            _ => {}
        });
        visit_targets(nest, &mut |target| plain &= self.is_plain_tensor(target.tensor));
        plain.then_some(found)
    }

    /// True unless the tensor is a scalar that exits loops or may be missing.
    fn is_plain_tensor(&self, tensor: TensorId) -> bool {
        match &self.program.tensor(tensor).declaration {
            Some(Declaration { storage: Storage::Scalar(kind), .. }) => *kind == ScalarKind::Plain,
            _ => true,
        }
    }

    /// True if a tensor stores every element.
    fn is_dense(&self, tensor: TensorId) -> bool {
        match &self.bound[tensor.index()].storage {
            BoundStorage::Scalar { .. } => true,
            BoundStorage::Levels { format, .. } => (0..format.levels().len()).all(|k| self.is_dense_level(tensor, k)),
        }
    }

    /// True if a level stores every coordinate, and needs no arrays for that.
    fn is_dense_level(&self, tensor: TensorId, level: usize) -> bool {
        self.row(tensor, level).is_some_and(|row| row.capabilities.full && row.arrays.is_empty())
    }

    /// True if every iteration of a loop reaches something that an access stores.
    fn is_dense_along(&self, access: &PartialAccess, index: IndexId) -> bool {
        let ReadSource::Tensor(tensor, subs) = &access.source else { return false };
        subs.iter().enumerate().all(|(k, sub)| {
            let mut led = false;
            sub.nodes().for_each(|node| node.visit(&mut |node| led |= *node == Node::Index(index)));
            !led || self.is_dense_level(*tensor, k)
        })
    }

    /// True if the outermost loops, and no others, iterate over the outermost levels of an access.
    fn leads(&self, access: &PartialAccess, plan: &WritePlan, levels: usize) -> bool {
        let ReadSource::Tensor(_, subs) = &access.source else { return false };
        let bare = |sub: &Sub, index: IndexId| {
            sub.node == Node::Index(index) && sub.projection == Projection::Whole && sub.protocol.is_none()
        };
        subs.len() >= levels && (0..levels).all(|k| bare(&subs[k], plan.fixed_by[k]))
    }

    /// True if the first levels of an operand match a format: sorted lists of distinct coordinates,
    /// and dense levels.
    fn same_levels(&self, of: TensorId, format: &Format, levels: usize) -> bool {
        let BoundStorage::Levels { format: other, arrays, .. } = &self.bound[of.index()].storage else { return false };
        let same = |k: usize| {
            let (ours, theirs) = (&format.levels()[k], &other.levels()[k]);
            let Ok(row) = level_type(ours.kind) else { return false };
            let fits = |array: &ArraySpec| match (array.specified_width(ours), row.find(array.role, &arrays[k])) {
                (Some(width), Some(buffer)) => self.b.kernel().buffer(buffer).elem == Elem::Index(width),
                _ => true,
            };
            let plain = !ours.nonunique && !theirs.nonunique && !theirs.nonordered && !ours.nonordered;
            let known = match row.write.placement() {
                Placement::Computed => arrays[k].is_empty() && row.capabilities.full,
                Placement::Appended => {
                    let roles = [ArrayRole::FiberOffsets, ArrayRole::Coordinates];
                    !row.write.takes_runs() && row.arrays.iter().map(|array| array.role).eq(roles)
                }
                Placement::Parent => false,
            };
            let dims = |map: &[DimExpr]| matches!(map[k], DimExpr::Dim(_));
            ours.kind == theirs.kind
                && plain
                && known
                && dims(format.map())
                && dims(other.map())
                && row.arrays.iter().all(fits)
        };
        other.levels().len() >= levels && (0..levels).all(same)
    }

    /// The levels that a tensor shares with an operand, if it does.
    pub(super) fn shared_sparsity(&self, tensor: TensorId) -> Option<SharedSparsity> {
        self.plans[tensor.index()].as_ref().and_then(|plan| plan.shared_sparsity)
    }

    /// Allocates the values of a tensor with shared sparsity.
    pub(super) fn allocate_shared(&mut self, tensor: TensorId, shared_sparsity: SharedSparsity) {
        let (Some(values), Some(mut len)) =
            (self.values(tensor), self.nnz(shared_sparsity.of, shared_sparsity.levels - 1))
        else {
            return;
        };
        let extents = self.bound[tensor.index()].extents.clone();
        for extent in extents.into_iter().skip(shared_sparsity.levels) {
            len = self.bounded_product(len, extent);
        }
        self.b.emit(Stmt::Grow { buffer: values, len, fill: None });
    }

    /// The operand's position in a loop over one of its levels.
    pub(super) fn shared_position(
        &mut self,
        shared_sparsity: SharedSparsity,
        level: usize,
        steps: &[Step],
    ) -> Option<ExprId> {
        let mut found = None;
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && tensor_of(access) == Some(shared_sparsity.of)
                && access.level > level
                && access.present.is_none()
            {
                found = found.or(access.position);
            }
        });
        if found.is_none() {
            let name = &self.program.tensor(shared_sparsity.of).name;
            let message = format!("a loop over the entries of `{name}` does not lead to them");
            self.errors.push(Diagnostic::new(Code::E1101, message).help("please report the program that was compiled"));
        }
        found
    }
}

/// The loops that fix the levels of a tensor, with their bodies, if nothing else encloses the
/// writes.
fn loop_path<'a>(
    tensor: TensorId,
    plan: &WritePlan,
    steps: &'a [Step],
    uses: &StepUses,
) -> Option<Vec<EnclosingLoop<'a>>> {
    let writes = |step: &&Step| {
        let mut found = false;
        visit_targets(std::slice::from_ref(*step), &mut |target| found |= target.tensor == tensor);
        found
    };
    // The tensor is declared at the start of the program.
    if !uses.declared[tensor.index()] {
        return None;
    }
    let mut nests = Vec::new();
    let mut here: Vec<&Step> = uses.written_in[tensor.index()].iter().map(|at| &steps[*at]).collect();
    for index in &plan.fixed_by {
        match here[..] {
            [Step::For(i, LoopBounds::Inferred, body)] if i == index => {
                nests.push((*i, &body[..]));
                here = body.iter().filter(writes).collect();
            }
            _ => return None,
        }
    }
    Some(nests)
}

/// The uses of each tensor by the outermost statements of a program.
pub(super) struct StepUses {
    /// Whether one of these statements declares the tensor.
    declared: Vec<bool>,
    /// The statements that write the tensor, in order.
    written_in: Vec<Vec<usize>>,
    /// Whether the tensor is read anywhere.
    read: Vec<bool>,
}

impl StepUses {
    /// The uses by these statements, of this many tensors.
    pub(super) fn of(steps: &[Step], tensors: usize) -> StepUses {
        let mut uses = StepUses {
            declared: vec![false; tensors],
            written_in: vec![Vec::new(); tensors],
            read: vec![false; tensors],
        };
        for (at, step) in steps.iter().enumerate() {
            if let Step::Declare(declared, _) = step {
                uses.declared[declared.index()] = true;
            }
            visit_targets(std::slice::from_ref(step), &mut |target| {
                let list = &mut uses.written_in[target.tensor.index()];
                if list.last() != Some(&at) {
                    list.push(at);
                }
            });
            visit_steps(std::slice::from_ref(step), &mut |node| {
                if let Node::Access(access) = node
                    && let Some(tensor) = tensor_of(access)
                {
                    uses.read[tensor.index()] = true;
                }
            });
        }
        uses
    }
}

/// True if statements do the same in every iteration of their loops.
fn is_unconditional(steps: &[Step]) -> bool {
    steps.iter().all(|step| match step {
        Step::Declare(..) | Step::Freeze(_) | Step::Let(..) | Step::Assign(..) => true,
        Step::For(_, LoopBounds::Inferred, body) => is_unconditional(body),
        Step::For(..) | Step::If(..) => false,
    })
}

fn tensor_of(access: &PartialAccess) -> Option<TensorId> {
    match &access.source {
        ReadSource::Tensor(tensor, _) => Some(*tensor),
        ReadSource::Mask(..) => None,
    }
}
