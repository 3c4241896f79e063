//! The baseline: hand-written C kernels (`benches/baseline/`), compiled by the system's C compiler
//! with full optimisation.

use crate::inputs::{CsfArrays, CsrArrays};
use libloading::Library;
use std::process::Command;

/// The flags of the C compiler.
pub const FLAGS: [&str; 6] = ["-O3", "-march=native", "-ffast-math", "-fno-loop-unroll-and-jam", "-shared", "-fPIC"];

const SOURCES: [(&str, &str); 7] = [
    ("spmv.c", include_str!("../baseline/spmv.c")),
    ("spmm.c", include_str!("../baseline/spmm.c")),
    ("add.c", include_str!("../baseline/add.c")),
    ("mttkrp.c", include_str!("../baseline/mttkrp.c")),
    ("sddmm.c", include_str!("../baseline/sddmm.c")),
    ("spgemm.c", include_str!("../baseline/spgemm.c")),
    ("convolution.c", include_str!("../baseline/convolution.c")),
];

/// A CSR matrix under construction: its positions, and space for its entries.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CsrOutput {
    pub pos: Vec<u32>,
    pub crd: Vec<u32>,
    pub val: Vec<f64>,
}

impl CsrOutput {
    /// Allocates and touches the arrays, so that no page faults are measured.
    pub fn with_capacity(rows: usize, entries: usize) -> CsrOutput {
        CsrOutput { pos: vec![1; rows + 1], crd: vec![1; entries], val: vec![1.0; entries] }
    }
}

/// The compiled C library.
#[derive(Debug)]
pub struct Baseline {
    library: Library,
    _folder: tempfile::TempDir,
}

type Index = *const u32;
type Values = *const f64;
type Convolution = unsafe extern "C" fn(i64, i64, Values, Values, *mut f64);
type Spmv = unsafe extern "C" fn(i64, Index, Index, Values, Values, *mut f64);
type Spmm = unsafe extern "C" fn(i64, i64, Index, Index, *const f32, *const f32, *mut f32);
type Add = unsafe extern "C" fn(i64, Index, Index, Values, Index, Index, Values, *mut u32, *mut u32, *mut f64) -> i64;
type Mttkrp =
    unsafe extern "C" fn(i64, i64, Index, Index, Index, Index, Index, Index, Values, Values, Values, *mut f64);
type Sddmm = unsafe extern "C" fn(i64, i64, Index, Index, Values, Values, Values, *mut u32, *mut u32, *mut f64);
type Spgemm =
    unsafe extern "C" fn(i64, i64, Index, Index, Values, Index, Index, Values, *mut u32, *mut u32, *mut f64) -> i64;

impl Baseline {
    /// Compiles and loads the C library.
    pub fn compile() -> Result<Baseline, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let object = folder.path().join("baseline.so");
        let mut compiler = Command::new("gcc");
        compiler.args(FLAGS).arg("-o").arg(&object);
        for (name, text) in SOURCES {
            let path = folder.path().join(name);
            std::fs::write(&path, text).map_err(|e| e.to_string())?;
            compiler.arg(path);
        }
        let output = compiler.output().map_err(|e| format!("gcc does not start: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        // SAFETY: the library was just made from the C sources of the baseline, which has no
        // initialisers.
        let library = unsafe { Library::new(&object) }.map_err(|e| e.to_string())?;
        Ok(Baseline { library, _folder: folder })
    }

    /// # Safety
    /// The function has this type.
    unsafe fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: guaranteed by the caller; every function is in the library that was made from
        // `SOURCES`.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.expect("a function of the baseline")
    }

    /// A convolution of a cube of `rank` dimensions with a filter of three to a side, where that
    /// fits; by the function for such filters alone, or by the one for filters of any size.
    pub fn convolution(&self, rank: usize, unrolled: bool, size: u64, input: &[f64], filter: &[f64], out: &mut [f64]) {
        let cells = |size: u64| size.pow(rank as u32) as usize;
        assert!(size > 2 && input.len() == cells(size) && filter.len() == cells(3) && out.len() == cells(size - 2));
        let name = format!("conv{rank}_{}", if unrolled { "unrolled" } else { "plain" });
        // SAFETY: there is such a function for each rank up to 3, and the arrays have these sizes.
        unsafe {
            let function: Convolution = self.function(&name);
            function(size as i64, 3, input.as_ptr(), filter.as_ptr(), out.as_mut_ptr());
        }
    }

    /// `y = A x`.
    pub fn spmv(&self, a: &CsrArrays<f64>, x: &[f64], y: &mut [f64]) {
        assert_eq!(y.len(), a.pos.len() - 1);
        // SAFETY: the arrays are those of a checked matrix, whose coordinates are within `x`.
        unsafe {
            let spmv: Spmv = self.function("spmv");
            spmv(y.len() as i64, a.pos.as_ptr(), a.crd.as_ptr(), a.val.as_ptr(), x.as_ptr(), y.as_mut_ptr());
        }
    }

