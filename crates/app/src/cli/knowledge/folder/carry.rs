//! What was planned, and what came of it: the report of a run, and the files of a folder.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use orchestr8_contract::Code;
use orchestr8_knowledge::folder::{self, Call, Conflict, File, Step};
use serde_json::{Value, json};

use super::super::super::Shell;
use super::super::super::interrupts::Interrupts;
use super::disk::{self, Problem};
use super::flight::above;
use super::progress::Progress;
use crate::failure::{Failure, exit};
use crate::terminal::visible_line;

/// Whether somebody pressed Ctrl-C. What is under way is finished first; a second Ctrl-C does not wait for it.
#[derive(Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn watch() -> Result<Self, Failure> {
        let (stop, mut interrupts) = (Self(Arc::default()), Interrupts::watch()?);
        let asked = stop.0.clone();
        tokio::spawn(async move {
            interrupts.next().await;
            asked.store(true, Ordering::SeqCst);
            interrupts.leave_at_the_next();
        });
        Ok(stop)
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// What was done, and what was not.
#[derive(Default)]
pub struct Report {
    pub counts: BTreeMap<&'static str, usize>,
    pub problems: Vec<Problem>,
    pub conflicts: Vec<Conflict>,
    pub left: Vec<Conflict>,
    /// Files that are no Markdown.
    pub others: usize,
    pub unfinished: Option<Failure>,
    /// How much there is to do, where nothing was to be done yet.
    pub planned: Option<usize>,
    /// Documents of which something was not done.
    pub undone: HashSet<String>,
}

/// What a step is called.
pub fn word(step: &Step) -> &'static str {
    match step {
        Step::Call(call) => word_of(call),
        Step::Write { .. } => "write",
        Step::Rename { .. } => "rename",
        Step::Remove { .. } => "remove",
    }
}

pub fn word_of(call: &Call) -> &'static str {
    match call.action {
        "knowledge.create_document" => "create",
        "knowledge.update_document" => "update",
        "knowledge.move_document" => "move",
        _ => "delete",
    }
}

impl Report {
    fn count(&mut self, word: &'static str) {
        *self.counts.entry(word).or_default() += 1;
    }

    /// Whether a call can be made: what it is below is there.
    pub fn may_go(&mut self, call: &Call) -> bool {
        let is_free = above(call).iter().all(|id| !self.undone.contains(*id));
        if !is_free {
            self.fail(&call.id, &call.path, String::from("what it is below could not be made"));
        }
        is_free
    }

    /// Notes what came of a call.
    pub fn landed(&mut self, call: &Call, result: Result<Value, Failure>) {
        match result {
            Ok(_) => self.count(word_of(call)),
            Err(failure) if is_of_all(&failure) => {
                self.undone.insert(call.id.clone());
                self.unfinished.get_or_insert(failure);
            }
            Err(failure) => {
                let hint = failure.hint.as_deref().map_or_else(String::new, |hint| format!(" ({hint})"));
                self.fail(&call.id, &call.path, format!("{}{hint}", failure.message));
            }
        }
    }

    fn fail(&mut self, id: &str, path: &str, what: String) {
        self.undone.insert(id.to_owned());
        self.problems.push(Problem { path: path.to_owned(), what });
    }

    pub fn exit_code(&self) -> u8 {
        match &self.unfinished {
            Some(failure) => failure.exit_code(),
            None if !self.problems.is_empty() => exit::FAILED,
            None if !self.conflicts.is_empty() => exit::CONFLICT,
            None => exit::OK,
        }
    }

    pub fn show(&self, shell: &Shell) {
        let terminal = &shell.terminal;
        if terminal.json {
            terminal.value(&self.json());
        } else {
            for problem in &self.problems {
                terminal.warn(&visible_line(&format!("{}: {}", problem.path, problem.what)));
            }
            for conflict in &self.conflicts {
                terminal.warn(&visible_line(&format!("conflict: {}: {}", conflict.path, conflict.why)));
            }
            for left in &self.left {
                terminal.note(&visible_line(&format!("left alone: {}: {}", left.path, left.why)));
            }
            let counts: Vec<String> =
                self.counts.iter().map(|(word, count)| format!("{count} {}", past(word))).collect();
            match self.planned {
                Some(planned) if planned > 0 => terminal.note(&format!("{planned} to do; nothing was done")),
                Some(_) | None if counts.is_empty() => terminal.data("nothing to do"),
                Some(_) | None => terminal.data(&counts.join(", ")),
            }
            match self.others {
                0 => {}
                1 => terminal.note("1 other file was not looked at"),
                others => terminal.note(&format!("{others} other files were not looked at")),
            }
            if self.unfinished.is_some() {
                terminal.note("run it again to go on");
            }
        }
        if let Some(failure) = &self.unfinished {
            terminal.fail(failure);
        }
    }

    fn json(&self) -> Value {
        let told = |list: &[Conflict]| -> Vec<Value> {
            list.iter().map(|one| json!({"id": one.id, "path": one.path, "why": one.why})).collect()
        };
        let problems: Vec<Value> =
            self.problems.iter().map(|one| json!({"path": one.path, "what": one.what})).collect();
        json!({"done": self.counts, "problems": problems, "conflicts": told(&self.conflicts), "left": told(&self.left),
            "otherFiles": self.others, "planned": self.planned, "finished": self.unfinished.is_none()})
    }
}

