//! The command `precompute(expression, [i...], [iw...], format)`: a producer loop nest stores the
//! values of an expression in a workspace; the loops over the given indices then read the
//! workspace. If the expression is the whole right-hand side of a reduction, the reduction loops
//! move to the producer and the consumer writes each element once: this derives Gustavson's
//! algorithm from three plain loops.

use super::edit::{ProgramEdit, index_of, path_to};
use super::extents::{indices, lets, reads};
use super::legal::{Chain, Link};
use super::matching::{self, Match};
use super::recovered::Recovered;
use super::reorder::rebuild;
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::Op;
use tamis_ir::diag::{Code, Diagnostic, Result};
use tamis_ir::program::{
    Access, Block, Declaration, Expr, ExprId, Extent, IndexId, Stmt, StmtId, StmtKind, Storage, Subscript, TensorId,
    TensorInfo, Update, VarId, visit_block,
};
use tamis_ir::{DType, FormatSpec, Kind, Value};

pub(super) fn run(
    work: &mut ProgramEdit,
    expression: &str,
    names: &[String],
    workspace: &[String],
    format: Option<&str>,
) -> Result<()> {
    let found = matching::find(work, expression)?;
    let format = spec(work, format.unwrap_or("dense"), names.len())?;
    if let Some(recovered) = Recovered::of(work, &found, names, workspace)? {
        return recovered.reduce(work, format);
    }
    let given = given(work, &found.stmt, names)?;
    let plan = PrecomputePlan::new(work, found, given, workspace)?;
    match plan.reduction(work)? {
        true => plan.reduce(work, format),
        false => plan.store(work, format),
    }
}

fn spec(work: &ProgramEdit, text: &str, rank: usize) -> Result<FormatSpec> {
    let fits = FormatSpec::parse(text).and_then(|spec| spec.with_rank(rank).map(|_| spec));
    fits.map_err(|d| {
        let reported = work.fault(d.code, format!("the workspace's format: {}", d.message), Some(3), "invalid format");
        d.help.iter().fold(reported, |reported, help| reported.help(help.clone()))
    })
}

/// The enclosing loops of a statement that the names match.
fn given(work: &ProgramEdit, stmt: &Stmt, names: &[String]) -> Result<Vec<IndexId>> {
    let around = loops_around(work, stmt.id);
    names
        .iter()
        .map(|name| {
            let wanted = name.split('#').next().unwrap_or(name);
            let found = around.iter().find(|index| work.program.indices[index.index()] == wanted);
            found.copied().ok_or_else(|| {
                let message = format!("there is no loop over `{name}` around the expression");
                let d = work.fault(Code::E1202, message, Some(1), "no such loop");
                let d = d.note(format!("it is part of {}", work.place(stmt)));
                let shown: Vec<&str> = around.iter().map(|i| work.program.indices[i.index()].as_str()).collect();
                d.help(format!("its loops are {}", shown.join(", ")))
            })
        })
        .collect()
}

pub(super) fn loops_around(work: &ProgramEdit, stmt: StmtId) -> Vec<IndexId> {
    let mut path = Vec::new();
    path_to(&work.program.body, &|other| other.id == stmt, &mut path);
    path.into_iter().filter_map(index_of).collect()
}

struct PrecomputePlan {
    found: Match,
    /// The given loops, in the order of the workspace's subscripts.
    given: Vec<IndexId>,
    /// The index names of the producer.
    names: Vec<String>,
    /// All loops that enclose the statement, outermost first.
    around: Vec<IndexId>,
    target: Access,
    update: Option<Update>,
    lets: FxHashMap<VarId, ExprId>,
}

