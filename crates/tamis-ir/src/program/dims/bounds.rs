//! Static checks of bounds: subscripts that are always out of bounds, and loops that violate their
//! trip-count bounds, are reported before the program runs.

use super::DimInference;
use crate::diag::{Code, Diagnostic};
use crate::program::{Bound, ExprId, TensorId};

impl DimInference<'_> {
    /// Reports subscripts that are always out of bounds: not under an `if`, and every enclosing
    /// loop runs.
    pub(super) fn check_bounds(&mut self) {
        for k in 0..self.sites.len() {
            let site = &self.sites[k];
            if site.subscript.permissive || site.guarded || self.bare(site.subscript).is_some() {
                continue;
            }
            let (expr, tensor, dim, span, write) = (site.subscript.expr, site.tensor, site.dim, site.span, site.write);
            let loops = site.loops.clone();
            if loops.iter().any(|index| self.index_range(*index).is_none_or(|(start, stop)| stop <= start)) {
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
                        "`{shown}` ranges from {least} to {greatest}, but dimension {dim} of `{name}` has size {}",
                        known.size
                    ),
                );
                self.error(
                    d.label(span, "out of bounds")
                        .help(if affine.terms.is_empty() {
                            "subscripts count from 0 up to the size, not including it; the last element is `A[A.shape[0] - 1]`"
                        } else {
                            "bound the loop with `range(a, b)`"
                        })
                        .help(permit(name, &shown, write)),
                );
            }
        }
    }
}

impl DimInference<'_> {
    /// Checks the trip counts of `exactly(_, n)` and `at_most(_, n)`.
    pub(super) fn check_trip_counts(&mut self) {
        for (index, bound, span) in self.bounds.clone() {
            let name = self.program.indices[index.index()].clone();
            let Some((start, stop)) = self.index_range(index) else {
                let message =
                    format!("the extent of `{name}` is known only when its loop starts, so it cannot be bounded");
                let d = Diagnostic::new(Code::E0406, message).label(span, "its bounds are computed");
                self.error(d.help("remove the bound, or bound a loop whose extent is the size of a dimension"));
                continue;
            };
            let length = stop.saturating_sub(start);
            let (says, holds) = match bound {
                Bound::Exactly(n) => (format!("exactly {n}"), u64::try_from(length) == Ok(n)),
                Bound::AtMost(n) => (format!("at most {n}"), u64::try_from(length).is_ok_and(|length| length <= n)),
            };
            if !holds {
                let message = format!("`{name}` has {length} iterations, but its loop asserts {says}");
                let d = Diagnostic::new(Code::E0406, message).label(span, format!("{length} iterations"));
                self.error(d.help("change or remove the bound, or call the program with tensors of that size"));
            }
        }
    }
}

impl DimInference<'_> {
    /// Guarded subscripts that may not be evaluated for all indices, but would be in bounds for all
    /// of them: they need no check.
    pub(super) fn guarded_inside(&mut self) -> Vec<(TensorId, usize, ExprId)> {
        let mut found: Vec<(TensorId, usize, ExprId)> = Vec::new();
        for k in 0..self.sites.len() {
            let site = &self.sites[k];
            let place = (site.tensor, site.dim, site.subscript.expr);
            if !site.guarded || site.subscript.permissive {
                continue;
            }
            let Some(affine) = self.affine(place.2) else { continue };
            // A window without an inner loop is empty: its location is irrelevant.
            if affine.terms.iter().any(|(index, _)| self.index_range(*index).is_none_or(|(start, stop)| stop <= start))
            {
                continue;
            }
            let node = self.dim_node(place.0, place.1);
            let node = self.find(node);
            let size = self.known[node].as_ref().map(|known| known.size);
            if let (Some((least, greatest)), Some(size)) = (self.range(&affine, None), size)
                && least >= 0
                && u64::try_from(greatest).is_ok_and(|greatest| greatest < size)
            {
                found.push(place);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The help text that permits an access out of bounds.
pub(crate) fn permit(name: &str, subscript: &str, write: bool) -> String {
    let is_name = subscript.chars().all(|c| c.is_alphanumeric() || c == '_');
    let permissive = if is_name { format!("~{subscript}") } else { format!("~({subscript})") };
    if write {
        format!("or drop writes out of bounds: `{name}[{permissive}]`")
    } else {
        format!("or permit it: `coalesce({name}[{permissive}], 0)`")
    }
}
