//! Loop unrolling: short loops with a constant trip count are unrolled fully, such as loops over a
//! filter, over a block, or over the corners of a cell.
//!
//! The loop counter becomes a constant; repeated loads and reductions become registers. Vectorized
//! loops are left alone, and so are kernels with register tiles, whose loops are emitted as
//! vectors.

use super::Options;
use tamis_ir::kernel::{Block, Expr, ExprId, Kernel, LoopKind, Role, Stmt};

/// The maximum trip count of an unrolled loop.
const TRIP_COUNT: i64 = 8;

/// The maximum number of statements that unrolling a loop may produce.
const STATEMENTS: i64 = 128;

pub(super) fn run(mut kernel: Kernel, _: &Options) -> Kernel {
    if kernel.buffers.iter().any(|buffer| matches!(buffer.role, Role::Tile(_))) {
        return kernel;
    }
    let mut body = std::mem::take(&mut kernel.body);
    size(&kernel, &mut body);
    Kernel { body, ..kernel }
}

/// The number of statements of a block after unrolling; none if it contains a statement that must
/// not be copied. Nested loops are
/// unrolled on the way.
fn size(kernel: &Kernel, block: &mut Block) -> Option<i64> {
    let mut sum = Some(0i64);
    for stmt in block {
        let inner: Option<i64> = stmt.blocks_mut().map(|inner| size(kernel, inner)).sum();
        let own = match stmt {
            Stmt::Let { .. } | Stmt::Assign { .. } | Stmt::Store { .. } | Stmt::Require { .. } => Some(1),
            Stmt::If { .. } => inner.map(|inner| inner.saturating_add(1)),
            Stmt::For { start, stop, hint, .. } => {
                let trip_count =
                    length(kernel, *start, *stop).filter(|trip_count| (1..=TRIP_COUNT).contains(trip_count));
                let copied = inner.zip(trip_count).map(|(inner, trip_count)| inner.saturating_mul(trip_count));
                let copied = copied.filter(|copied| *copied <= STATEMENTS && !hint.vectorise);
                if copied.is_some() {
                    hint.kind = LoopKind::Unrolled;
                }
                copied
            }
            _ => None,
        };
        sum = sum.zip(own).map(|(sum, own)| sum.saturating_add(own));
    }
    sum
}

/// The trip count of a loop, if it is a constant.
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

    /// The names of the unrolled loops of a nest of two with these trip counts.
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
        let kernel = run(make.b.finish(), &Options { strict: false, ..Options::default() });
        kernel.verify().unwrap();
        let mut found = Vec::new();
        kernel.visit(&mut |stmt| {
            if let Stmt::For { var, hint, .. } = stmt
                && hint.is_unrolled()
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
        let kernel = run(make.b.finish(), &Options { strict: false, ..Options::default() });
        assert!(!kernel.to_string().contains("unroll"));
    }
}
