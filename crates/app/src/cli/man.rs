//! `orchestr8 man`: the manual page on stdout, or one page for each command in a folder.

use std::path::{Path, PathBuf};

use clap::Args;
use orchestr8_contract::Code;

use super::Shell;
use crate::failure::Failure;

#[derive(Args)]
pub struct Man {
    /// Write the pages of all commands here.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let wrong = |path: &Path| {
            let path = path.display().to_string();
            move |cause: std::io::Error| {
                Failure::new(Code::Unavailable, format!("{path}: {cause}"))
                    .hinting("check that the folder can be written")
            }
        };
        match &self.out {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(super::command())
                    .render(&mut page)
                    .map_err(wrong(Path::new("stdout")))?;
                shell.terminal.data(&String::from_utf8_lossy(&page));
            }
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(wrong(folder))?;
                clap_mangen::generate_to(super::command(), folder).map_err(wrong(folder))?;
                shell.terminal.note(&format!("the manual pages are in {}", folder.display()));
            }
        }
        Ok(())
    }
}
