//! Kernel text: what is printed is read back, and what is wrong is a diagnostic at its place.

use tamis_ir::Code;
use tamis_ir::kernel::Kernel;

/// Every form of statement, header line and expression.
const ALL: &str = r#"kernel `all of it`
    in A_pos: index u32[]
    in A_crd: index u64[]
    in `for`: f32[]
    in z: c64[]
    out y: f64[]
    out count: index u8[]
    scratch w_crd: index u32[]
    scratch w_values: f64[]
    tile(8) acc: f64[]
    in n: i64
    in var m: i64
    in s: u8
    in size: i64
    assume n == size
    assume length(A_pos) >= n + 1
    assume length(A_crd) >= length(A_pos) + 2
    assume nondecreasing(A_pos)
    assume elements(A_crd) < size
    assume reserved(y)
    workspace w(w_crd; w_values) from 0.0 by `for` capacity 64 pipelined merging add
begin
    grow y to n with 0.5
    grow count to n
    fill y[0; n] with -inf
    m = -1
    var x: f32 = nan:f32
    let u: u8 = 255:u8 + s
    let q: c64 = c64(-0.0, nan(0x7fc00001))
    let r: c64 = c64(`for`[0] *:f64 2.0)
    for i @loop(3, visits) in 0..n vector(short_trip)
        let p = search back A_crd[A_pos[i]..A_pos[i + 1]] for m
        var k = search A_crd[0..n] for (i * 2) - 1
        for var j @loop(1) in 0..8 vector unroll
            acc[j] = select:f64(isnan(x), y[k], max(x, `for`[p]))
    reset w[n]
    let place = insert w[n - 1]
    w_values[place] = w_values[place] + 1.0
    let w_count = finalize w
    sort w_crd[0..w_count]
    sort w_crd[0..w_count] by count
    block l2
        while (x < 3.0:f32) and True
            if n == 0
                break l2
            else
                x = x + 1.0:f32
            if n != 0
            else
                require n < m else "a \"message\"\n\\ about n"
"#;

#[test]
fn all_forms_read_back() {
    let kernel = Kernel::parse(ALL).unwrap_or_else(|d| panic!("{}", d.render(false)));
    assert_eq!(kernel.to_string(), ALL);
    assert_eq!(Kernel::parse(&kernel.to_string()).unwrap(), kernel);
}

#[test]
fn comments_and_blank_lines_are_skipped() {
    let text = "# a kernel\nkernel f   # its name\n\n    out y: f64[]\nbegin\n    # nothing\n\n    y[0] = 1.0\n";
    assert_eq!(Kernel::parse(text).unwrap().to_string(), "kernel f\n    out y: f64[]\nbegin\n    y[0] = 1.0\n");
}

/// The message and the place (line and column) of what is wrong.
fn mistake(text: &str) -> (String, (usize, usize)) {
    let d = Kernel::parse(text).expect_err(text);
    assert_eq!(d.code, Code::E1301);
    assert!(!d.help.is_empty());
    let source = d.source.clone().unwrap();
    (d.message.clone(), source.line_column(d.labels[0].span.start))
}