impl PrecomputePlan {
    fn new(work: &ProgramEdit, found: Match, given: Vec<IndexId>, names: &[String]) -> Result<PrecomputePlan> {
        let around = loops_around(work, found.stmt.id);
        for (k, index) in given.iter().enumerate() {
            if given[..k].contains(index) {
                let d = work.fault(Code::E1202, "an index is given twice", Some(1), "named twice");
                return Err(d.help("name each index once"));
            }
        }
        for (k, name) in names.iter().enumerate() {
            work.check_new(name, 2, given[k], &around)?;
            if names[..k].contains(name) {
                let d = work.fault(Code::E1202, format!("`{name}` is named twice"), Some(2), "named twice");
                return Err(d.help("give the loops of the workspace different names"));
            }
        }
        let StmtKind::Assign { target, update, .. } = found.stmt.kind.clone() else {
            return Err(work
                .fault(Code::E1208, "not an assignment", Some(0), "here")
                .help("name part of an assignment"));
        };
        let lets = lets(&work.program);
        Ok(PrecomputePlan { found, given, names: names.to_vec(), around, target, update, lets })
    }

    fn refuse(&self, work: &ProgramEdit, message: String, note: Option<String>, help: &str) -> Diagnostic {
        let d = work.fault(Code::E1208, message, Some(0), "cannot be precomputed");
        match note {
            Some(note) => d.note(note).help(help),
            None => d.help(help),
        }
    }

    /// The outermost of the given loops.
    fn outermost(&self, work: &ProgramEdit) -> Result<IndexId> {
        let found = self.around.iter().copied().find(|index| self.given.contains(index));
        found.ok_or_else(|| work.fault(Code::E1202, "no index is given", Some(1), "here").help("give an index"))
    }

    /// Loops inside the outermost given one that the expression depends on but that are not given.
    fn missing(&self, work: &ProgramEdit) -> Result<Vec<IndexId>> {
        let top = self.outermost(work)?;
        let used = indices(&work.program, &self.lets, self.found.part);
        let inside = self.around.iter().copied().skip_while(|index| *index != top);
        Ok(inside.filter(|index| used.contains(index) && !self.given.contains(index)).collect())
    }

    /// True if a whole reduction is precomputed.
    fn reduction(&self, work: &ProgramEdit) -> Result<bool> {
        let whole = self.found.part == self.found.value;
        let used = indices(&work.program, &self.lets, self.found.part);
        let written = self.subscripted();
        let reduces = whole && self.operator().is_some();
        let reducing = self
            .around
            .iter()
            .any(|index| used.contains(index) && !self.given.contains(index) && !written(work).contains(index));
        let missing = self.missing(work)?;
        if reduces && reducing {
            return Ok(true);
        }
        if let Some(index) = missing.first() {
            let name = &work.program.indices[index.index()];
            let message = format!("the expression depends on `{name}`, whose loop is inside the given ones");
            let help = format!("give `{name}`, too, or reorder the loops so that it is outside");
            return Err(self.refuse(work, message, None, &help));
        }
        Ok(false)
    }

    fn subscripted(&self) -> impl Fn(&ProgramEdit) -> FxHashSet<IndexId> {
        let (target, lets) = (self.target.clone(), self.lets.clone());
        move |work| target.subscripts.iter().flat_map(|s| indices(&work.program, &lets, s.expr)).collect()
    }

    /// The reduction operator of the workspace.
    fn operator(&self) -> Option<Op> {
        let update = self.update.as_ref()?;
        let info = update.op.info();
        match update.op {
            Op::Sub => Some(Op::Add),
            op => (info.commutative && info.associative && update.extra.is_empty()).then_some(op),
        }
    }

    /// The workspace, subscripted by the indices of the given loops.
    fn declare(
        &self,
        work: &mut ProgramEdit,
        format: FormatSpec,
        fill: Option<Value>,
        dtype: Option<DType>,
    ) -> Result<(TensorId, Stmt)> {
        let shape = self.shape(work)?;
        let name = work.fresh_name("w");
        let declaration = Declaration { storage: Storage::Tensor(format), fill, dtype, shape };
        let tensor = TensorId(work.program.tensors.len() as u32);
        work.program.tensors.push(TensorInfo { name, rank: self.given.len(), declaration: Some(declaration) });
        let declare = work.new_stmt(StmtKind::Declare(tensor), self.found.stmt.id);
        let span = work.program.origin.stmt(self.found.stmt.id);
        work.program.origin.tensors.insert(tensor, span);
        Ok((tensor, declare))
    }

