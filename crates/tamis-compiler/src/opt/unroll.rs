//! Full unrolling of short loops with a constant trip count: loops over a filter, over a block, over the corners of a cell.
//!
//! The loop counter becomes a constant; repeated loads and reductions become registers. Vectorized loops are left alone, and so are kernels
//! with register tiles, whose loops are emitted as vectors.

use super::Options;
use tamis_ir::kernel::{Block, Expr, ExprId, Kernel, Role, Stmt};

/// Loops of more iterations are not unrolled.
const TRIP_COUNT: i64 = 8;

/// Nor are those that would become more statements than this.
const STATEMENTS: i64 = 128;

pub(super) fn run(mut kernel: Kernel, _: &Options) -> Kernel {
    if kernel.buffers.iter().any(|buffer| matches!(buffer.role, Role::Tile(_))) {
        return kernel;
    }
    let mut body = std::mem::take(&mut kernel.body);
    size(&kernel, &mut body);
    Kernel { body, ..kernel }
}

/// How many statements a block becomes; none if there is something in it that should not be copied. Loops inside are unrolled on the way.
fn size(kernel: &Kernel, block: &mut Block) -> Option<i64> {
    let mut sum = Some(0i64);
    for stmt in block {
        let inner: Option<i64> = stmt.blocks_mut().map(|inner| size(kernel, inner)).sum();
        let own = match stmt {
            Stmt::Let { .. } | Stmt::Assign { .. } | Stmt::Store { .. } | Stmt::Require { .. } => Some(1),
            Stmt::If { .. } => inner.map(|inner| inner.saturating_add(1)),
            Stmt::For { start, stop, hint, .. } => {
                let turns = length(kernel, *start, *stop).filter(|turns| (1..=TRIP_COUNT).contains(turns));
                let copied = inner.zip(turns).map(|(inner, turns)| inner.saturating_mul(turns));
                let copied = copied.filter(|copied| *copied <= STATEMENTS && !hint.vectorise);
                hint.unroll |= copied.is_some();
                copied
            }
            _ => None,
        };
        sum = sum.zip(own).map(|(sum, own)| sum.saturating_add(own));
    }
    sum
}

/// How many iterations a loop has, if that is a constant.
fn length(kernel: &Kernel, start: ExprId, stop: ExprId) -> Option<i64> {
    let constant = |id: ExprId| match kernel.expr(id) {
        Expr::Const(value) => value.as_i64(),
        _ => None,
    };
    constant(stop)?.checked_sub(constant(start)?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Make;
    use super::*;

    /// The names of loops that are unrolled, of two nested ones over so many iterations.
    fn unrolled(outer: i64, inner: i64, copies: usize) -> Vec<String> {
        let mut make = Make::new();
        let zero = make.int(0);
        let (outer, inner) = (make.int(outer), make.int(inner));
        make.count("i", zero, outer, |make, i| {
            make.count("j", zero, inner, |make, j| {
                let place = make.b.add(i, j);
                for _ in 0..copies {
                    let x = make.load(make.x, j);
                    make.add_to(make.y, place, x);
                }
            });
        });
        let kernel = run(make.b.finish(), &Options { strict: false });
        kernel.verify().unwrap();
        let mut found = Vec::new();
        kernel.visit(&mut |stmt| {
            if let Stmt::For { var, hint, .. } = stmt
                && hint.unroll
            {
                found.push(kernel.var(*var).name.clone());
            }
        });
        found
    }

    #[test]
    fn short_loops_and_what_is_around_them() {
        assert_eq!(unrolled(3, 3, 1), ["i", "j"]);
        assert_eq!(unrolled(3, 9, 1), Vec::<String>::new(), "what is around a loop that is not unrolled is not");
        assert_eq!(unrolled(9, 3, 1), ["j"]);
        assert_eq!(unrolled(8, 8, 3), ["j"], "8 * 8 * 3 statements are too many");
        assert_eq!(unrolled(0, 0, 1), Vec::<String>::new());
    }

    #[test]
    fn loops_of_unknown_length_stay() {
        let mut make = Make::new();
        let (zero, n) = (make.int(0), make.n);
        make.count("i", zero, n, |make, i| {
            let x = make.load(make.x, i);
            make.add_to(make.y, i, x);
        });
        let kernel = run(make.b.finish(), &Options { strict: false });
        assert!(!kernel.to_string().contains("unroll"));
    }
}
