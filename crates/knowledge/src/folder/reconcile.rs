//! Both ways: what changed in the folder goes to the tree, what changed in the tree goes to the folder, and what changed in both
//! is told and left alone. What changed is seen against what both had in common when they last met.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::json;

use super::arrange::{Arranged, arrange};
use super::entries::{Entry, Stored, entries, from_the_top};
use super::fate::{Fate, fate};
use super::front::{File, write};
use super::names::ENDING;
use super::places::places;
use super::plan::{Call, DELETE, push};

/// What both sides had in common when they last met, by id.
pub type Base = BTreeMap<String, Known>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub path: String,
    pub print: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Folder,
    Tree,
}

/// Which ways to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways {
    /// From the folder to the tree.
    pub push: bool,
    /// From the tree to the folder.
    pub pull: bool,
    /// What is gone from one side goes from the other.
    pub remove: bool,
    /// Who wins where both changed; nobody without it.
    pub prefer: Option<Side>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Call(Call),
    /// With `aside`, what the file holds now is kept beside it.
    Write {
        id: String,
        path: String,
        text: String,
        aside: bool,
    },
    Rename {
        id: String,
        from: String,
        to: String,
    },
    Remove {
        id: String,
        path: String,
        aside: bool,
    },
}

/// What was not touched, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub id: String,
    pub path: String,
    pub why: &'static str,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub conflicts: Vec<Conflict>,
    /// What is on one side only and stays there, because nobody asked for more.
    pub left: Vec<Conflict>,
    pub same: usize,
    /// What both have in common once every step is done.
    pub base: Base,
}

/// What is to be done. `files` must not name a document twice: see `doubles`.
pub fn reconcile(files: &[File], stored: &[Stored], base: &Base, top: &str, ways: Ways) -> Plan {
    let entries = entries(files, top, base);
    let local: HashMap<&str, (&str, &Entry<'_>)> =
        entries.iter().map(|(path, entry)| (entry.id.as_str(), (path.as_str(), entry))).collect();
    let remote: HashMap<&str, &Stored> = stored.iter().map(|one| (one.id.as_str(), one)).collect();
    let ids: BTreeSet<&str> =
        local.keys().chain(remote.keys()).copied().chain(base.keys().map(String::as_str)).collect();
    let mut fates: BTreeMap<&str, Fate> = BTreeMap::new();
    for id in ids {
        let there = local.get(id).map(|(path, entry)| (*path, *entry));
        let known = base.get(id).map(|known| known.print.as_str());
        fates.insert(id, fate(there, remote.get(id).copied(), known, ways));
    }
    forget_empty(&mut fates, &entries);
    spare(&mut fates, &local, &remote);
    let parents = parents(&fates, &local, &remote);
    give_files(&mut fates, &parents, &local, ways);
    let stays = |id: &&&str| matches!(fates.get(**id), Some(Fate::Conflict(_) | Fate::Left(_)));
    let stay: Vec<&str> = local.keys().filter(stays).filter_map(|id| Some(local.get(id)?.0)).collect();
    let arranged = arrange(top, &parents, (&local, &remote), &stay);
    for (id, fate) in &mut fates {
        let told = matches!(fate, Fate::Left(_) | Fate::Conflict(_));
        if parents.contains_key(id) && !arranged.contains_key(*id) && !told {
            *fate = Fate::Conflict("its place was changed on both sides");
        }
    }
    let places = places(&from_the_top(&entries), stored);
    let sides = Sides { entries: &entries, local, remote, arranged, places };
    sides.plan(&fates, base, top)
}

/// A folder needs a document only for what the tree has below it.
fn forget_empty<'s>(fates: &mut BTreeMap<&'s str, Fate>, entries: &'s BTreeMap<String, Entry<'s>>) {
    let in_tree = |fates: &BTreeMap<&str, Fate>, entry: &Entry<'_>| {
        let fate = fates.get(entry.id.as_str());
        entry.file.is_some() && matches!(fate, Some(Fate::Push | Fate::Same | Fate::Pull { .. }))
    };
    for (path, entry) in entries.iter().filter(|(_, entry)| entry.file.is_none()) {
        let below = format!("{path}/");
        let mut all = entries.range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
        let is_needed = all.any(|(_, entry)| in_tree(fates, entry));
        if let Some(fate) = fates.get_mut(entry.id.as_str()).filter(|fate| **fate == Fate::Push)
            && !is_needed
        {
            *fate = Fate::Nothing;
        }
    }
}

