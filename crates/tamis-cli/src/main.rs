//! The `tamis` command; everything is in the library beside it, where it can be tested.

fn main() -> std::process::ExitCode {
    tamis_cli::main()
}
