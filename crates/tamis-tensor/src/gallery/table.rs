//! The table of generators by name. A new generator is one row here and one function that binds its
//! arguments.

use super::call::Arguments;
use super::{
    Triangle, banded_between, blocked, diagonal, identity, laplacian_grid, ones, permutation, random, rmat, triangular,
};
use crate::Coordinates;
use std::fmt;
use tamis_ir::diag::Result;

/// A generator with bound and checked arguments, not yet run.
///
/// ```
/// use tamis_tensor::gallery::Generate;
/// let later: Generate = Box::new(|| tamis_tensor::gallery::identity(3));
/// assert_eq!(later()?.len(), 3);
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
pub type Generate = Box<dyn FnOnce() -> Result<Coordinates>>;

/// One generator.
///
/// ```
/// for generator in tamis_tensor::gallery::GENERATORS {
///     println!("{:40} {}", generator.signature, generator.description);
/// }
/// ```
pub struct Generator {
    /// The name in calls.
    pub name: &'static str,
    /// The arguments, optional ones in brackets.
    pub signature: &'static str,
    /// A description of the result, in one line.
    pub description: &'static str,
    /// Binds the arguments of a call.
    pub bind: fn(&mut Arguments) -> Result<Generate>,
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.signature)
    }
}

/// All generators, in the order in which help shows them.
///
/// ```
/// use tamis_tensor::gallery::GENERATORS;
/// assert!(GENERATORS.iter().any(|generator| generator.name == "rmat"));
/// ```
pub const GENERATORS: &[Generator] = &[
    Generator {
        name: "rand",
        signature: "rand(n, m, ...[; density[; seed]])",
        description: "uniformly distributed entries in (0,1), any rank; default density 1",
        bind: bind_random,
    },
    Generator { name: "ones", signature: "ones(n, m, ...)", description: "1 everywhere, any rank", bind: bind_ones },
    Generator {
        name: "laplacian",
        signature: "laplacian(n[, m])",
        description: "5-point Laplacian of an n x n (or n x m) grid",
        bind: bind_laplacian,
    },
    Generator {
        name: "laplacian3",
        signature: "laplacian3(n[, m, k])",
        description: "7-point Laplacian of an n x n x n (or n x m x k) grid",
        bind: bind_laplacian3,
    },
    Generator {
        name: "banded",
        signature: "banded(n, lower[, upper][, seed=0])",
        description: "dense diagonals: `lower` below the main one, `upper` (else as many) above it",
        bind: bind_banded,
    },
    Generator {
        name: "blocked",
        signature: "blocked(n, block[, density[, seed]])",
        description: "dense aligned blocks of block x block, by default a tenth of them",
        bind: bind_blocked,
    },
    Generator {
        name: "triangular",
        signature: "triangular(n[, \"lower\" or \"upper\"[, seed]])",
        description: "a dense triangle with its diagonal, by default the lower one",
        bind: bind_triangular,
    },
    Generator {
        name: "diagonal",
        signature: "diagonal(n[, seed])",
        description: "values uniform in (0,1) on the diagonal",
        bind: bind_diagonal,
    },
    Generator { name: "identity", signature: "identity(n)", description: "1 on the diagonal", bind: bind_identity },
    Generator {
        name: "permutation",
        signature: "permutation(n[, seed])",
        description: "a random permutation matrix",
        bind: bind_permutation,
    },
    Generator {
        name: "rmat",
        signature: "rmat(scale, edges_per_node[, seed])",
        description: "R-MAT graph of 2^scale nodes with Graph500's probabilities, repeated edges removed",
        bind: bind_rmat,
    },
];

/// The generator of this name; `random` is the Python spelling of `rand`.
pub(super) fn find(name: &str) -> Option<&'static Generator> {
    let name = if name == "random" { "rand" } else { name };
    GENERATORS.iter().find(|generator| generator.name == name)
}

