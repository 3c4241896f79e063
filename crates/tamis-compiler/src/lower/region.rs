//! Lowering a loop over a region: looplets are taken apart until none is left, then the loop is emitted.

use super::Lowerer;
use super::bind::{Stored, is_grouped};
use super::node::{Access, Node, Source, Step, map_steps, visit_steps};
use super::simplify;
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::format::Format;
use tamis_ir::kernel::{BufferId, ExprId, Hint, Stmt};
use tamis_ir::looplet::{Below, Fiber, Located, Looplet, Payload, Phase};
use tamis_ir::program::{IndexId, TensorId};
use tamis_tensor::levels::{LevelType, level_type};

/// A loop's index over `[start, stop)`.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) index: IndexId,
    pub(super) start: ExprId,
    pub(super) stop: ExprId,
    /// The region is the whole of every dimension that the index subscripts.
    pub(super) whole: bool,
}

impl Lowerer<'_> {
    pub(super) fn lower_loop(&mut self, index: IndexId, start: ExprId, stop: ExprId, whole: bool, body: Vec<Step>) {
        let (start, stop) = (self.b.name("start", start), self.b.name("stop", stop));
        // While the loop is described, its index is a variable of its own.
        let var = self.b.new_var("_", DType::I64, false);
        let placeholder = self.b.get(var);
        let body = map_steps(body, &mut |node| self.unfurl_node(node, index, placeholder));
        self.region(Region { index, start, stop, whole }, body);
    }

    /// Describes an access whose next subscript is the loop's index.
    fn unfurl_node(&mut self, node: Node, index: IndexId, placeholder: ExprId) -> Node {
        let Node::Access(mut access) = node else { return node };
        match &access.source {
            Source::Mask(op, on, other) if *on == index => {
                let mut depends = false;
                other.visit(&mut |n| depends |= matches!(n, Node::Index(i) if self.indices[i.index()].is_none()));
                if !depends {
                    let bound = self.integer(&other.clone());
                    access.looplet = Some(self.mask(*op, bound));
                }
            }
            Source::Tensor(tensor, subs) => {
                let bound = self.bound[tensor.index()].clone();
                if let (Some(sub), Stored::Levels { format, arrays, .. }) = (subs.get(access.level), &bound.storage)
                    && sub.node == Node::Index(index)
                    && !sub.permissive
                {
                    let at = Located {
                        position: access.position.unwrap_or(self.b.int(0)),
                        present: access.present,
                        group_stop: access.group_stop,
                    };
                    let (format, arrays) = (format.clone(), arrays[access.level].clone());
                    let looplet = self.fiber(*tensor, &format, &arrays, access.level, at, placeholder, |row, fiber| {
                        (row.unfurl)(fiber)
                    });
                    access.looplet = looplet;
                }
            }
            _ => {}
        }
        Node::Access(access)
    }

    /// Asks a level about one of its fibers.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn fiber<T>(
        &mut self,
        tensor: TensorId,
        format: &Format,
        arrays: &[(&'static str, BufferId)],
        level: usize,
        at: Located,
        index: ExprId,
        ask: impl FnOnce(&LevelType, &mut Fiber) -> T,
    ) -> Option<T> {
        let dim = format.dim_order()?[level];
        let name = format!("{}{level}", self.program.tensor(tensor).name);
        let row = level_type(format.levels()[level].kind).ok()?;
        let mut fiber = Fiber {
            arrays,
            position: at.position,
            group_stop: at.group_stop,
            present: at.present,
            grouped: is_grouped(format, level),
            extent: self.bound[tensor.index()].dims[dim],
            index,
            name: &name,
            builder: &mut self.b,
        };
        Some(ask(row, &mut fiber))
    }

    /// Where `index op bound` holds, as a sequence of runs.
    fn mask(&mut self, op: Op, bound: ExprId) -> Looplet {
        let one = self.b.int(1);
        let after = self.b.add(bound, one);
        let run = |value| Looplet::Run(Payload::Truth(value));
        let two = |stop, first| {
            Looplet::Sequence(vec![
                Phase { stop: Some(stop), body: run(first) },
                Phase { stop: None, body: run(!first) },
            ])
        };
        match op {
            Op::Lt => two(bound, true),
            Op::Le => two(after, true),
            Op::Ge => two(bound, false),
            Op::Gt => two(after, false),
            _ => {
                let equal = op == Op::Eq;
                Looplet::Sequence(vec![
                    Phase { stop: Some(bound), body: run(!equal) },
                    Phase { stop: Some(after), body: run(equal) },
                    Phase { stop: None, body: run(!equal) },
                ])
            }
        }
    }

    /// Lowers statements over a region.
    pub(super) fn region(&mut self, region: Region, steps: Vec<Step>) {
        let steps = simplify::steps(steps);
        if steps.is_empty() {
            return;
        }
        let mut first: Option<&Access> = None;
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && let Some(looplet) = &access.looplet
                && first.and_then(|f| f.looplet.as_ref()).is_none_or(|f| f.priority() < looplet.priority())
            {
                first = Some(access);
            }
        });
        let Some(access) = first.cloned() else { return self.plain_loop(region, steps) };
        match access.looplet {
            Some(Looplet::Thunk { preamble, body }) => {
                preamble.into_iter().for_each(|stmt| self.b.emit(stmt));
                let steps = set_looplet(steps, access.id, *body);
                self.region(region, steps);
            }
            Some(Looplet::Run(payload)) => {
                let steps = self.replace(steps, access.id, &payload, None);
                self.region(region, steps);
            }
            Some(Looplet::Sequence(phases)) => self.sequence(region, steps, access.id, phases),
            Some(Looplet::Stepper(_)) => self.steppers(region, steps),
            _ => self.plain_loop(region, steps),
        }
    }

    fn sequence(&mut self, region: Region, steps: Vec<Step>, id: u32, phases: Vec<Phase>) {
        let mut start = region.start;
        for phase in phases {
            let stop = match phase.stop {
                Some(stop) => {
                    let low = self.b.call_in(Op::Max, DType::I64, &[stop, start]);
                    let high = self.b.call_in(Op::Min, DType::I64, &[low, region.stop]);
                    self.b.name("phase", high)
                }
                None => region.stop,
            };
            let body = set_looplet(steps.clone(), id, phase.body);
            self.region(Region { start, stop, whole: false, ..region }, body);
            start = stop;
        }
    }

    /// A loop over every coordinate.
    fn plain_loop(&mut self, region: Region, steps: Vec<Step>) {
        let name = self.program.indices[region.index.index()].clone();
        let var = self.b.new_var(name, DType::I64, false);
        let i = self.b.get(var);
        let body = self.at(region.index, i, steps);
        if !body.is_empty() {
            self.b.emit(Stmt::For { var, start: region.start, stop: region.stop, body, hint: Hint::default() });
        }
    }

    /// Statements at one coordinate, in a block of their own: whatever is computed from the coordinate is looked up.
    pub(super) fn at(&mut self, index: IndexId, i: ExprId, steps: Vec<Step>) -> Vec<Stmt> {
        let before = self.indices[index.index()].replace(i);
        let mut lookups = Vec::new();
        visit_steps(&steps, &mut |node| {
            if let Node::Access(access) = node
                && matches!(access.looplet, Some(Looplet::Lookup(_)))
            {
                lookups.push((**access).clone());
            }
        });
        let mut steps = steps;
        for access in lookups {
            let Source::Tensor(tensor, subs) = &access.source else { continue };
            let bound = self.bound[tensor.index()].clone();
            // The child of a full level, at this coordinate.
            let parent = access.position.unwrap_or(self.b.int(0));
            let base = self.b.call_in(Op::Mul, DType::I64, &[parent, bound.dims[subs[access.level].dim]]);
            let position = self.b.add(base, i);
            steps = self.replace(steps, access.id, &Payload::Child(position), None);
        }
        let block = self.scoped(steps);
        self.indices[index.index()] = before;
        block
    }

    /// Resolves an access by one level.
    pub(super) fn replace(
        &mut self,
        steps: Vec<Step>,
        id: u32,
        payload: &Payload,
        present: Option<Presence>,
    ) -> Vec<Step> {
        map_steps(steps, &mut |node| {
            let Node::Access(mut access) = node else { return node };
            if access.id != id {
                return Node::Access(access);
            }
            access.looplet = None;
            match (payload, &access.source) {
                (Payload::Truth(value), _) => Node::Known(Value::Bool(*value)),
                (Payload::Fill, Source::Tensor(tensor, _)) => Node::Known(self.bound[tensor.index()].fill),
                (Payload::Child(position), _) => {
                    access.level += 1;
                    access.position = Some(*position);
                    access.group_stop = None;
                    if let Some(presence) = present {
                        access.group_stop = presence.group_stop;
                        access.present = match (access.present, presence.cond) {
                            (Some(a), Some(b)) => Some(self.b.call_in(Op::And, DType::Bool, &[a, b])),
                            (a, b) => a.or(b),
                        };
                    }
                    Node::Access(access)
                }
                (Payload::Fill, Source::Mask(..)) => Node::Access(access),
            }
        })
    }

    /// The position below a stepper's position.
    pub(super) fn below(&mut self, below: Below, position: ExprId, i: ExprId) -> ExprId {
        match below {
            Below::Position => position,
            Below::Coordinate(base) => self.b.add(base, i),
        }
    }
}

/// Whether a stepper's current coordinate is the loop's.
#[derive(Clone, Copy)]
pub(super) struct Presence {
    pub(super) cond: Option<ExprId>,
    pub(super) group_stop: Option<ExprId>,
}

pub(super) fn set_looplet(steps: Vec<Step>, id: u32, looplet: Looplet) -> Vec<Step> {
    map_steps(steps, &mut |node| match node {
        Node::Access(mut access) if access.id == id => {
            access.looplet = Some(looplet.clone());
            Node::Access(access)
        }
        other => other,
    })
}
