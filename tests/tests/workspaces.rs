//! Differential tests of workspaces: each policy, capacity and pipelining agrees with the
//! interpreter on small data, and bitwise with every other workspace on data that is larger, real,
//! or too wide for a dense one.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use tamis::prelude::*;
use tamis::tensor::IndexArray;
use tamis::{gallery, io};
use tamis_compiler::lower::Policy;
use tamis_tests::random::Random;

/// The test that limits memory does so for all threads, so it runs alone.
static MEMORY: RwLock<()> = RwLock::new(());

fn shared() -> RwLockReadGuard<'static, ()> {
    MEMORY.read().unwrap_or_else(PoisonError::into_inner)
}

const POLICIES: [&str; 5] = ["coord", "hash", "bucket", "map", "vector"];

/// Every policy with every capacity, on one thread and on two.
fn variants(capacities: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for policy in POLICIES {
        for capacity in capacities {
            let size = if capacity.is_empty() { String::new() } else { format!(", {capacity}") };
            found.push(format!("ism({policy}{size})"));
            found.push(format!("ism({policy}{size}, pipelined)"));
        }
    }
    found
}

/// A program that scatters, and its inputs: name, the loop index of each dimension, format.
struct ScatterProgram {
    name: &'static str,
    text: &'static str,
    inputs: &'static [(&'static str, &'static str)],
}

const PRODUCT: ScatterProgram = ScatterProgram {
    name: "an outer product",
    text: "def product(A, B):\n    C = tensor('FORMAT')\n    for k, i, j in _:\n        C[i,j] += A[i,k] * B[k,j]\n    return C\n",
    inputs: &[("ik", "dcsc"), ("kj", "dcsr")],
};

const MTTKRP: ScatterProgram = ScatterProgram {
    name: "SpMTTKRP",
    text: "def mttkrp(B, C, D):\n    A = tensor('FORMAT')\n    for k, l, i, j in _:\n        A[i,j] += B[k,l,i] * C[k,j] * D[l,j]\n    return A\n",
    inputs: &[("kli", "csf"), ("kj", "csr"), ("lj", "csr")],
};

const TTM: ScatterProgram = ScatterProgram {
    name: "SpTTM",
    text: "def ttm(B, C):\n    A = tensor('FORMAT')\n    for k, i, j, l in _:\n        A[i,j,l] += B[k,i,j] * C[k,l]\n    return A\n",
    inputs: &[("kij", "csf"), ("kl", "csr")],
};

/// The loop over `k` is parallel.
const TTM_INNER: ScatterProgram = ScatterProgram {
    name: "SpTTM-I",
    text: "def ttm(B, C):\n    A = tensor('FORMAT')\n    for k, i, j, l in _:\n        A[k,j,l] += B[k,i,j] * C[i,l]\n    return A\n",
    inputs: &[("kij", "csf"), ("il", "csr")],
};

