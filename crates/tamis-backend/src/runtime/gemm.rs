//! GEMM in the runtime: packed, blocked products of strided matrices by the crate
//! `matrixmultiply`, which chooses its inner loops by the features of the processor.

use super::Address;

/// A product of strided matrices of one type, added to a third.
type GemmFunction<T> = unsafe extern "C" fn(
    sizes: *const [i64; 3],
    alpha: T,
    c: *mut T,
    c_strides: *const [i64; 2],
    a: *const T,
    a_strides: *const [i64; 2],
    b: *const T,
    b_strides: *const [i64; 2],
);

macro_rules! gemms {
    ($($name:ident: $ty:ty, $function:ident);*) => {
        $(
            /// `C += alpha * A * B`; nothing if a size is 0 or less.
            ///
            /// # Safety
            /// The strides lead to elements that exist; those of `C` are distinct, and no other
            /// reference leads to them.
            unsafe extern "C" fn $name(
                sizes: *const [i64; 3],
                alpha: $ty,
                c: *mut $ty,
                c_strides: *const [i64; 2],
                a: *const $ty,
                a_strides: *const [i64; 2],
                b: *const $ty,
                b_strides: *const [i64; 2],
            ) {
                // SAFETY: the caller passes arrays of these sizes, and strides of existing elements.
                unsafe {
                    let [m, n, k] = (*sizes).map(|size| usize::try_from(size).unwrap_or(0));
                    if m == 0 || n == 0 || k == 0 {
                        return;
                    }
                    let [c_strides, a_strides, b_strides] =
                        [c_strides, a_strides, b_strides].map(|strides| (*strides).map(|stride| stride as isize));
                    matrixmultiply::$function(
                        m, k, n, alpha, a, a_strides[0], a_strides[1], b, b_strides[0], b_strides[1], 1.0, c,
                        c_strides[0], c_strides[1],
                    );
                }
            }
        )*
        pub(super) static SYMBOLS: &[(&str, Address)] =
            &[$((concat!("tamis_", stringify!($name)), Address($name as GemmFunction<$ty> as *const ()))),*];
    };
}

gemms!(gemm_f32: f32, sgemm; gemm_f64: f64, dgemm);
