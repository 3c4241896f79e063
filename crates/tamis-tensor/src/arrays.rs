//! Arrays whose element type is known at run time: [`IndexArray`] for positions and coordinates,
//! [`ValueArray`] for values.

use crate::Buffer;
use num_complex::Complex;
use tamis_ir::format::Width;
use tamis_ir::{Code, DType, Diagnostic, Value, diag::Result};

/// An unsigned integer type of positions and coordinates.
///
/// ```
/// use tamis_tensor::Index;
/// assert_eq!(u16::WIDTH.name(), "u16");
/// assert_eq!(u16::from_u64(7).to_usize(), 7);
/// ```
pub trait Index: Copy + Send + Sync + Ord + Default + bytemuck::Pod + 'static {
    /// The width of this type.
    const WIDTH: Width;
    /// This number, widened.
    ///
    /// ```
    /// use tamis_tensor::Index;
    /// assert_eq!(7u16.to_u64(), 7);
    /// ```
    fn to_u64(self) -> u64;
    /// This number as an index into memory. Numbers below an array's length fit.
    ///
    /// ```
    /// use tamis_tensor::Index;
    /// assert_eq!([2.5, 3.5][1u32.to_usize()], 3.5);
    /// ```
    fn to_usize(self) -> usize;
    /// The low bits of `x`; the caller has checked that it fits.
    ///
    /// ```
    /// use tamis_tensor::Index;
    /// assert_eq!(u8::from_u64(7), 7);
    /// ```
    fn from_u64(x: u64) -> Self;
}

macro_rules! index_types {
    ($($rust:ty, $width:ident);*) => {$(
        impl Index for $rust {
            const WIDTH: Width = Width::$width;
            #[inline(always)]
            fn to_u64(self) -> u64 { self as u64 }
            #[inline(always)]
            fn to_usize(self) -> usize { self as usize }
            #[inline(always)]
            fn from_u64(x: u64) -> Self { x as $rust }
        }

        impl From<Vec<$rust>> for IndexArray {
            fn from(values: Vec<$rust>) -> IndexArray { IndexArray::$width(values.into()) }
        }

        impl From<Buffer<$rust>> for IndexArray {
            fn from(values: Buffer<$rust>) -> IndexArray { IndexArray::$width(values) }
        }
    )*};
}
index_types!(u8, U8; u16, U16; u32, U32; u64, U64);

/// Positions or coordinates, in one of four widths.
///
/// ```
/// use tamis_tensor::IndexArray;
/// let crd: IndexArray = [0u16, 3, 7].into_iter().collect();
/// assert_eq!((crd.len(), crd.width().name()), (3, "u16"));
/// assert_eq!(crd.as_slice::<u16>(), Some(&[0, 3, 7][..]));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum IndexArray {
    U8(Buffer<u8>),
    U16(Buffer<u16>),
    U32(Buffer<u32>),
    U64(Buffer<u64>),
}

/// Runs `$body` with `$x` bound to the typed buffer of an [`IndexArray`].
///
/// ```
/// use tamis_tensor::{Index, IndexArray, with_indices};
/// let crd: IndexArray = vec![0u16, 3, 7].into();
/// let last = with_indices!(&crd, crd => crd.last().map(|c| c.to_usize()));
/// assert_eq!(last, Some(7));
/// ```
#[macro_export]
macro_rules! with_indices {
    ($array:expr, $x:ident => $body:expr) => {
        match $array {
            $crate::IndexArray::U8($x) => $body,
            $crate::IndexArray::U16($x) => $body,
            $crate::IndexArray::U32($x) => $body,
            $crate::IndexArray::U64($x) => $body,
        }
    };
}

