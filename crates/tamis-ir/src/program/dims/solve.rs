//! Rules 2 to 4: extents and sizes determined by affine subscripts, permissive ones, and writes.

use super::super::{Expr, ExprId, Extent, IndexId, TensorId};
use super::affine::{ceil_div, floor_div};
use super::{DimInference, KnownSize};
use crate::diag::{Code, Diagnostic, Span};
use rustc_hash::FxHashMap;

impl DimInference<'_> {
    pub(super) fn solve(&mut self) {
        loop {
            let progress = self.solve_valid() || self.solve_same() || self.solve_written();
            self.understand_lets();
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
        // A dimension that depends on an unresolved index is not reported separately.
        for (k, info) in self.program.tensors.iter().enumerate() {
            for dim in 0..self.ranks[k] {
                let node = self.dim_node(TensorId(k as u32), dim);
                let node = self.find(node);
                if self.known[node].is_none() && self.errors.is_empty() {
                    let span = self.program.origin.tensor(TensorId(k as u32));
                    let d = Diagnostic::new(
                        Code::E0403,
                        format!("the size of dimension {dim} of `{}` cannot be inferred", info.name),
                    );
                    self.error(d.label(span, "no known size determines it").help(if info.declaration.is_some() {
                        "declare it with `shape=(...)`, or subscript it with a loop index whose extent is known"
                    } else {
                        "give the input a shape, as in `x=rand(100)`"
                    }));
                }
            }
        }
        self.errors.sort_by_key(|d| d.labels.first().map(|l| l.span));
    }

    pub(super) fn missing_extent(&mut self, index: IndexId, span: Span) {
        let name = &self.program.indices[index.index()];
        let d = Diagnostic::new(Code::E0403, format!("the extent of `{name}` cannot be inferred"));
        let d = d.label(span, "no known size determines its extent");
        let used =
            self.sites.iter().any(|site| site.loops.contains(&index) && self.mentions(site.subscript.expr, index));
        let d = if used { d } else { d.note(format!("`{name}` subscripts no tensor")) };
        let d = d.help(format!("bound it: `for {name} in range(n):`"));
        let d = d.help(format!("or use `{name}` as a bare subscript of a tensor whose size is known"));
        self.error(if self.open_inputs { d.help("or give an input a shape, as in `A=rand(100,200)`") } else { d });
    }

    pub(super) fn mentions(&self, id: ExprId, index: IndexId) -> bool {
        match self.program.expr(id) {
            Expr::Index(other) => *other == index,
            Expr::Call(_, operands) => operands.iter().any(|e| self.mentions(*e, index)),
            _ => false,
        }
    }

    /// The only unknown index of a subscript of a known dimension, with its coefficient and the
    /// range of the other terms.
    pub(super) fn one_unknown(&mut self, k: usize) -> Option<(IndexId, i64, (i64, i64), i64)> {
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

    /// Rule 2: all affine subscripts are in bounds.
    pub(super) fn solve_valid(&mut self) -> bool {
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
            // If no index keeps the subscripts in bounds, as with a window larger than its tensor,
            // the extent is empty.
            let (first, size) = if last < first { (0, 0) } else { (first, last as u64 + 1) };
            let reason = format!("the subscript is in bounds up to {size}");
            self.known[node] = Some(KnownSize { start: first, size, span, reason });
        }
        progress
    }

    /// Rule 3: a permissive subscript iterates once over the tensor.
    pub(super) fn solve_same(&mut self) -> bool {
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
            self.known[node] = Some(KnownSize { start: 0, size, span, reason });
            return true;
        }
        false
    }

    /// Rule 4: a declared tensor is as large as its largest written coordinates.
    pub(super) fn solve_written(&mut self) -> bool {
        let mut progress = false;
        for t in 0..self.program.tensors.len() {
            let tensor = TensorId(t as u32);
            for dim in 0..self.ranks[t] {
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

    /// True if an expression reads an element of a tensor.
    fn reads_tensor(&self, id: ExprId) -> bool {
        match self.program.expr(id) {
            Expr::Read(_) | Expr::Entry(_) => true,
            other => other.operands().into_iter().any(|operand| self.reads_tensor(operand)),
        }
    }

    pub(super) fn written_size(&mut self, tensor: TensorId, dim: usize) -> Option<KnownSize> {
        let mut found: Option<KnownSize> = None;
        for k in 0..self.sites.len() {
            let site = &self.sites[k];
            if !site.write || site.tensor != tensor || site.dim != dim {
                continue;
            }
            let (expr, span) = (site.subscript.expr, site.span);
            // A scatter to computed positions says nothing about the size; where it goes is checked when it runs.
            if self.reads_tensor(expr) {
                continue;
            }
            let affine = self.affine(expr)?;
            let (_, greatest) = self.range(&affine, None)?;
            let runs = affine.terms.iter().all(|(index, _)| self.index_range(*index).is_some_and(|(a, b)| a < b));
            let size = if runs { greatest.saturating_add(1).max(0) as u64 } else { 0 };
            if found.as_ref().is_none_or(|known| known.size < size) {
                found = Some(KnownSize { start: 0, size, span, reason: format!("written up to {size} here") });
            }
        }
        found
    }
}
