//! C identifiers: the kernel's own names where C allows them, unique within their scope.

use std::collections::HashSet;

/// Reserved words: C keywords, macros and library functions.
const RESERVED: &str = "auto break case char const continue default do double else enum extern float for goto if inline int \
    long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while \
    alignas alignof bool complex constexpr false imaginary noreturn nullptr static_assert thread_local true typeof \
    asm fortran main I NAN INFINITY NULL EOF CMPLX CMPLXF buffers scalars failure status done \
    abs labs llabs div malloc calloc realloc free qsort bsearch exit abort memcpy memset memmove memcmp strlen index rindex \
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax \
    fmin fmod frexp gamma hypot ilogb isfinite isinf isnan j0 j1 jn ldexp lgamma log log10 log1p log2 logb lrint lround \
    modf nan nearbyint pow remainder rint round roundeven scalbn signbit signgam sin sinh sqrt tan tanh tgamma trunc y0 y1 \
    yn cabs carg cacos casin catan ccos cexp cimag clog conj cpow cproj creal csin csinh csqrt ctan ctanh unix linux errno \
    rand srand random time clock signal select read write open close link pipe dup sleep system remove rename";

/// The names in scope.
pub(super) struct CNames {
    reserved: HashSet<&'static str>,
    seen: Vec<String>,
}

impl CNames {
    pub(super) fn new() -> CNames {
        CNames { reserved: RESERVED.split_whitespace().collect(), seen: Vec::new() }
    }

    /// A name like the requested one that is unique in the enclosing scopes.
    pub(super) fn fresh(&mut self, name_hint: &str) -> String {
        let mut base: String =
            name_hint.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(60).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic()) || base.starts_with("tamis_") {
            base.insert(0, 'v');
        }
        // Library functions for other float types end in f or l.
        let stem = base.strip_suffix(['f', 'l']).unwrap_or(&base);
        if self.reserved.contains(base.as_str()) || self.reserved.contains(stem) {
            base.push('_');
        }
        let mut name = base.clone();
        let mut number = 2;
        while self.seen.contains(&name) {
            name = format!("{base}_{number}");
            number += 1;
        }
        self.seen.push(name.clone());
        name
    }

    /// Opens a scope: the mark for [`CNames::exit_scope`].
    pub(super) fn enter_scope(&self) -> usize {
        self.seen.len()
    }

    /// Closes a scope and removes its names.
    pub(super) fn exit_scope(&mut self, before: usize) {
        self.seen.truncate(before);
    }
}
