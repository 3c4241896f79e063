//! The panic hook: a panic is a bug of Tamis, and the message says what to report.

use std::io::Write;
use std::panic::PanicHookInfo;

/// Installs the hook. The process ends with status 101, which no error of a user has.
pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        let arguments: Vec<String> = std::env::args_os().map(|a| format!("{a:?}")).collect();
        // Standard error may be closed.
        let _ = std::io::stderr().write_all(report(&message(info), &arguments).as_bytes());
    }));
}

fn message(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
    let what = text.unwrap_or("no message");
    match info.location() {
        Some(place) => format!("{what} ({}:{}:{})", place.file(), place.line(), place.column()),
        None => what.to_string(),
    }
}

fn report(message: &str, arguments: &[String]) -> String {
    let backtrace = std::backtrace::Backtrace::capture();
    let trace = match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => format!("\n{backtrace}"),
        _ => " run again with RUST_BACKTRACE=1 and add what it prints".to_string(),
    };
    format!(
        "tamis: this is a bug in Tamis, not a mistake of yours. No result was written.
Please report it, with the lines below and, if you can, the files that were used:

    version    {} ({} {})
    command    {}
    problem    {}
    backtrace {trace}
",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        arguments.join(" "),
        message.replace('\n', "\n               "),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_report_says_whose_bug_it_is_and_what_to_send() {
        let report = super::report("index 3 out of range (x.rs:1:2)", &["\"tamis\"".into(), "\"info\"".into()]);
        for part in ["bug in Tamis", env!("CARGO_PKG_VERSION"), "\"tamis\" \"info\"", "index 3 out of range (x.rs:1:2)"]
        {
            assert!(report.contains(part), "{report}");
        }
    }
}
