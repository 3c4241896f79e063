//! `precompute` over recovered index variables: after `fuse`, `pos` or `split`, an original index
//! is a name bound inside the transformed loops, and a workspace may still be indexed by it. The
//! transformed loops accumulate the whole right-hand side in the workspace; the consumer iterates
//! over the original index variables, in the workspace's storage order, and writes each element of
//! the result once.

use super::edit::{ProgramEdit, index_of, path_to};
use super::extents::{indices, lets, reads};
use super::legal::{Chain, Link};
use super::matching::Match;
use super::precompute::{literal, loops_around};
use super::reorder::{obstacle, rebuild};
use rustc_hash::{FxHashMap, FxHashSet};
use tamis_ir::algebra::Op;
use tamis_ir::diag::{Code, Diagnostic, Result};
use tamis_ir::program::{
    Access, Attributes, Block, Declaration, Expr, ExprId, Extent, IndexId, Stmt, StmtKind, Storage, Subscript,
    TensorId, TensorInfo, Update, VarId,
};
use tamis_ir::{FormatSpec, Value};

/// An index variable of the untransformed program.
#[derive(Clone, Copy, PartialEq)]
enum Variable {
    /// It still has a loop.
    Loop(IndexId),
    /// A name that is bound inside loops.
    Name(VarId),
}

/// A reduction that is precomputed over original index variables, at least one of which is
/// recovered.
pub(super) struct Recovered {
    found: Match,
    /// The given variables, each with the dimension of the result that it subscripts.
    given: Vec<(Variable, usize)>,
    /// The index names of the consumer.
    consumer: Vec<String>,
    /// The variable names of the producer.
    producer: Vec<String>,
    around: Vec<IndexId>,
    target: Access,
    update: Update,
    lets: FxHashMap<VarId, ExprId>,
}

impl Recovered {
    /// The reduction, if a given name is bound inside the loops.
    pub(super) fn of(
        work: &ProgramEdit,
        found: &Match,
        names: &[String],
        workspace: &[String],
    ) -> Result<Option<Recovered>> {
        let around = loops_around(work, found.stmt.id);
        let program = &work.program;
        let lets = lets(program);
        let is_loop = |name: &String| {
            let wanted = name.split('#').next().unwrap_or(name);
            around.iter().copied().find(|index| program.indices[index.index()] == wanted)
        };
        let is_bound = |name: &String| {
            let inside = |var: &VarId| indices(program, &lets, lets[var]).iter().any(|index| around.contains(index));
            lets.keys().copied().find(|var| program.vars[var.index()] == *name && inside(var))
        };
        if names.iter().all(|name| is_loop(name).is_some() || is_bound(name).is_none()) {
            return Ok(None);
        }
        let fault =
            |message: String, help: &str| work.fault(Code::E1208, message, Some(0), "cannot be precomputed").help(help);
        let StmtKind::Assign { target, update: Some(update), .. } = &found.stmt.kind else {
            let message = "the expression is not the value of a reduction".to_string();
            return Err(fault(message, "precompute before `fuse` and `pos`"));
        };
        let reduces = update.op == Op::Sub
            || (update.op.info().commutative && update.op.info().associative && update.extra.is_empty());
        if found.part != found.value || !reduces {
            let message = "the expression is only a part of the reduced value".to_string();
            return Err(fault(message, "give the whole right-hand side, or precompute before `fuse` and `pos`"));
        }
        let mut given: Vec<(Variable, usize)> = Vec::new();
        for name in names {
            let variable = match (is_loop(name), is_bound(name)) {
                (Some(index), _) => Variable::Loop(index),
                (None, Some(var)) => Variable::Name(var),
                (None, None) => {
                    let message =
                        format!("there is no loop over `{name}`, and no name `{name}`, around the expression");
                    let d = work.fault(Code::E1202, message, Some(1), "no such index");
                    return Err(d.help("give the subscripts of the result"));
                }
            };
            let is_it = |s: &Subscript| match (program.expr(s.expr), variable) {
                (Expr::Index(index), Variable::Loop(given)) => *index == given && !s.permissive,
                (Expr::Var(var), Variable::Name(given)) => *var == given && !s.permissive,
                _ => false,
            };
            let Some(dim) = target.subscripts.iter().position(is_it) else {
                let message = format!("`{name}` is not a subscript of the result");
                let d = work.fault(Code::E1208, message, Some(1), "only reduces");
                return Err(d.help("give the subscripts of the result"));
            };
            if given.iter().any(|(other, _)| *other == variable) {
                let d = work.fault(Code::E1202, "an index is given twice", Some(1), "named twice");
                return Err(d.help("name each index once"));
            }
            given.push((variable, dim));
        }
        let found = Match { stmt: found.stmt.clone(), part: found.part, value: found.value };
        let (target, update) = (target.clone(), update.clone());
        let consumer = names.iter().map(|name| name.split('#').next().unwrap_or(name).to_string()).collect();
        Ok(Some(Recovered { found, given, consumer, producer: workspace.to_vec(), around, target, update, lets }))
    }