/// Programs with the format of their result substituted.
fn zoo() -> Vec<(ScatterProgram, &'static str)> {
    let scatter = |name, text, inputs| ScatterProgram { name, text, inputs };
    vec![
        (PRODUCT, "csr"),
        (MTTKRP, "coo"),
        (TTM, "csf"),
        (TTM_INNER, "sparse, sparse, sparse"),
        (
            scatter(
                "a transposition",
                "def f(A):\n    C = tensor('FORMAT')\n    for i, j in _:\n        C[j,i] = A[i,j]\n    return C\n",
                &[("ij", "csr")],
            ),
            "dcsr",
        ),
        (
            scatter(
                "a transposition of rank 3",
                "def f(A):\n    C = tensor('FORMAT')\n    for i, j, k in _:\n        C[k,i,j] = A[i,j,k]\n    return C\n",
                &[("ijk", "csf")],
            ),
            "dense, sparse, sparse",
        ),
        (
            scatter(
                "a transposition of rank 4",
                "def f(A):\n    C = tensor('FORMAT')\n    for i, j, k, l in _:\n        C[i,l,k,j] = A[i,j,k,l]\n    return C\n",
                &[("ijkl", "csf")],
            ),
            "csf",
        ),
        (
            scatter(
                "a histogram",
                "def f(P):\n    H = tensor('FORMAT', shape=(9,), dtype='i64')\n    for i, j in _:\n        H[abs(P[i,j])] += 1\n    return H\n",
                &[("ij", "csr")],
            ),
            "sparse",
        ),
        (
            scatter(
                "rows put elsewhere",
                "def f(A, p):\n    C = tensor('FORMAT', shape=(9, A.shape[1]))\n    for i, j in _:\n        C[abs(p[i]),j] += A[i,j]\n    return C\n",
                &[("ij", "csr"), ("i", "dense")],
            ),
            "dcsr",
        ),
        (
            scatter(
                "the last of several",
                "def f(A, p):\n    C = tensor('FORMAT', shape=(9, A.shape[1]))\n    for i, j in _:\n        C[abs(p[i]),j] = A[i,j]\n    return C\n",
                &[("ij", "csr"), ("i", "dense")],
            ),
            "csr",
        ),
        (
            scatter(
                "the first of several",
                "def f(A, B):\n    C = tensor('FORMAT')\n    for k, i, j in _:\n        C[i,j] choose= A[i,k] * B[k,j]\n    return C\n",
                &[("ik", "csc"), ("kj", "csr")],
            ),
            "coo",
        ),
        (
            scatter(
                "the largest of products",
                "def f(A, B):\n    C = tensor('FORMAT', fill=-9223372036854775808)\n    for k, i, j in _:\n        C[i,j] max= A[i,k] * B[k,j]\n    return C\n",
                &[("ik", "csc"), ("kj", "csr")],
            ),
            "csc",
        ),
        (
            scatter(
                "one that cannot be merged",
                "def f(A, B):\n    C = tensor('FORMAT', fill=5)\n    for k, i, j in _:\n        C[i,j] += A[i,k] * B[k,j]\n    return C\n",
                &[("ik", "csc"), ("kj", "csr")],
            ),
            "dcsr",
        ),
    ]
}

impl ScatterProgram {
    fn with_format(&self, format: &str) -> String {
        self.text.replace("FORMAT", format)
    }

    /// Tensors whose dimensions have the sizes of their letters, with small integers; some stored
    /// values are zero.
    fn tensors(&self, sizes: &[(char, u64)], density: usize, seed: u64) -> Vec<Tensor> {
        let mut random = Random(seed);
        let size = |letter: char| sizes.iter().find(|(l, _)| *l == letter).map_or(3, |(_, n)| *n);
        let mut tensor = |(dims, format): &(&str, &str)| {
            let shape: Vec<u64> = dims.chars().map(size).collect();
            let format = Format::parse(format, shape.len()).unwrap();
            let full = format.levels().iter().all(|level| level.kind == tamis_ir::format::LevelKind::Dense);
            let count: u64 = shape.iter().product();
            let mut columns: Vec<Vec<u32>> = vec![Vec::new(); shape.len()];
            let mut values: Vec<i64> = Vec::new();
            for cell in 0..count {
                if !full && random.below(100) >= density {
                    continue;
                }
                let mut rest = cell;
                for (dim, n) in shape.iter().enumerate().rev() {
                    columns[dim].push((rest % n) as u32);
                    rest /= n;
                }
                values.push(random.below(17) as i64 - 8);
            }
            let columns: Vec<IndexArray> = columns.into_iter().map(IndexArray::from).collect();
            let entries = Coordinates { shape, columns, values: values.into() };
            Tensor::from_coordinates(&entries, &format, Value::I64(0), Combine::Error).unwrap()
        };
        self.inputs.iter().map(&mut tensor).collect()
    }

