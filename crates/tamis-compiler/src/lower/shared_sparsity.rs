//! Results that store what an operand stores: a scaled matrix, a sampled product, a tensor times a vector along its last dimension.
//!
//! Where the outermost loops go over the entries of one operand, and each of them is written once, the levels of the result are those
//! of the operand, array for array. So they are: the kernel writes values only, each at the position of its entry, and the tensor that is
//! made of them shares the arrays of the operand. Entries below which the operand stores nothing hold the fill.

use super::Lowerer;
use super::bind::Stored;
use super::node::{Access, Bounds, Node, Part, Source, Step, Sub, visit_steps, visit_targets};
use super::write_plan::{Mode, Plan};
use tamis_ir::diag::{Code, Diagnostic};
use tamis_ir::format::{DimExpr, Format};
use tamis_ir::kernel::{BufferId, Elem, ExprId, Stmt};
use tamis_ir::program::{Declaration, IndexId, ScalarKind, Storage, TensorId};
use tamis_tensor::levels::{Placement, level_type};

/// What a result has of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alike {
    /// The operand, a parameter of the program.
    pub of: TensorId,
    /// How many of its levels, from the outermost on. All further levels of the result are full.
    pub levels: usize,
}

/// A loop with the statements in it.
type Nest<'a> = (IndexId, &'a [Step]);

impl Lowerer<'_> {
    /// The operand whose levels a tensor that is written by such a plan has, if there is one.
    pub(super) fn find_alike(&mut self, tensor: TensorId, plan: &Plan, steps: &[Step]) -> Option<Alike> {
        let Stored::Levels { format, .. } = self.bound[tensor.index()].storage.clone() else { return None };
        let declared = self.checked.formats[tensor.index()].as_ref() == Some(&format);
        let plain = plan.mode == Mode::Append && plan.in_order && plan.bare.iter().all(|bare| *bare);
        if !declared || !plain || !self.program.results.contains(&tensor) || self.values(tensor).is_none() {
            return None;
        }
        let nests = path(tensor, plan, steps)?;
        let accesses = self.plain_accesses(tensor, nests[0].1, steps)?;
        let lists = |k: usize| self.row(tensor, k).is_some_and(|row| row.write.placement() == Placement::Appended);
        let listed: Vec<usize> = (0..format.levels().len()).filter(|k| lists(*k)).collect();
        let needed = listed.last()? + 1;
        let of = accesses.iter().find(|(tensor, _)| !self.is_full(*tensor))?.0;
        if accesses.iter().any(|(tensor, _)| *tensor != of && !self.is_full(*tensor)) {
            return None;
        }
        let driving: Vec<&Access> = accesses.iter().filter(|(tensor, _)| *tensor == of).map(|(_, a)| a).collect();
        let leads = |access: &&Access| self.leads(access, plan, needed);
        if !self.program.params.contains(&of) || !driving.iter().all(leads) || !self.same_levels(of, &format, needed) {
            return None;
        }
        // Below, everything is stored, and written.
        let below: Vec<IndexId> = plan.fixed_by[needed..].to_vec();
        let whole = driving.iter().all(|access| below.iter().all(|index| self.is_full_along(access, *index)));
        if !whole || !(needed..format.levels().len()).all(|k| self.is_full_level(tensor, k)) {
            return None;
        }
        // Nothing happens where nothing is stored.
        let ids: Vec<u32> = driving.iter().map(|access| access.id).collect();
        let idle = listed.into_iter().all(|k| self.idle_without(nests[k].1, &ids));
        idle.then_some(Alike { of, levels: needed })
    }

    /// The tensors that a nest reads, with their accesses, if every turn of every loop does everything, and a tensor is not read at all.
    fn plain_accesses(&self, tensor: TensorId, nest: &[Step], steps: &[Step]) -> Option<Vec<(TensorId, Access)>> {
        let mut plain = is_plain(nest);
        visit_steps(steps, &mut |node| {
            plain &= !matches!(node, Node::Access(access) if tensor_of(access) == Some(tensor));
        });
        let mut found = Vec::new();
        visit_steps(nest, &mut |node| match node {
            Node::Access(access) => match &access.source {
                Source::Tensor(read, subs) => {
                    plain &= subs.iter().all(|sub| !sub.permissive) && self.is_plain_tensor(*read);
                    found.push((*read, (**access).clone()));
                }
                Source::Mask(..) => plain = false,
            },
            Node::Entry(_) | Node::Missing => plain = false,
            _ => {}
        });
        visit_targets(nest, &mut |target| plain &= self.is_plain_tensor(target.tensor));
        plain.then_some(found)
    }

    /// Not a scalar that ends loops or may be missing.
    fn is_plain_tensor(&self, tensor: TensorId) -> bool {
        match &self.program.tensor(tensor).declaration {
            Some(Declaration { storage: Storage::Scalar(kind), .. }) => *kind == ScalarKind::Plain,
            _ => true,
        }
    }

    /// Whether every element is stored.
    fn is_full(&self, tensor: TensorId) -> bool {
        match &self.bound[tensor.index()].storage {
            Stored::Scalar { .. } => true,
            Stored::Levels { format, .. } => (0..format.levels().len()).all(|k| self.is_full_level(tensor, k)),
        }
    }

    /// Whether a level stores every coordinate, and nothing but them.
    fn is_full_level(&self, tensor: TensorId, level: usize) -> bool {
        self.row(tensor, level).is_some_and(|row| row.capabilities.full && row.arrays.is_empty())
    }

    /// Whether every turn of a loop leads to something that an access stores.
    fn is_full_along(&self, access: &Access, index: IndexId) -> bool {
        let Source::Tensor(tensor, subs) = &access.source else { return false };
        subs.iter().enumerate().all(|(k, sub)| {
            let mut led = false;
            sub.nodes().for_each(|node| node.visit(&mut |node| led |= *node == Node::Index(index)));
            !led || self.is_full_level(*tensor, k)
        })
    }

    /// Whether the outermost loops go over the outermost levels of an access, one by one, and nothing else does.
    fn leads(&self, access: &Access, plan: &Plan, levels: usize) -> bool {
        let Source::Tensor(_, subs) = &access.source else { return false };
        let bare = |sub: &Sub, index: IndexId| {
            sub.node == Node::Index(index) && sub.part == Part::Whole && sub.protocol.is_none()
        };
        subs.len() >= levels && (0..levels).all(|k| bare(&subs[k], plan.fixed_by[k]))
    }

    /// Whether the first levels of an operand are such as a format says: lists of distinct coordinates, in order, and full levels.
    fn same_levels(&self, of: TensorId, format: &Format, levels: usize) -> bool {
        let Stored::Levels { format: other, arrays, .. } = &self.bound[of.index()].storage else { return false };
        let same = |k: usize| {
            let (ours, theirs) = (&format.levels()[k], &other.levels()[k]);
            let Ok(row) = level_type(ours.kind) else { return false };
            let width = |name: &str| arrays[k].iter().find(|(n, _)| *n == name).map(|(_, buffer)| *buffer);
            let fits = |said: Option<_>, buffer: Option<BufferId>| match (said, buffer) {
                (Some(width), Some(buffer)) => self.b.kernel().buffer(buffer).elem == Elem::Index(width),
                _ => true,
            };
            let plain = !ours.nonunique && !theirs.nonunique && !theirs.nonordered && !ours.nonordered;
            let known = match row.write.placement() {
                Placement::Computed => arrays[k].is_empty() && row.capabilities.full,
                Placement::Appended => {
                    !row.write.takes_runs() && arrays[k].iter().map(|(name, _)| *name).eq(["pos", "crd"])
                }
                Placement::Parent => false,
            };
            let dims = |map: &[DimExpr]| matches!(map[k], DimExpr::Dim(_));
            ours.kind == theirs.kind
                && plain
                && known
                && dims(format.map())
                && dims(other.map())
                && fits(ours.pos, width("pos"))
                && fits(ours.crd, width("crd"))
        };
        other.levels().len() >= levels && (0..levels).all(same)
    }

    /// What a tensor has of an operand, if it is written so.
    pub(super) fn alike(&self, tensor: TensorId) -> Option<Alike> {
        self.plans[tensor.index()].as_ref().and_then(|plan| plan.alike)
    }

    /// Room for the values of a tensor that has the levels of an operand.
    pub(super) fn make_alike(&mut self, tensor: TensorId, alike: Alike) {
        let (Some(values), Some(mut len)) = (self.values(tensor), self.stored(alike.of, alike.levels - 1)) else {
            return;
        };
        let extents = self.bound[tensor.index()].extents.clone();
        for extent in extents.into_iter().skip(alike.levels) {
            len = self.times(len, extent);
        }
        self.b.emit(Stmt::Grow { buffer: values, len, fill: None });
    }

    /// The position of the entry that a loop over a level of an operand is at.
    pub(super) fn position_alike(&mut self, alike: Alike, level: usize, steps: &[Step]) -> Option<ExprId> {
        let mut found = None;
        visit_steps(steps, &mut |node| {
            if let Node::Access(access) = node
                && tensor_of(access) == Some(alike.of)
                && access.level > level
                && access.present.is_none()
            {
                found = found.or(access.position);
            }
        });
        if found.is_none() {
            let name = &self.program.tensor(alike.of).name;
            let message = format!("a loop over the entries of `{name}` does not lead to them");
            self.errors.push(Diagnostic::new(Code::E1101, message).help("please report the program that was compiled"));
        }
        found
    }
}