impl IndexArray {
    /// Numbers stored in the given width; a number that does not fit is a diagnostic.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// use tamis_tensor::IndexArray;
    /// assert_eq!(IndexArray::with_width(&[0, 2, 5], Width::U16)?.nbytes(), 6);
    /// assert!(IndexArray::with_width(&[300], Width::U8).is_err());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn with_width(values: &[u64], width: Width) -> Result<IndexArray> {
        if let Some(large) = values.iter().find(|x| **x > width.max()) {
            return Err(too_wide(*large, width));
        }
        Ok(match width {
            Width::U8 => values.iter().map(|x| *x as u8).collect::<Vec<_>>().into(),
            Width::U16 => values.iter().map(|x| *x as u16).collect::<Vec<_>>().into(),
            Width::U32 => values.iter().map(|x| *x as u32).collect::<Vec<_>>().into(),
            Width::U64 => values.to_vec().into(),
        })
    }

    /// The same numbers in another width; without copying when the width is the same.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// use tamis_tensor::IndexArray;
    /// let pos = IndexArray::from(vec![0u64, 2, 5]);
    /// assert_eq!(pos.to_width(Width::U32)?, vec![0u32, 2, 5].into());
    /// # Ok::<(), tamis_ir::Diagnostics>(())
    /// ```
    pub fn to_width(&self, width: Width) -> Result<IndexArray> {
        if self.width() == width {
            return Ok(self.clone());
        }
        fn narrowed<I: Index, J: Index>(values: &[I]) -> Result<Vec<J>> {
            // Widening cannot fail, and needs no check of the numbers.
            if size_of::<J>() < size_of::<I>()
                && let Some(large) = values.iter().max().filter(|x| x.to_u64() > J::WIDTH.max())
            {
                return Err(too_wide(large.to_u64(), J::WIDTH));
            }
            let mut out = crate::memory::reserve(values.len(), "an array of another width")?;
            out.extend(values.iter().map(|x| J::from_u64(x.to_u64())));
            Ok(out)
        }
        Ok(with_indices!(self, x => match width {
            Width::U8 => narrowed::<_, u8>(x)?.into(),
            Width::U16 => narrowed::<_, u16>(x)?.into(),
            Width::U32 => narrowed::<_, u32>(x)?.into(),
            Width::U64 => narrowed::<_, u64>(x)?.into(),
        }))
    }

    /// The width of the stored numbers.
    ///
    /// ```
    /// use tamis_ir::format::Width;
    /// use tamis_tensor::IndexArray;
    /// assert_eq!(IndexArray::from(vec![0u16, 2]).width(), Width::U16);
    /// ```
    pub fn width(&self) -> Width {
        match self {
            IndexArray::U8(_) => Width::U8,
            IndexArray::U16(_) => Width::U16,
            IndexArray::U32(_) => Width::U32,
            IndexArray::U64(_) => Width::U64,
        }
    }

    /// The number of elements.
    ///
    /// ```
    /// use tamis_tensor::IndexArray;
    /// assert_eq!(IndexArray::from(vec![0u32, 2, 5]).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        with_indices!(self, x => x.len())
    }

    /// True if there are no elements.
    ///
    /// ```
    /// use tamis_tensor::IndexArray;
    /// assert!(IndexArray::from(Vec::<u32>::new()).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at `k`.
    ///
    /// # Panics
    /// If `k` is not below [`IndexArray::len`].
    ///
    /// ```
    /// use tamis_tensor::IndexArray;
    /// assert_eq!(IndexArray::from(vec![0u32, 2, 5]).get(2), 5);
    /// ```
    #[inline]
    pub fn get(&self, k: usize) -> u64 {
        with_indices!(self, x => x[k].to_u64())
    }

    /// The largest number; `None` if the array is empty.
    ///
    /// ```
    /// use tamis_tensor::IndexArray;
    /// assert_eq!(IndexArray::from(vec![0u32, 7, 5]).largest(), Some(7));
    /// ```
    pub fn largest(&self) -> Option<u64> {
        // A fold over values is vectorised; `Iterator::max` over references is not.
        (!self.is_empty()).then(
            || with_indices!(self, x => x.iter().fold(Default::default(), |m, v| if *v > m { *v } else { m }).to_u64()),
        )
    }

    /// All numbers, widened.
    ///
    /// ```
    /// use tamis_tensor::IndexArray;
    /// let wide: Vec<u64> = IndexArray::from(vec![0u8, 2, 5]).to_vec();
    /// assert_eq!(wide, [0, 2, 5]);
    /// ```
    pub fn to_vec(&self) -> Vec<u64> {
        with_indices!(self, x => x.iter().map(|v| v.to_u64()).collect())
    }

    /// The first `len` numbers (all, if there are fewer). Without other owners nothing is copied,
    /// and unused memory is freed.
    ///
    /// ```
    /// use tamis_tensor::IndexArray;
    /// assert_eq!(IndexArray::from(vec![0u32, 2, 5]).truncated(2), vec![0u32, 2].into());
    /// ```
    pub fn truncated(self, len: usize) -> IndexArray {
        with_indices!(self, x => x.truncated(len).into())
    }

    /// Bytes in memory.
    ///
    /// ```
    /// use tamis_tensor::IndexArray;
    /// assert_eq!(IndexArray::from(vec![0u32, 2, 5]).nbytes(), 12);
    /// ```
    pub fn nbytes(&self) -> usize {
        self.len() * self.width().size()
    }
}

/// The diagnostic for a number that does not fit its width.
pub(crate) fn too_wide(number: u64, width: Width) -> Diagnostic {
    Diagnostic::new(Code::E0705, format!("{number} does not fit {}, which holds at most {}", width.name(), width.max()))
        .help("leave the widths out of the format to let Tamis choose them, or write a larger one, as in `sparse[u64,u32]`")
}

