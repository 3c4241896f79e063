//! The command `pos(j, p, A)`: replaces a coordinate loop by a loop over the positions of a
//! parameter. The loop iterates over the innermost levels of `A`: one, or several that `fuse` has
//! collapsed. Outer levels belong to enclosing loops, which select the range of positions.

use super::edit::{ProgramEdit, index_of};
use super::extents::{indices, lets, reads};
use super::idle::busy;
use super::matching;
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::Op;
use tamis_ir::diag::{Code, Diagnostic, Result, Source, did_you_mean};
use tamis_ir::program::{
    Access, Block, Entry, EntryPart, Expr, ExprId, Extent, IndexId, Stmt, StmtKind, TensorId, VarId, visit_block,
};
use tamis_ir::text::parser::parse_expression;
use tamis_ir::text::syntax::{self, ExprKind};
use tamis_ir::{Format, Value};
use tamis_tensor::levels::level_type;

pub(super) fn run(work: &mut ProgramEdit, index: &str, position: &str, text: &str) -> Result<()> {
    let index = work.find(index, 0)?;
    let pattern = read_access(work, text)?;
    let (tensor, format) = parameter(work, &pattern)?;
    let access = find_access(work, index, tensor, text, &pattern)?;
    work.check_new(position, 1, index, &[])?;
    let way = LevelMapping::of(work, index, &access, &format)?;
    if let Some((stmt, fill)) = busy(work, index, &access, &format) {
        let name = &work.program.tensor(tensor).name;
        let message = format!("the loop has an effect where `{name}` stores nothing");
        let d = work.fault(Code::E1210, message, Some(0), "visits more than the stored elements");
        let d = d.note(format!("that is {}", work.place(&stmt)));
        let shown = work.program.access(&access);
        let stored = if fill.is_truthy() { format!("{shown} != {fill}") } else { shown.clone() };
        return Err(d
            .help(format!(
                "iterate over coordinates, or make the statement a no-op elsewhere, as a product with `{shown}` is"
            ))
            .help(format!("or guard it by `if {stored}:`")));
    }
    way.go(work, position)
}

/// The access of the command, as `A`, `A[i,j]` or `A(i,j)`.
fn read_access(work: &ProgramEdit, text: &str) -> Result<syntax::Expr> {
    let unreadable = || {
        let d = work.fault(Code::E1201, format!("`{text}` is not an access"), Some(2), "cannot be read");
        d.help("write the parameter as in the program, for example `A[i,j]`, or its name alone")
    };
    let pattern = parse_expression(&Source::new("access", text)).map_err(|_| unreadable())?;
    match pattern.kind {
        ExprKind::Name(_) | ExprKind::Index { .. } | ExprKind::Call { .. } => Ok(pattern),
        _ => Err(unreadable()),
    }
}

fn base(pattern: &syntax::Expr) -> &str {
    match &pattern.kind {
        ExprKind::Name(name) => name,
        ExprKind::Index { base, .. } => &base.text,
        ExprKind::Call { function, .. } => &function.text,
        _ => "",
    }
}

/// The parameter whose positions are iterated, and its format.
fn parameter(work: &ProgramEdit, pattern: &syntax::Expr) -> Result<(TensorId, Format)> {
    let (program, name) = (&work.program, base(pattern));
    let names: Vec<&str> = program.params.iter().map(|id| program.tensor(*id).name.as_str()).collect();
    let Some(at) = names.iter().position(|other| *other == name) else {
        let d = work.fault(Code::E1202, format!("`{name}` is not a parameter"), Some(2), "no such operand");
        let d = match did_you_mean(name, names.iter().copied()) {
            Some(meant) => d.help(format!("did you mean `{meant}`?")),
            None => d,
        };
        return Err(d.help(format!("loops iterate over stored elements of parameters: {}", names.join(", "))));
    };
    let Some(format) = work.formats.get(at) else {
        let message = format!("the format of `{name}` is not known here");
        let d = work.fault(Code::E1210, message, Some(2), "its format determines its positions");
        return Err(d.help("apply the schedule to tensors of known formats"));
    };
    for (k, spec) in format.levels().iter().enumerate() {
        if level_type(spec.kind)?.positions.is_none() {
            let message = format!("level {k} of `{name}` is `{}`, whose elements have no positions", spec.kind.name());
            let d = work.fault(Code::E1210, message, Some(2), "has no positions to iterate over");
            return Err(d.help(format!("store `{name}` in another format, such as `csr` or `coo`")));
        }
    }
    Ok((program.params[at], format.clone()))
}

