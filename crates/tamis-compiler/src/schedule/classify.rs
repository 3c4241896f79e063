//! Classification of results: whether a loop nest produces them in storage order, and how many
//! trailing dimensions of the storage are produced out of order if not.

use std::fmt;
use tamis_ir::program::{Access, Block, Checked, Expr, IndexId, Program, Stmt, StmtId, StmtKind, TensorId};

/// The order in which one assignment produces the elements of a tensor.
///
/// ```
/// use tamis_compiler::schedule::classify::productions;
/// # use tamis_ir::{DType, Notation, program::ParamType};
/// # let shape = vec![Some(4), Some(4)];
/// # let matrix = ParamType { dtype: DType::F64, shape, value: None, weak: false };
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let found = productions(&program, &program.check(&[matrix])?);
/// assert_eq!((found[0].loops.len(), found[0].access.len()), (2, 1));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Production {
    /// The tensor.
    pub tensor: TensorId,
    /// The assignment.
    pub stmt: StmtId,
    /// The loops that enclose it, inside the tensor's declaration, outermost first.
    pub loops: Vec<IndexId>,
    /// For each level, outermost first, the loop index that is its subscript; `None` for any other
    /// subscript.
    pub access: Vec<Option<IndexId>>,
    /// The number of trailing storage dimensions that are produced out of order; 0: elements are
    /// appended.
    pub order: usize,
}

impl Production {
    /// True if elements are produced in storage order, each complete before the next one.
    ///
    /// ```
    /// use tamis_compiler::schedule::classify::productions;
    /// # use tamis_ir::{DType, Notation, program::ParamType};
    /// # let shape = vec![Some(4), Some(4)];
    /// # let matrix = ParamType { dtype: DType::F64, shape, value: None, weak: false };
    /// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
    /// assert!(productions(&program, &program.check(&[matrix])?)[0].appends());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn appends(&self) -> bool {
        self.order == 0
    }
}

/// The production order of every assignment to a declared tensor, in program order.
///
/// ```
/// use tamis_compiler::schedule::classify::productions;
/// use tamis_ir::{DType, Program, program::ParamType};
/// let matrix = ParamType { dtype: DType::F64, shape: vec![Some(4), Some(4)], value: None, weak: false };
/// let order = |loops: &str| {
///     let text = format!("def f(A, B):\n    C = tensor('csr')\n    for {loops} in _:\n        C[i,j] += A[i,k]*B[k,j]\n    return C\n");
///     let program = Program::parse(&text).unwrap();
///     let checked = program.check(&[matrix.clone(), matrix.clone()]).unwrap();
///     productions(&program, &checked)[0].order
/// };
/// assert_eq!((order("k, i, j"), order("i, k, j"), order("i, j, k")), (2, 1, 0));
/// ```
pub fn productions(program: &Program, checked: &Checked) -> Vec<Production> {
    let mut found = Vec::new();
    let mut depths = vec![0; program.tensors.len()];
    walk(program, checked, &program.body, &mut Vec::new(), &mut depths, &mut found);
    found
}

fn walk(
    program: &Program,
    checked: &Checked,
    block: &Block,
    loops: &mut Vec<(IndexId, Option<IndexId>)>,
    depths: &mut [usize],
    found: &mut Vec<Production>,
) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::Declare(tensor) => depths[tensor.index()] = loops.len(),
            StmtKind::For { index, body, extent, .. } => {
                loops.push((*index, program.piece_of(extent).map(|(number, _)| number)));
                walk(program, checked, body, loops, depths, found);
                loops.pop();
            }
            StmtKind::If { then, otherwise, .. } => {
                walk(program, checked, then, loops, depths, found);
                walk(program, checked, otherwise, loops, depths, found);
            }
            StmtKind::Assign { target, .. } => {
                let Some(Some(format)) = checked.formats.get(target.tensor.index()) else { continue };
                let Some(order) = format.dim_order().filter(|order| !order.is_empty()) else { continue };
                let depth = depths[target.tensor.index()].min(loops.len());
                found.push(production(program, target, stmt, &loops[depth..], &order));
            }
            StmtKind::Let { .. } => {}
        }
    }
}

fn production(
    program: &Program,
    target: &Access,
    stmt: &Stmt,
    loops: &[(IndexId, Option<IndexId>)],
    order: &[usize],
) -> Production {
    let access: Vec<Option<IndexId>> = order
        .iter()
        .map(|dim| match program.expr(target.subscripts[*dim].expr) {
            Expr::Index(index) if !target.subscripts[*dim].permissive => Some(*index),
            _ => None,
        })
        .collect();
    let is_over_pieces = |k: usize| {
        let next = loops.get(k + 1).and_then(|(_, pieces)| *pieces);
        next == Some(loops[k].0) && !access.contains(&next)
    };
    let loops: Vec<IndexId> = (0..loops.len()).filter(|k| !is_over_pieces(*k)).map(|k| loops[k].0).collect();
    Production { tensor: target.tensor, stmt: stmt.id, order: scatter_order(&loops, &access), loops, access }
}

