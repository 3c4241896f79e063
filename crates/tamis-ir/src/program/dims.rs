//! Dimension inference: how far every loop goes, and how large every declared tensor is.
//!
//! 1. A bare subscript `A[i]` says that `i` runs over that dimension of `A`: extents and dimensions that
//!    meet so are one, and sizes that disagree are a mistake. `range(a, b)` and `~` say nothing.
//! 2. An index that only occurs in affine subscripts (`A[2*i + k - 1]`) goes as far as all of them stay in
//!    bounds, from 0 or later: the `valid` extent of a convolution library.
//! 3. An index that only occurs in permissive subscripts goes once over the tensor: the `same` extent.
//! 4. A declared tensor without bare subscripts is as large as what is written to it.

use super::{Access, Expr, ExprId, Extent, IndexId, ParamType, Program, Stmt, StmtKind, Subscript, TensorId};
use crate::algebra::{Op, Value, eval};
use crate::diag::{Code, Diagnostic, Diagnostics, Span};
use rustc_hash::FxHashMap;

/// The largest size of a dimension.
pub const MAX_DIM: u64 = i64::MAX as u64;

/// How far a loop goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopExtent {
    /// Known before the program runs.
    Static {
        /// The first value of the index.
        start: i64,
        /// One past the last value; not below `start`.
        stop: i64,
    },
    /// Bounds that are computed when the loop starts.
    Dynamic,
}

/// Extents of all loops and shapes of all tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Extents {
    /// By [`IndexId`].
    pub loops: Vec<LoopExtent>,
    /// By [`TensorId`]; for parameters, with what was to be inferred.
    pub shapes: Vec<Vec<u64>>,
}

/// `sum of coefficient * index, plus a constant`.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Affine {
    pub terms: Vec<(IndexId, i64)>,
    pub constant: i64,
}

pub(super) fn infer(program: &Program, params: &[ParamType]) -> Result<Extents, Diagnostics> {
    let mut inference = Inference::new(program, params)?;
    inference.collect();
    inference.unify();
    if inference.errors.is_empty() {
        inference.solve();
    }
    if inference.errors.is_empty() {
        inference.check_bounds();
    }
    let extents = inference.finish();
    if inference.errors.is_empty() { Ok(extents) } else { Err(Diagnostics(inference.errors)) }
}

/// Where a tensor is subscripted.
struct Site<'a> {
    tensor: TensorId,
    dim: usize,
    subscript: &'a Subscript,
    span: Span,
    write: bool,
    /// Under an `if`, so that it may not be reached for all indices.
    guarded: bool,
    /// The loops around it.
    loops: Vec<IndexId>,
}

/// A size with the place that says so.
#[derive(Clone)]
struct Known {
    start: i64,
    size: u64,
    span: Span,
    reason: String,
}

struct Inference<'a> {
    program: &'a Program,
    sites: Vec<Site<'a>>,
    extents: FxHashMap<IndexId, (Extent, Span)>,
    lets: FxHashMap<super::VarId, ExprId>,
    /// Union-find over loop indices, then tensor dimensions.
    parent: Vec<usize>,
    known: Vec<Option<Known>>,
    /// Where the dimensions of each tensor start in `parent`.
    offsets: Vec<usize>,
    /// Values of parameters without dimensions.
    scalars: FxHashMap<TensorId, i64>,
    /// Some parameter's shape is to be inferred.
    open_inputs: bool,
    errors: Vec<Diagnostic>,
}

