//! Translation of programs into the lowerer's tree: types become explicit, subscripts take storage
//! order, comparisons become masks.
//!
//! In: a checked program, with bound tensors. Out: steps, with a `freeze` before each tensor that
//! was written is read. Reads of the same element become one access.

use super::Lowerer;
use super::bind::BoundStorage;
use super::entries::coordinate_of;
use super::node::{
    EntryQuery, LoopBounds, Node, PartialAccess, Projection, ReadSource, Step, Sub, UpdateOp, WriteTarget, visit_steps,
    visit_targets,
};
use tamis_ir::algebra::{DType, Op, Value};
use tamis_ir::format::DimExpr;
use tamis_ir::program::{
    self, Atom, Block, Comparison, Expr, ExprId, Extent, IndexId, Linear, Mask, StmtKind, TensorId,
};

impl Lowerer<'_> {
    pub(super) fn prepare(&mut self, block: &Block) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        // Tensors of this block that were written (or declared) since they were last frozen.
        let mut open: Vec<TensorId> = Vec::new();
        // Tensors without a write so far, with a flag that they were read: such a read gives the
        // fill value, and the first statement that writes declares the tensor again.
        let mut unwritten: Vec<(TensorId, bool)> = Vec::new();
        for stmt in block {
            let step = self.prepare_stmt(stmt);
            let mut read = Vec::new();
            visit_steps(std::slice::from_ref(&step), &mut |node| {
                if let Node::Access(access) = node
                    && let ReadSource::Tensor(tensor, _) = access.source
                {
                    read.push(tensor);
                }
            });
            let freezes = open.extract_if(.., |tensor| read.contains(tensor)).map(Step::Freeze);
            steps.extend(freezes);
            if let Step::Declare(tensor, _) = step {
                open.push(tensor);
                unwritten.push((tensor, false));
            }
            let mut again = Vec::new();
            visit_targets(std::slice::from_ref(&step), &mut |target| {
                let written = unwritten.extract_if(.., |(tensor, _)| *tensor == target.tensor);
                again.extend(written.filter(|(_, was_read)| *was_read).map(|(tensor, _)| tensor));
            });
            for tensor in again {
                steps.push(Step::Declare(tensor, self.bound[tensor.index()].fill));
            }
            unwritten.iter_mut().for_each(|(tensor, was_read)| *was_read |= read.contains(tensor));
            visit_targets(std::slice::from_ref(&step), &mut |target| {
                let declared = steps.iter().any(|s| matches!(s, Step::Declare(t, _) if *t == target.tensor));
                if declared && !open.contains(&target.tensor) {
                    open.push(target.tensor);
                }
            });
            steps.push(step);
        }
        steps.extend(open.into_iter().filter(|t| self.program.results.contains(t)).map(Step::Freeze));
        steps
    }

    fn prepare_stmt(&mut self, stmt: &program::Stmt) -> Step {
        self.stmt = stmt.id;
        match &stmt.kind {
            StmtKind::Declare(tensor) => Step::Declare(*tensor, self.bound[tensor.index()].fill),
            StmtKind::Let { var, value } => Step::Let(*var, self.node(*value)),
            StmtKind::For { index, extent, attributes, body } => {
                self.attributes[index.index()] = *attributes;
                self.bounded[index.index()] = matches!(extent, Extent::Range(..));
                self.chunks[index.index()] = self.program.piece_of(extent);
                self.chunk_limits[index.index()] = self.chunk_limit(*index, extent);
                let bounds = match extent {
                    Extent::Infer => LoopBounds::Inferred,
                    Extent::Range(start, stop) => {
                        let (start, stop) = (self.node(*start), self.node(*stop));
                        self.ranges[index.index()] = Some((start.clone(), stop.clone()));
                        LoopBounds::Range(start, stop)
                    }
                };
                Step::For(*index, bounds, self.prepare(body))
            }
            StmtKind::If { cond, then, otherwise } => {
                Step::If(self.node(*cond), self.prepare(then), self.prepare(otherwise))
            }
            StmtKind::Assign { target, update, value } => {
                let subs = self.subs(target);
                let value = self.node(*value);
                let update = update.as_ref().map(|u| {
                    let tensor = self.checked.types.tensors[target.tensor.index()];
                    let operand = self.checked.types.updates.get(&stmt.id).copied().unwrap_or(tensor);
                    let keeps = self.checked.types.identity_keeps(target.tensor, operand);
                    let extra: Vec<Node> = u.extra.iter().map(|e| self.node(*e)).collect();
                    let absorbed = self.absorbed(target.tensor, u.op, operand).filter(|_| extra.is_empty());
                    UpdateOp { op: u.op, operand, extra, times: Vec::new(), absorbed, keeps }
                });
                Step::Assign(WriteTarget { tensor: target.tensor, subs, fresh: None, stmt: stmt.id }, update, value)
            }
        }
    }

    /// The fill value of a tensor whose only updates are by one semilattice operator (`max`): it
    /// absorbs itself.
    fn absorbed(&self, tensor: TensorId, op: Op, operand: DType) -> Option<Value> {
        let fill = self.bound[tensor.index()].fill;
        let lattice = matches!(op, Op::Min | Op::Max | Op::BitAnd | Op::BitOr);
        // A fill value that annihilates does so only until an element is stored, which is then
        // different.
        let annihilates = self.annihilator(op, operand).is_some_and(|zero| fill.same_number(zero));
        let alone = self.updated_by[tensor.index()] == Some(op);
        (lattice && alone && fill.dtype() == operand && !annihilates).then_some(fill)
    }

    /// The subscripts of an access, in the coordinates of its levels.
    fn subs(&mut self, access: &program::Access) -> Vec<Sub> {
        let map: Vec<DimExpr> = match &self.bound[access.tensor.index()].storage {
            BoundStorage::Levels { format, .. } => format.map().to_vec(),
            BoundStorage::Scalar { .. } => Vec::new(),
        };
        let dims = self.dim_subs(access);
        map.into_iter()
            .map(|stored| match stored {
                DimExpr::Dim(dim) => dims[dim].clone(),
                DimExpr::Div(dim, by) => self.quotient(&dims[dim], by),
                DimExpr::Mod(dim, by) => self.remainder(&dims[dim], by),
                DimExpr::Diff(dim, other) => {
                    Sub { projection: Projection::Minus(Box::new(dims[other].clone())), ..dims[dim].clone() }
                }
            })
            .collect()
    }

    /// The dimension that a loop over a chunk stays within: chunks are counted from 0, and the last
    /// one ends with it.
    fn chunk_limit(&self, index: IndexId, extent: &Extent) -> Option<(TensorId, usize)> {
        let (chunk, _) = self.chunks[index.index()]?;
        let Extent::Range(_, stop) = extent else { return None };
        let mut counted = false;
        self.program.visit(&mut |stmt| {
            if let StmtKind::For { index, extent: Extent::Range(start, _), .. } = &stmt.kind {
                let zero = matches!(self.program.expr(*start), Expr::Literal(Value::I64(0)));
                counted |= *index == chunk && zero;
            }
        });
        let Expr::Call(Op::Min, operands) = self.program.expr(*stop) else { return None };
        let size = operands.iter().find_map(|e| match self.program.expr(*e) {
            Expr::Size(tensor, dim) => Some((*tensor, *dim)),
            _ => None,
        });
        size.filter(|_| counted)
    }

    /// The index that counts the chunks in which a subscript lies, if chunks are as long as a
    /// level's blocks.
    fn chunk_of(&self, sub: &Sub, by: u64) -> Option<IndexId> {
        let Node::Index(index) = sub.node else { return None };
        let (chunk, length) = self.chunks[index.index()]?;
        (sub.projection == Projection::Whole && length == by).then_some(chunk)
    }

    fn quotient(&self, sub: &Sub, by: u64) -> Sub {
        let node = match self.chunk_of(sub, by) {
            // The first coordinate of the chunk has the same quotient.
            Some(chunk) => {
                let by = Node::Known(Value::I64(by as i64));
                Node::Call(Op::Mul, DType::I64, vec![Node::Index(chunk), by])
            }
            None => sub.node.clone(),
        };
        Sub { node, projection: Projection::Quotient(by), ..sub.clone() }
    }

    fn remainder(&self, sub: &Sub, by: u64) -> Sub {
        Sub { projection: Projection::Remainder(by, self.chunk_of(sub, by)), ..sub.clone() }
    }

    /// The dimension of each level, if each level stores one.
    pub(super) fn order(&self, tensor: TensorId) -> Vec<usize> {
        let bound = &self.bound[tensor.index()];
        match &bound.storage {
            BoundStorage::Levels { format, .. } => format.dim_order().unwrap_or_default(),
            _ => (0..bound.dims.len()).collect(),
        }
    }

    /// The subscripts of an access, by dimension.
    fn dim_subs(&mut self, access: &program::Access) -> Vec<Sub> {
        (0..access.subscripts.len())
            .map(|dim| {
                let subscript = access.subscripts[dim];
                let proven =
                    !subscript.permissive && self.checked.extents.is_inside(access.tensor, dim, subscript.expr);
                let inside = match self.program.expr(subscript.expr) {
                    _ if proven => true,
                    Expr::Index(index) => {
                        let limit = self.chunk_limits[index.index()];
                        let limited = limit.is_some_and(|of| self.checked.is_one_size(of, (access.tensor, dim)));
                        !subscript.permissive && (limited || !self.bounded[index.index()])
                    }
                    _ => coordinate_of(self.program, &self.lets, subscript.expr).is_some_and(|(other, from)| {
                        !subscript.permissive && self.holds_coordinates((access.tensor, dim), (other, from))
                    }),
                };
                Sub {
                    dim,
                    node: self.node(subscript.expr),
                    permissive: subscript.permissive,
                    protocol: subscript.protocol,
                    inside,
                    projection: Projection::Whole,
                }
            })
            .collect()
    }

    fn access(&mut self, source: ReadSource) -> Node {
        // Reads of the same element are one access.
        let known = self.accesses.iter().position(|other| *other == source);
        let id = known.unwrap_or_else(|| {
            self.accesses.push(source.clone());
            self.accesses.len() - 1
        });
        Node::Access(Box::new(PartialAccess {
            id: id as u32,
            own: id as u32,
            source,
            level: 0,
            position: None,
            group_stop: None,
            present: None,
            safe: false,
            window: None,
            fibers: Vec::new(),
            missing: None,
            stmt: self.stmt,
            looplet: None,
        }))
    }

    fn node(&mut self, id: ExprId) -> Node {
        let program = self.program;
        match program.expr(id) {
            Expr::Literal(value) => Node::Known(*value),
            Expr::Index(index) => Node::Index(*index),
            Expr::Var(var) => Node::Var(*var),
            Expr::Size(tensor, dim) => Node::Size(*tensor, *dim),
            Expr::Entry(entry) => Node::Entry(Box::new(EntryQuery {
                tensor: entry.tensor,
                what: entry.what,
                at: entry.at.iter().map(|e| self.node(*e)).collect(),
                inside: false,
                stmt: self.stmt,
            })),
            Expr::Read(read) => {
                let subs = self.subs(read);
                self.access(ReadSource::Tensor(read.tensor, subs))
            }
            Expr::Call(op, operands) => {
                if let Some(comparison) = self.masks.comparison(id) {
                    return self.comparison(&comparison);
                }
                let operand = self.checked.types.operands[id.index()];
                Node::Call(*op, operand, operands.iter().map(|e| self.node(*e)).collect())
            }
        }
    }

    fn comparison(&mut self, comparison: &Comparison) -> Node {
        let (op, a, b) = match comparison {
            Comparison::One(mask) => return self.as_mask(mask),
            Comparison::Both(a, b) => (Op::And, a, b),
            Comparison::Either(a, b) => (Op::Or, a, b),
        };
        Node::Call(op, DType::Bool, vec![self.as_mask(a), self.as_mask(b)])
    }

    /// A comparison of an index with a value that is known before its loop: a mask along the index.
    fn as_mask(&mut self, mask: &Mask) -> Node {
        let Mask { op, index, divisor, bound } = mask;
        let divided = |bound: Node| call(Op::FloorDiv, bound, int(*divisor));
        let bound = match (op, divisor) {
            (_, 1) => linear(bound),
            // Quotients of `<` and `>=` are rounded up, others down.
            (Op::Lt | Op::Ge, _) => {
                divided(linear(&Linear { constant: bound.constant.saturating_add(divisor - 1), ..bound.clone() }))
            }
            (Op::Eq | Op::Ne, _) => {
                let rest = call(Op::Mod, linear(bound), int(*divisor));
                let divides = Node::Call(Op::Eq, DType::I64, vec![rest, int(0)]);
                // Loops without explicit bounds do not go below 0.
                let nowhere = if self.bounded[index.index()] { -(1 << 62) } else { -1 };
                Node::Call(Op::Select, DType::I64, vec![divides, divided(linear(bound)), int(nowhere)])
            }
            _ => divided(linear(bound)),
        };
        self.access(ReadSource::Mask(*op, *index, Box::new(bound)))
    }
}