fn past(word: &str) -> &'static str {
    match word {
        "create" => "created",
        "update" => "updated",
        "move" => "moved",
        "delete" => "deleted",
        "write" => "written",
        "rename" => "renamed",
        "remove" => "removed",
        _ => "in step",
    }
}

/// Whether a failure is about the server or the caller, and not about one document.
fn is_of_all(failure: &Failure) -> bool {
    matches!(failure.exit_code(), exit::NOT_ALLOWED | exit::TIMED_OUT | exit::UNREACHABLE)
}

pub fn interrupted() -> Failure {
    Failure::new(Code::Cancelled, "stopped before the end")
        .hinting("what was done is kept; run it again to go on")
}

/// The files of a folder, as they were when it was read.
pub struct Files<'f> {
    root: &'f Path,
    seen: HashMap<&'f str, &'f File>,
    written: HashSet<String>,
}

impl<'f> Files<'f> {
    pub fn new(root: &'f Path, files: &'f [File]) -> Self {
        let seen = files.iter().map(|file| (file.path.as_str(), file)).collect();
        Self { root, seen, written: HashSet::new() }
    }

    /// Does everything that is to be done in the folder.
    pub fn carry(&mut self, steps: &[Step], report: &mut Report, progress: &mut Progress, stop: &Stop) {
        self.rename(steps, report);
        for step in steps {
            let (id, path, aside) = match step {
                Step::Write { id, path, aside, .. } | Step::Remove { id, path, aside } => (id, path, *aside),
                Step::Call(_) | Step::Rename { .. } => continue,
            };
            if stop.is_asked() || report.unfinished.is_some() {
                report.undone.insert(id.clone());
                continue;
            }
            match self.one(step, path, aside) {
                Ok(true) => report.count(word(step)),
                Ok(false) => {}
                Err(failure) => report.fail(id, path, failure.message),
            }
            progress.advance(1, path);
        }
    }

    /// Whether something was done.
    fn one(&mut self, step: &Step, path: &str, aside: bool) -> Result<bool, Failure> {
        let is_free = self.written.contains(path);
        if !is_free {
            self.check(path)?;
        }
        if aside && !is_free {
            disk::keep_aside(self.root, path)?;
        }
        match step {
            Step::Write { text, .. } => {
                disk::write(self.root, path, text)?;
                self.written.insert(path.to_owned());
                Ok(true)
            }
            Step::Remove { .. } if is_free => Ok(false),
            Step::Remove { .. } => disk::remove(self.root, path).map(|()| true),
            Step::Call(_) | Step::Rename { .. } => Ok(false),
        }
    }

    /// What somebody wrote since the folder was read is theirs.
    fn check(&self, path: &str) -> Result<(), Failure> {
        let now = std::fs::read_to_string(disk::place(self.root, path)?).ok();
        let same = match (self.seen.get(path), &now) {
            (None, None) | (Some(_), None) => true,
            (Some(seen), Some(text)) => folder::read(path, text).is_ok_and(|file| file == **seen),
            (None, Some(_)) => false,
        };
        match same {
            true => Ok(()),
            false => Err(Failure::new(Code::IdConflict, "it was changed in the meantime")),
        }
    }

    /// Moves files to where nothing is; what is in each other's way goes by a name between.
    fn rename(&mut self, steps: &[Step], report: &mut Report) {
        let renames = steps.iter().filter_map(|step| match step {
            Step::Rename { id, from, to } => Some((id, from.clone(), to)),
            Step::Call(_) | Step::Write { .. } | Step::Remove { .. } => None,
        });
        let mut open: Vec<(&String, String, &String)> = renames.collect();
        while !open.is_empty() {
            let free = |to: &str| {
                disk::place(self.root, to).is_ok_and(|place| std::fs::symlink_metadata(place).is_err())
            };
            let (now, mut later): (Vec<_>, Vec<_>) = open.into_iter().partition(|(_, _, to)| free(to));
            if now.is_empty() {
                let Some((_, from, _)) = later.first_mut() else { return };
                let between = format!("{from}.moving");
                if self.shift(from, &between).is_err() || from.ends_with(".moving") {
                    for (id, from, _) in &later {
                        report.fail(id, from, String::from("another file is where it belongs"));
                    }
                    return;
                }
                *from = between;
            }
            for (id, from, to) in now {
                match self.shift(&from, to) {
                    Ok(()) => {
                        report.count("rename");
                        self.written.insert(to.clone());
                    }
                    Err(failure) => report.fail(id, &from, failure.message),
                }
            }
            open = later;
        }
    }

    fn shift(&self, from: &str, to: &str) -> Result<(), Failure> {
        disk::make_folder(self.root, to)?;
        let (old, new) = (disk::place(self.root, from)?, disk::place(self.root, to)?);
        std::fs::rename(&old, &new)
            .map_err(|cause| Failure::new(Code::InvalidArgument, format!("{from}: {cause}")))?;
        // Folders that are empty now would look like documents.
        disk::remove(self.root, from)
    }
}