/// Where everything that stays will be.
fn parents<'s>(
    fates: &BTreeMap<&'s str, Fate>,
    local: &HashMap<&'s str, (&'s str, &'s Entry<'s>)>,
    remote: &HashMap<&'s str, &'s Stored>,
) -> BTreeMap<&'s str, &'s str> {
    let mut parents = BTreeMap::new();
    for (id, fate) in fates {
        let ours = local.get(id).map(|(_, entry)| entry.parent.as_str());
        let theirs = remote.get(id).map(|stored| stored.parent.as_str());
        let parent = match fate {
            Fate::Push | Fate::Conflict(_) | Fate::Left(_) => ours.or(theirs),
            Fate::Same | Fate::Pull { .. } => theirs.or(ours),
            Fate::DropTree | Fate::DropFile { .. } | Fate::Nothing => None,
        };
        parents.extend(parent.map(|parent| (*id, parent)));
    }
    parents
}

/// A folder that loses its last file is gone, and would look deleted: its document gets a file of its own.
fn give_files(
    fates: &mut BTreeMap<&str, Fate>,
    parents: &BTreeMap<&str, &str>,
    local: &HashMap<&str, (&str, &Entry<'_>)>,
    ways: Ways,
) {
    let is_folder = |id: &str| local.get(id).is_some_and(|(_, entry)| entry.file.is_none());
    let has_file = |id: &str, fate: &Fate| match fate {
        Fate::Pull { .. } => true,
        Fate::Same | Fate::Push | Fate::Conflict(_) | Fate::Left(_) => {
            local.contains_key(id) && !is_folder(id)
        }
        Fate::DropTree | Fate::DropFile { .. } | Fate::Nothing => false,
    };
    let mut held = HashSet::new();
    for (id, _) in fates.iter().filter(|(id, fate)| has_file(id, fate)) {
        let mut at = *id;
        while let Some(parent) = parents.get(at).filter(|parent| held.insert(**parent)) {
            at = parent;
        }
    }
    for (_, fate) in fates.iter_mut().filter(|(id, _)| is_folder(id) && !held.contains(**id)) {
        if *fate == Fate::Same && ways.pull {
            *fate = Fate::Pull { aside: false };
        }
    }
}

/// What others stay below in the tree stays, and so does what that is below. What is pushed is where the folder has it by then.
fn spare<'s>(
    fates: &mut BTreeMap<&'s str, Fate>,
    local: &HashMap<&'s str, (&'s str, &'s Entry<'s>)>,
    remote: &HashMap<&'s str, &'s Stored>,
) {
    let parent = |id: &str, fate: Option<&Fate>| match (fate, local.get(id)) {
        (Some(Fate::Push), Some((_, entry))) => Some(entry.parent.as_str()),
        (_, _) => remote.get(id).map(|stored| stored.parent.as_str()),
    };
    let stay: Vec<&str> =
        fates.iter().filter(|(_, fate)| **fate != Fate::DropTree).map(|(id, _)| *id).collect();
    for start in stay {
        let (mut at, mut seen) = (start, HashSet::new());
        while seen.insert(at) {
            if let Some(fate) = fates.get_mut(at)
                && *fate == Fate::DropTree
            {
                *fate = Fate::Conflict("deleted in the folder, and what is below it stays");
            }
            let Some(above) = parent(at, fates.get(at)) else { break };
            at = above;
        }
    }
}

struct Sides<'s> {
    entries: &'s BTreeMap<String, Entry<'s>>,
    local: HashMap<&'s str, (&'s str, &'s Entry<'s>)>,
    remote: HashMap<&'s str, &'s Stored>,
    arranged: Arranged,
    places: HashMap<String, String>,
}

