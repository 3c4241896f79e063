//! Fuzzing: valid texts and files, mutated at random. Nothing may panic, and accepted inputs must
//! be valid.

use crate::generate;
use crate::random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tamis::format::FormatSpec;
use tamis::io::{FileKind, ReadOptions, WriteOptions, read_from, write_to};
use tamis::tensor::{Combine, Coordinates, ValueArray};
use tamis::{Format, Program, Tensor, Value, gallery};
use tamis_ir::interp::{self, Operand, Options};

/// The action on an input.
type Run = Box<dyn Fn(&[u8])>;

/// A fuzz target: valid seed inputs, and an action on their mutations.
pub struct FuzzTarget {
    /// The name in reports.
    pub name: String,
    seeds: Vec<Vec<u8>>,
    words: &'static [&'static str],
    run: Run,
}

const PROGRAM_WORDS: &[&str] = &[
    "for ",
    " or= ",
    " and= ",
    "-nan",
    "0x1f",
    ": pass",
    "if ",
    "else:",
    "def f(A):",
    " in _:",
    "range(",
    "tensor(\"csr\")",
    "scalar(0)",
    "return ",
    "A[i]",
    "~",
    "(",
    ")",
    "[",
    "]",
    "\n",
    "\n    ",
    "\t",
    "inf",
    "nan",
    "1j",
    "99999999999999999999",
    "-9223372036854775808",
    "min(",
    "coalesce(",
    "+=",
    "min=",
    "**",
    "//",
    "\"",
    "'",
    "#",
    "\\\n",
    "é",
    "\u{0}",
    "shape=(",
    ".shape[0]",
    "follow(",
    "elif ",
    "not ",
    "0.",
    "1e400",
    ";",
    ":",
    "@op\n",
    "@op(commutative, identity=0)\n",
    "def g(a, b): return a\n",
    "g(",
    "abs(i - j) <= ",
];
const FORMAT_WORDS: &[&str] = &[
    "dense",
    "sparse",
    "(nonunique)",
    "(nonordered)",
    "singleton",
    "->",
    "(i,j)",
    ":",
    ";",
    "pattern",
    "element(",
    "inf",
    "[u8]",
    "bsr(2,2)",
    "/4",
    "%4",
    "-",
    ",",
];
const FILE_WORDS: &[&str] = &[
    "0",
    "1",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "nan",
    "inf",
    " ",
    "\n",
    "\r\n",
    "%",
    "#",
    "%%MatrixMarket",
    "symmetric",
    "complex",
    "pattern",
    "array",
    "skew-symmetric",
    "hermitian",
    "\u{0}",
    "999999999 999999999 999999999999",
    "P4",
    "P5",
    "\u{1}",
];

/// All fuzz targets.
pub fn targets() -> Vec<FuzzTarget> {
    let mut targets = vec![
        FuzzTarget {
            name: "programs".into(),
            seeds: (0..200).map(|seed| generate::case(seed).text.into_bytes()).collect(),
            words: PROGRAM_WORDS,
            run: Box::new(|bytes| program(&String::from_utf8_lossy(bytes))),
        },
        FuzzTarget {
            name: "formats".into(),
            seeds: [
                "csr",
                "(i,j) -> (j,i): dense, sparse[u8,u16]; element(-inf)",
                "bsr(4,4)",
                "coo; pattern",
                "hash, bytemap",
            ]
            .map(|text| text.as_bytes().to_vec())
            .to_vec(),
            words: FORMAT_WORDS,
            run: Box::new(|bytes| format(&String::from_utf8_lossy(bytes))),
        },
        FuzzTarget {
            name: "generators".into(),
            seeds: [
                "laplacian(3)",
                "rand(4,5; 0.5; 7)",
                "rmat(3,2)",
                "banded(9,2)",
                "permutation(5, 1)",
                "blocked(8,2,0.5,3)",
            ]
            .map(|text| text.as_bytes().to_vec())
            .to_vec(),
            words: &[
                "(",
                ")",
                ",",
                ";",
                "0",
                "1",
                "-1",
                "0.5",
                "1e9",
                "18446744073709551615",
                "rand",
                "ones",
                "\"upper\"",
            ],
            run: Box::new(|bytes| {
                // A valid call may take too long for a fuzzer: only the text is parsed.
                let _ = gallery::parse(&String::from_utf8_lossy(bytes));
            }),
        },
    ];
    for (name, seeds) in file_seeds() {
        let file = name.clone();
        targets.push(FuzzTarget { name, seeds, words: FILE_WORDS, run: Box::new(move |bytes| read(&file, bytes)) });
    }
    targets
}

fn program(text: &str) {
    let Ok(program) = Program::parse(text) else { return };
    let printed = program.to_string();
    match Program::parse(&printed) {
        Ok(again) => assert!(again == program, "reads back as another program:\n{printed}"),
        Err(d) => panic!("does not read back: {}\n{printed}", d.render(false)),
    }
    let input = |rank: usize| {
        let cells = 3usize.pow(rank.min(6) as u32);
        let values: Vec<f64> = (0..cells).map(|k| (k % 5) as f64 - 1.0).collect();
        Tensor::from_dense(&vec![3; rank], values.into(), &Format::dense(rank), Value::F64(0.0))
    };
    if program.params.iter().any(|id| program.tensor(*id).rank > 6) {
        return;
    }
    let Ok(tensors) = program.params.iter().map(|id| input(program.tensor(*id).rank)).collect::<Result<Vec<_>, _>>()
    else {
        return;
    };
    let operands: Vec<&dyn Operand> = tensors.iter().map(|t| t as &dyn Operand).collect();
    let _ = interp::run(&program, &operands, Options { strict: false, budget: Some(2000) });
}