    /// The shape of the workspace, where the loops do not determine it.
    fn shape(&self, work: &mut ProgramEdit) -> Result<Option<Vec<ExprId>>> {
        let mut inferred = true;
        for index in &self.given {
            let stmt = work.loop_of(*index)?;
            inferred &= matches!(&stmt.kind, StmtKind::For { extent: Extent::Infer, .. });
        }
        if inferred {
            return Ok(None);
        }
        let mut shape = Vec::new();
        for index in &self.given {
            let Some(size) = work.size_along(*index) else {
                let name = &work.program.indices[index.index()];
                let message = format!("the extent of the workspace along `{name}` has no name");
                let d = work.fault(Code::E1205, message, Some(1), "its extent has no name");
                return Err(d.help("precompute before the loops are split or fused"));
            };
            shape.push(size);
        }
        Ok(Some(shape))
    }

    fn access(&self, work: &mut ProgramEdit, tensor: TensorId, by: &[IndexId]) -> Access {
        let subscripts = by.iter().map(|index| {
            let expr = work.intern(Expr::Index(*index));
            Subscript { expr, protocol: None, permissive: false }
        });
        Access { tensor, subscripts: subscripts.collect() }
    }

    // Precomputation of a sub-expression

    fn store(&self, work: &mut ProgramEdit, format: FormatSpec) -> Result<()> {
        let top = self.outermost(work)?;
        let nest = work.loop_of(top)?.clone();
        self.check_typed(work)?;
        self.check_stable(work, &nest)?;
        let inner = bound_inside(&nest);
        let part = self.inlined(work, self.found.part, &inner);
        self.check_safe(work, &nest, part)?;
        let producer_indices: Vec<IndexId> =
            self.given.iter().zip(&self.names).map(|(index, name)| work.new_index(name, *index)).collect();
        let renamed: FxHashMap<IndexId, Expr> =
            self.given.iter().zip(&producer_indices).map(|(old, new)| (*old, Expr::Index(*new))).collect();
        let (tensor, declare) = self.declare(work, format, None, None)?;
        let target = self.access(work, tensor, &producer_indices);
        let mut block: Block =
            vec![work.new_stmt(StmtKind::Assign { target, update: None, value: part }, self.found.stmt.id)];
        let ordered: Vec<IndexId> = self.around.iter().rev().copied().filter(|i| self.given.contains(i)).collect();
        for index in ordered {
            let stmt = work.loop_of(index)?.clone();
            let StmtKind::For { extent, attributes, .. } = stmt.kind else { continue };
            let extent = match extent {
                Extent::Infer => Extent::Infer,
                Extent::Range(start, stop) => {
                    let bounds = [start, stop].map(|bound| self.inlined(work, bound, &inner));
                    self.check_extent(work, &nest, index, &bounds)?;
                    Extent::Range(bounds[0], bounds[1])
                }
            };
            let new = self.given.iter().position(|other| *other == index).map_or(index, |k| producer_indices[k]);
            let attributes = tamis_ir::program::Attributes { bound: attributes.bound, ..Default::default() };
            block = vec![work.new_stmt(StmtKind::For { index: new, extent, attributes, body: block }, stmt.id)];
        }
        work.substitute(&mut block, &renamed);
        let read = self.access(work, tensor, &self.given);
        let part = self.found.part;
        let value = work.replaced(
            self.found.value,
            // Subscripts stay, because they define loop extents.
            &|id, expr| match expr {
                _ if id == part => Some(Expr::Read(read.clone())),
                Expr::Read(_) => Some(expr.clone()),
                _ => None,
            },
            &mut FxHashMap::default(),
        );
        let stmt = self.found.stmt.id;
        work.edit(&|other| other.id == stmt, |_, block, at| {
            if let StmtKind::Assign { value: old, .. } = &mut block[at].kind {
                *old = value;
            }
        });
        work.edit_loop(top, |_, into, at| {
            into.splice(at..at, [declare].into_iter().chain(block));
        });
        Ok(())
    }

