//! A pseudorandom generator (SplitMix64) for reproducible tensors: the same on every platform and
//! in every version.

use tamis_ir::{Code, Diagnostic, diag::Result};

/// A stream of random words, fixed by a seed and a purpose.
///
/// Word `k` (from 0) is `mix(start + (k + 1) * GAMMA)`, all modulo 2^64, where `mix` is the
/// finalizer of SplitMix64, `GAMMA` = 0x9e3779b97f4a7c15 and `start` = `mix(mix(seed + GAMMA) +
/// purpose)`. Only integer arithmetic is involved and floats are made by exact operations, so that
/// a seed means the same matrix on every platform. Published results depend on this stream: it
/// never changes.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    state: u64,
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64: a bijection whose output bits all depend on all input bits.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The purpose of a stream: structure and values are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamPurpose {
    /// The coordinates of entries.
    Structure = 0,
    /// The values of entries.
    Values = 1,
}

impl Stream {
    pub(crate) fn new(seed: u64, purpose: StreamPurpose) -> Stream {
        Stream { state: mix(mix(seed.wrapping_add(GAMMA)).wrapping_add(purpose as u64)) }
    }

    /// The next 64 random bits.
    #[inline]
    pub(crate) fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A float strictly between 0 and 1: the middle of one of 2^52 equal cells, hence never 0 and
    /// never 1.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// A uniformly distributed number below `bound` (multiply and shift, with rejection of biased
    /// words). The caller has checked that `bound` is not 0.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.word()) * u128::from(bound);
        if (product as u64) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while (product as u64) < unfair {
                product = u128::from(self.word()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// As [`Stream::below`], for bounds beyond 64 bits: two words, masked, until they are below the
    /// bound.
    pub(crate) fn below_wide(&mut self, bound: u128) -> u128 {
        let mask = u128::MAX >> (bound - 1).leading_zeros().min(127);
        loop {
            let drawn = (u128::from(self.word()) << 64 | u128::from(self.word())) & mask;
            if drawn < bound {
                return drawn;
            }
        }
    }
}

/// The diagnostic for arguments without a meaning for any generator.
pub(super) fn refuse(message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::E0904, message).help(help)
}

/// A vector of this capacity, counted as tensor memory, or a diagnostic if memory is exhausted.
pub(super) fn reserve<T>(capacity: usize) -> Result<Vec<T>> {
    crate::memory::reserve(capacity, "what is generated").map_err(|_| {
        refuse(
            format!("there is not enough memory for {capacity} numbers"),
            "generate something smaller, or with a lower density",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These numbers are a contract: if this test fails, published matrices have changed.
    #[test]
    fn the_stream_never_changes() {
        let mut stream = Stream::new(0, StreamPurpose::Structure);
        let words: Vec<u64> = (0..4).map(|_| stream.word()).collect();
        assert_eq!(words, WORDS_OF_SEED_0);
        // SplitMix64's published first output for state 0, computed by the finalizer alone.
        assert_eq!(mix(GAMMA), 0xe220_a839_7b1d_cdaf);
    }

    // Computed independently from the definition in the documentation of `Stream`.
    const WORDS_OF_SEED_0: [u64; 4] =
        [6235967106033911276, 4964577235801436555, 5009519748041543987, 8857564815614722297];

    #[test]
    fn bounds_hold_and_are_reached() {
        let mut stream = Stream::new(7, StreamPurpose::Values);
        for bound in [1u64, 2, 3, 10] {
            let drawn: Vec<u64> = (0..1000).map(|_| stream.below(bound)).collect();
            assert!((0..bound).all(|x| drawn.contains(&x)), "{bound}");
            assert!(drawn.iter().all(|x| *x < bound), "{bound}");
            let wide: Vec<u128> = (0..1000).map(|_| stream.below_wide(u128::from(bound))).collect();
            assert!((0..u128::from(bound)).all(|x| wide.contains(&x)), "{bound}");
        }
        let large = (1u128 << 100) + 1;
        assert!((0..100).map(|_| stream.below_wide(large)).all(|x| x < large));
        assert!((0..1000).map(|_| stream.below(u64::MAX)).any(|x| x > u64::MAX / 2));
    }

    #[test]
    fn values_are_inside_the_unit_interval() {
        let mut stream = Stream::new(1, StreamPurpose::Values);
        let drawn: Vec<f64> = (0..100_000).map(|_| stream.unit()).collect();
        assert!(drawn.iter().all(|x| 0.0 < *x && *x < 1.0));
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }
}