/// The scatter order of loops (outermost first) that write at these subscripts (outermost level
/// first): the larger of two counts of storage dimensions from the innermost one. The first count
/// starts at the outermost level whose subscript deviates from the loop order: from there on the
/// storage is transposed. The second counts the subscripts that vary inside the outermost reduction
/// loop: those elements are visited repeatedly.
fn scatter_order(loops: &[IndexId], access: &[Option<IndexId>]) -> usize {
    let rank = access.len();
    // Loops outside the declaration and loop-invariant subscripts fix a dimension.
    let varies = |sub: &Option<IndexId>| sub.is_none_or(|index| loops.contains(&index));
    let mut used = loops.iter().filter(|index| access.contains(&Some(**index)));
    let mut seen: Vec<IndexId> = Vec::new();
    let mut transposed = 0;
    for (level, sub) in access.iter().enumerate() {
        let concordant = match sub {
            Some(index) if seen.contains(index) || !varies(sub) => true,
            Some(index) if used.next() == Some(index) => {
                seen.push(*index);
                true
            }
            _ => false,
        };
        if !concordant {
            transposed = rank - level;
            break;
        }
    }
    let reduction = loops.iter().position(|index| !access.contains(&Some(*index)));
    let again = reduction.map_or(0, |at| {
        let inside = &loops[at + 1..];
        let first = access.iter().position(|sub| sub.is_none_or(|index| inside.contains(&index)));
        first.map_or(0, |level| rank - level)
    });
    transposed.max(again)
}

/// The textual description of a production order.
///
/// ```
/// use tamis_compiler::schedule::classify::{Described, productions};
/// # use tamis_ir::{DType, Notation, program::ParamType};
/// # let shape = vec![Some(4), Some(4)];
/// # let matrix = ParamType { dtype: DType::F64, shape, value: None, weak: false };
/// let program = Notation::parse("y[i] = A[i,j]")?.plain()?;
/// let found = productions(&program, &program.check(&[matrix])?);
/// let text = Described(&program, &found[0]).to_string();
/// assert_eq!(text, "y: loops (i,j), storage (i): appending");
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub struct Described<'a>(pub &'a Program, pub &'a Production);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Described(program, production) = self;
        let name = |index: &IndexId| program.indices[index.index()].clone();
        let loops: Vec<String> = production.loops.iter().map(name).collect();
        let access: Vec<String> =
            production.access.iter().map(|sub| sub.as_ref().map_or("?".to_string(), name)).collect();
        let tensor = &program.tensor(production.tensor).name;
        write!(f, "{tensor}: loops ({}), storage ({}): ", loops.join(","), access.join(","))?;
        match production.order {
            0 => f.write_str("appending"),
            order => write!(f, "scattering, order {order}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(loops: &[u32], access: &[u32]) -> usize {
        let ids = |list: &[u32]| list.iter().map(|k| IndexId(*k)).collect::<Vec<_>>();
        let access: Vec<Option<IndexId>> = ids(access).into_iter().map(Some).collect();
        scatter_order(&ids(loops), &access)
    }

    #[test]
    fn the_larger_mismatch_counts() {
        let (i, j, k, l) = (0, 1, 2, 3);
        // Matrix products: by inner product, by rows, by outer product.
        assert_eq!(order(&[i, j, k], &[i, j]), 0);
        assert_eq!(order(&[i, k, j], &[i, j]), 1);
        assert_eq!(order(&[k, i, j], &[i, j]), 2);
        // Transposition.
        assert_eq!(order(&[j, i], &[i, j]), 2);
        assert_eq!(order(&[i, k, j], &[i, j, k]), 2);
        // Both at once; the last dimensions only.
        assert_eq!(order(&[i, l, j, k], &[i, j, k]), 2);
        assert_eq!(order(&[i, j, l, k], &[i, j, k]), 1);
        assert_eq!(order(&[i, j, k, l], &[i, j, k]), 0);
        // Products by rows, transposed.
        assert_eq!(order(&[i, k, j], &[j, i]), 2);
        // A diagonal, and a loop-invariant subscript.
        assert_eq!(order(&[i], &[i, i]), 0);
        assert_eq!(order(&[j], &[i, j]), 0);
    }
}