    /// Types a weak literal, which would otherwise lose its context in a workspace.
    fn check_typed(&self, work: &ProgramEdit) -> Result<()> {
        let part = self.found.part;
        let weak = match work.checked.types.exprs.get(part.index()) {
            Some(ty) => ty.weak,
            None => {
                reads(&work.program, &self.lets, part).is_empty() && indices(&work.program, &self.lets, part).is_empty()
            }
        };
        if !weak {
            return Ok(());
        }
        let message = "the expression consists of literals, which have no strong type".to_string();
        Err(self.refuse(work, message, None, "precompute a subexpression that reads a tensor"))
    }

    /// Checks that the operands of the expression exist before the loops and are loop-invariant.
    fn check_stable(&self, work: &ProgramEdit, nest: &Stmt) -> Result<()> {
        let read = reads(&work.program, &self.lets, self.found.part);
        let mut changed = None;
        visit_block(std::slice::from_ref(nest), &mut |stmt| match &stmt.kind {
            StmtKind::Assign { target, .. } if read.contains(&target.tensor) => {
                changed.get_or_insert(stmt);
            }
            StmtKind::Declare(tensor) if read.contains(tensor) => {
                changed.get_or_insert(stmt);
            }
            _ => {}
        });
        match changed {
            None => Ok(()),
            Some(stmt) => {
                let message = "the expression reads values that the loops over the given indices modify".to_string();
                let note = format!("modified by {}", work.place(stmt));
                Err(self.refuse(work, message, Some(note), "precompute another subexpression"))
            }
        }
    }

    /// Checks that no guarded read becomes unguarded, since it might leave the bounds of its
    /// tensor.
    fn check_safe(&self, work: &ProgramEdit, nest: &Stmt, part: ExprId) -> Result<()> {
        let program = &work.program;
        let mut path = Vec::new();
        let stmts = vec![nest.clone()];
        path_to(&stmts, &|other| other.id == self.found.stmt.id, &mut path);
        let mut guard = path.iter().find(|stmt| matches!(stmt.kind, StmtKind::If { .. })).copied();
        let (mut lazy, mut missing, mut free) = (false, false, true);
        work.program.visit_exprs(&self.found.stmt, &mut |id| {
            lazy |=
                self.found.part != self.found.value && matches!(program.expr(id), Expr::Call(op, _) if op.is_lazy());
        });
        let mut open = vec![part];
        while let Some(id) = open.pop() {
            match program.expr(id) {
                Expr::Read(access) => {
                    missing |= access.subscripts.iter().any(|s| s.permissive);
                    free &= access.subscripts.iter().all(|s| self.stays_inside(work, s.expr));
                    open.extend(access.subscripts.iter().map(|s| s.expr));
                }
                // A permissive read has a value out of bounds.
                Expr::Call(Op::Coalesce, _) => free = false,
                Expr::Entry(entry) => {
                    // A read of a stored position is only valid under its condition.
                    free = false;
                    open.extend(&entry.at);
                }
                Expr::Call(_, operands) => open.extend(operands),
                _ => {}
            }
        }
        if missing {
            let message = "the expression may have no value: it reads out of bounds".to_string();
            return Err(self.refuse(work, message, None, "precompute it with the `coalesce` around it"));
        }
        if !free && (guard.is_some() || lazy) {
            let message = "the expression is conditional, and may read out of bounds without the condition";
            let note = guard.take().map(|stmt| format!("the condition is {}", work.place(stmt)));
            return Err(self.refuse(
                work,
                message.to_string(),
                note,
                "precompute a subexpression that needs no condition",
            ));
        }
        Ok(())
    }

