//! The launcher as a program of its own, for tests: `confine FOLDER -- PROGRAM ARGS`.
#![allow(clippy::print_stderr, reason = "whoever starts it should see why it did not work")]

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [folder, _, program, rest @ ..] = args.as_slice() else { return ExitCode::from(2) };
    let error = orchestr8_sessions::shell::confine::confine(Path::new(folder), program, rest);
    eprintln!("{error}");
    ExitCode::from(126)
}