fn int(value: i64) -> Node {
    Node::Known(Value::I64(value))
}

fn call(op: Op, a: Node, b: Node) -> Node {
    Node::Call(op, DType::I64, vec![a, b])
}

/// For each tensor, the operator of all its updates, if it is only updated, and by one operator.
pub(super) fn updated_by(program: &program::Program) -> Vec<Option<Op>> {
    let mut found: Vec<Option<Option<Op>>> = vec![None; program.tensors.len()];
    program.visit(&mut |stmt| {
        if let StmtKind::Assign { target, update, .. } = &stmt.kind {
            let op = update.as_ref().map(|update| update.op);
            let known = &mut found[target.tensor.index()];
            *known = Some(op.filter(|_| known.is_none_or(|other| other == op)));
        }
    });
    found.into_iter().map(Option::flatten).collect()
}

/// An affine sum in conventional notation: `2*i - j + 3`.
fn linear(sum: &Linear) -> Node {
    let multiple = |atom: &Atom, coefficient: i64| {
        let atom = match atom {
            Atom::Index(index) => Node::Index(*index),
            Atom::Size(tensor, dim) => Node::Size(*tensor, *dim),
        };
        if coefficient == 1 { atom } else { call(Op::Mul, int(coefficient), atom) }
    };
    let (mut first, mut rest) = (None, Vec::new());
    for (atom, coefficient) in &sum.terms {
        if first.is_none() && *coefficient > 0 {
            first = Some(multiple(atom, *coefficient));
        } else {
            rest.push((atom, *coefficient));
        }
    }
    let mut node = first.unwrap_or(int(0));
    for (atom, coefficient) in rest {
        let op = if coefficient > 0 { Op::Add } else { Op::Sub };
        node = call(op, node, multiple(atom, coefficient.abs()));
    }
    match sum.constant {
        0 => node,
        constant if node == int(0) => int(constant),
        constant if constant > 0 => call(Op::Add, node, int(constant)),
        constant => call(Op::Sub, node, int(-constant)),
    }
}