    fn stays_inside(&self, work: &ProgramEdit, id: ExprId) -> bool {
        match work.program.expr(id) {
            Expr::Index(index) => {
                work.loop_of(*index).is_ok_and(|stmt| matches!(&stmt.kind, StmtKind::For { extent: Extent::Infer, .. }))
            }
            _ => false,
        }
    }

    /// Checks that producer loop bounds do not depend on loops that no longer enclose them.
    fn check_extent(&self, work: &ProgramEdit, nest: &Stmt, index: IndexId, bounds: &[ExprId]) -> Result<()> {
        let mut inside = FxHashSet::default();
        visit_block(std::slice::from_ref(nest), &mut |stmt| inside.extend(index_of(stmt)));
        let used = bounds.iter().flat_map(|bound| indices(&work.program, &self.lets, *bound));
        for other in used {
            if inside.contains(&other) && !self.given.contains(&other) {
                let (a, b) = (&work.program.indices[index.index()], &work.program.indices[other.index()]);
                let message = format!("the bounds of `{a}` depend on `{b}`, whose loop is inside the given ones");
                return Err(self.refuse(work, message, None, &format!("give `{b}`, too, or reorder the loops before")));
            }
        }
        Ok(())
    }

    /// Expands the names that are bound inside the loops.
    fn inlined(&self, work: &mut ProgramEdit, id: ExprId, inner: &FxHashSet<VarId>) -> ExprId {
        let mut id = id;
        // Each round expands names; definitions precede uses, so this terminates.
        for _ in 0..=inner.len() {
            let values: FxHashMap<VarId, Expr> = self
                .lets
                .iter()
                .filter(|(var, _)| inner.contains(var))
                .map(|(var, value)| (*var, work.program.expr(*value).clone()))
                .collect();
            let new = work.replaced(
                id,
                &|_, expr| match expr {
                    Expr::Var(var) => values.get(var).cloned(),
                    _ => None,
                },
                &mut FxHashMap::default(),
            );
            if new == id {
                break;
            }
            id = new;
        }
        id
    }

    // Precomputation of a whole reduction