fn format(text: &str) {
    let Ok(spec) = FormatSpec::parse(text) else { return };
    assert_eq!(FormatSpec::parse(&spec.to_string()).as_ref(), Ok(&spec), "{spec}");
    for rank in 0..4 {
        let _ = spec.with_rank(rank);
    }
}

fn read(name: &str, bytes: &[u8]) {
    let options = ReadOptions { duplicates: Combine::First, ..ReadOptions::default() };
    let Ok(tensor) = read_from(name, bytes, &options) else { return };
    // Accepted tensors satisfy their invariants: they can be converted to entries and back.
    let levels = (0..tensor.levels().len()).map(|k| tensor.level_arrays(k)).collect();
    let again = Tensor::from_parts(tensor.shape(), tensor.format(), levels, tensor.values().cloned(), tensor.fill());
    assert!(again.is_ok(), "{:?}", again.err());
}

/// Small valid files of every kind, written by the library or by hand.
fn file_seeds() -> Vec<(String, Vec<Vec<u8>>)> {
    let matrix = |values: ValueArray| Coordinates {
        shape: vec![3, 4],
        columns: vec![vec![0u32, 0, 2].into(), vec![0u32, 3, 0].into()],
        values,
    };
    let tensor = |values: ValueArray, format: &Format| {
        let zero = Value::zero(values.dtype());
        Tensor::from_coordinates(&matrix(values), format, zero, Combine::Error).ok()
    };
    let mut tensors = Vec::new();
    for format in [Format::coo(2), Format::csr(), Format::csc(), Format::dense(2)] {
        tensors.extend(tensor(vec![1.5, -2.0, 3e10].into(), &format));
        tensors.extend(tensor(vec![1i64, 2, -3].into(), &format));
        tensors.extend(tensor(vec![true, true, true].into(), &format));
        tensors.extend(tensor(vec![num_complex_like(1.0, 2.0); 3].into(), &format));
    }
    let mut seeds = Vec::new();
    for kind in FileKind::ALL {
        let mut files: Vec<Vec<u8>> = Vec::new();
        for tensor in &tensors {
            let mut bytes = Vec::new();
            if kind.is_writable() && write_to(kind, &mut bytes, tensor, &WriteOptions::default()).is_ok() {
                files.push(bytes);
            }
        }
        files.extend(by_hand(kind.extension()));
        if !files.is_empty() {
            seeds.push((format!("fuzz.{}", kind.extension()), files));
        }
    }
    seeds
}

fn num_complex_like(re: f64, im: f64) -> num_complex::Complex<f64> {
    num_complex::Complex::new(re, im)
}

fn by_hand(extension: &str) -> Vec<Vec<u8>> {
    let texts: &[&[u8]] = match extension {
        "mtx" => &[
            b"%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 2\n1 1 2.5\n3 2 -1\n",
            b"%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n",
            b"%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 1 2\n",
            b"%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n",
        ],
        "tns" => &[b"# c\n1 2 3 1.5\n2 2 2 7\n", b"3 2\n2 2 3\n1 2 3 1.5\n2 2 2 7\n"],
        "smtx" => &[b"2, 3, 3\n0 2 3\n0 2 1\n"],
        "pbm" => &[b"P4\n9 2\n\xff\x80\x00\x80", b"P1\n2 2\n1 0 0 1\n"],
        "pgm" => &[b"P5\n2 2\n255\n\x00\x01\x02\x03", b"P2\n2 1\n15\n3 4\n"],
        "txt" => &[b"1 2 3\n4 5 6\n", b"0\n1\n1\n"],
        _ if extension.starts_with("idx") => &[b"\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x02\x00\x01\x02\x03"],
        _ => &[],
    };
    texts.iter().map(|text| text.to_vec()).collect()
}

/// One mutated input; `Err` with the input if the target panicked.
pub fn try_one(target: &FuzzTarget, random: &mut Random) -> Result<(), (Vec<u8>, String)> {
    let mut bytes = random.pick(&target.seeds).clone();
    for _ in 0..random.below(6) {
        damage(&mut bytes, target, random);
    }
    catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|t| t.to_string()));
        (bytes, text.unwrap_or_default())
    })
}

fn damage(bytes: &mut Vec<u8>, target: &FuzzTarget, random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = (at + 1 + random.below(8)).min(bytes.len());
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.bits() as u8,
        2 => bytes.truncate(at),
        3 if at < end => drop(bytes.drain(at..end)),
        4 => {
            let other = random.pick(&target.seeds).clone();
            let from = random.below(other.len() + 1);
            let to = (from + random.below(40)).min(other.len());
            drop(bytes.splice(at..at, other[from..to].iter().copied()));
        }
        5 if at < end => {
            let copy = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, copy));
        }
        _ => drop(bytes.splice(at..at, random.pick(target.words).bytes())),
    }
}