/// Values of a tensor, of any type. Booleans are stored as bytes 0 and 1.
///
/// ```
/// use tamis_ir::{DType, Value};
/// use tamis_tensor::ValueArray;
/// let values: ValueArray = [1.0f32, 2.0].into_iter().collect();
/// assert_eq!((values.dtype(), values.get(1)), (DType::F32, Value::F32(2.0)));
/// assert_eq!(values.as_slice::<f32>(), Some(&[1.0, 2.0][..]));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ValueArray {
    Bool(Buffer<u8>),
    I8(Buffer<i8>),
    I16(Buffer<i16>),
    I32(Buffer<i32>),
    I64(Buffer<i64>),
    U8(Buffer<u8>),
    U16(Buffer<u16>),
    U32(Buffer<u32>),
    U64(Buffer<u64>),
    F32(Buffer<f32>),
    F64(Buffer<f64>),
    C64(Buffer<Complex<f32>>),
    C128(Buffer<Complex<f64>>),
}

/// Runs `$body` with `$x` bound to the typed buffer of a [`ValueArray`].
///
/// ```
/// use tamis_tensor::{ValueArray, with_values};
/// let values: ValueArray = vec![1.0f32, 2.0].into();
/// assert_eq!(with_values!(&values, values => std::mem::size_of_val(&values[..])), 8);
/// ```
#[macro_export]
macro_rules! with_values {
    ($array:expr, $x:ident => $body:expr) => {
        match $array {
            $crate::ValueArray::Bool($x) => $body,
            $crate::ValueArray::I8($x) => $body,
            $crate::ValueArray::I16($x) => $body,
            $crate::ValueArray::I32($x) => $body,
            $crate::ValueArray::I64($x) => $body,
            $crate::ValueArray::U8($x) => $body,
            $crate::ValueArray::U16($x) => $body,
            $crate::ValueArray::U32($x) => $body,
            $crate::ValueArray::U64($x) => $body,
            $crate::ValueArray::F32($x) => $body,
            $crate::ValueArray::F64($x) => $body,
            $crate::ValueArray::C64($x) => $body,
            $crate::ValueArray::C128($x) => $body,
        }
    };
}