/// The arguments of a call of `rand` or `ones`. Callers that know the use of the tensor may fill in
/// omitted ones.
///
/// ```
/// let call = tamis_tensor::gallery::parse("rand(3, 4; 0.5)")?;
/// let given = call.loose().unwrap();
/// assert_eq!((given.shape, given.seed), (Some(vec![3, 4]), None));
/// # Ok::<(), tamis_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Loose {
    pub shape: Option<Vec<u64>>,
    pub density: Option<f64>,
    pub seed: Option<u64>,
}

impl Loose {
    pub(super) fn random(a: &mut Arguments) -> Result<Loose> {
        let shape = a.shape()?;
        let density = a.share("density")?;
        let seed = a.optional_count("seed")?;
        a.end()?;
        Ok(Loose { shape, density, seed })
    }

    pub(super) fn ones(a: &mut Arguments) -> Result<Loose> {
        let shape = a.shape()?;
        a.end()?;
        Ok(Loose { shape, ..Loose::default() })
    }
}

fn bind_random(a: &mut Arguments) -> Result<Generate> {
    let Loose { shape, density, seed } = Loose::random(a)?;
    Ok(Box::new(move || random(&shape.unwrap_or_default(), density.unwrap_or(1.0), seed.unwrap_or(0))))
}

fn bind_ones(a: &mut Arguments) -> Result<Generate> {
    let shape = Loose::ones(a)?.shape.unwrap_or_default();
    Ok(Box::new(move || ones(&shape)))
}

fn bind_laplacian(a: &mut Arguments) -> Result<Generate> {
    let n = a.count("n")?;
    let grid = [n, a.optional_count("m")?.unwrap_or(n)];
    a.end()?;
    Ok(Box::new(move || laplacian_grid(&grid)))
}

fn bind_laplacian3(a: &mut Arguments) -> Result<Generate> {
    let n = a.count("n")?;
    let grid = match a.optional_count("m")? {
        Some(m) => [n, m, a.count("k")?],
        None => [n; 3],
    };
    a.end()?;
    Ok(Box::new(move || laplacian_grid(&grid)))
}

fn bind_banded(a: &mut Arguments) -> Result<Generate> {
    let (n, lower) = (a.count("n")?, a.count("lower")?);
    let upper = a.optional_count("upper")?.unwrap_or(lower);
    let seed = a.seed()?;
    a.end()?;
    Ok(Box::new(move || banded_between(n, lower, upper, seed)))
}

fn bind_blocked(a: &mut Arguments) -> Result<Generate> {
    let (n, block) = (a.count("n")?, a.count("block")?);
    let density = a.share("density")?.unwrap_or(0.1);
    let seed = a.seed()?;
    a.end()?;
    Ok(Box::new(move || blocked(n, block, density, seed)))
}

fn bind_triangular(a: &mut Arguments) -> Result<Generate> {
    let n = a.count("n")?;
    let words = [("lower", Triangle::Lower), ("upper", Triangle::Upper)];
    let triangle = a.word("triangle", &words, Triangle::Lower)?;
    let seed = a.seed()?;
    a.end()?;
    Ok(Box::new(move || triangular(n, triangle, seed)))
}

fn bind_diagonal(a: &mut Arguments) -> Result<Generate> {
    let (n, seed) = (a.count("n")?, a.seed()?);
    a.end()?;
    Ok(Box::new(move || diagonal(n, seed)))
}

fn bind_identity(a: &mut Arguments) -> Result<Generate> {
    let n = a.count("n")?;
    a.end()?;
    Ok(Box::new(move || identity(n)))
}

fn bind_permutation(a: &mut Arguments) -> Result<Generate> {
    let (n, seed) = (a.count("n")?, a.seed()?);
    a.end()?;
    Ok(Box::new(move || permutation(n, seed)))
}

fn bind_rmat(a: &mut Arguments) -> Result<Generate> {
    let (scale, edges) = (a.count("scale")?, a.count("edges_per_node")?);
    let seed = a.seed()?;
    a.end()?;
    Ok(Box::new(move || rmat(u32::try_from(scale).unwrap_or(u32::MAX), edges, seed)))
}
