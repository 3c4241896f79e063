//! Small functions that C lacks, written into a file that calls them.

use super::expr::make_complex;
use super::{stored, value_type};
use tamis_ir::algebra::Op;
use tamis_ir::format::Width;
use tamis_ir::kernel::Elem;
use tamis_ir::{DType, Kind};

/// A function (or line) of the file.
pub(super) struct Helper {
    pub(super) name: String,
    pub(super) code: String,
}

impl Helper {
    /// A function on values of a type: `T` stands for the type, `U` for the unsigned one of its size.
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

/// Replaces whole words.
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

/// Comparisons that can be decided from types and constants alone are no mistake in generated code.
pub(super) fn quiet() -> Helper {
    let mut code = "#ifdef __clang__\n#pragma clang diagnostic ignored \"-Wtautological-compare\"\n".to_string();
    code.push_str("#elif defined(__GNUC__)\n");
    for warning in ["bool-compare", "sign-compare", "tautological-compare", "type-limits"] {
        code.push_str(&format!("#pragma GCC diagnostic ignored \"-W{warning}\"\n"));
    }
    code.push_str("#endif\n");
    Helper { name: "quiet".into(), code }
}

pub(super) fn fail() -> Helper {
    let code = "static int32_t tamis_fail(tamis_failure *failure, int32_t status, int64_t which, int64_t index)
{
    failure->which = which;
    failure->index = index;
    failure->len = 0;
    return status;
}
";
    Helper { name: "tamis_fail".into(), code: code.into() }
}

/// Makes an array longer; new elements hold a fill, or anything.
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
    let code = "/* The first position in start..stop whose element is at least the key; the elements increase. */
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
    let code = "/* The first position in start..stop whose element is at least the key, looked for from the stop on; the elements increase. */
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

/// Sorts coordinates: short lists by insertion, middle ones by the bytes in which they differ, long ones by the library.
pub(super) fn sort(width: Width) -> Helper {
    let code = "static int NAME_order(const void *a, const void *b)
{
    const T x = *(const T *)a, y = *(const T *)b;
    return (x > y) - (x < y);
}

/* Byte by byte, least significant first, where comparisons would be mispredicted. */
static void NAME(T *crd, int64_t start, int64_t stop)
{
    if (start >= stop)
        return;
    if (stop - start > 1024) {
        qsort(crd + start, (size_t)(stop - start), sizeof(T), NAME_order);
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
        uint32_t place[256] = {0}, sum = 0;
        for (int64_t k = 0; k < n; k++)
            place[(uint64_t)from[k] >> shift & 255]++;
        for (int digit = 0; digit < 256; digit++) {
            const uint32_t count = place[digit];
            place[digit] = sum;
            sum += count;
        }
        for (int64_t k = 0; k < n; k++)
            to[place[(uint64_t)from[k] >> shift & 255]++] = from[k];
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
    let order = format!("{name}_order");
    let words = [("T", stored(Elem::Index(width))), ("NAME", name.as_str()), ("NAME_order", order.as_str())];
    Helper { code: replace_words(code, &words), name }
}

/// A float as an integer: cut towards 0, the nearest where it does not fit, 0 for NaN.
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

/// A function of one operand.
pub(super) fn unary(op: Op, dtype: DType) -> Helper {
    let name = op.info().name;
    let f = if dtype.real() == DType::F32 { "f" } else { "" };
    let expression = match (op, dtype.kind()) {
        // A function, since compilers distrust `~` beside a comparison.
        (Op::BitNot, _) => "(T)~a".to_string(),
        (Op::Neg, _) => "(T)(0 - (U)a)".to_string(),
        (Op::Abs, _) => "a < 0 ? (T)(0 - (U)a) : a".to_string(),
        (Op::Relu, Kind::Int) => "a > 0 ? a : 0".to_string(),
        (Op::Relu, _) => "a <= 0 ? 0 : a".to_string(),
        (Op::Sign, Kind::Int) => "(T)((a > 0) - (a < 0))".to_string(),
        (Op::Sign, Kind::Float) => format!("a < 0 || a > 0 ? copysign{f}(1, a) : a"),
        (Op::Sign, _) => {
            let make = make_complex(dtype);
            format!("a == 0 ? a : {make}(creal{f}(a) / cabs{f}(a), cimag{f}(a) / cabs{f}(a))")
        }
        _ => format!("1 / (1 + exp{f}(-a))"),
    };
    if op == Op::Sign && dtype.kind() == Kind::Int && !dtype.is_signed_int() {
        return Helper::on(name, dtype, "static inline T NAME(T a)\n{\n    return a != 0;\n}");
    }
    let code = format!("static inline T NAME(T a)\n{{\n    return {expression};\n}}");
    Helper::on(name, dtype, &code)
}

/// A function of two operands.
pub(super) fn binary(op: Op, dtype: DType) -> Helper {
    let name = op.info().name;
    let one_line = |expression: &str| {
        Helper::on(name, dtype, &format!("static inline T NAME(T a, T b)\n{{\n    return {expression};\n}}"))
    };
    let f = if dtype.real() == DType::F32 { "f" } else { "" };
    let make = make_complex(dtype);
    match (op, dtype.kind()) {
        (Op::Min, Kind::Float) => one_line("isnan(a) || a < b || (a == b && signbit(a)) ? a : b"),
        (Op::Max, Kind::Float) => one_line("isnan(a) || a > b || (a == b && !signbit(a)) ? a : b"),
        (Op::Min, _) => one_line("a < b ? a : b"),
        (Op::Max, _) => one_line("a > b ? a : b"),
        (Op::Add, Kind::Int) => one_line("(T)((U)a + (U)b)"),
        (Op::Sub, Kind::Int) => one_line("(T)((U)a - (U)b)"),
        (Op::Mul, Kind::Int) if dtype.size() < 4 => one_line("(T)((uint32_t)a * (uint32_t)b)"),
        (Op::Mul, Kind::Int) => one_line("(T)((U)a * (U)b)"),
        (Op::Mul, Kind::Complex) => one_line(&format!(
            "{make}(creal{f}(a) * creal{f}(b) - cimag{f}(a) * cimag{f}(b),\n        \
                 creal{f}(a) * cimag{f}(b) + cimag{f}(a) * creal{f}(b))"
        )),
        (Op::Div, Kind::Complex) => Helper::on(
            name,
            dtype,
            &format!(
                "static inline T NAME(T a, T b)
{{
    const {part} ar = creal{f}(a), ai = cimag{f}(a), br = creal{f}(b), bi = cimag{f}(b);
    if (fabs{f}(br) >= fabs{f}(bi)) {{
        if (br == 0 && bi == 0)
            return {make}(ar / fabs{f}(br), ai / fabs{f}(br));
        const {part} ratio = bi / br, scale = 1 / (br + bi * ratio);
        return {make}((ar + ai * ratio) * scale, (ai - ar * ratio) * scale);
    }}
    const {part} ratio = br / bi, scale = 1 / (bi + br * ratio);
    return {make}((ar * ratio + ai) * scale, (ai * ratio - ar) * scale);
}}",
                part = value_type(dtype.real())
            ),
        ),
        (Op::Pow, Kind::Complex) => one_line(&format!("b == 0 ? 1 : cpow{f}(a, b)")),
        (Op::Pow, _) => Helper::on(name, dtype, &power(dtype)),
        (Op::FloorDiv | Op::Mod, Kind::Float) => Helper::on(name, dtype, &float_division(op, f)),
        (Op::FloorDiv, _) if !dtype.is_signed_int() => one_line("(T)(b ? a / b : 0)"),
        (Op::Mod, _) if !dtype.is_signed_int() => one_line("(T)(b ? a % b : 0)"),
        (Op::FloorDiv, _) => Helper::on(
            name,
            dtype,
            "static inline T NAME(T a, T b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return (T)(0 - (U)a);
    return (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}",
        ),
        (Op::Mod, _) => Helper::on(
            name,
            dtype,
            "static inline T NAME(T a, T b)
{
    if (b == 0 || b == -1)
        return 0;
    const T rest = (T)(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}",
        ),
        (Op::Shl, _) => one_line(&format!("(U)b < {} ? (T)((uint64_t)a << b) : 0", 8 * dtype.size())),
        _ if dtype.is_signed_int() => {
            let most = 8 * dtype.size() - 1;
            one_line(&format!("(T)(a >> ((U)b < {most} ? b : {most}))"))
        }
        _ => one_line(&format!("b < {} ? (T)(a >> b) : 0", 8 * dtype.size())),
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

fn float_division(op: Op, f: &str) -> String {
    if op == Op::Mod {
        return format!(
            "static T NAME(T a, T b)
{{
    T rest = fmod{f}(a, b);
    if (b == 0)
        return rest;
    if (rest == 0)
        return copysign{f}(0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
}}"
        );
    }
    format!(
        "static T NAME(T a, T b)
{{
    if (b == 0)
        return a / b;
    const T rest = fmod{f}(a, b);
    T quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign{f}(0, a / b);
    const T down = floor{f}(quotient);
    return quotient - down > 0.5{suffix} ? down + 1 : down;
}}",
        suffix = f
    )
}