    /// Small data: mixed, empty, dimensions of size 1 and 0, dense.
    fn small(&self) -> Vec<Vec<Tensor>> {
        let some = [('i', 6), ('j', 7), ('k', 5), ('l', 4)];
        let ones = ['i', 'j', 'k', 'l'].map(|letter| (letter, 1));
        let none = [('i', 3), ('j', 0), ('k', 2), ('l', 2)];
        vec![
            self.tensors(&some, 40, 1),
            self.tensors(&some, 0, 2),
            self.tensors(&some, 100, 3),
            self.tensors(&ones, 100, 4),
            self.tensors(&none, 100, 5),
        ]
    }
}

/// The program with the workspace that the compiler inserts, as text.
fn inserted(text: &str, tensors: &[Tensor]) -> String {
    let program = parse(text);
    let references: Vec<&Tensor> = tensors.iter().collect();
    let explained = tamis::explain(&program, &Signature::of(&references), &CompileOptions::default());
    let explained = explained.unwrap_or_else(|d| panic!("{text}{}", d.render(false)));
    explained.schedule().lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// That program with another workspace.
fn with_workspace(text: &str, format: &str) -> String {
    let known = ["ism(coord)", "ism(hash)", "\"bytemap\""].into_iter().find(|known| text.contains(known));
    let known = known.unwrap_or_else(|| panic!("no workspace was inserted:\n{text}"));
    text.replace(known, &if known.starts_with('"') { format!("\"{format}\"") } else { format.to_string() })
}

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap_or_else(|d| panic!("{text}{}", d.render(false)))
}

fn compile(text: &str, tensors: &[Tensor]) -> Executable {
    let references: Vec<&Tensor> = tensors.iter().collect();
    let made = tamis::compile(&parse(text), &Signature::of(&references), &CompileOptions::default());
    made.unwrap_or_else(|d| panic!("{text}{}", d.render(false)))
}

fn call(executable: &Executable, tensors: &[Tensor]) -> Tensor {
    let references: Vec<&Tensor> = tensors.iter().collect();
    let results = executable.call(&references);
    results.unwrap_or_else(|d| panic!("{}{}", executable.program(), d.render(false))).into_tensor().unwrap()
}

fn interpret(text: &str, tensors: &[Tensor]) -> Tensor {
    let program = parse(text);
    let names: Vec<String> = program.params.iter().map(|id| program.tensor(*id).name.clone()).collect();
    let inputs: Vec<(&str, &Tensor)> = names.iter().map(String::as_str).zip(tensors).collect();
    let options = RunOptions { interpret: true, ..RunOptions::default() };
    tamis::run(&program, &inputs, &options)
        .unwrap_or_else(|d| panic!("{text}{}", d.render(false)))
        .into_tensor()
        .unwrap()
}

/// Two results are bitwise identical, including the positions of their elements.
fn assert_identical(got: &Tensor, wanted: &Tensor, what: &str) {
    assert_eq!((got.shape(), got.dtype(), got.nnz()), (wanted.shape(), wanted.dtype(), wanted.nnz()), "{what}");
    for level in 0..wanted.levels().len() {
        assert!(got.level_arrays(level) == wanted.level_arrays(level), "{what}: level {level} differs");
    }
    assert!(got.values() == wanted.values(), "{what}: values differ");
}

fn assert_same_values(got: &Tensor, wanted: &Tensor, what: &str) {
    match got.first_difference(wanted, &|a, b| a.same_number(b)) {
        Ok(None) => {}
        Ok(Some((at, a, b))) => panic!("{what}: at {at:?} there is {a}, not {b}"),
        Err(d) => panic!("{what}: {}", d.render(false)),
    }
}

