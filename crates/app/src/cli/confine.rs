//! `orchestr8 confine`: becomes a program that can write only beneath a folder. Started by sessions for the commands of their
//! shell; not for people.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_sessions::shell::confine::confine;

use crate::failure::Failure;

#[derive(Args)]
pub struct Confine {
    folder: PathBuf,
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl Confine {
    /// Returns only when it did not become the program.
    pub fn run(self) -> Result<(), Failure> {
        let Some((program, args)) = self.program.split_first() else { return Ok(()) };
        let error = confine(&self.folder, program, args);
        Err(Failure::new(Code::Unavailable, error.to_string()))
    }
}
