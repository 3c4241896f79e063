//! The command `tile(i, j, i0, i1, j0, j1, n, m)`: splits two loops and moves both outer loops
//! outside.

use super::edit::ProgramEdit;
use super::legal::Chain;
use super::reorder::{obstacle, reorder};
use super::split::split;
use tamis_ir::diag::Result;

pub(super) fn run(
    work: &mut ProgramEdit,
    loops: &[String; 2],
    first: &[String; 2],
    second: &[String; 2],
    factors: [i64; 2],
) -> Result<()> {
    let nest = work.find_nest(loops)?;
    let [i, j] = nest[..] else { return Ok(()) };
    let depth = |index| work.around(index).len();
    if depth(i) < depth(j) {
        // Imperfect nesting is reported before the loops are split.
        Chain::of(work.loop_of(i)?, j).map_err(|conflict| obstacle(work, &conflict))?;
    } else {
        reorder(work, &nest)?;
    }
    let [i0, i1] = split(work, i, 0, [(&first[0], 2), (&first[1], 3)], (factors[0], 6))?;
    let [j0, j1] = split(work, j, 1, [(&second[0], 4), (&second[1], 5)], (factors[1], 7))?;
    reorder(work, &[i0, j0, i1, j1])
}
