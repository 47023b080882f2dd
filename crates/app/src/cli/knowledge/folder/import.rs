//! `orchestr8 knowledge import`: the tree becomes what a folder says. Run again it changes nothing, or does the rest.

use std::path::PathBuf;

use clap::Args;
use orchestr8_knowledge::folder::plan;

use super::super::super::Shell;
use super::super::Asking;
use super::super::shelf::ROOT;
use super::carry::{Report, Stop, word_of};
use super::flight::fly;
use super::progress::Progress;
use super::{manifest, read, stored};
use crate::failure::Failure;
use crate::terminal::visible_line;

#[derive(Args)]
pub struct Import {
    /// The folder: every *.md in it, and folders as documents.
    folder: PathBuf,
    /// Below this document [default: at the top].
    #[arg(long, value_name = "DOCUMENT")]
    into: Option<String>,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Import {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let folder = read(&self.folder)?;
        let mut progress = Progress::new(shell.terminal);
        let report = self.asking.run(shell, async |shelf| {
            let stop = Stop::watch()?;
            let top = shelf.parent(self.into.as_deref().unwrap_or(ROOT)).await?;
            let base = manifest::read(&self.folder, &top)?;
            let folder = folder.told_apart(&top, &base);
            let calls = plan(&folder.files, &stored(shelf, &top, &mut progress).await?, &base, &top);
            let mut report = Report { problems: folder.problems, others: folder.others, ..Report::default() };
            if self.dry_run {
                for call in &calls {
                    shell.terminal.data(&visible_line(&format!("{:7} {}", word_of(call), call.path)));
                }
                report.planned = Some(calls.len());
                return Ok(report);
            }
            progress.begin("importing", calls.len());
            fly(calls.iter(), shelf, &mut report, &mut progress, &stop).await;
            progress.clear();
            Ok(report)
        })?;
        report.show(shell);
        Ok(report.exit_code())
    }
}
