//! The entry point of the `tamis` command; the library beside it does the work, and is tested.

fn main() -> std::process::ExitCode {
    tamis_cli::main()
}