/// All programs, with the inserted workspace and with every other one.
fn check_zoo(which: impl Fn(usize) -> bool) {
    let _memory = shared();
    let all = variants(&["1", "2", "6", ""]);
    let mut compared = 0;
    for (k, (scatter, format)) in zoo().into_iter().enumerate().filter(|(k, _)| which(*k)) {
        let (text, sets) = (scatter.with_format(format), scatter.small());
        let by_itself = inserted(&text, &sets[0]);
        let chosen = compile(&text, &sets[0]);
        let wanted: Vec<Tensor> = sets.iter().map(|set| call(&chosen, set)).collect();
        for (set, wanted) in sets.iter().zip(&wanted) {
            assert_same_values(wanted, &interpret(&text, set), scatter.name);
        }
        // Every variant for the first programs, and a sample for the others.
        for (v, variant) in all.iter().enumerate() {
            if k >= 3 && (v + k) % 4 != 0 {
                continue;
            }
            let text = with_workspace(&by_itself, variant);
            let executable = compile(&text, &sets[0]);
            for (set, wanted) in sets.iter().zip(&wanted) {
                assert_identical(&call(&executable, set), wanted, &format!("{} through {variant}", scatter.name));
                compared += 1;
            }
        }
    }
    assert!(compared > 150, "only {compared}");
}

#[test]
fn every_workspace_agrees_with_the_interpreter() {
    check_zoo(|k| k % 2 == 0);
}

#[test]
fn every_workspace_agrees_with_the_interpreter_elsewhere() {
    check_zoo(|k| k % 2 == 1);
}

#[test]
fn outer_products_into_every_format() {
    let _memory = shared();
    let sets = PRODUCT.small();
    for format in [
        "csr",
        "csc",
        "coo",
        "dcsr",
        "dcsc",
        "hash, hash",
        "dense, hash",
        "sparse, hash",
        "hash, sparse",
        "dense, bytemap",
        "bytemap, bytemap",
        "sparse, bytemap",
        "sparse, dense",
        "dense, dense",
        "(i,j) -> (j,i): sparse(nonunique), singleton",
        "dense, sparse[u16,u8]",
    ] {
        let text = PRODUCT.with_format(format);
        let executable = compile(&text, &sets[0]);
        for set in &sets {
            let result = call(&executable, set);
            assert_eq!(result.format(), &Format::parse(format, 2).unwrap());
            assert_same_values(&result, &interpret(&text, set), format);
        }
        if let "csr" | "coo" | "dcsr" | "csc" = format {
            // An element is stored if a product was added to it, zero or not.
            let product = &sets[0];
            let pattern = |tensor: &Tensor| -> Vec<(Vec<u64>, bool)> {
                let mut found = Vec::new();
                tensor.for_each(&mut |at, _| found.push((at.to_vec(), true)));
                found
            };
            let (a, b) = (pattern(&product[0]), pattern(&product[1]));
            let mut touched: Vec<(u64, u64)> = Vec::new();
            for (left, _) in &a {
                let right = b.iter().filter(|(right, _)| right[0] == left[1]);
                touched.extend(right.map(|(right, _)| (left[0], right[1])));
            }
            touched.sort_unstable();
            touched.dedup();
            assert_eq!(call(&executable, product).nnz(), touched.len(), "{format}");
        }
    }
}

/// A tensor with this number of entries, all of them integers.
fn integers(shape: &[u64], count: u64, format: &str, seed: u64) -> Tensor {
    let entries = gallery::random_nnz(shape, count, seed).unwrap();
    let mut random = Random(seed);
    let values: Vec<i64> = (0..entries.len()).map(|_| random.below(19) as i64 - 9).collect();
    let entries = Coordinates { values: values.into(), ..entries };
    let format = Format::parse(format, shape.len()).unwrap();
    Tensor::from_coordinates(&entries, &format, Value::I64(0), Combine::Error).unwrap()
}

/// All workspaces give identical arrays, including dense ones.
fn check_large(scatter: &ScatterProgram, format: &str, tensors: &[Tensor], whole: &[&str]) -> Tensor {
    let text = scatter.with_format(format);
    let by_itself = inserted(&text, tensors);
    let wanted = call(&compile(&text, tensors), tensors);
    let sparse = variants(&["100", "4096", ""]);
    for variant in sparse.iter().map(String::as_str).chain(whole.iter().copied()) {
        let got = call(&compile(&with_workspace(&by_itself, variant), tensors), tensors);
        assert_identical(&got, &wanted, &format!("{} through {variant}", scatter.name));
    }
    wanted
}

