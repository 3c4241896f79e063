//! Times of phases and passes, as a table or as JSON.

use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::time::Duration;
use tamis::cache::CacheHit;
use tamis::compile::{Build, WorkspaceReport};

/// The steps of a command, one line each.
pub(crate) fn steps(times: &[(&str, Duration)]) -> String {
    let width = times.iter().map(|(what, _)| what.len()).max().unwrap_or(0).max(6);
    times.iter().fold(String::new(), |mut text, (what, time)| {
        let _ = writeln!(text, "{what:>width$} {:>10.3} ms", milliseconds(*time));
        text
    })
}

pub(crate) fn steps_as_json(times: &[(&str, Duration)]) -> Json {
    times.iter().map(|(what, time)| (what.to_string(), json!(time.as_secs_f64()))).collect()
}

/// Statistics of workspaces, one line each.
pub(crate) fn workspaces(reports: &[(String, WorkspaceReport)]) -> String {
    reports.iter().fold(String::new(), |mut text, (name, report)| {
        let WorkspaceReport { inserts, flushes, merged, .. } = report;
        let peak = crate::info::bytes(report.peak_bytes);
        let _ = writeln!(
            text,
            "workspace {name}: {inserts} insertions, {flushes} flushes, {merged} entries merged, at most {peak}"
        );
        text
    })
}

pub(crate) fn workspaces_as_json(reports: &[(String, WorkspaceReport)]) -> Json {
    let of = |report: &WorkspaceReport| {
        json!({
            "inserts": report.inserts,
            "flushes": report.flushes,
            "merged": report.merged,
            "finalizations": report.finalizations,
            "accumulation_bytes": report.accumulation_bytes,
            "flushed_bytes": report.flushed_bytes,
            "policy_bytes": report.policy_bytes,
            "sort_bytes": report.sort_bytes,
            "peak_bytes": report.peak_bytes,
        })
    };
    reports.iter().map(|(name, report)| (name.clone(), of(report))).collect()
}

/// The stages of the backend, in order.
fn stages(build: &Build) -> [(&'static str, Duration); 5] {
    let machine = build.machine;
    [
        ("emit", machine.emit),
        ("parse", machine.parse),
        ("optimise", machine.optimise),
        ("generate", machine.generate),
        ("link", machine.link),
    ]
}

/// The origin of machine code, in words.
fn origin(found: CacheHit) -> &'static str {
    match found {
        CacheHit::InMemory => "machine code was in the cache, in memory",
        CacheHit::OnDisk => "machine code was in the cache, on disk",
        CacheHit::Miss => "machine code was not in the cache",
    }
}

/// The passes of the compiler, one line each with the time and how many statements the kernel has
/// afterwards.
pub(crate) fn passes(build: &Build) -> String {
    let mut text = format!("{:<16} {:>13} {:>11}\n", "pass", "time", "statements");
    let mut line = |name: &str, time: Duration, statements: Option<usize>| {
        let statements = statements.map(|n| n.to_string()).unwrap_or_default();
        let row = format!("{name:<16} {:>10.3} ms {statements:>11}", milliseconds(time));
        text += row.trim_end();
        text += "\n";
    };
    for pass in &build.passes {
        line(pass.name, pass.time, pass.statements);
    }
    for (name, time) in stages(build) {
        if !time.is_zero() {
            line(name, time, None);
        }
    }
    line("total", build.total(), None);
    match (build.found, &build.interpreted) {
        (Some(found), _) => text + origin(found) + "\n",
        (None, Some(reason)) => text + &format!("not compiled: {reason}\n"),
        (None, None) => text,
    }
}

pub(crate) fn passes_as_json(build: &Build) -> Json {
    let passes = build
        .passes
        .iter()
        .map(|pass| json!({ "name": pass.name, "seconds": pass.time.as_secs_f64(), "statements": pass.statements }));
    let stages = stages(build).into_iter().filter(|(_, time)| !time.is_zero());
    let stages = stages.map(|(name, time)| json!({ "name": name, "seconds": time.as_secs_f64(), "statements": null }));
    json!({
        "passes": passes.chain(stages).collect::<Vec<Json>>(),
        "seconds": build.total().as_secs_f64(),
        "cache": build.found.map(|found| match found {
            CacheHit::InMemory => "memory",
            CacheHit::OnDisk => "disk",
            CacheHit::Miss => "miss",
        }),
        "interpreted": build.interpreted,
    })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::compile::PassReport;

    #[test]
    fn tables() {
        let time = Duration::from_micros(1500);
        assert_eq!(steps(&[("read", time), ("interpret", time)]), "     read      1.500 ms\ninterpret      1.500 ms\n");
        let build = Build {
            passes: vec![PassReport { name: "lower", time, statements: Some(12) }],
            obtain: time,
            found: Some(CacheHit::OnDisk),
            ..Build::default()
        };
        let expected = "\
pass                      time  statements
lower                 1.500 ms          12
total                 3.000 ms
machine code was in the cache, on disk
";
        assert_eq!(passes(&build), expected);
        assert_eq!(passes_as_json(&build)["cache"], "disk");
        let interpreted = Build { interpreted: Some("it was requested".into()), ..Build::default() };
        assert!(passes(&interpreted).ends_with("not compiled: it was requested\n"));
    }
}
