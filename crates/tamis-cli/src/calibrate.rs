//! `tamis calibrate`: fits the constants of the cost model to this machine.

use crate::args::CalibrateArgs;
use crate::progress::Progress;
use crate::shell::{CommandError, CommandResult, Shell};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use tamis::calibrate::{Calibration, FIELDS, VARIABLE, calibrate, costs_file};
use tamis_ir::diag::{Code, Diagnostic};

/// Measures kernels, fits and shows the constants, and saves them with `--save`.
pub(crate) fn run(args: &CalibrateArgs, shell: &mut Shell) -> CommandResult {
    let path = match (args.save, costs_file()) {
        (true, None) => {
            let d = Diagnostic::new(Code::E0906, format!("{VARIABLE} says that the default constants are used"));
            return Err(CommandError::usage(vec![d.help(format!("unset {VARIABLE}, or let it name a file"))]));
        }
        (true, path) => path,
        (false, _) => None,
    };
    let progress = Progress::start("measuring kernels");
    let tell = |done: u64, total: u64| progress.update(done, total);
    let found = calibrate(Some(&tell))?;
    drop(progress);
    if let Some(path) = &path {
        let write = || {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(path, format!("# Written by `tamis calibrate`.\n{}", found.fit.costs))
        };
        write().map_err(|error: std::io::Error| {
            Diagnostic::new(Code::E0801, format!("cannot write {}: {error}", path.display()))
                .help(format!("let {VARIABLE} name another file"))
        })?;
    }
    if args.json {
        return shell.print_json(&document(&found));
    }
    let mut out = table(&found);
    match &path {
        Some(path) => {
            let _ = writeln!(out, "Written to {}: schedules are made with these from now on.", path.display());
        }
        None => out += "Nothing was changed: with --save, schedules are made with these from now on.\n",
    }
    Ok(shell.out.write_all(out.as_bytes())?)
}

fn document(found: &Calibration) -> serde_json::Value {
    let kernels: Vec<_> = found
        .kernels
        .iter()
        .map(|kernel| {
            json!({
                "notation": kernel.notation,
                "order": kernel.order,
                "formats": kernel.formats,
                "seconds": kernel.time.as_secs_f64(),
                "predicted_before": kernel.before.as_secs_f64(),
                "predicted_after": kernel.after.as_secs_f64(),
            })
        })
        .collect();
    let (mut before, mut after) = (found.before, found.fit.costs);
    let constants: serde_json::Map<String, serde_json::Value> = FIELDS
        .iter()
        .map(|(name, _, place)| {
            (name.to_string(), json!({ "before": *place(&mut before), "after": *place(&mut after) }))
        })
        .collect();
    json!({
        "kernels": kernels,
        "constants": constants,
        "step_seconds": found.fit.step,
        "error_before": found.fit.before,
        "error_after": found.fit.after,
    })
}

fn table(found: &Calibration) -> String {
    let mut out = String::new();
    let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    let _ =
        writeln!(out, "{:<40} {:<8} {:>10} {:>10} {:>10}  in us", "kernel", "loops", "measured", "before", "fitted");
    for kernel in &found.kernels {
        let _ = writeln!(
            out,
            "{:<40} {:<8} {:>10.1} {:>10.1} {:>10.1}  {}",
            kernel.notation,
            kernel.order,
            micros(kernel.time),
            micros(kernel.before),
            micros(kernel.after),
            kernel.formats
        );
    }
    let (mut before, mut after) = (found.before, found.fit.costs);
    let _ = writeln!(out, "\n{:<16} {:>8} {:>8} {:>7}", "constant", "before", "fitted", "change");
    for (name, fitted, place) in FIELDS.iter() {
        let (was, is) = (*place(&mut before), *place(&mut after));
        let change = match fitted {
            true => format!("{:>6.2}x", is / was),
            false => "not fitted".to_string(),
        };
        let _ = writeln!(out, "{name:<16} {was:>8.3} {is:>8.3} {change}");
    }
    let fit = &found.fit;
    let _ = writeln!(
        out,
        "\nA step takes {:.2} ns. Predictions were off by a factor of {:.2} on average, and are by {:.2}.",
        fit.step * 1e9,
        fit.before,
        fit.after
    );
    out
}