#[test]
fn larger_products_agree_across_workspaces() {
    let _memory = shared();
    let n = 1500;
    let (a, b) = (integers(&[n, n], 9000, "dcsc", 1), integers(&[n, n], 9000, "dcsr", 2));
    let outer = check_large(&PRODUCT, "csr", &[a.clone(), b.clone()], &["bytemap, bytemap", "dense, bytemap"]);
    assert!(outer.nnz() > 40_000, "{}", outer.nnz());
    // By rows, which needs no sparse workspace.
    let by_rows = PRODUCT.text.replace("k, i, j", "i, k, j").replace("FORMAT", "csr");
    let rows: Vec<Tensor> = [a, b].iter().map(|t| t.convert(&Format::csr()).unwrap()).collect();
    assert_identical(&call(&compile(&by_rows, &rows), &rows), &outer, "by rows");
}

#[test]
fn larger_tensors_agree_across_workspaces() {
    let _memory = shared();
    let b = integers(&[60, 70, 80], 12_000, "csf", 3);
    let (c, d) = (integers(&[60, 50], 300, "csr", 4), integers(&[70, 50], 350, "csr", 5));
    check_large(&MTTKRP, "coo", &[b.clone(), c.clone(), d], &["bytemap, bytemap"]);
    let result = check_large(&TTM, "csf", &[b.clone(), c], &["bytemap, bytemap, bytemap"]);
    assert!(result.nnz() > 30_000, "{}", result.nnz());
    check_large(&TTM_INNER, "coo", &[b, integers(&[70, 40], 400, "csr", 6)], &["bytemap, bytemap"]);
}

/// Other types than integers: the pattern, and bitwise results for two threads.
#[test]
fn every_type_with_every_policy() {
    let _memory = shared();
    let product = "def f(A, B):\n    C = tensor('dcsr', dtype='DTYPE')\n    w = tensor('FORMAT', dtype='DTYPE')\n    for k, i, j in _:\n        w[i,j] OP BOTH\n    for i, j in _:\n        C[i,j] = w[i,j]\n    return C\n";
    let sizes = [('i', 9), ('j', 8), ('k', 30)];
    let tensors = PRODUCT.tensors(&sizes, 50, 7);
    for dtype in [DType::F64, DType::F32, DType::C128, DType::C64, DType::I8, DType::U16, DType::Bool] {
        let op = if dtype == DType::Bool { "|=" } else { "+=" };
        let both = if dtype == DType::Bool { "A[i,k] and B[k,j]" } else { "A[i,k] * B[k,j]" };
        let text = product.replace("DTYPE", &dtype.to_string()).replace("OP", op).replace("BOTH", both);
        // Fractions whose sums are rounded.
        let typed: Vec<Tensor> = tensors.iter().map(|t| fractions(t, dtype)).collect();
        let wanted = interpret(&text.replace("FORMAT", "hash, hash"), &typed);
        for policy in POLICIES {
            for capacity in ["", ", 7"] {
                let [one, two] = ["", ", pipelined"].map(|threads| {
                    let format = format!("ism({policy}{capacity}{threads})");
                    call(&compile(&text.replace("FORMAT", &format), &typed), &typed)
                });
                let what = format!("{dtype} through {policy}{capacity}");
                assert_identical(&two, &one, &what);
                let close = |a, b| tamis_tests::conform::close(a, b);
                assert_eq!(one.first_difference(&wanted, &close).unwrap(), None, "{what}");
            }
        }
    }
}