impl ValueArray {
    /// The number of values.
    ///
    /// ```
    /// use tamis_tensor::ValueArray;
    /// assert_eq!(ValueArray::from(vec![1.0, 2.0]).len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        with_values!(self, x => x.len())
    }

    /// True if there are no values.
    ///
    /// ```
    /// use tamis_tensor::ValueArray;
    /// assert!(ValueArray::from(Vec::<f64>::new()).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of the values.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_tensor::ValueArray;
    /// assert_eq!(ValueArray::from(vec![true, false]).dtype(), DType::Bool);
    /// ```
    pub fn dtype(&self) -> DType {
        match self {
            ValueArray::Bool(_) => DType::Bool,
            ValueArray::I8(_) => DType::I8,
            ValueArray::I16(_) => DType::I16,
            ValueArray::I32(_) => DType::I32,
            ValueArray::I64(_) => DType::I64,
            ValueArray::U8(_) => DType::U8,
            ValueArray::U16(_) => DType::U16,
            ValueArray::U32(_) => DType::U32,
            ValueArray::U64(_) => DType::U64,
            ValueArray::F32(_) => DType::F32,
            ValueArray::F64(_) => DType::F64,
            ValueArray::C64(_) => DType::C64,
            ValueArray::C128(_) => DType::C128,
        }
    }

    /// The value at `k`.
    ///
    /// # Panics
    /// If `k` is not below [`ValueArray::len`].
    ///
    /// ```
    /// use tamis_ir::Value;
    /// use tamis_tensor::ValueArray;
    /// assert_eq!(ValueArray::from(vec![1.0, 2.5]).get(1), Value::F64(2.5));
    /// ```
    #[inline]
    pub fn get(&self, k: usize) -> Value {
        match self {
            ValueArray::Bool(x) => Value::Bool(x[k] != 0),
            ValueArray::I8(x) => Value::I8(x[k]),
            ValueArray::I16(x) => Value::I16(x[k]),
            ValueArray::I32(x) => Value::I32(x[k]),
            ValueArray::I64(x) => Value::I64(x[k]),
            ValueArray::U8(x) => Value::U8(x[k]),
            ValueArray::U16(x) => Value::U16(x[k]),
            ValueArray::U32(x) => Value::U32(x[k]),
            ValueArray::U64(x) => Value::U64(x[k]),
            ValueArray::F32(x) => Value::F32(x[k]),
            ValueArray::F64(x) => Value::F64(x[k]),
            ValueArray::C64(x) => Value::C64(x[k]),
            ValueArray::C128(x) => Value::C128(x[k]),
        }
    }

    /// Scalars stored as `dtype` (cast as [`Value::cast`] does).
    ///
    /// ```
    /// use tamis_ir::{DType, Value};
    /// use tamis_tensor::ValueArray;
    /// let values = ValueArray::from_values(&[Value::I64(1), Value::F64(2.5)], DType::F32);
    /// assert_eq!(values, vec![1.0f32, 2.5].into());
    /// ```
    pub fn from_values(values: &[Value], dtype: DType) -> ValueArray {
        ValueArray::collect(values.iter().copied(), dtype)
    }

    fn collect(values: impl Iterator<Item = Value>, dtype: DType) -> ValueArray {
        macro_rules! collect {
            ($variant:ident) => {
                ValueArray::$variant(
                    values
                        .map(|v| match v.cast(dtype) {
                            Value::$variant(x) => x,
                            _ => Default::default(),
                        })
                        .collect::<Vec<_>>()
                        .into(),
                )
            };
        }
        match dtype {
            DType::Bool => ValueArray::Bool(values.map(|v| v.is_truthy() as u8).collect::<Vec<_>>().into()),
            DType::I8 => collect!(I8),
            DType::I16 => collect!(I16),
            DType::I32 => collect!(I32),
            DType::I64 => collect!(I64),
            DType::U8 => collect!(U8),
            DType::U16 => collect!(U16),
            DType::U32 => collect!(U32),
            DType::U64 => collect!(U64),
            DType::F32 => collect!(F32),
            DType::F64 => collect!(F64),
            DType::C64 => collect!(C64),
            DType::C128 => collect!(C128),
        }
    }

    /// The same values as `dtype` (cast as [`Value::cast`] does); zero-copy if it is the same type.
    ///
    /// ```
    /// use tamis_ir::DType;
    /// use tamis_tensor::ValueArray;
    /// let rounded = ValueArray::from(vec![1.0, 2.5]).to_dtype(DType::I32);
    /// assert_eq!(rounded.as_slice::<i32>(), Some(&[1, 2][..]));
    /// ```
    pub fn to_dtype(&self, dtype: DType) -> ValueArray {
        if self.dtype() == dtype {
            return self.clone();
        }
        ValueArray::collect((0..self.len()).map(|k| self.get(k)), dtype)
    }

    /// The first `len` values (all, if there are fewer). Without other owners nothing is copied,
    /// and unused memory is freed.
    ///
    /// ```
    /// use tamis_tensor::ValueArray;
    /// assert_eq!(ValueArray::from(vec![1.0, 2.5, 4.0]).truncated(2), vec![1.0, 2.5].into());
    /// ```
    pub fn truncated(self, len: usize) -> ValueArray {
        match self {
            ValueArray::Bool(x) => ValueArray::Bool(x.truncated(len)),
            ValueArray::I8(x) => ValueArray::I8(x.truncated(len)),
            ValueArray::I16(x) => ValueArray::I16(x.truncated(len)),
            ValueArray::I32(x) => ValueArray::I32(x.truncated(len)),
            ValueArray::I64(x) => ValueArray::I64(x.truncated(len)),
            ValueArray::U8(x) => ValueArray::U8(x.truncated(len)),
            ValueArray::U16(x) => ValueArray::U16(x.truncated(len)),
            ValueArray::U32(x) => ValueArray::U32(x.truncated(len)),
            ValueArray::U64(x) => ValueArray::U64(x.truncated(len)),
            ValueArray::F32(x) => ValueArray::F32(x.truncated(len)),
            ValueArray::F64(x) => ValueArray::F64(x.truncated(len)),
            ValueArray::C64(x) => ValueArray::C64(x.truncated(len)),
            ValueArray::C128(x) => ValueArray::C128(x.truncated(len)),
        }
    }

    /// Bytes in memory.
    ///
    /// ```
    /// use tamis_tensor::ValueArray;
    /// assert_eq!(ValueArray::from(vec![1.0, 2.5]).nbytes(), 16);
    /// ```
    pub fn nbytes(&self) -> usize {
        self.len() * self.dtype().size()
    }
}

macro_rules! value_arrays {
    ($($variant:ident: $rust:ty),*) => {$(
        impl From<Vec<$rust>> for ValueArray {
            fn from(values: Vec<$rust>) -> ValueArray { ValueArray::$variant(values.into()) }
        }
    )*};
}
value_arrays!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64,
    F32: f32, F64: f64, C64: Complex<f32>, C128: Complex<f64>);

impl From<Vec<bool>> for ValueArray {
    fn from(values: Vec<bool>) -> ValueArray {
        ValueArray::Bool(values.into_iter().map(u8::from).collect::<Vec<_>>().into())
    }
}

/// Bisection: the first number below `count` at which a monotone predicate is false, or `count`.
///
/// ```
/// assert_eq!(tamis_tensor::bisect(100, |n| n * n < 50), 8);
/// assert_eq!(tamis_tensor::bisect(5, |_| true), 5);
/// ```
pub fn bisect(count: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
