//! VectorTarget assumptions: what passes that make vectors need to know of a processor, as data.

/// The vectors of a processor.
///
/// ```
/// use tamis_compiler::opt::VectorTarget;
/// assert!(VectorTarget::AVX512.masks && !VectorTarget::AVX2.masks);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorTarget {
    /// The size of a vector register, in bytes.
    pub vector_bytes: u16,
    /// Masks have registers of their own, so that masked loads and stores are as fast as others.
    pub masks: bool,
    /// The number of accumulators that hide the latency of an addition.
    pub accumulators: u8,
    /// The most elements that a loop may gather in each iteration and still gain.
    pub gathers: u8,
    /// How many elements ahead coordinate lists are prefetched; 0 for not at all.
    pub prefetch_distance: u32,
}

impl VectorTarget {
    /// 128-bit vectors.
    ///
    /// ```
    /// use tamis_compiler::opt::VectorTarget;
    /// assert_eq!(VectorTarget::SSE2.vector_bytes, 16);
    /// ```
    pub const SSE2: VectorTarget =
        VectorTarget { vector_bytes: 16, masks: false, accumulators: 2, gathers: 0, prefetch_distance: 0 };
    /// 256-bit vectors.
    ///
    /// ```
    /// use tamis_compiler::opt::VectorTarget;
    /// assert_eq!(VectorTarget::AVX2.vector_bytes, 32);
    /// ```
    pub const AVX2: VectorTarget =
        VectorTarget { vector_bytes: 32, masks: false, accumulators: 4, gathers: 1, prefetch_distance: 0 };
    /// 512-bit vectors with masks.
    ///
    /// ```
    /// use tamis_compiler::opt::VectorTarget;
    /// assert_eq!(VectorTarget::AVX512.vector_bytes, 64);
    /// ```
    pub const AVX512: VectorTarget =
        VectorTarget { vector_bytes: 64, masks: true, accumulators: 4, gathers: 1, prefetch_distance: 256 };

    /// The target of a name: `sse2`, `avx2` or `avx512`.
    ///
    /// ```
    /// use tamis_compiler::opt::VectorTarget;
    /// assert_eq!(VectorTarget::named("avx2"), Some(VectorTarget::AVX2));
    /// ```
    pub fn named(name: &str) -> Option<VectorTarget> {
        match name {
            "sse2" => Some(VectorTarget::SSE2),
            "avx2" => Some(VectorTarget::AVX2),
            "avx512" => Some(VectorTarget::AVX512),
            _ => None,
        }
    }
}

impl Default for VectorTarget {
    fn default() -> VectorTarget {
        VectorTarget::AVX2
    }
}