fn fractions(tensor: &Tensor, dtype: DType) -> Tensor {
    let entries = tensor.to_coordinates();
    let values: Vec<Value> = (0..entries.len())
        .map(|k| entries.values.get(k))
        .map(|value| match dtype {
            DType::F64 | DType::F32 => Value::F64(value.as_c128().re / 7.0).cast(dtype),
            DType::U16 => Value::I64(value.as_i64().unwrap_or(0).abs()).cast(dtype),
            dtype => value.cast(dtype),
        })
        .collect();
    let entries = Coordinates { values: ValueArray::from_values(&values, dtype), ..entries };
    Tensor::from_coordinates(&entries, tensor.format(), Value::zero(dtype), Combine::Error).unwrap()
}

/// Coordinates that do not fit into 64, 128 or 256 bits together.
#[test]
fn keys_of_every_width() {
    let _memory = shared();
    for (rank, bits) in [(2, 31), (2, 33), (2, 62), (3, 40), (3, 62), (4, 62), (5, 62)] {
        let letters = &["i", "j", "k", "l", "m"][..rank];
        let reversed: Vec<&str> = letters.iter().rev().copied().collect();
        let (loops, reversed) = (letters.join(", "), reversed.join(","));
        let text = format!(
            "def f(A):\n    C = tensor('coo')\n    w = tensor('FORMAT')\n    for {loops} in _:\n        w[{reversed}] += A[{loops}]\n    for {reversed} in _:\n        C[{reversed}] = w[{reversed}]\n    return C\n"
        );
        let mut random = Random(bits);
        let mut entries: Vec<(Vec<u64>, i64)> = Vec::new();
        for k in 0..200 {
            // Some differ in the last bits only, some in the first.
            let spread = |random: &mut Random| match random.below(3) {
                0 => random.below(4) as u64,
                1 => (1 << bits) - 1 - random.below(4) as u64,
                _ => random.bits() % (1 << bits),
            };
            entries.push(((0..rank).map(|_| spread(&mut random)).collect(), k));
        }
        entries.sort();
        entries.dedup_by(|a, b| a.0 == b.0);
        let column = |dim: usize| entries.iter().map(|(at, _)| at[dim]).collect::<Vec<u64>>();
        let coordinates = Coordinates {
            shape: vec![1 << bits; rank],
            columns: (0..rank).map(|dim| column(dim).into()).collect(),
            values: entries.iter().map(|(_, value)| *value).collect::<Vec<i64>>().into(),
        };
        let format = Format::parse("coo", rank).unwrap();
        let a = Tensor::from_coordinates(&coordinates, &format, Value::I64(0), Combine::Error).unwrap();
        let mut wanted: Vec<(Vec<u64>, i64)> =
            entries.iter().map(|(at, value)| (at.iter().rev().copied().collect(), *value)).collect();
        wanted.sort();
        for policy in POLICIES {
            for capacity in ["", ", 3"] {
                let text = text.replace("FORMAT", &format!("ism({policy}{capacity})"));
                let result = call(&compile(&text, std::slice::from_ref(&a)), std::slice::from_ref(&a));
                let mut got: Vec<(Vec<u64>, i64)> = Vec::new();
                result.for_each(&mut |at, value| got.push((at.to_vec(), value.as_i64().unwrap())));
                assert!(got == wanted, "{rank} dimensions of {bits} bits through {policy}{capacity}");
            }
        }
    }
}