    /// Moves the whole reduction into a producer of the workspace.
    fn reduce(&self, work: &mut ProgramEdit, format: FormatSpec) -> Result<()> {
        let written = self.subscripted()(work);
        let inward: Vec<IndexId> = self.around.iter().rev().copied().collect();
        let belongs = |index: &&IndexId| self.given.contains(index) || !written.contains(index);
        let region: Vec<IndexId> = inward.iter().take_while(belongs).copied().collect();
        if let Some(index) = self.given.iter().find(|index| !region.contains(index)) {
            let name = &work.program.indices[index.index()];
            let other = inward.iter().find(|index| !belongs(index)).map(|i| work.program.indices[i.index()].clone());
            let message = format!("the loop over `{name}` contains loops that belong to neither side");
            let note = other.map(|other| format!("the result is subscripted by `{other}`, too"));
            return Err(self.refuse(work, message, note, "reorder the loops, or give that index, too"));
        }
        let Some(top) = region.last().copied() else { return Ok(()) };
        let nest = work.loop_of(top)?.clone();
        let inner = self.around.last().copied().unwrap_or(top);
        let chain = Chain::of(&nest, inner).map_err(|conflict| super::reorder::obstacle(work, &conflict))?;
        let alone = self.only(&chain.body);
        if !alone {
            let message = "the loops of the reduction contain other statements".to_string();
            let note = chain.body.iter().find(|stmt| stmt.id != self.found.stmt.id).map(|stmt| work.place(stmt));
            return Err(self.refuse(work, message, note, "move the other statements into separate loops"));
        }
        let bound: FxHashSet<VarId> = bound_inside(&nest);
        self.check_result(work, &bound)?;
        let Some(op) = self.operator() else { return Ok(()) };
        let declared = work.program.tensor(self.target.tensor).declaration.clone();
        let dtype = work.checked.types.tensors.get(self.target.tensor.index()).copied();
        let dtype = dtype.or(declared.as_ref().and_then(|d| d.dtype));
        let identity = op.info().left_identity.zip(dtype).and_then(|(_, dtype)| op.start(dtype)).map(literal);
        let Some(identity) = identity else {
            let message = format!("`{}` cannot accumulate in this type", op.info().name);
            return Err(self.refuse(work, message, None, "keep the loops unchanged"));
        };
        let zero = identity.same_number(Value::zero(identity.dtype()));
        // The workspace has the type of the value, unless the result also holds other values.
        let plain = declared.as_ref().is_some_and(|d| d.dtype.is_none() && d.fill.is_none());
        let dtype = dtype.filter(|_| !(zero && plain && self.writes(work) == 1));
        let (tensor, declare) = self.declare(work, format, (!zero).then_some(identity), dtype)?;

        // The producer: the same loops with fresh names, writing to the workspace.
        let producer_indices: FxHashMap<IndexId, IndexId> =
            self.given.iter().zip(&self.names).map(|(index, name)| (*index, work.new_index(name, *index))).collect();
        let by: Vec<IndexId> = self.given.iter().map(|index| producer_indices[index]).collect();
        let into = self.access(work, tensor, &by);
        let value = self.found.value;
        let assign = StmtKind::Assign { target: into, update: Some(Update { op, extra: Vec::new() }), value };
        let mut links = chain.links.clone();
        let mut consumer_links = Vec::new();
        for link in &mut links {
            if let Link::Loop { index, id, extent, .. } = link
                && self.given.contains(index)
            {
                if let Extent::Range(start, stop) = *extent {
                    self.check_consumer(work, *index, &[start, stop], &bound, &region)?;
                }
                consumer_links.push((*index, *id, *extent));
                *index = producer_indices[index];
            }
        }
        let assign = work.new_stmt(assign, self.found.stmt.id);
        let mut producer: Block = rebuild(links, vec![assign]).into_iter().collect();
        let renamed: FxHashMap<IndexId, Expr> =
            producer_indices.iter().map(|(old, new)| (*old, Expr::Index(*new))).collect();
        work.substitute(&mut producer, &renamed);

        let block = self.consumer(work, tensor, identity, consumer_links);
        work.edit_loop(top, |_, outer, at| {
            outer.splice(at..=at, [declare].into_iter().chain(producer).chain(block));
        });
        Ok(())
    }

    /// Checks that the result is subscripted by loop indices and not read by the expression.
    fn check_result(&self, work: &ProgramEdit, bound: &FxHashSet<VarId>) -> Result<()> {
        let uses_names = self.target.subscripts.iter().any(|s| uses(work, s.expr, bound));
        if uses_names {
            let message = "the result is subscripted by a name that is bound inside the loops".to_string();
            return Err(self.refuse(work, message, None, "subscript the result by loop indices"));
        }
        if reads(&work.program, &self.lets, self.found.part).contains(&self.target.tensor) {
            let message = "the expression reads the result".to_string();
            return Err(self.refuse(work, message, None, "keep the loops unchanged"));
        }
        Ok(())
    }

    /// The consumer: loops over the given indices that write each element once.
    fn consumer(
        &self,
        work: &mut ProgramEdit,
        tensor: TensorId,
        identity: Value,
        links: Vec<(IndexId, StmtId, Extent)>,
    ) -> Block {
        let read = self.access(work, tensor, &self.given);
        let value = work.intern(Expr::Read(read));
        let update = if self.assigns(work, identity) { None } else { self.update.clone() };
        let mut block =
            vec![work.new_stmt(StmtKind::Assign { target: self.target.clone(), update, value }, self.found.stmt.id)];
        for (index, id, extent) in links.into_iter().rev() {
            let kind = StmtKind::For { index, extent, attributes: Default::default(), body: block };
            block = vec![work.new_stmt(kind, id)];
        }
        block
    }

