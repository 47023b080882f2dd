//! `orchestr8 completions <shell>`: a script that completes commands, to be sourced by the shell.

use clap::Args;
use clap_complete::Shell as Kind;

use super::Shell;
use crate::failure::Failure;

#[derive(Args)]
pub struct Completions {
    /// The shell that reads it.
    shell: Kind,
}

impl Completions {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "orchestr8", &mut script);
        shell.terminal.data(&String::from_utf8_lossy(&script));
        Ok(())
    }
}