/// A dense workspace would have 10^12 elements: no array here has more than a few times the number
/// of products.
#[test]
fn wide_scatters_need_memory_in_proportion_to_products() {
    let _alone = MEMORY.write().unwrap_or_else(PoisonError::into_inner);
    let (n, entries) = (1_000_000, 330_000);
    let tensors = [integers(&[n, n], entries, "dcsc", 1), integers(&[n, n], entries, "dcsr", 2)];
    let products = {
        let ones = |t: &Tensor| {
            let entries = t.to_coordinates();
            let counts: Vec<i64> = vec![1; entries.len()];
            let entries = Coordinates { values: counts.into(), ..entries };
            Tensor::from_coordinates(&entries, t.format(), Value::I64(0), Combine::Error).unwrap()
        };
        let text =
            "def f(A, B):\n    s = scalar(0)\n    for k, i, j in _:\n        s += A[i,k] * B[k,j]\n    return s\n";
        let ones = [ones(&tensors[0]), ones(&tensors[1])];
        call(&compile(text, &ones), &ones).get(&[]).and_then(|value| value.as_i64()).unwrap() as usize
    };
    assert!((90_000..130_000).contains(&products), "{products}");
    let mut results: Vec<Tensor> = Vec::new();
    let by_itself = inserted(&PRODUCT.with_format("dcsr"), &tensors);
    assert!(by_itself.contains("ism(coord)"), "{by_itself}");
    for variant in variants(&["1000", ""]) {
        let executable = compile(&with_workspace(&by_itself, &variant), &tensors);
        // Coordinates, values and packed keys have up to 8 bytes each, keys with numbers 16, and
        // arrays double as they grow; tables of half as many slots as they are large.
        let before = tamis::cache::limit_arrays(32 * products);
        let references: Vec<&Tensor> = tensors.iter().collect();
        let result = executable.call_timed(&references);
        tamis::cache::limit_arrays(before);
        let timed = result.unwrap_or_else(|d| panic!("{variant}: {}", d.render(false)));
        let [(_, report)] = timed.workspaces[..] else { panic!("{variant}: {:?}", timed.workspaces) };
        assert_eq!(report.inserts, products as u64, "{variant}");
        assert!(report.peak_bytes < 480 * products as u64, "{variant}: {report:?} for {products} products");
        results.extend(timed.results.into_iter().map(|(_, tensor)| tensor).take(1));
    }
    for (variant, result) in variants(&["1000", ""]).iter().zip(&results) {
        assert_identical(result, &results[0], variant);
    }
    // The limit is effective: dense storage does not fit.
    let dense = compile(&with_workspace(&by_itself, "bytemap, bytemap"), &tensors);
    let before = tamis::cache::limit_arrays(32 * products);
    let refused = dense.call(&tensors.iter().collect::<Vec<&Tensor>>());
    tamis::cache::limit_arrays(before);
    let refused = refused.err().map(|d| d.0[0].code);
    assert_eq!(refused, Some(tamis::diagnostic::Code::E0706));
}

