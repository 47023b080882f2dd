//! `orchestr8 knowledge sync`: changes go both ways; what changed on both sides is told and left alone.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use orchestr8_knowledge::folder::{Base, Plan, Side, Step, Ways, reconcile};

use super::super::super::Shell;
use super::super::super::confirm::confirm;
use super::super::Asking;
use super::super::shelf::{ROOT, Shelf};
use super::carry::{Files, Report, Stop, interrupted, word};
use super::flight::fly;
use super::progress::Progress;
use super::{Folder, manifest, read, stored};
use crate::failure::Failure;
use crate::terminal::visible_line;

#[derive(Args)]
pub struct Sync {
    /// The folder.
    folder: PathBuf,
    /// This document's folder [default: all documents].
    #[arg(long, value_name = "DOCUMENT")]
    document: Option<String>,
    /// Delete on one side what is gone from the other, after showing it.
    #[arg(long)]
    delete: bool,
    /// Who wins where both sides changed. A file that loses is kept beside as *.mine, a document in its history.
    #[arg(long, value_enum, value_name = "SIDE")]
    prefer: Option<Preferred>,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before deleting.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preferred {
    Folder,
    Tree,
}

impl Sync {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let prefer = self.prefer.map(|side| match side {
            Preferred::Folder => Side::Folder,
            Preferred::Tree => Side::Tree,
        });
        let meeting = Meeting {
            root: &self.folder,
            document: self.document.as_deref(),
            ways: Ways { push: true, pull: true, remove: self.delete, prefer },
            dry_run: self.dry_run,
            yes: self.yes,
            word: "syncing",
        };
        meeting.run(shell, &self.asking)
    }
}

/// A folder and the tree, about to meet.
pub struct Meeting<'m> {
    pub root: &'m Path,
    pub document: Option<&'m str>,
    pub ways: Ways,
    pub dry_run: bool,
    pub yes: bool,
    pub word: &'static str,
}

impl Meeting<'_> {
    pub fn run(&self, shell: &Shell, asking: &Asking) -> Result<u8, Failure> {
        let folder = read(self.root)?;
        let mut progress = Progress::new(shell.terminal);
        let report = asking.run(shell, async |shelf| {
            let stop = Stop::watch()?;
            let top = shelf.parent(self.document.unwrap_or(ROOT)).await?;
            let base = manifest::read(self.root, &top)?;
            let folder = folder.told_apart(&top, &base);
            let tree = stored(shelf, &top, &mut progress).await?;
            let plan =
                self.hold_back(&folder, reconcile(&folder.files, &tree, &base, &top, self.ways), &base);
            if self.dry_run {
                for step in &plan.steps {
                    shell.terminal.data(&visible_line(&line(step)));
                }
                let planned = Some(plan.steps.len());
                return Ok(Report { planned, ..self.report(folder, plan) });
            }
            self.ask(shell, &plan)?;
            progress.begin(self.word, plan.steps.len());
            let report = self.carry(shelf, folder, plan, (&base, &top), &mut progress, &stop).await;
            progress.clear();
            report
        })?;
        report.show(shell);
        Ok(report.exit_code())
    }

    /// A file that cannot be read is there all the same: nothing is deleted for it, and nothing written over it.
    fn hold_back(&self, folder: &Folder, mut plan: Plan, base: &Base) -> Plan {
        let unread = |path: &str| folder.problems.iter().any(|problem| problem.path == path);
        let held: Vec<String> = base
            .iter()
            .filter(|(_, known)| unread(&known.path))
            .map(|(id, _)| id.clone())
            .chain(plan.steps.iter().filter_map(|step| match step {
                Step::Write { id, path, .. } if unread(path) => Some(id.clone()),
                Step::Write { .. } | Step::Call(_) | Step::Rename { .. } | Step::Remove { .. } => None,
            }))
            .collect();
        plan.steps.retain(|step| !held.iter().any(|id| id == id_of(step)));
        for id in held {
            match base.get(&id) {
                Some(known) => drop(plan.base.insert(id, known.clone())),
                None => drop(plan.base.remove(&id)),
            }
        }
        plan
    }

    /// Shows what goes, and asks.
    fn ask(&self, shell: &Shell, plan: &Plan) -> Result<(), Failure> {
        // A file whose document stays only moves.
        let goes = |step: &&Step| match step {
            Step::Remove { id, .. } => !plan.base.contains_key(id),
            Step::Call(_) | Step::Write { .. } | Step::Rename { .. } => word(step) == "delete",
        };
        let lines: Vec<String> =
            plan.steps.iter().filter(goes).map(|step| visible_line(&line(step))).collect();
        if lines.is_empty() { Ok(()) } else { confirm(shell, self.yes, &lines.join("\n")) }
    }

    fn report(&self, folder: Folder, plan: Plan) -> Report {
        Report {
            problems: folder.problems,
            others: folder.others,
            conflicts: plan.conflicts,
            left: plan.left,
            ..Report::default()
        }
    }

    async fn carry(
        &self,
        shelf: &Shelf<'_>,
        folder: Folder,
        plan: Plan,
        (before, top): (&Base, &str),
        progress: &mut Progress,
        stop: &Stop,
    ) -> Result<Report, Failure> {
        let (steps, mut base, files) = (plan.steps.clone(), plan.base.clone(), folder.files.clone());
        let mut report = self.report(folder, plan);
        let deletes = |step: &Step| matches!(word(step), "delete");
        for wave in [false, true] {
            let calls = steps.iter().filter(|step| deletes(step) == wave).filter_map(|step| match step {
                Step::Call(call) => Some(call),
                Step::Write { .. } | Step::Rename { .. } | Step::Remove { .. } => None,
            });
            fly(calls, shelf, &mut report, progress, stop).await;
            if !wave {
                Files::new(self.root, &files).carry(&steps, &mut report, progress, stop);
            }
        }
        if stop.is_asked() && report.unfinished.is_none() {
            report.unfinished = Some(interrupted());
        }
        for id in &report.undone {
            match before.get(id) {
                Some(known) => drop(base.insert(id.clone(), known.clone())),
                None => drop(base.remove(id)),
            }
        }
        manifest::write(self.root, top, &base)?;
        Ok(report)
    }
}

fn id_of(step: &Step) -> &str {
    match step {
        Step::Call(call) => &call.id,
        Step::Write { id, .. } | Step::Rename { id, .. } | Step::Remove { id, .. } => id,
    }
}

fn line(step: &Step) -> String {
    match step {
        Step::Call(call) => format!("{:7} {}", word(step), call.path),
        Step::Write { path, .. } | Step::Remove { path, .. } => format!("{:7} {path}", word(step)),
        Step::Rename { from, to, .. } => format!("{:7} {from} -> {to}", word(step)),
    }
}