impl<'a> Inference<'a> {
    fn new(program: &'a Program, params: &[ParamType]) -> Result<Inference<'a>, Diagnostics> {
        let mut offsets = Vec::new();
        let mut nodes = program.indices.len();
        for info in &program.tensors {
            offsets.push(nodes);
            nodes += info.rank;
        }
        let mut inference = Inference {
            program,
            sites: Vec::new(),
            extents: FxHashMap::default(),
            lets: FxHashMap::default(),
            parent: (0..nodes).collect(),
            known: vec![None; nodes],
            offsets,
            scalars: FxHashMap::default(),
            open_inputs: params.iter().any(|p| p.shape.iter().any(Option::is_none)),
            errors: Vec::new(),
        };
        let mut used = vec![false; program.tensors.len()];
        program.visit(&mut |stmt| {
            program.visit_exprs(stmt, &mut |id| match program.expr(id) {
                Expr::Read(access) => used[access.tensor.index()] = true,
                Expr::Size(tensor, _) => used[tensor.index()] = true,
                _ => {}
            });
        });
        for (id, param) in program.params.iter().zip(params) {
            inference.param(*id, param, used[id.index()]);
        }
        if inference.errors.is_empty() { Ok(inference) } else { Err(Diagnostics(inference.errors)) }
    }

    fn param(&mut self, id: TensorId, param: &ParamType, used: bool) {
        let info = self.program.tensor(id);
        let span = self.program.origin.tensor(id);
        if used && info.rank != param.shape.len() {
            let d = Diagnostic::new(
                Code::E0401,
                format!(
                    "`{}` has {} dimensions, but is used with {} subscripts",
                    info.name,
                    param.shape.len(),
                    info.rank
                ),
            );
            let d = d.label(span, format!("called with {} dimensions", param.shape.len()));
            return self.error(
                d.help(format!("pass a tensor with {} dimensions, or write as many subscripts as it has", info.rank)),
            );
        }
        for (dim, size) in param.shape.iter().enumerate().take(info.rank) {
            if let Some(size) = size {
                if *size > MAX_DIM {
                    let d = Diagnostic::new(
                        Code::E0404,
                        format!("dimension {dim} of `{}` is larger than 2^63-1", info.name),
                    );
                    return self.error(d.label(span, "too large").help("use a smaller dimension"));
                }
                let reason = format!("dimension {dim} of `{}` is {size}", info.name);
                self.known[self.offsets[id.index()] + dim] = Some(Known { start: 0, size: *size, span, reason });
            }
        }
        if let Some(value) = param.value {
            self.scalars.insert(id, value);
        }
    }

    fn error(&mut self, d: Diagnostic) {
        let d = self.program.origin.attach(d);
        if !self.errors.contains(&d) {
            self.errors.push(d);
        }
    }

    // Collecting

    fn collect(&mut self) {
        let program = self.program;
        self.collect_block(&program.body, &mut Vec::new(), false);
    }

    fn collect_block(&mut self, block: &'a [Stmt], loops: &mut Vec<IndexId>, guarded: bool) {
        let program = self.program;
        for stmt in block {
            program.visit_exprs(stmt, &mut |id| {
                if let Expr::Read(access) = program.expr(id) {
                    let span = program.origin.expr(stmt.id, id);
                    self.collect_access(access, span, false, guarded, loops);
                }
            });
            match &stmt.kind {
                StmtKind::Let { var, value } => {
                    self.lets.insert(*var, *value);
                }
                StmtKind::For { index, extent, body } => {
                    let span = program.origin.indices.get(index).copied().unwrap_or_default();
                    self.extents.insert(*index, (*extent, span));
                    loops.push(*index);
                    self.collect_block(body, loops, guarded);
                    loops.pop();
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.collect_block(then, loops, true);
                    self.collect_block(otherwise, loops, true);
                }
                StmtKind::Assign { target, .. } => {
                    self.collect_access(target, program.origin.target(stmt.id), true, guarded, loops);
                }
                StmtKind::Declare(_) => {}
            }
        }
    }

    fn collect_access(&mut self, access: &'a Access, span: Span, write: bool, guarded: bool, loops: &[IndexId]) {
        for (dim, subscript) in access.subscripts.iter().enumerate() {
            self.sites.push(Site {
                tensor: access.tensor,
                dim,
                subscript,
                span,
                write,
                guarded,
                loops: loops.to_vec(),
            });
        }
    }

    // Rule 1: bare subscripts

    fn find(&mut self, mut node: usize) -> usize {
        while self.parent[node] != node {
            self.parent[node] = self.parent[self.parent[node]];
            node = self.parent[node];
        }
        node
    }

    fn dim_node(&self, tensor: TensorId, dim: usize) -> usize {
        self.offsets[tensor.index()] + dim
    }

    fn inferred(&self, index: IndexId) -> bool {
        matches!(self.extents.get(&index), Some((Extent::Infer, _)))
    }

    /// The index that a subscript consists of, if its loop's extent is to be inferred.
    fn bare(&self, subscript: &Subscript) -> Option<IndexId> {
        match self.program.expr(subscript.expr) {
            Expr::Index(index) if !subscript.permissive && self.inferred(*index) => Some(*index),
            _ => None,
        }
    }

    fn unify(&mut self) {
        self.written_shapes();
        for k in 0..self.sites.len() {
            let site = &self.sites[k];
            let Some(index) = self.bare(site.subscript) else { continue };
            let (tensor, dim, span) = (site.tensor, site.dim, site.span);
            let a = self.find(index.index());
            let b = self.dim_node(tensor, dim);
            let b = self.find(b);
            self.union(a, b, tensor, dim, span, index);
        }
    }

    fn union(&mut self, a: usize, b: usize, tensor: TensorId, dim: usize, span: Span, index: IndexId) {
        if a == b {
            return;
        }
        // What is new about a size is where the index meets it.
        if let Some(known) = &mut self.known[b]
            && known.span == self.program.origin.tensor(tensor)
        {
            known.span = span;
        }
        match (self.known[a].clone(), self.known[b].clone()) {
            (Some(x), Some(y)) if x.size != y.size => {
                let name = &self.program.indices[index.index()];
                let other = &self.program.tensor(tensor).name;
                let d = Diagnostic::new(
                    Code::E0402,
                    format!("`{name}` runs over dimensions of different sizes: {} and {}", x.size, y.size),
                );
                let mut d = d.label(span, format!("dimension {dim} of `{other}` is {}", y.size));
                if x.span != span {
                    d = d.label(x.span, x.reason.clone());
                } else {
                    d = d.note(x.reason.clone());
                }
                d = d.help(format!(
                    "use tensors whose sizes agree, or bound the loop: `for {name} in range({}):`",
                    x.size.min(y.size)
                ));
                self.error(d);
            }
            (known, None) => {
                self.parent[b] = a;
                self.known[a] = known;
            }
            (_, known) => {
                self.parent[b] = a;
                self.known[a] = known;
            }
        }
    }

    fn written_shapes(&mut self) {
        let program = self.program;
        for (k, info) in program.tensors.iter().enumerate() {
            let tensor = TensorId(k as u32);
            let Some(shape) = info.declaration.as_ref().and_then(|d| d.shape.as_ref()) else { continue };
            let span = program.origin.tensor(tensor);
            for (dim, expr) in shape.iter().enumerate().take(info.rank) {
                match self.constant(*expr) {
                    Some(size) if size >= 0 => {
                        let reason = format!("`{}` is declared with {size} here", info.name);
                        let node = self.dim_node(tensor, dim);
                        self.known[node] = Some(Known { start: 0, size: size as u64, span, reason });
                    }
                    Some(size) => {
                        let d = Diagnostic::new(Code::E0404, format!("a dimension cannot be {size}"))
                            .label(span, "negative");
                        self.error(d.help("write a size that is not negative"));
                    }
                    None => {
                        let d = Diagnostic::new(Code::E0403, "this shape is not known before the program runs");
                        let d = d.label(span, "depends on what is computed");
                        self.error(d.help("use integers, sizes of parameters (`A.shape[0]`) and scalar parameters"));
                    }
                }
            }
        }
    }

    // Constants and affine forms

    /// The value of an integer expression that does not depend on loops or tensor elements.
    fn constant(&mut self, id: ExprId) -> Option<i64> {
        match self.program.expr(id).clone() {
            Expr::Literal(value) => value.as_i64(),
            Expr::Var(var) => {
                let value = *self.lets.get(&var)?;
                self.constant(value)
            }
            Expr::Size(tensor, dim) if dim < self.program.tensor(tensor).rank => {
                let node = self.dim_node(tensor, dim);
                let node = self.find(node);
                self.known[node].as_ref().map(|known| known.size as i64)
            }
            Expr::Read(access) if access.subscripts.is_empty() => self.scalars.get(&access.tensor).copied(),
            Expr::Call(
                op @ (Op::Add | Op::Sub | Op::Mul | Op::FloorDiv | Op::Mod | Op::Min | Op::Max | Op::Neg),
                operands,
            ) => {
                let values: Option<Vec<Value>> = operands.iter().map(|e| self.constant(*e).map(Value::I64)).collect();
                eval(op, crate::algebra::DType::I64, &values?).as_i64()
            }
            _ => None,
        }
    }

    fn affine(&mut self, id: ExprId) -> Option<Affine> {
        if let Some(constant) = self.constant(id) {
            return Some(Affine { terms: Vec::new(), constant });
        }
        match self.program.expr(id).clone() {
            Expr::Index(index) => Some(Affine { terms: vec![(index, 1)], constant: 0 }),
            Expr::Var(var) => {
                let value = *self.lets.get(&var)?;
                self.affine(value)
            }
            Expr::Call(Op::Add, operands) => self.affine(operands[0])?.plus(&self.affine(operands[1])?, 1),
            Expr::Call(Op::Sub, operands) => self.affine(operands[0])?.plus(&self.affine(operands[1])?, -1),
            Expr::Call(Op::Neg, operands) => Affine::default().plus(&self.affine(operands[0])?, -1),
            Expr::Call(Op::Mul, operands) => {
                let (a, b) = (self.constant(operands[0]), self.constant(operands[1]));
                match (a, b) {
                    (Some(a), _) => Affine::default().plus(&self.affine(operands[1])?, a),
                    (_, Some(b)) => Affine::default().plus(&self.affine(operands[0])?, b),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// First and last value of an index, `None` while unknown; a loop that never runs has `last < first`.
    fn index_range(&mut self, index: IndexId) -> Option<(i64, i64)> {
        match self.extents.get(&index)?.0 {
            Extent::Infer => {
                let node = self.find(index.index());
                self.known[node].as_ref().map(|known| (known.start, known.size as i64 - 1))
            }
            Extent::Range(start, stop) => {
                let (start, stop) = (self.constant(start)?, self.constant(stop)?);
                Some((start, stop.max(start) - 1))
            }
        }
    }

    /// The least and greatest value of an affine form, leaving out the term of `except`.
    fn range(&mut self, affine: &Affine, except: Option<IndexId>) -> Option<(i64, i64)> {
        let (mut least, mut greatest) = (affine.constant, affine.constant);
        for (index, coefficient) in &affine.terms {
            if Some(*index) == except {
                continue;
            }
            let (first, last) = self.index_range(*index)?;
            let (a, b) = (coefficient.checked_mul(first)?, coefficient.checked_mul(last)?);
            least = least.checked_add(a.min(b))?;
            greatest = greatest.checked_add(a.max(b))?;
        }
        Some((least, greatest))
    }

    // Rules 2 to 4

    fn solve(&mut self) {
        loop {
            let progress = self.solve_valid() || self.solve_same() || self.solve_written();
            if !progress || !self.errors.is_empty() {
                break;
            }
        }
        if !self.errors.is_empty() {
            return;
        }
        for (index, (extent, span)) in self.extents.clone() {
            let node = self.find(index.index());
            if extent == Extent::Infer && self.known[node].is_none() {
                self.missing_extent(index, span);
            }
        }
        // A dimension that only waits for such an index needs no complaint of its own.
        for (k, info) in self.program.tensors.iter().enumerate() {
            for dim in 0..info.rank {
                let node = self.dim_node(TensorId(k as u32), dim);
                let node = self.find(node);
                if self.known[node].is_none() && self.errors.is_empty() {
                    let span = self.program.origin.tensor(TensorId(k as u32));
                    let d = Diagnostic::new(
                        Code::E0403,
                        format!("the size of dimension {dim} of `{}` is not known", info.name),
                    );
                    self.error(d.label(span, "nothing says how large it is").help(if info.declaration.is_some() {
                        "declare it with `shape=(...)`, or subscript it with a loop index whose extent is known"
                    } else {
                        "give the input a shape, as in `x=rand(100)`"
                    }));
                }
            }
        }
        self.errors.sort_by_key(|d| d.labels.first().map(|l| l.span));
    }

    fn missing_extent(&mut self, index: IndexId, span: Span) {
        let name = &self.program.indices[index.index()];
        let d = Diagnostic::new(Code::E0403, format!("the extent of `{name}` cannot be inferred"));
        let d = d.label(span, "nothing says how far this goes");
        let used =
            self.sites.iter().any(|site| site.loops.contains(&index) && self.mentions(site.subscript.expr, index));
        let d = if used { d } else { d.note(format!("`{name}` subscripts no tensor")) };
        let d = d.help(format!("bound it: `for {name} in range(n):`"));
        let d = d.help(format!("or use `{name}` as a bare subscript of a tensor whose size is known"));
        self.error(if self.open_inputs { d.help("or give an input a shape, as in `A=rand(100,200)`") } else { d });
    }

    fn mentions(&self, id: ExprId, index: IndexId) -> bool {
        match self.program.expr(id) {
            Expr::Index(other) => *other == index,
            Expr::Call(_, operands) => operands.iter().any(|e| self.mentions(*e, index)),
            _ => false,
        }
    }

    /// The one unknown index of a subscript over a known dimension, with its coefficient and the range of the rest.
    fn one_unknown(&mut self, k: usize) -> Option<(IndexId, i64, (i64, i64), i64)> {
        let (tensor, dim, expr) = (self.sites[k].tensor, self.sites[k].dim, self.sites[k].subscript.expr);
        let node = self.dim_node(tensor, dim);
        let node = self.find(node);
        let size = self.known[node].as_ref()?.size as i64;
        let affine = self.affine(expr)?;
        let mut unknown = None;
        for (index, coefficient) in &affine.terms {
            if self.index_range(*index).is_none() {
                if unknown.is_some() || !self.inferred(*index) {
                    return None;
                }
                unknown = Some((*index, *coefficient));
            }
        }
        let (index, coefficient) = unknown?;
        let rest = self.range(&affine, Some(index))?;
        Some((index, coefficient, rest, size))
    }

    /// Rule 2: all affine subscripts stay in bounds.
    fn solve_valid(&mut self) -> bool {
        let mut bounds: FxHashMap<usize, (i64, i64, Span)> = FxHashMap::default();
        for k in 0..self.sites.len() {
            if self.sites[k].subscript.permissive {
                continue;
            }
            let Some((index, coefficient, (least, greatest), size)) = self.one_unknown(k) else { continue };
            if coefficient == 0 || greatest < least {
                continue;
            }
            // 0 <= coefficient * i + rest < size for every value of the rest
            let (low, high) = (0i64.saturating_sub(least), (size - 1).saturating_sub(greatest));
            let (first, last) = if coefficient > 0 {
                (ceil_div(low, coefficient), floor_div(high, coefficient))
            } else {
                (ceil_div(high, coefficient), floor_div(low, coefficient))
            };
            let node = self.find(index.index());
            let span = self.sites[k].span;
            let entry = bounds.entry(node).or_insert((0, i64::MAX - 1, span));
            *entry = (entry.0.max(first), entry.1.min(last), entry.2);
        }
        let progress = !bounds.is_empty();
        for (node, (first, last, span)) in bounds {
            if last < -1 || (last + 1 < first && first > 0) {
                let d = Diagnostic::new(Code::E0405, "no index keeps this subscript in bounds")
                    .label(span, "the window is larger than the tensor");
                self.error(d.help(
                    "use a larger tensor or a smaller window, or permit reads out of bounds with `~` and `coalesce`",
                ));
                continue;
            }
            let size = (last + 1).max(first) as u64;
            let reason = format!("the subscript stays in bounds up to {size}");
            self.known[node] = Some(Known { start: first, size, span, reason });
        }
        progress
    }

    /// Rule 3: a permissive subscript goes once over the tensor.
    fn solve_same(&mut self) -> bool {
        for k in 0..self.sites.len() {
            if !self.sites[k].subscript.permissive {
                continue;
            }
            let Some((index, coefficient, _, size)) = self.one_unknown(k) else { continue };
            if coefficient == 0 {
                continue;
            }
            let size = ceil_div(size, coefficient.saturating_abs()) as u64;
            let node = self.find(index.index());
            let span = self.sites[k].span;
            let reason = format!("`~` goes once over the dimension, {size}");
            self.known[node] = Some(Known { start: 0, size, span, reason });
            return true;
        }
        false
    }

    /// Rule 4: a declared tensor is as large as what is written to it.
    fn solve_written(&mut self) -> bool {
        let mut progress = false;
        for t in 0..self.program.tensors.len() {
            let tensor = TensorId(t as u32);
            for dim in 0..self.program.tensors[t].rank {
                let node = self.dim_node(tensor, dim);
                let node = self.find(node);
                if self.known[node].is_some() || self.program.tensors[t].declaration.is_none() {
                    continue;
                }
                if let Some(known) = self.written_size(tensor, dim) {
                    self.known[node] = Some(known);
                    progress = true;
                }
            }
        }
        progress
    }

    fn written_size(&mut self, tensor: TensorId, dim: usize) -> Option<Known> {
        let mut found: Option<Known> = None;
        for k in 0..self.sites.len() {
            let site = &self.sites[k];
            if !site.write || site.tensor != tensor || site.dim != dim {
                continue;
            }
            let (expr, span) = (site.subscript.expr, site.span);
            let affine = self.affine(expr)?;
            let (_, greatest) = self.range(&affine, None)?;
            let size = greatest.saturating_add(1).max(0) as u64;
            if found.as_ref().is_none_or(|known| known.size < size) {
                found = Some(Known { start: 0, size, span, reason: format!("written up to {size} here") });
            }
        }
        found
    }

    /// Subscripts that certainly leave their tensor: not under an `if`, and every loop around runs.
    fn check_bounds(&mut self) {
        for k in 0..self.sites.len() {
            let site = &self.sites[k];
            if site.subscript.permissive || site.guarded || self.bare(site.subscript).is_some() {
                continue;
            }
            let (expr, tensor, dim, span) = (site.subscript.expr, site.tensor, site.dim, site.span);
            let loops = site.loops.clone();
            if loops.iter().any(|index| self.index_range(*index).is_none_or(|(first, last)| last < first)) {
                continue;
            }
            let Some(affine) = self.affine(expr) else { continue };
            let node = self.dim_node(tensor, dim);
            let node = self.find(node);
            let (Some((least, greatest)), Some(known)) = (self.range(&affine, None), self.known[node].clone()) else {
                continue;
            };
            if least < 0 || greatest >= known.size as i64 {
                let name = &self.program.tensor(tensor).name;
                let shown = self.program.show(expr);
                let d = Diagnostic::new(
                    Code::E0405,
                    format!(
                        "`{shown}` goes from {least} to {greatest}, but dimension {dim} of `{name}` has size {}",
                        known.size
                    ),
                );
                self.error(
                    d.label(span, "leaves the tensor")
                        .help("bound the loop with `range(a, b)`")
                        .help(format!("or permit it: `coalesce({name}[~({shown})], 0)`")),
                );
            }
        }
    }

    fn finish(&mut self) -> Extents {
        let loops = (0..self.program.indices.len())
            .map(|k| match self.index_range(IndexId(k as u32)) {
                Some((first, last)) => LoopExtent::Static { start: first, stop: last.saturating_add(1).max(first) },
                None => LoopExtent::Dynamic,
            })
            .collect();
        let shapes = (0..self.program.tensors.len())
            .map(|t| {
                let dims = 0..self.program.tensors[t].rank;
                dims.map(|dim| {
                    let node = self.find(self.offsets[t] + dim);
                    self.known[node].as_ref().map_or(0, |known| known.size)
                })
                .collect()
            })
            .collect();
        Extents { loops, shapes }
    }
}

impl Affine {
    /// `self + scale * other`, if nothing overflows.
    fn plus(mut self, other: &Affine, scale: i64) -> Option<Affine> {
        self.constant = self.constant.checked_add(other.constant.checked_mul(scale)?)?;
        for (index, coefficient) in &other.terms {
            let added = coefficient.checked_mul(scale)?;
            match self.terms.iter_mut().find(|(i, _)| i == index) {
                Some((_, c)) => *c = c.checked_add(added)?,
                None => self.terms.push((*index, added)),
            }
        }
        self.terms.retain(|(_, c)| *c != 0);
        Some(self)
    }
}

fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && ((a < 0) != (b < 0)) { q - 1 } else { q }
}

fn ceil_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && ((a < 0) == (b < 0)) { q + 1 } else { q }
}