/// The one read of the parameter in the loop.
fn find_access(
    work: &ProgramEdit,
    index: IndexId,
    tensor: TensorId,
    text: &str,
    pattern: &syntax::Expr,
) -> Result<Access> {
    let program = &work.program;
    let mut found: Vec<(Access, ExprId)> = Vec::new();
    visit_block(std::slice::from_ref(work.loop_of(index)?), &mut |stmt| {
        program.visit_exprs(stmt, &mut |id| {
            if let Expr::Read(access) = program.expr(id)
                && access.tensor == tensor
                && found.iter().all(|(other, _)| !same(other, access))
            {
                found.push((access.clone(), id));
            }
        });
    });
    let all: Vec<String> = found.iter().map(|(access, _)| format!("`{}`", program.access(access))).collect();
    if !matches!(pattern.kind, ExprKind::Name(_)) {
        found.retain(|(_, id)| matching::is(program, *id, pattern));
    }
    let (name, loop_name) = (&program.tensor(tensor).name, &program.indices[index.index()]);
    match &found[..] {
        [(access, _)] => Ok(access.clone()),
        [] => {
            let message = format!("`{text}` is not read in the loop over `{loop_name}`");
            let d = work.fault(Code::E1202, message, Some(2), "not found");
            Err(match all.is_empty() {
                true => d.help(format!("name a loop that reads `{name}`, or another parameter")),
                false => d.help(format!("the loop reads {}", all.join(", "))),
            })
        }
        several => {
            let message = format!("`{name}` is read in {} ways in the loop over `{loop_name}`", several.len());
            let d = work.fault(Code::E1202, message, Some(2), "which one?");
            Err(d.help(format!("choose one: {}", all.join(", "))))
        }
    }
}

/// True if two accesses read the same element, ignoring access protocols.
pub(super) fn same(a: &Access, b: &Access) -> bool {
    let subscripts = |access: &Access| access.subscripts.iter().map(|s| (s.expr, s.permissive)).collect::<Vec<_>>();
    a.tensor == b.tensor && subscripts(a) == subscripts(b)
}

/// The mapping from a loop to the levels of a tensor.
struct LevelMapping {
    index: IndexId,
    access: Access,
    /// The dimension that each level stores.
    order: Vec<usize>,
    /// Coordinates of the outer levels.
    outer: Vec<ExprId>,
    /// Names that are bound to the coordinate of a level inside the loop.
    names: FxHashMap<VarId, usize>,
}

impl LevelMapping {
    /// Determines the levels that a loop iterates over, and checks that it covers them in order.
    fn of(work: &ProgramEdit, index: IndexId, access: &Access, format: &Format) -> Result<LevelMapping> {
        let program = &work.program;
        let name = &program.tensor(access.tensor).name;
        let shown = program.access(access);
        let order = format.dim_order().unwrap_or_default();
        if order.is_empty() || access.subscripts.iter().any(|s| s.permissive) {
            let message = match order.is_empty() {
                true => format!("`{name}` has no levels to iterate over"),
                false => format!("`{shown}` may be read out of bounds, where nothing is stored"),
            };
            let d = work.fault(Code::E1210, message, Some(2), "not an access to iterate over");
            return Err(d.help("iterate over coordinates: remove the command"));
        }
        let lets = lets(program);
        let depends = |level: usize| indices(program, &lets, access.subscripts[order[level]].expr).contains(&index);
        let from = (0..order.len()).find(|level| depends(*level)).unwrap_or(order.len());
        let outer: Vec<ExprId> = order[..from].iter().map(|dim| access.subscripts[*dim].expr).collect();
        let mut way = LevelMapping { index, access: access.clone(), order, outer, names: FxHashMap::default() };
        way.check_inner(work, from, &lets)?;
        way.check_outer(work, &lets)?;
        let full = |level: usize| level_type(format.levels()[level].kind).is_ok_and(|row| row.capabilities.full);
        if (from..way.order.len()).all(full) {
            let message = format!("`{name}` is dense along `{}`", way.loop_name(work));
            let d = work.fault(Code::E1210, message, Some(0), "iterates over all coordinates anyway");
            let d = d.note(format!("level {from} of `{name}` is `{}`", format.levels()[from].kind.name()));
            return Err(d.help(format!("remove the command, or store `{name}` with a `sparse` level there")));
        }
        visit_block(std::slice::from_ref(work.loop_of(index)?), &mut |stmt| {
            if let StmtKind::Let { var, value } = &stmt.kind
                && let Some(range) = way.digits(work, &lets, *value)
                && range.1 == range.0 + 1
            {
                way.names.insert(*var, range.0);
            }
        });
        Ok(way)
    }