    /// `C = A B` for a dense `B`.
    pub fn spmm(&self, a: &CsrArrays<f32>, columns: usize, b: &[f32], c: &mut [f32]) {
        let rows = a.pos.len() - 1;
        assert_eq!(c.len(), rows * columns);
        // SAFETY: the arrays are those of a checked matrix, whose coordinates are rows of `b`.
        unsafe {
            let spmm: Spmm = self.function("spmm");
            let (rows, columns) = (rows as i64, columns as i64);
            spmm(rows, columns, a.pos.as_ptr(), a.crd.as_ptr(), a.val.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        }
    }

    /// `C = A + B`; returns nnz.
    pub fn add(&self, a: &CsrArrays<f64>, b: &CsrArrays<f64>, c: &mut CsrOutput) -> usize {
        assert!(a.pos.len() == c.pos.len() && b.pos.len() == c.pos.len());
        assert!(c.crd.len() >= a.crd.len() + b.crd.len() && c.val.len() == c.crd.len());
        // SAFETY: the arrays are those of checked matrices with as many rows; the output has space
        // for all entries.
        let entries = unsafe {
            let add: Add = self.function("add");
            add(
                a.pos.len() as i64 - 1,
                a.pos.as_ptr(),
                a.crd.as_ptr(),
                a.val.as_ptr(),
                b.pos.as_ptr(),
                b.crd.as_ptr(),
                b.val.as_ptr(),
                c.pos.as_mut_ptr(),
                c.crd.as_mut_ptr(),
                c.val.as_mut_ptr(),
            )
        };
        entries as usize
    }

    /// `A[i,j] = B[i,k,l] * C[k,j] * D[l,j]`.
    pub fn mttkrp(&self, b: &CsfArrays, columns: usize, c: &[f64], d: &[f64], a: &mut [f64]) {
        // SAFETY: the arrays are those of a checked tensor, whose coordinates are rows of `a`, `c`
        // and `d`.
        unsafe {
            let mttkrp: Mttkrp = self.function("mttkrp");
            mttkrp(
                (a.len() / columns) as i64,
                columns as i64,
                b.pos[0].as_ptr(),
                b.crd[0].as_ptr(),
                b.pos[1].as_ptr(),
                b.crd[1].as_ptr(),
                b.pos[2].as_ptr(),
                b.crd[2].as_ptr(),
                b.val.as_ptr(),
                c.as_ptr(),
                d.as_ptr(),
                a.as_mut_ptr(),
            );
        }
    }

    /// `X[i,j] = S[i,j] * A[i,k] * B[k,j]`, `B` stored by columns of `inner` elements.
    pub fn sddmm(&self, s: &CsrArrays<f64>, inner: usize, a: &[f64], b: &[f64], x: &mut CsrOutput) {
        assert!(x.pos.len() == s.pos.len() && x.crd.len() == s.crd.len() && x.val.len() == s.val.len());
        // SAFETY: the arrays are those of a checked matrix, whose coordinates are columns of `b`.
        unsafe {
            let sddmm: Sddmm = self.function("sddmm");
            sddmm(
                s.pos.len() as i64 - 1,
                inner as i64,
                s.pos.as_ptr(),
                s.crd.as_ptr(),
                s.val.as_ptr(),
                a.as_ptr(),
                b.as_ptr(),
                x.pos.as_mut_ptr(),
                x.crd.as_mut_ptr(),
                x.val.as_mut_ptr(),
            );
        }
    }

    /// `C = A B` for CSR matrices; returns nnz, or `None` if memory is exhausted.
    pub fn spgemm(&self, a: &CsrArrays<f64>, b: &CsrArrays<f64>, columns: usize, c: &mut CsrOutput) -> Option<usize> {
        let products: u64 = a.crd.iter().map(|j| u64::from(b.pos[*j as usize + 1] - b.pos[*j as usize])).sum();
        assert!(c.pos.len() == a.pos.len() && c.crd.len() as u64 >= products && c.val.len() == c.crd.len());
        // SAFETY: the arrays are those of checked matrices that can be multiplied; the output has
        // space for all products.
        let entries = unsafe {
            let spgemm: Spgemm = self.function("spgemm");
            spgemm(
                a.pos.len() as i64 - 1,
                columns as i64,
                a.pos.as_ptr(),
                a.crd.as_ptr(),
                a.val.as_ptr(),
                b.pos.as_ptr(),
                b.crd.as_ptr(),
                b.val.as_ptr(),
                c.pos.as_mut_ptr(),
                c.crd.as_mut_ptr(),
                c.val.as_mut_ptr(),
            )
        };
        usize::try_from(entries).ok()
    }
}