    fn refuse(&self, work: &ProgramEdit, message: String, help: &str) -> Diagnostic {
        work.fault(Code::E1208, message, Some(0), "cannot be precomputed").help(help)
    }

    /// The producer's loops: those that enclose the statement, from the innermost outwards, that
    /// determine no subscript of the result except the given ones, inside its declaration.
    fn region(&self, work: &ProgramEdit) -> Vec<IndexId> {
        let mut fixed: FxHashSet<IndexId> = FxHashSet::default();
        for (dim, subscript) in self.target.subscripts.iter().enumerate() {
            if self.given.iter().all(|(_, other)| *other != dim) {
                fixed.extend(indices(&work.program, &self.lets, subscript.expr));
            }
        }
        let tensor = self.target.tensor;
        let mut path = Vec::new();
        path_to(&work.program.body, &|stmt| stmt.kind == StmtKind::Declare(tensor), &mut path);
        fixed.extend(path.into_iter().filter_map(index_of));
        let first = self.around.iter().rposition(|index| fixed.contains(index)).map_or(0, |at| at + 1);
        self.around[first..].to_vec()
    }

    pub(super) fn reduce(self, work: &mut ProgramEdit, format: FormatSpec) -> Result<()> {
        let region = self.region(work);
        // These loops determine the given subscripts; every other subscript is known before them.
        for ((variable, _), name) in self.given.iter().zip(&self.consumer) {
            let inside = match variable {
                Variable::Loop(index) => region.contains(index),
                Variable::Name(var) => {
                    indices(&work.program, &self.lets, self.lets[var]).iter().all(|index| region.contains(index))
                }
            };
            if !inside {
                let message = format!("the loops that fix `{name}` contain loops that belong to neither side");
                let help = "give all subscripts of the result that these loops fix, or reorder the loops";
                return Err(self.refuse(work, message, help));
            }
        }
        let (Some(top), Some(innermost)) = (region.first().copied(), region.last().copied()) else { return Ok(()) };
        if reads(&work.program, &self.lets, self.found.part).contains(&self.target.tensor) {
            return Err(self.refuse(work, "the expression reads the result".into(), "keep the loops unchanged"));
        }
        let nest = work.loop_of(top)?.clone();
        let chain = Chain::of(&nest, innermost).map_err(|conflict| obstacle(work, &conflict))?;
        let Some((last, bindings)) = chain.body.split_last() else { return Ok(()) };
        if last.id != self.found.stmt.id || !bindings.iter().all(|stmt| matches!(stmt.kind, StmtKind::Let { .. })) {
            let message = "the loops of the reduction contain other statements".to_string();
            return Err(self.refuse(work, message, "move the other statements into separate loops"));
        }
        let (tensor, declare, op, identity) = self.declare(work, &format)?;
        let (producer, extents) = self.producer(work, &chain, bindings, tensor, op)?;
        let consumer = self.consumer(work, tensor, &format, &region, identity, &extents);
        work.edit_loop(top, |_, outer, at| {
            outer.splice(at..=at, [declare].into_iter().chain(producer).chain(consumer));
        });
        Ok(())
    }

    /// The workspace and its reduction operator.
    fn declare(&self, work: &mut ProgramEdit, format: &FormatSpec) -> Result<(TensorId, Stmt, Op, Value)> {
        let op = if self.update.op == Op::Sub { Op::Add } else { self.update.op };
        let dtype = work.checked.types.tensors.get(self.target.tensor.index()).copied();
        let identity = op.info().left_identity.zip(dtype).and_then(|(e, dtype)| e.value(dtype)).map(literal);
        let Some(identity) = identity else {
            let message = format!("`{}` cannot accumulate in this type", op.info().name);
            return Err(self.refuse(work, message, "keep the loops unchanged"));
        };
        let classes = work.classes();
        let mut shape = Vec::new();
        for ((_, dim), name) in self.given.iter().zip(&self.consumer) {
            let Some(size) = classes.size_of_dim(self.target.tensor, *dim) else {
                let message = format!("the extent of the workspace along `{name}` has no name");
                let d = work.fault(Code::E1205, message, Some(1), "its extent has no name");
                return Err(d.help("declare the result with its `shape=`"));
            };
            shape.push(work.size_expr(size));
        }
        let zero = identity.same_number(Value::zero(identity.dtype()));
        let fill = (!zero).then_some(identity);
        let declaration = Declaration { storage: Storage::Tensor(format.clone()), fill, dtype, shape: Some(shape) };
        let tensor = TensorId(work.program.tensors.len() as u32);
        let name = work.fresh_name("w");
        work.program.tensors.push(TensorInfo { name, rank: self.given.len(), declaration: Some(declaration) });
        let declare = work.new_stmt(StmtKind::Declare(tensor), self.found.stmt.id);
        let span = work.program.origin.stmt(self.found.stmt.id);
        work.program.origin.tensors.insert(tensor, span);
        Ok((tensor, declare, op, identity))
    }

