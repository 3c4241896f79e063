//! Schedules as text: what is printed reads back, and no text makes the reader panic.

use tamis_compiler::schedule::{BoundKind, Schedule};

#[test]
fn what_is_printed_reads_back() {
    let built = Schedule::new()
        .reorder(["i", "k#2", "j"])
        .split("k", "k0", "k1", 32)
        .tile(["i", "j"], ["i0", "i1"], ["j0", "j1"], [4, 8])
        .fuse("i", "j", "f")
        .bound("i", 100, BoundKind::Exactly)
        .bound("j", 7, BoundKind::AtMost)
        .unroll("i", 4)
        .vectorize("j")
        .parallelize("i")
        .precompute("A[i, j] * B[j, k]", &["i", "k"], &["iw", "kw"], Some("dense, bytemap"))
        .precompute("x[j]", &["j"], &["j"], None)
        .convert("A", "(i,j) -> (j,i): dense, sparse");
    let text = built.to_string();
    let read = Schedule::parse(&text).unwrap_or_else(|d| panic!("{text}\n{}", d.render(false)));
    assert_eq!(read, built);
    assert_eq!(read.to_string(), text);
}

/// The same commands in TACO's spelling and in ours.
#[test]
fn other_spellings() {
    let table = [
        ("reorder(i,k,j),split(k,k0,k1,32)", "reorder(i, k, j); split(k, k0, k1, 32)"),
        ("parallelize(i,CPUThread,NoRaces)", "parallelize(i, CPUThread, NoRaces)"),
        ("parallelize(i,CPUThread,Atomics)", "parallelize(i)"),
        ("parallelize(i,CPUVector,IgnoreRaces)", "vectorize(i)"),
        ("bound(i,i0,100,MaxExact)", "bound(i, i0, 100, exactly)"),
        ("bound(i,100)", "bound(i, 100, exactly)"),
        ("precompute(A(i,j)*B(j,k),{k},{kw})", "precompute(A(i,j)*B(j,k), k, kw)"),
        ("convert(A, dense, sparse)", "convert(A, \"dense, sparse\")"),
        (" ; ,\n unroll(i,4) ;\n", "unroll(i, 4)"),
    ];
    for (written, shown) in table {
        let schedule = Schedule::parse(written).unwrap_or_else(|d| panic!("{written}\n{}", d.render(false)));
        assert_eq!(schedule.to_string(), shown);
        assert_eq!(Schedule::parse(shown).unwrap(), schedule);
    }
}

/// Every damaged text is read or refused, with help.
#[test]
fn no_text_is_too_strange() {
    let text = "reorder(i,k#2,j); split(k,k0,k1,32), precompute(A[i,j] * x[j], [i,j], {iw,jw}, \"dense, sparse\")";
    let strange =
        ["", "(", ")", "[", "\"", "'", "#", ",", ";", "é", "\u{1f600}", "\0", "-1", "99999999999999999999", "\n", "="];
    let mut texts: Vec<String> = Vec::new();
    for at in 0..=text.len() {
        texts.push(text[..at].to_string());
        texts.push(text[at..].to_string());
        texts.extend(strange.iter().map(|s| format!("{}{s}{}", &text[..at], &text[at..])));
        texts.extend(strange.iter().map(|s| format!("{}{s}{}", &text[..at], &text[(at + 1).min(text.len())..])));
    }
    texts.push("x".repeat(1 << 17));
    texts.push("unroll(i,2);".repeat(2000));
    texts.push("(".repeat(10_000));
    texts.push(format!("precompute({}x{}, i, j)", "(".repeat(5000), ")".repeat(5000)));
    let mut refused = 0;
    for text in texts {
        match Schedule::parse(&text) {
            Ok(schedule) => assert_eq!(Schedule::parse(&schedule.to_string()).as_ref(), Ok(&schedule), "{text}"),
            Err(errors) => {
                refused += 1;
                assert!(errors.0.iter().all(|d| !d.help.is_empty()), "{text}");
                errors.render(false);
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}