/// The loops that fix the levels of a tensor, each with what is in it, if nothing but them leads to where it is written.
fn path<'a>(tensor: TensorId, plan: &Plan, steps: &'a [Step]) -> Option<Vec<Nest<'a>>> {
    let writes = |step: &&Step| {
        let mut found = false;
        visit_targets(std::slice::from_ref(*step), &mut |target| found |= target.tensor == tensor);
        found
    };
    // It is declared where the program begins.
    steps.iter().find(|step| matches!(step, Step::Declare(declared, _) if *declared == tensor))?;
    let mut nests = Vec::new();
    let mut inside = steps;
    for index in &plan.fixed_by {
        let mut here = inside.iter().filter(writes);
        match (here.next(), here.next()) {
            (Some(Step::For(i, Bounds::Inferred, body)), None) if i == index => {
                nests.push((*i, &body[..]));
                inside = body;
            }
            _ => return None,
        }
    }
    Some(nests)
}

/// Whether statements do everything in every turn of their loops.
fn is_plain(steps: &[Step]) -> bool {
    steps.iter().all(|step| match step {
        Step::Declare(..) | Step::Freeze(_) | Step::Let(..) | Step::Assign(..) => true,
        Step::For(_, Bounds::Inferred, body) => is_plain(body),
        Step::For(..) | Step::If(..) => false,
    })
}

fn tensor_of(access: &Access) -> Option<TensorId> {
    match &access.source {
        Source::Tensor(tensor, _) => Some(*tensor),
        Source::Mask(..) => None,
    }
}