    /// The producer: the loops unchanged, writing to the workspace; also the bounds of the
    /// consumer's loops.
    fn producer(
        &self,
        work: &mut ProgramEdit,
        chain: &Chain,
        bindings: &[Stmt],
        tensor: TensorId,
        op: Op,
    ) -> Result<(Vec<Stmt>, FxHashMap<IndexId, Extent>)> {
        let mut renamed: FxHashMap<IndexId, Expr> = FxHashMap::default();
        let mut subscripts = Vec::new();
        for ((variable, _), name) in self.given.iter().zip(&self.producer) {
            let expr = match variable {
                Variable::Loop(index) => {
                    work.check_new(name, 2, *index, &self.around)?;
                    let new = work.new_index(name, *index);
                    renamed.insert(*index, Expr::Index(new));
                    Expr::Index(*index)
                }
                Variable::Name(var) => {
                    if work.program.vars[var.index()] != *name {
                        work.check_new(name, 2, self.around[0], &[])?;
                        work.program.vars[var.index()] = name.clone();
                    }
                    Expr::Var(*var)
                }
            };
            let expr = work.intern(expr);
            subscripts.push(Subscript { expr, protocol: None, permissive: false });
        }
        let target = Access { tensor, subscripts };
        let update = Some(Update { op, extra: Vec::new() });
        let assign = StmtKind::Assign { target, update, value: self.found.value };
        let assign = work.new_stmt(assign, self.found.stmt.id);
        let mut links = chain.links.clone();
        let mut extents = FxHashMap::default();
        for link in &mut links {
            if let Link::Loop { index, extent, .. } = link
                && let Some(Expr::Index(new)) = renamed.get(index)
            {
                if let Extent::Range(start, stop) = *extent {
                    let loops = chain.loops();
                    let depends = [start, stop].iter().any(|bound| {
                        indices(&work.program, &self.lets, *bound).iter().any(|other| loops.contains(other))
                    });
                    if depends {
                        let name = work.program.indices[index.index()].clone();
                        let message = format!("the bounds of `{name}` depend on loops of the reduction");
                        let help = "let it iterate over all values, and put its body under an `if`";
                        return Err(self.refuse(work, message, help));
                    }
                }
                extents.insert(*index, *extent);
                *index = *new;
            }
        }
        let body: Block = bindings.iter().cloned().chain([assign]).collect();
        let mut producer: Block = rebuild(links, body).into_iter().collect();
        work.substitute(&mut producer, &renamed);
        Ok((producer, extents))
    }

    /// The consumer: writes each element of the result once, in the storage order of the workspace.
    fn consumer(
        &self,
        work: &mut ProgramEdit,
        tensor: TensorId,
        format: &FormatSpec,
        region: &[IndexId],
        identity: Value,
        extents: &FxHashMap<IndexId, Extent>,
    ) -> Vec<Stmt> {
        let rank = self.given.len();
        let order = format.with_rank(rank).ok().and_then(|format| format.dim_order()).filter(|o| o.len() == rank);
        let order = order.unwrap_or_else(|| (0..rank).collect());
        let mut by: Vec<(IndexId, Extent)> = Vec::new();
        for ((variable, _), name) in self.given.iter().zip(&self.consumer) {
            by.push(match variable {
                Variable::Loop(index) => (*index, extents.get(index).copied().unwrap_or(Extent::Infer)),
                Variable::Name(_) => (work.new_index(name, self.around[0]), Extent::Infer),
            });
        }
        let bare = |work: &mut ProgramEdit, index: IndexId| {
            let expr = work.intern(Expr::Index(index));
            Subscript { expr, protocol: None, permissive: false }
        };
        let read: Vec<Subscript> = by.iter().map(|(index, _)| bare(work, *index)).collect();
        let mut target = self.target.clone();
        for ((_, dim), subscript) in self.given.iter().zip(&read) {
            target.subscripts[*dim] = *subscript;
        }
        let value = work.intern(Expr::Read(Access { tensor, subscripts: read }));
        let update = (!self.assigns(work, region, identity)).then(|| self.update.clone());
        let mut block = vec![work.new_stmt(StmtKind::Assign { target, update, value }, self.found.stmt.id)];
        for k in order.into_iter().rev() {
            let (index, extent) = by[k];
            let kind = StmtKind::For { index, extent, attributes: Attributes::default(), body: block };
            block = vec![work.new_stmt(kind, self.found.stmt.id)];
        }
        block
    }

    /// True if the consumer may assign instead of updating: the result holds the identity, no other
    /// statement writes it, and no enclosing loop writes the same element again.
    fn assigns(&self, work: &ProgramEdit, region: &[IndexId], identity: Value) -> bool {
        let tensor = self.target.tensor;
        let mut writes = 0;
        work.program.visit(&mut |stmt| {
            writes += usize::from(matches!(&stmt.kind, StmtKind::Assign { target, .. } if target.tensor == tensor));
        });
        let fill = work.checked.types.fills.get(tensor.index());
        writes == 1
            && self.update.op != Op::Sub
            && self.around.len() == region.len()
            && fill.is_some_and(|fill| fill.same_number(identity))
    }
}
