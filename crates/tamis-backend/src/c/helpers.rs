//! C helper functions: operations that C lacks, printed into the files that call them.

use super::expr::make_complex;
use super::{stored, value_type};
use tamis_ir::DType;
use tamis_ir::algebra::{IntExpansion, Op};
use tamis_ir::format::Width;
use tamis_ir::kernel::Elem;

/// A function (or directive) of the file.
pub(super) struct Helper {
    pub(super) name: String,
    pub(super) code: String,
}

impl Helper {
    /// A function on values of a type: `T` stands for the type, `U` for the unsigned type of its
    /// size.
    fn on(name: &str, dtype: DType, code: &str) -> Helper {
        let full = format!("tamis_{name}_{dtype}");
        let code = replace_words(code, &[("T", value_type(dtype)), ("U", unsigned(dtype)), ("NAME", &full)]);
        Helper { name: full, code: code + "\n" }
    }
}

fn unsigned(dtype: DType) -> &'static str {
    match dtype.size() {
        1 => "uint8_t",
        2 => "uint16_t",
        4 => "uint32_t",
        _ => "uint64_t",
    }
}

/// Substitutes whole words.
fn replace_words(code: &str, words: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut word = String::new();
    for c in code.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        let replaced = words.iter().find(|(from, _)| *from == word).map_or(word.as_str(), |(_, to)| to);
        text.push_str(replaced);
        text.push(c);
        word.clear();
    }
    text.pop();
    text
}

/// Disables warnings about comparisons that are decided by types and constants alone, which
/// generated code may contain.
pub(super) fn disable_warnings() -> Helper {
    let mut code = "#ifdef __clang__\n#pragma clang diagnostic ignored \"-Wtautological-compare\"\n".to_string();
    code.push_str("#elif defined(__GNUC__)\n");
    for warning in ["bool-compare", "sign-compare", "tautological-compare", "type-limits"] {
        code.push_str(&format!("#pragma GCC diagnostic ignored \"-W{warning}\"\n"));
    }
    code.push_str("#endif\n");
    Helper { name: "disable_warnings".into(), code }
}

pub(super) fn fail() -> Helper {
    let code = "static int32_t tamis_fail(tamis_failure *failure, int32_t status, int64_t id, int64_t index)
{
    failure->id = id;
    failure->index = index;
    failure->len = 0;
    return status;
}
";
    Helper { name: "tamis_fail".into(), code: code.into() }
}

/// Grows an array; new elements hold a fill value, or are uninitialised.
pub(super) fn grow(elem: Elem, fills: bool) -> Helper {
    let (parameter, filling) = if fills {
        (
            ", V fill",
            "    T *data = buffer->data;\n    for (int64_t k = buffer->len; k < len; k++)\n        data[k] = (T)fill;\n",
        )
    } else {
        ("", "")
    };
    let code = "static bool NAME(tamis_buffer *buffer, int64_t lenPARAMETER)
{
    if (len <= buffer->len)
        return true;
    if (len < 2 * buffer->len)
        len = 2 * buffer->len;
    if (len > buffer->cap) {
        if ((uint64_t)len > PTRDIFF_MAX / sizeof(T))
            return false;
        T *data = realloc(buffer->cap ? buffer->data : NULL, (size_t)len * sizeof(T));
        if (!data)
            return false;
        if (!buffer->cap && buffer->len)
            memcpy(data, buffer->data, (size_t)buffer->len * sizeof(T));
        buffer->data = data;
        buffer->cap = len;
    }
FILLING    buffer->len = len;
    return true;
}
";
    let code = code.replace("PARAMETER", parameter).replace("FILLING", filling);
    let name = format!("tamis_{}_{elem}", if fills { "grow" } else { "extend" });
    let words = [("T", stored(elem)), ("V", value_type(elem.dtype())), ("NAME", name.as_str())];
    Helper { code: replace_words(&code, &words), name }
}

