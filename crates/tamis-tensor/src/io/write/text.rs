//! Formatting of numbers and lines, in parallel chunks that are written in order.

use crate::ValueArray;
use num_complex::Complex;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Appends an integer.
pub(super) fn push_integer(line: &mut Vec<u8>, number: impl itoa::Integer) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the shortest text that parses to the same double.
pub(super) fn push_real(line: &mut Vec<u8>, number: f64) {
    if number.is_nan() {
        line.extend_from_slice(b"nan");
    } else if number.is_infinite() {
        line.extend_from_slice(if number > 0.0 { b"inf" } else { b"-inf" });
    } else {
        line.extend_from_slice(zmij::Buffer::new().format_finite(number).as_bytes());
    }
}

fn push_complex(line: &mut Vec<u8>, number: Complex<f64>) {
    push_real(line, number.re);
    line.push(b' ');
    push_real(line, number.im);
}

/// Appends the value at `k`: booleans as 0 and 1, complex numbers as two.
pub(super) fn push_value(line: &mut Vec<u8>, values: &ValueArray, k: usize) {
    match values {
        ValueArray::Bool(v) => line.push(if v[k] != 0 { b'1' } else { b'0' }),
        ValueArray::I8(v) => push_integer(line, v[k]),
        ValueArray::I16(v) => push_integer(line, v[k]),
        ValueArray::I32(v) => push_integer(line, v[k]),
        ValueArray::I64(v) => push_integer(line, v[k]),
        ValueArray::U8(v) => push_integer(line, v[k]),
        ValueArray::U16(v) => push_integer(line, v[k]),
        ValueArray::U32(v) => push_integer(line, v[k]),
        ValueArray::U64(v) => push_integer(line, v[k]),
        // As an equal double: the shortest text of a 32-bit float would parse to another double.
        ValueArray::F32(v) => push_real(line, f64::from(v[k])),
        ValueArray::F64(v) => push_real(line, v[k]),
        ValueArray::C64(v) => push_complex(line, Complex::new(f64::from(v[k].re), f64::from(v[k].im))),
        ValueArray::C128(v) => push_complex(line, v[k]),
    }
}

/// Writes `count` lines, each appended by `push` with its line end.
pub(super) fn write_lines(
    out: &mut dyn Write,
    count: usize,
    push: impl Fn(&mut Vec<u8>, usize) + Sync,
) -> io::Result<()> {
    const CHUNK: usize = 1 << 14;
    let threads = crate::threads();
    // A few chunks for each thread at a time, so that memory is bounded for files of any length.
    let wave = CHUNK * 4 * threads;
    let mut start = 0;
    while start < count {
        let end = count.min(start.saturating_add(wave));
        let chunks: Vec<Mutex<Vec<u8>>> = (start..end).step_by(CHUNK).map(|_| Mutex::default()).collect();
        let next = AtomicUsize::new(0);
        crate::threads::share(threads.min(chunks.len()), &|_| {
            loop {
                let k = next.fetch_add(1, Ordering::Relaxed);
                let Some(Ok(mut text)) = chunks.get(k).map(|chunk| chunk.lock()) else { break };
                let first = start + k * CHUNK;
                text.reserve(16 * CHUNK.min(end - first));
                for line in first..end.min(first + CHUNK) {
                    push(&mut text, line);
                }
            }
        });
        for chunk in chunks {
            let text = chunk.into_inner().map_err(|_| io::Error::other("a line could not be written"))?;
            out.write_all(&text)?;
        }
        start = end;
    }
    Ok(())
}

/// Comments, one line each, with any line ends.
pub(super) fn write_comments(out: &mut dyn Write, mark: &str, comments: &[String]) -> io::Result<()> {
    for line in comments.iter().flat_map(|c| c.split(['\n', '\r'])) {
        writeln!(out, "{mark} {line}")?;
    }
    Ok(())
}