#[test]
fn mistakes_have_a_place() {
    let header = "kernel f\n    in x: f64[]\n    out y: f64[]\n    in n: i64\nbegin\n";
    let table = [
        ("    y[0] = x[0] + n\n", "the operands of `add` are f64 and i64", (6, 17)),
        ("    y[0] = z\n", "there is no variable or buffer `z`", (6, 12)),
        ("    y[0] = 1.0 + 2.0 + 3.0\n", "an operator has two operands", (6, 22)),
        ("    y[0] = sinn(1.0)\n", "there is no operator `sinn`", (6, 12)),
        ("    y[0] = sin(1.0, 2.0)\n", "`sin` does not take 2 operands", (6, 12)),
        ("    y[1.0] = 1.0\n", "`1.0` is f64, not i64", (6, 5)),
        ("    x[0] = 1.0\n", "the input `x` is written", (6, 5)),
        ("    n = 1\n", "`n` cannot be assigned here", (6, 5)),
        ("    let n: i64 = 1\n", "`n` is declared twice", (6, 9)),
        ("    let k: i64 = 1.0\n", "`k` is i64, but its value is f64", (6, 12)),
        ("    let k: u8 = 256:u8\n", "the number is no u8", (6, 17)),
        ("    for i in 0..n\n            y[i] = 1.0\n", "the line is indented by 12 spaces, not 8", (7, 13)),
        ("    for i in 0..n\n        y[i] = 1.0\n    y[i] = 2.0\n", "`i` is used out of scope", (8, 5)),
        ("    break l0\n", "`l0` is not a label of an enclosing block", (6, 5)),
        ("    reset w[n]\n", "there is no workspace `w`", (6, 11)),
        ("    require n < 3 else \"open\n", "a quoted text does not end on its line", (6, 24)),
        ("    y[0] = $\n", "'$' has no meaning here", (6, 12)),
        ("y[0] = 1.0\n", "the kernel ends before this line", (6, 1)),
        ("    y[0] = 1.0 1.0\n", "expected the end of the line, found `1.0`", (6, 16)),
        ("    y[0] =\n", "expected a name, found the end of the line", (6, 11)),
    ];
    for (body, message, place) in table {
        let (found, at) = mistake(&format!("{header}{body}"));
        assert_eq!((found.as_str(), at), (message, place), "{body}");
    }
    assert_eq!(mistake("").0, "a kernel begins with its name");
    assert_eq!(mistake("kernel f\n").0, "the header ends with `begin`");
    assert_eq!(mistake("kernel f\n    in x: f99[]\nbegin\n").0, "expected a value type, found `f99`");
    assert_eq!(mistake("kernel f\n    assume 1 < 2.0\nbegin\n").0, "the operands of `lt` are i64 and f64");
}

#[test]
fn deep_nesting_is_a_mistake() {
    let mut deep = String::from("kernel f\n    in n: i64\nbegin\n");
    for k in 1..500 {
        deep += &format!("{:1$}if n == 0\n", "", 4 * k);
    }
    assert!(mistake(&deep).0.contains("nested more than"));
    let text = "kernel f\nbegin\n    let x: f64 = sqrt(\n";
    assert_eq!(mistake(text).1, (3, 23));
    let brackets = format!("kernel f\n    in n: i64\nbegin\n    if {}n", "(".repeat(100_000));
    assert!(mistake(&brackets).0.contains("nested more than"));
}

/// A pseudo-random number.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

/// Damaged text is a kernel or a mistake, never a panic; what is read prints and reads back.
#[test]
fn damaged_text_does_not_panic() {
    let words: Vec<&str> = ALL.split([' ', '\n', '(', ')', '[', ']']).filter(|word| !word.is_empty()).collect();
    let mut state = 1;
    let mut valid = 0;
    for _ in 0..20_000 {
        let mut damaged = ALL.to_string();
        for _ in 0..1 + next(&mut state) % 3 {
            let mut at = next(&mut state) % damaged.len().max(1);
            while !damaged.is_char_boundary(at) {
                at -= 1;
            }
            match next(&mut state) % 5 {
                0 if at < damaged.len() => drop(damaged.remove(at)),
                1 => damaged.insert_str(at, words[next(&mut state) % words.len()]),
                2 => damaged.insert(at, ['\0', '9', '(', ' ', '\n', 'é', ':', '-', '`', '"'][next(&mut state) % 10]),
                3 => damaged.truncate(at.max(1)),
                _ => {
                    let count = damaged.lines().count().max(1);
                    let line = damaged.lines().nth(next(&mut state) % count).unwrap_or("").to_string();
                    damaged.insert_str(at, &line);
                }
            }
        }
        if let Ok(kernel) = Kernel::parse(&damaged) {
            valid += 1;
            let printed = kernel.to_string();
            let again = Kernel::parse(&printed).unwrap_or_else(|d| panic!("{}\n{damaged}", d.render(false)));
            assert_eq!(again.to_string(), printed);
        }
    }
    assert!(valid > 200, "{valid}");
}
