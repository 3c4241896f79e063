//! Subscripts that certainly leave their tensor are told before the program runs.

use super::Inference;
use crate::diag::{Code, Diagnostic};

impl Inference<'_> {
    /// Subscripts that certainly leave their tensor: not under an `if`, and every loop around runs.
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
                        "`{shown}` goes from {least} to {greatest}, but dimension {dim} of `{name}` has size {}",
                        known.size
                    ),
                );
                self.error(
                    d.label(span, "leaves the tensor")
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

/// How to permit an access out of bounds.
pub(crate) fn permit(name: &str, subscript: &str, write: bool) -> String {
    if write {
        format!("or let writes out of bounds vanish: `{name}[~({subscript})]`")
    } else {
        format!("or permit it: `coalesce({name}[~({subscript})], 0)`")
    }
}