    fn loop_name<'w>(&self, work: &'w ProgramEdit) -> &'w str {
        &work.program.indices[self.index.index()]
    }

    fn refuse(&self, work: &ProgramEdit, why: String, label: &str) -> Diagnostic {
        work.fault(Code::E1210, why, Some(0), label)
    }

    /// The coordinates of the iterated levels: digits of the loop index, from the innermost level
    /// outwards.
    fn check_inner(&self, work: &ProgramEdit, from: usize, lets: &FxHashMap<VarId, ExprId>) -> Result<()> {
        let program = &work.program;
        let (name, shown) = (&program.tensor(self.access.tensor).name, program.access(&self.access));
        let loop_name = self.loop_name(work);
        if from == self.order.len() {
            let d = self.refuse(work, format!("`{shown}` does not depend on `{loop_name}`"), "not a subscript of it");
            return Err(d.help("name the loop over its innermost level"));
        }
        for level in from..self.order.len() {
            let subscript = self.access.subscripts[self.order[level]].expr;
            let found = indices(program, lets, subscript);
            if !found.contains(&self.index) {
                let other = found.iter().next().copied();
                let why = format!("level {level} of `{name}` is not part of the loop over `{loop_name}`");
                let d = self.refuse(work, why, "iterates over an outer level only");
                let d = d.note("the coordinates of all levels identify an element");
                let Some(other) = other else { return Err(d.help("name the loop over its innermost level")) };
                let inside = work.around(other).iter().any(|stmt| index_of(stmt) == Some(self.index));
                let other = &program.indices[other.index()];
                return Err(match inside {
                    true => d
                        .help(format!("fuse the loops first: `fuse({loop_name}, {other}, ...)`"))
                        .help(format!("or iterate over the positions of the inner loop: `pos({other}, ..., {name})`")),
                    false => {
                        d.help(format!("reorder the loops to the storage order first: `reorder({loop_name}, {other})`"))
                    }
                });
            }
        }
        for level in from..self.order.len() {
            let subscript = self.access.subscripts[self.order[level]].expr;
            if self.digits(work, lets, subscript) == Some((level, level + 1)) {
                continue;
            }
            let why = format!("`{shown}` is not stored in the iteration order of `{loop_name}`");
            let d = self.refuse(work, why, "in another order, or over a subset");
            let stored: Vec<String> = self.order.iter().map(|dim| format!("dimension {dim}")).collect();
            return Err(d
                .note(format!("levels, outermost first, store {}", stored.join(", ")))
                .help("reorder the loops before fusing them, so that they iterate over the levels from the outermost to the innermost")
                .help(format!("or store `{name}` in the order of the loops")));
        }
        let whole = match &work.loop_of(self.index)?.kind {
            StmtKind::For { extent: Extent::Infer, .. } => from + 1 == self.order.len(),
            StmtKind::For { extent: Extent::Range(start, stop), .. } => {
                *program.expr(*start) == Expr::Literal(Value::I64(0))
                    && self.product(work, *stop, self.order.len()) == Some(from)
            }
            _ => false,
        };
        if !whole {
            let why = format!("`{loop_name}` does not cover all coordinates of `{name}`");
            let d = self.refuse(work, why, "covers a subset");
            return Err(d.help("apply `pos` first, and split that loop"));
        }
        Ok(())
    }

    /// Checks that the coordinates of the outer levels are known before the loop.
    fn check_outer(&self, work: &ProgramEdit, lets: &FxHashMap<VarId, ExprId>) -> Result<()> {
        let program = &work.program;
        let mut inside: Vec<Expr> = Vec::new();
        visit_block(std::slice::from_ref(work.loop_of(self.index)?), &mut |stmt| match &stmt.kind {
            StmtKind::Let { var, .. } => inside.push(Expr::Var(*var)),
            StmtKind::For { index, .. } => inside.push(Expr::Index(*index)),
            _ => (),
        });
        for subscript in &self.outer {
            let mut open = vec![*subscript];
            let mut late = !reads(program, lets, *subscript).is_empty();
            while let Some(id) = open.pop() {
                late |= inside.contains(program.expr(id));
                open.extend(program.expr(id).operands());
            }
            if late {
                let why = format!(
                    "`{}` is not known before the loop over `{}` starts",
                    program.show(*subscript),
                    self.loop_name(work)
                );
                let d = self.refuse(work, why, "its elements cannot be located then");
                return Err(d
                    .help("iterate over an outer level in a loop around this one, with its index as the subscript")
                    .help("or fuse the two loops first"));
            }
        }
        Ok(())
    }

    /// The range of levels whose linearised coordinate is an expression: the loop index covers all
    /// of them; `x // n` and `x % n` divide them.
    fn digits(&self, work: &ProgramEdit, lets: &FxHashMap<VarId, ExprId>, id: ExprId) -> Option<(usize, usize)> {
        let program = &work.program;
        match program.expr(id) {
            Expr::Index(index) => (*index == self.index).then_some((self.outer.len(), self.order.len())),
            Expr::Var(var) => self.digits(work, lets, *lets.get(var)?),
            Expr::Call(op @ (Op::FloorDiv | Op::Mod), operands) => {
                let (whole, divisor) = (*operands.first()?, *operands.get(1)?);
                let (first, last) = self.digits(work, lets, whole)?;
                let cut = self.product(work, divisor, last).filter(|cut| (first..last).contains(cut))?;
                // The outermost digit is the quotient.
                Some(if *op == Op::Mod { (cut, last) } else { (first, cut) })
            }
            _ => None,
        }
    }

    /// The first level such that an expression is the product of the sizes from there up to `last`,
    /// exclusive.
    fn product(&self, work: &ProgramEdit, id: ExprId, last: usize) -> Option<usize> {
        let mut factors = Vec::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            match work.program.expr(id) {
                Expr::Call(Op::Mul, operands) => open.extend(operands.iter().rev()),
                other => factors.push(other.clone()),
            }
        }
        let first = last.checked_sub(factors.len())?;
        let is_size = |(level, factor): (usize, &Expr)| match factor {
            Expr::Size(tensor, dim) => work.same_size((*tensor, *dim), (self.access.tensor, self.order[level])),
            _ => false,
        };
        (first..last).zip(&factors).all(is_size).then_some(first)
    }

    /// Rewrites the loop.
    fn go(self, work: &mut ProgramEdit, position: &str) -> Result<()> {
        let before = work.classes();
        let stmt = work.loop_of(self.index)?.clone();
        let old_name = self.loop_name(work).to_string();
        let number = work.new_index(position, self.index);
        let at = work.intern(Expr::Index(number));
        let tensor = self.access.tensor;
        let entry = |work: &mut ProgramEdit, what, at| work.intern(Expr::Entry(Entry { tensor, what, at }));
        let (start, stop) = match self.outer.split_last() {
            None => (work.int(0), entry(work, EntryPart::Count, Vec::new())),
            Some((last, others)) => {
                let one = work.int(1);
                let next = work.wide(*last);
                let next = work.binary(Op::Add, next, one);
                let first = entry(work, EntryPart::First, self.outer.clone());
                (first, entry(work, EntryPart::First, [others, &[next]].concat()))
            }
        };
        // Each level's coordinate gets one name, which replaces its synonyms.
        let mut names: Vec<VarId> = Vec::new();
        for level in self.outer.len()..self.order.len() {
            let known = self.names.iter().filter(|(_, l)| **l == level).map(|(var, _)| *var).min_by_key(|var| var.0);
            names.push(known.unwrap_or_else(|| work.new_var(&old_name)));
        }
        let mut body: Block = Vec::new();
        for (name, dim) in names.iter().zip(&self.order[self.outer.len()..]) {
            let value = entry(work, EntryPart::Coordinate(*dim), vec![at]);
            body.push(work.new_stmt(StmtKind::Let { var: *name, value }, stmt.id));
        }
        let StmtKind::For { body: mut inside, mut attributes, .. } = stmt.kind.clone() else { return Ok(()) };
        drop_lets(&mut inside, &|var| self.names.contains_key(&var));
        let whole = self.numbered(work, &names);
        let whole = work.program.expr(whole).clone();
        let value = Expr::Entry(Entry { tensor, what: EntryPart::Value, at: vec![at] });
        let renamed = |var: &VarId| self.names.get(var).and_then(|level| names.get(level - self.outer.len()));
        work.rewrite(&mut inside, &|_, expr| match expr {
            Expr::Read(access) if same(access, &self.access) => Some(value.clone()),
            Expr::Index(index) if *index == self.index => Some(whole.clone()),
            Expr::Var(var) => renamed(var).map(|name| Expr::Var(*name)),
            _ => None,
        });
        drop_unused(work, &mut inside);
        body.extend(inside);
        attributes.bound = None;
        let kind = StmtKind::For { index: number, extent: Extent::Range(start, stop), attributes, body };
        let new = work.new_stmt(kind, stmt.id);
        work.edit_loop(self.index, |_, block, at| block[at] = new);
        work.write_extents(&before);
        work.pin(&before, &[number], 0)
    }

    /// The former loop index, recomputed from the coordinates.
    fn numbered(&self, work: &mut ProgramEdit, names: &[VarId]) -> ExprId {
        let mut whole = None;
        for (name, dim) in names.iter().zip(&self.order[self.outer.len()..]) {
            let coordinate = work.intern(Expr::Var(*name));
            whole = Some(match whole {
                None => coordinate,
                Some(before) => {
                    let size = work.intern(Expr::Size(self.access.tensor, *dim));
                    let before = work.binary(Op::Mul, before, size);
                    work.binary(Op::Add, before, coordinate)
                }
            });
        }
        whole.unwrap_or_else(|| work.int(0))
    }
}

