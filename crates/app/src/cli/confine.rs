//! `orchestr8 confine`: the launcher of a sandbox. Started by the server for programs; not for people.

use std::ffi::OsString;

use clap::Args;
use orchestr8_process::sandbox::launch;

#[derive(Args)]
pub struct Confine {
    /// What the sandbox is like, as JSON.
    spec: OsString,
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl Confine {
    /// The exit code of the program.
    pub fn run(&self) -> u8 {
        launch(&self.spec, &self.program)
    }
}