pub(super) fn search(width: Width) -> Helper {
    let code = "/* Galloping search: the first position in start..stop whose element is at least the key.
   The elements are strictly increasing. */
static int64_t NAME(const T *crd, int64_t start, int64_t stop, int64_t key)
{
    int64_t step = 1;
    while (step <= stop - start && (int64_t)crd[start + step - 1] < key) {
        start += step;
        step *= 2;
    }
    int64_t count = (step <= stop - start ? start + step - 1 : stop) - start;
    while (count > 0) {
        int64_t half = count / 2;
        if ((int64_t)crd[start + half] < key) {
            start += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return start;
}
";
    index_helper("search", width, code)
}

pub(super) fn search_back(width: Width) -> Helper {
    let code = "/* Galloping search from the stop: the first position in start..stop whose element is at least
   the key. The elements are strictly increasing. */
static int64_t NAME(const T *crd, int64_t start, int64_t stop, int64_t key)
{
    int64_t step = 1;
    while (step <= stop - start && (int64_t)crd[stop - step] >= key) {
        stop -= step;
        step *= 2;
    }
    int64_t count = step <= stop - start ? step - 1 : stop - start;
    while (count > 0) {
        int64_t half = (count + 1) / 2;
        if ((int64_t)crd[stop - half] >= key) {
            stop -= half;
            count -= half;
        } else {
            count = half - 1;
        }
    }
    return start < stop ? stop : start;
}
";
    index_helper("search_back", width, code)
}

/// Sorts coordinates: short lists by insertion sort, medium ones by radix sort on the bytes that
/// differ, long ones by `qsort`.
pub(super) fn sort(width: Width) -> Helper {
    let code = "static int NAME_compare(const void *a, const void *b)
{
    const T x = *(const T *)a, y = *(const T *)b;
    return (x > y) - (x < y);
}

/* Insertion sort for short lists, LSD radix sort on the bytes that differ for medium ones, qsort
   for long ones. */
static void NAME(T *crd, int64_t start, int64_t stop)
{
    if (start >= stop)
        return;
    if (stop - start > 1024) {
        qsort(crd + start, (size_t)(stop - start), sizeof(T), NAME_compare);
        return;
    }
    if (stop - start <= 32) {
        for (int64_t k = start + 1; k < stop; k++) {
            const T key = crd[k];
            int64_t to = k;
            for (; to > start && crd[to - 1] > key; to--)
                crd[to] = crd[to - 1];
            crd[to] = key;
        }
        return;
    }
    T spare[1024], *from = crd + start, *to = spare;
    const int64_t n = stop - start;
    uint64_t differ = 0;
    for (int64_t k = 1; k < n; k++)
        differ |= (uint64_t)from[k - 1] ^ from[k];
    for (int shift = 0; shift < (int)(8 * sizeof(T)); shift += 8) {
        if (!(differ >> shift & 255))
            continue;
        uint32_t position[256] = {0}, sum = 0;
        for (int64_t k = 0; k < n; k++)
            position[(uint64_t)from[k] >> shift & 255]++;
        for (int digit = 0; digit < 256; digit++) {
            const uint32_t count = position[digit];
            position[digit] = sum;
            sum += count;
        }
        for (int64_t k = 0; k < n; k++)
            to[position[(uint64_t)from[k] >> shift & 255]++] = from[k];
        T *const sorted = to;
        to = from;
        from = sorted;
    }
    if (from == spare)
        memcpy(to, from, (size_t)n * sizeof(T));
}
";
    index_helper("sort", width, code)
}

fn index_helper(name: &str, width: Width, code: &str) -> Helper {
    let name = format!("tamis_{name}_{}", width.name());
    let compare = format!("{name}_compare");
    let words = [("T", stored(Elem::Index(width))), ("NAME", name.as_str()), ("NAME_compare", compare.as_str())];
    Helper { code: replace_words(code, &words), name }
}

/// Converts a float to an integer: truncated towards 0, saturated, 0 for NaN.
pub(super) fn saturate(to: DType) -> Helper {
    let bits = 8 * to.size() - usize::from(to.is_signed_int());
    let letter = if to.is_signed_int() { "INT" } else { "UINT" };
    let max = format!("{letter}{}_MAX", 8 * to.size());
    let (least, least_bound) = if to.is_signed_int() {
        (format!("INT{}_MIN", 8 * to.size()), format!("-{:.1}", 2f64.powi(bits as i32)))
    } else {
        ("0".to_string(), "0.0".to_string())
    };
    let most_bound = format!("{:.1}", 2f64.powi(bits as i32));
    let code = format!(
        "static inline T NAME(double x)
{{
    if (x != x)
        return 0;
    return x <= {least_bound} ? {least} : x >= {most_bound} ? {max} : (T)x;
}}"
    );
    Helper::on("from_float", to, &code)
}

pub(super) fn choose(dtype: DType) -> Helper {
    Helper::on(
        "choose",
        dtype,
        "static inline T NAME(T a, T b, T zero)
{
    return a == zero ? b : a;
}",
    )
}

pub(super) fn complex_predicate(name: &'static str, dtype: DType) -> Helper {
    let suffix = if dtype == DType::C64 { "f" } else { "" };
    let both = if name == "isfinite" { "&&" } else { "||" };
    let code = format!(
        "static inline bool NAME(T z)
{{
    return {name}(creal{suffix}(z)) {both} {name}(cimag{suffix}(z));
}}"
    );
    Helper::on(name, dtype, &code)
}

/// A function with an expression of the operator table.
pub(super) fn expression(op: Op, dtype: DType, count: usize, text: &str) -> Helper {
    with_body(op, dtype, count, "static inline", &format!("    return {text};"))
}

/// A function with statements of the operator table.
pub(super) fn function(op: Op, dtype: DType, count: usize, text: &str) -> Helper {
    with_body(op, dtype, count, "static", text)
}

fn with_body(op: Op, dtype: DType, count: usize, storage: &str, body: &str) -> Helper {
    let parameters = if count == 1 { "T a" } else { "T a, T b" };
    let suffix = if dtype.real() == DType::F32 { "f" } else { "" };
    let words = [("P", value_type(dtype.real())), ("MAKE", make_complex(dtype))];
    let body = replace_words(&body.replace('@', suffix), &words);
    Helper::on(op.info().name, dtype, &format!("{storage} T NAME({parameters})\n{{\n{body}\n}}"))
}

/// An operator of C on integers that wrap around.
pub(super) fn wrapping(op: Op, symbol: &str, dtype: DType) -> Helper {
    let unsigned = if dtype.size() < 4 { "uint32_t" } else { "U" };
    expression(op, dtype, 2, &format!("(T)(({unsigned})a {symbol} ({unsigned})b)"))
}

/// An expansion on integers.
pub(super) fn int(expansion: IntExpansion, op: Op, dtype: DType) -> Helper {
    let signed = dtype.is_signed_int();
    let one = |text: &str| expression(op, dtype, 1, text);
    let two = |text: &str| expression(op, dtype, 2, text);
    match expansion {
        // A function, since compilers distrust `~` beside a comparison.
        IntExpansion::Complement => one("(T)~a"),
        IntExpansion::Negate => one("(T)(0 - (U)a)"),
        IntExpansion::Abs => one("a < 0 ? (T)(0 - (U)a) : a"),
        IntExpansion::Relu => one("a > 0 ? a : 0"),
        IntExpansion::Sign if signed => one("(T)((a > 0) - (a < 0))"),
        IntExpansion::Sign => one("a != 0"),
        IntExpansion::FloorDivide if signed => with_body(
            op,
            dtype,
            2,
            "static inline",
            "    if (b == 0)
        return 0;
    if (b == -1)
        return (T)(0 - (U)a);
    return (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));",
        ),
        IntExpansion::FloorDivide => two("(T)(b ? a / b : 0)"),
        IntExpansion::Modulo if signed => with_body(
            op,
            dtype,
            2,
            "static inline",
            "    if (b == 0 || b == -1)
        return 0;
    const T rest = (T)(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;",
        ),
        IntExpansion::Modulo => two("(T)(b ? a % b : 0)"),
        IntExpansion::Power => Helper::on(op.info().name, dtype, &power(dtype)),
        IntExpansion::ShiftLeft => two(&format!("(U)b < {} ? (T)((uint64_t)a << b) : 0", 8 * dtype.size())),
        IntExpansion::ShiftRight if signed => {
            let most = 8 * dtype.size() - 1;
            two(&format!("(T)(a >> ((U)b < {most} ? b : {most}))"))
        }
        IntExpansion::ShiftRight => two(&format!("b < {} ? (T)(a >> b) : 0", 8 * dtype.size())),
    }
}

fn power(dtype: DType) -> String {
    let negative = if dtype.is_signed_int() {
        "    if (n < 0) {
        if (a == 1 || a == -1)
            return a == 1 || n % 2 == 0 ? 1 : -1;
        return 0;
    }
"
    } else {
        ""
    };
    format!(
        "static T NAME(T a, T n)
{{
{negative}    uint64_t result = 1, square = (uint64_t)a;
    for (uint64_t k = (uint64_t)n; k > 0; k /= 2) {{
        if (k % 2)
            result *= square;
        square *= square;
    }}
    return (T)result;
}}"
    )
}
