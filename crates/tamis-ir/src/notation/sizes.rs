//! Sizes of temporaries in terms of operands: `t.shape[0]` becomes `A.shape[0]`.
//!
//! In: assignments in static single assignment form. Out: the same assignments, in which the size
//! of an assigned tensor is that of an operand, where the index of its dimension subscripts one.
//! Passes may then substitute temporaries without keeping a tensor for its size. Sizes of all other
//! dimensions stay ([`Assignment::measured`]).

use super::{Assignment, reduce};
use crate::text::syntax::{Expr, ExprKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// Replaces sizes of assigned tensors by those of operands.
pub(super) fn of_operands(assignments: &mut [Assignment]) {
    let mut sizes: FxHashMap<(String, u64), Expr> = FxHashMap::default();
    let mut assigned: FxHashSet<String> = FxHashSet::default();
    for assignment in assignments {
        if !sizes.is_empty() {
            let replace = |expr: &mut Expr| replace(expr, &sizes);
            replace(&mut assignment.body);
            assignment.subscripts.iter_mut().for_each(replace);
            for range in &mut assignment.ranges {
                range.start.iter_mut().chain([&mut range.stop]).for_each(replace);
            }
        }
        let name = &assignment.target.text;
        if assigned.contains(name) {
            // Another assignment may extend it.
            continue;
        }
        for (dim, subscript) in assignment.subscripts.iter().enumerate() {
            let ExprKind::Name(index) = &subscript.kind else { continue };
            if assignment.ranges.iter().any(|range| range.index == *index) {
                continue;
            }
            let Some(size) = reduce::extent_of(&assignment.body, index) else { continue };
            let ExprKind::Size { base, dim: of } = &size.kind else { continue };
            let known = sizes.get(&(base.text.clone(), *of)).cloned();
            if let Some(size) = known.or_else(|| (!assigned.contains(&base.text)).then(|| size.clone())) {
                sizes.insert((name.clone(), dim as u64), size);
            }
        }
        assigned.insert(name.clone());
    }
}

fn replace(expr: &mut Expr, sizes: &FxHashMap<(String, u64), Expr>) {
    match &mut expr.kind {
        ExprKind::Size { base, dim } => {
            if let Some(size) = sizes.get(&(base.text.clone(), *dim)) {
                expr.kind = size.kind.clone();
            }
        }
        ExprKind::Index { subscripts: parts, .. }
        | ExprKind::Entry { at: parts, .. }
        | ExprKind::Operator(_, parts)
        | ExprKind::Call { args: parts, .. } => parts.iter_mut().for_each(|part| replace(part, sizes)),
        ExprKind::Reduce { body, .. } => replace(body, sizes),
        _ => {}
    }
}

impl Assignment {
    /// The tensors whose sizes it reads, and which must exist therefore.
    ///
    /// ```
    /// use tamis_ir::Notation;
    /// let mean = Notation::parse("m = x[i] / x.shape[0]")?;
    /// assert!(mean.assignments.iter().any(|a| a.measured() == ["x"]));
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn measured(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let bounds = self.ranges.iter().flat_map(|range| range.start.iter().chain([&range.stop]));
        bounds.chain(&self.subscripts).chain([&self.body]).for_each(|expr| measured(expr, &mut found));
        found
    }
}

fn measured<'e>(expr: &'e Expr, found: &mut Vec<&'e str>) {
    match &expr.kind {
        ExprKind::Size { base, .. } => found.push(&base.text),
        ExprKind::Index { subscripts: parts, .. }
        | ExprKind::Entry { at: parts, .. }
        | ExprKind::Operator(_, parts)
        | ExprKind::Call { args: parts, .. } => parts.iter().for_each(|part| measured(part, found)),
        ExprKind::Reduce { body, .. } => measured(body, found),
        _ => {}
    }
}
