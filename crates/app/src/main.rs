//! The orchestr8 program.

fn main() -> std::process::ExitCode {
    orchestr8::main()
}