    fn only(&self, body: &Block) -> bool {
        matches!(&body[..], [stmt] if stmt.id == self.found.stmt.id)
    }

    fn check_consumer(
        &self,
        work: &ProgramEdit,
        index: IndexId,
        bounds: &[ExprId],
        bound: &FxHashSet<VarId>,
        region: &[IndexId],
    ) -> Result<()> {
        let depends = bounds.iter().any(|id| {
            uses(work, *id, bound)
                || indices(&work.program, &self.lets, *id)
                    .iter()
                    .any(|other| region.contains(other) && !self.given.contains(other))
        });
        if !depends {
            return Ok(());
        }
        let name = &work.program.indices[index.index()];
        let message = format!("the bounds of `{name}` depend on loops that only reduce");
        Err(self.refuse(work, message, None, "let it iterate over all values, and put its body under an `if`"))
    }

    /// The number of statements that write the result.
    fn writes(&self, work: &ProgramEdit) -> usize {
        let mut writes = 0;
        work.program.visit(&mut |stmt| {
            let target = match &stmt.kind {
                StmtKind::Assign { target, .. } => Some(target.tensor),
                _ => None,
            };
            writes += usize::from(target == Some(self.target.tensor));
        });
        writes
    }

    /// True if the consumer may assign instead of updating: the result holds the identity, no other
    /// statement writes it, and every iteration of the enclosing loops writes a distinct element.
    fn assigns(&self, work: &ProgramEdit, identity: Value) -> bool {
        let tensor = self.target.tensor;
        let writes = self.writes(work);
        let fill = work.checked.types.fills.get(tensor.index());
        let plain = self.update.as_ref().is_some_and(|update| update.op != Op::Sub);
        let bare = |index: &IndexId| {
            self.target.subscripts.iter().any(|s| *work.program.expr(s.expr) == Expr::Index(*index) && !s.permissive)
        };
        let mut declared_at = Vec::new();
        path_to(
            &work.program.body,
            &|stmt| matches!(&stmt.kind, StmtKind::Declare(declared) if *declared == tensor),
            &mut declared_at,
        );
        let outside: Vec<IndexId> = declared_at.into_iter().filter_map(index_of).collect();
        let written = self.subscripted()(work);
        let around = self.around.iter().filter(|index| self.given.contains(index) || written.contains(index));
        let others = self.around.iter().filter(|index| !written.contains(index) && !self.given.contains(index));
        // Reduction loops moved to the producer, unless they enclose loops of the result.
        let inward: Vec<IndexId> = self.around.iter().rev().copied().collect();
        let region: Vec<&IndexId> =
            inward.iter().take_while(|i| self.given.contains(i) || !written.contains(i)).collect();
        writes == 1
            && plain
            && fill.is_some_and(|fill| fill.same_number(identity))
            && around.into_iter().all(|index| bare(index) || outside.contains(index))
            && others.into_iter().all(|index| region.contains(&index) || outside.contains(index))
    }
}

/// A value as a program literal.
pub(super) fn literal(value: Value) -> Value {
    match value.dtype().kind() {
        Kind::Bool => value,
        // Literals beyond i64 are u64.
        Kind::Int => value.as_i64().map_or(value, Value::I64),
        Kind::Float => value.cast(DType::F64),
        Kind::Complex => value.cast(DType::C128),
    }
}

/// Names that are bound inside a statement.
fn bound_inside(stmt: &Stmt) -> FxHashSet<VarId> {
    let mut found = FxHashSet::default();
    visit_block(std::slice::from_ref(stmt), &mut |stmt| {
        if let StmtKind::Let { var, .. } = &stmt.kind {
            found.insert(*var);
        }
    });
    found
}

fn uses(work: &ProgramEdit, id: ExprId, names: &FxHashSet<VarId>) -> bool {
    match work.program.expr(id) {
        Expr::Var(var) => names.contains(var),
        other => other.operands().iter().any(|operand| uses(work, *operand, names)),
    }
}