/// A transposed product, with fused and split loops: the inserted workspace is what a user would
/// write.
#[test]
fn inserted_workspaces_match_hand_written_ones() {
    let nest = |result: &str, workspace: &str| {
        format!(
            "def transposed(B, C):
    A = tensor(\"dcsr\", shape=(C.shape[1], B.shape[0]))
{workspace}    for f0 in range((B.shape[0] * B.shape[1] + 3) // 4):
        for f1 in range(f0 * 4, min(f0 * 4 + 4, B.shape[0] * B.shape[1])):
            i = f1 // B.shape[1]
            k = f1 % B.shape[1]
            for j in _:
                {result}[j, i] += B[i, k] * C[k, j]
"
        )
    };
    let matrix = integers(&[6, 6], 12, "csr", 1);
    let types = [tamis_ir::interp::param_type(&matrix), tamis_ir::interp::param_type(&matrix)];
    for (command, format) in [
        ("insert_workspace(coord, 6)", "ism(coord, 6)"),
        ("insertSparseWorkspace(Coord, 6)", "ism(coord, 6)"),
        ("insert_workspace(hash)", "ism(hash)"),
        ("insert_workspace(coord, pipelined)", "ism(coord, pipelined)"),
        ("insert_workspace(coord, 6, pipelined)", "ism(coord, 6, pipelined)"),
        ("insertSparseWorkspace(Bucket, 2)", "ism(bucket, 2)"),
    ] {
        let start = "def transposed(B, C):\n    A = tensor(\"dcsr\")\n    for i, k, j in _:\n        A[j,i] += B[i,k] * C[k,j]\n    return A\n";
        let program = parse(start);
        let schedule = format!("reorder(i,k,j); fuse(i,k,f); split(f,f0,f1,4); {command}");
        let schedule = Schedule::parse(&schedule).unwrap_or_else(|d| panic!("{}", d.render(false)));
        let formats = [matrix.format().clone(), matrix.format().clone()];
        let scheduled = schedule.apply_to(&program, &program.check(&types).unwrap(), &formats, Policy::default());
        let scheduled = scheduled.unwrap_or_else(|d| panic!("{}", d.render(false)));
        let declared = format!("    A_w = tensor(\"{format}\", shape=(C.shape[1], B.shape[0]))\n");
        let by_hand = nest("A_w", &declared) + "    for j, i1 in _:\n        A[j, i1] = A_w[j, i1]\n    return A\n";
        assert_eq!(scheduled.to_string(), by_hand);
        assert!(parse(&by_hand) == scheduled, "the text says something else");
        let tensors = [matrix.clone(), matrix.clone()];
        assert_same_values(&call(&compile(&by_hand, &tensors), &tensors), &interpret(start, &tensors), command);
        // Without the command, the compiler inserts it.
        let without = nest("A", "") + "    return A\n";
        let by_itself = with_workspace(&inserted(&without, &tensors), format);
        assert_eq!(by_itself, by_hand);
    }
}

/// The shared data next to the workspace, or next to a parent folder.
fn data(file: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().ok()?;
    let mut candidates = workspace.ancestors().skip(1).map(|above| above.join("shared/data/tensors").join(file));
    let found = candidates.find(|path| path.is_file());
    if found.is_none() {
        eprintln!("NOT TESTED: shared/data/tensors/{file} is not there");
    }
    found
}

/// The products of the paper on a real tensor, with sparse factors of a tenth of all elements.
fn check_real(file: &str, columns: u64, format: &str) {
    let _memory = shared();
    let Some(path) = data(file) else { return };
    let tensor = io::read(path, &io::ReadOptions::default()).unwrap().cast(DType::I64);
    let b = tensor.convert(&Format::parse("csf", 3).unwrap()).unwrap();
    let shape = b.shape().to_vec();
    let factor = |rows: u64, seed| integers(&[rows, columns], (rows * columns).div_ceil(10), "csr", seed);
    let (c, d, e) = (factor(shape[0], 1), factor(shape[1], 2), factor(shape[1], 3));
    let flat = if format == "csf" { "dcsr" } else { format };
    let all = [
        (&MTTKRP, flat, vec![b.clone(), c.clone(), d]),
        (&TTM, format, vec![b.clone(), c]),
        (&TTM_INNER, format, vec![b, e]),
    ];
    for (scatter, format, tensors) in all {
        let text = scatter.with_format(format);
        let by_itself = inserted(&text, &tensors);
        let wanted = call(&compile(&text, &tensors), &tensors);
        assert!(wanted.nnz() > 50, "{}: {}", scatter.name, wanted.nnz());
        for variant in
            ["ism(hash)", "ism(bucket)", "ism(map)", "ism(vector)", "ism(coord, 1000, pipelined)", "ism(hash, 512)"]
        {
            let got = call(&compile(&with_workspace(&by_itself, variant), &tensors), &tensors);
            assert_identical(&got, &wanted, &format!("{} of {file} through {variant}", scatter.name));
        }
        if file == "nations.tns" && scatter.name != "SpTTM" {
            assert_same_values(&wanted, &interpret(&text, &tensors), scatter.name);
        }
    }
}

#[test]
fn products_of_a_small_real_tensor() {
    check_real("nations.tns", 8, "csf");
}

#[test]
fn products_of_a_real_tensor() {
    check_real("umls.tns.gz", 16, "coo");
}

#[test]
fn products_of_a_wide_real_tensor() {
    check_real("wn18rr.tns.gz", 4, "csf");
}