/// Removes bindings of names.
fn drop_lets(block: &mut Block, dropped: &dyn Fn(VarId) -> bool) {
    block.retain(|stmt| !matches!(&stmt.kind, StmtKind::Let { var, .. } if dropped(*var)));
    for stmt in block {
        match &mut stmt.kind {
            StmtKind::For { body, .. } => drop_lets(body, dropped),
            StmtKind::If { then, otherwise, .. } => {
                drop_lets(then, dropped);
                drop_lets(otherwise, dropped);
            }
            _ => {}
        }
    }
}

/// Removes dead bindings: intermediate quotients of the index.
fn drop_unused(work: &ProgramEdit, block: &mut Block) {
    loop {
        let mut used: FxHashSet<VarId> = FxHashSet::default();
        let mut bound: FxHashSet<VarId> = FxHashSet::default();
        visit_block(block, &mut |stmt: &Stmt| {
            if let StmtKind::Let { var, .. } = &stmt.kind {
                bound.insert(*var);
            }
            work.program.visit_exprs(stmt, &mut |id| {
                if let Expr::Var(var) = work.program.expr(id) {
                    used.insert(*var);
                }
            });
        });
        if bound.iter().all(|var| used.contains(var)) {
            return;
        }
        drop_lets(block, &|var| !used.contains(&var));
    }
}

impl ProgramEdit<'_> {
    /// Makes extents explicit that were inferred from a subscript that no longer exists.
    fn write_extents(&mut self, before: &super::extents::Classes) {
        let after = self.classes();
        let mut open: Vec<(IndexId, ExprId)> = Vec::new();
        let mut loops = Vec::new();
        self.program.visit(&mut |stmt| {
            if let StmtKind::For { extent: Extent::Infer, .. } = &stmt.kind {
                loops.extend(index_of(stmt));
            }
        });
        for index in loops {
            if let Some(size) = before.size(index)
                && after.size(index).is_none()
            {
                open.push((index, self.size_expr(size)));
            }
        }
        for (index, stop) in open {
            let start = self.int(0);
            self.edit_loop(index, |_, block, at| {
                if let StmtKind::For { extent, .. } = &mut block[at].kind {
                    *extent = Extent::Range(start, stop);
                }
            });
        }
    }
}