impl Sides<'_> {
    fn plan(&self, fates: &BTreeMap<&str, Fate>, base: &Base, top: &str) -> Plan {
        let mut plan = Plan::default();
        for (_, entry) in from_the_top(self.entries) {
            if fates.get(entry.id.as_str()) == Some(&Fate::Push) {
                self.push(entry, &mut plan.steps);
            }
        }
        let mut drops = Vec::new();
        for (id, fate) in fates {
            let path = self.path(id, base);
            match fate {
                Fate::Same => {
                    plan.same += 1;
                    self.rename(id, &mut plan.steps);
                }
                Fate::Push => self.rename(id, &mut plan.steps),
                Fate::Pull { aside } => self.pull(id, *aside, &mut plan.steps, &mut drops),
                Fate::DropTree => {}
                Fate::DropFile { aside } => {
                    drops.push(Step::Remove { id: (*id).to_owned(), path, aside: *aside });
                }
                Fate::Conflict(why) => plan.conflicts.push(Conflict { id: (*id).to_owned(), path, why }),
                Fate::Left(why) => plan.left.push(Conflict { id: (*id).to_owned(), path, why }),
                Fate::Nothing => {}
            }
            plan.base.extend(self.known(id, *fate, base).map(|known| ((*id).to_owned(), known)));
        }
        self.delete(fates, base, top, &mut plan.steps);
        plan.steps.extend(drops);
        plan
    }

    fn push(&self, entry: &Entry<'_>, steps: &mut Vec<Step>) {
        let path = self.arranged.get(&entry.id).map_or("", |at| at.path.as_str());
        let (old, mut calls) = (self.remote.get(entry.id.as_str()).copied(), Vec::new());
        push(entry, old, self.places.get(&entry.id), path, &mut calls);
        steps.extend(calls.into_iter().map(Step::Call));
    }

    fn pull(&self, id: &str, aside: bool, steps: &mut Vec<Step>, drops: &mut Vec<Step>) {
        let (Some(stored), Some(at)) = (self.remote.get(id), self.arranged.get(id)) else { return };
        let path = format!("{}{ENDING}", at.path);
        let text = write(&stored.file(path.clone(), Some(at.order)));
        if let Some(old) = self.file_of(id).filter(|old| **old != path) {
            drops.push(Step::Remove { id: id.to_owned(), path: old.clone(), aside });
        }
        steps.push(Step::Write { id: id.to_owned(), path, text, aside });
    }

    /// What is above it was moved, so its file goes along.
    fn rename(&self, id: &str, steps: &mut Vec<Step>) {
        let (Some(from), Some(at)) = (self.file_of(id), self.arranged.get(id)) else { return };
        let to = format!("{}{ENDING}", at.path);
        if *from != to {
            steps.push(Step::Rename { id: id.to_owned(), from: from.clone(), to });
        }
    }

    /// Only the topmost: what is below goes with it.
    fn delete(&self, fates: &BTreeMap<&str, Fate>, base: &Base, top: &str, steps: &mut Vec<Step>) {
        let goes = |id: &str| fates.get(id) == Some(&Fate::DropTree);
        for (id, _) in fates.iter().filter(|(id, _)| goes(id)) {
            let parent = self.remote.get(id).map_or(top, |stored| stored.parent.as_str());
            if !goes(parent) {
                let revision = self.remote.get(id).map(|stored| stored.revision);
                let args = json!({"document_id": id, "last_known_revision": revision});
                let path = self.path(id, base);
                steps.push(Step::Call(Call { action: DELETE, id: (*id).to_owned(), path, args }));
            }
        }
    }

    fn file_of(&self, id: &str) -> Option<&String> {
        self.local.get(id).and_then(|(_, entry)| entry.file).map(|file| &file.path)
    }

    /// Where people find it.
    fn path(&self, id: &str, base: &Base) -> String {
        let arranged = || self.arranged.get(id).map(|at| format!("{}{ENDING}", at.path));
        let known = || base.get(id).map(|known| known.path.clone());
        self.file_of(id).cloned().or_else(arranged).or_else(known).unwrap_or_else(|| id.to_owned())
    }

    fn known(&self, id: &str, fate: Fate, base: &Base) -> Option<Known> {
        let path = self.arranged.get(id).map(|at| format!("{}{ENDING}", at.path));
        let entry = self.local.get(id).map(|(_, entry)| entry);
        let ours = entry.map(|entry| entry.print().unwrap_or_else(|| entry.bare_print()));
        let theirs = self.remote.get(id).map(|one| one.print());
        match fate {
            Fate::Push => Some(Known { path: path?, print: ours? }),
            Fate::Same | Fate::Pull { .. } => Some(Known { path: path?, print: theirs? }),
            // Its folder may be needed for what is below it, so it is known by where that is.
            Fate::Conflict(_) | Fate::Left(_) => base.get(id).map(|known| match (self.file_of(id), path) {
                (None, Some(path)) => Known { path, ..known.clone() },
                (_, _) => known.clone(),
            }),
            Fate::DropTree | Fate::DropFile { .. } | Fate::Nothing => None,
        }
    }
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
