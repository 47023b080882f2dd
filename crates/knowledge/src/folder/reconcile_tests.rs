//! Both sides change as they like, meet, and are the same; or it is said why not, and nothing is lost.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::super::plan::tests::done;
use super::*;
use crate::folder::{doubles, read};
use crate::record::{Mime, ROOT};

const BOTH: Ways = Ways { push: true, pull: true, remove: true, prefer: None };
const EXPORT: Ways = Ways { push: false, pull: true, remove: false, prefer: None };

/// A folder, a tree, and what they had in common.
#[derive(Debug, Clone, Default, PartialEq)]
struct World {
    files: BTreeMap<String, String>,
    stored: Vec<Stored>,
    base: Base,
}

fn id(n: usize) -> String {
    Uuid::from_u128(n as u128 + 1).to_string()
}

impl World {
    fn files(&self) -> Vec<File> {
        let documents = self.files.iter().filter(|(path, _)| path.ends_with(ENDING));
        documents.map(|(path, text)| read(path, text).unwrap()).collect()
    }

    fn plan(&self, ways: Ways) -> Plan {
        reconcile(&self.files(), &self.stored, &self.base, ROOT, ways)
    }

    /// Meets, as the command line would do it.
    fn meet(&mut self, ways: Ways) -> Plan {
        let plan = self.plan(ways);
        let mut written = BTreeSet::new();
        let mut stashed = HashMap::new();
        for step in &plan.steps {
            if let Step::Rename { from, .. } = step {
                stashed.insert(from.clone(), self.files.remove(from).unwrap());
            }
        }
        for step in &plan.steps {
            match step {
                Step::Call(call) => {
                    self.stored = done(std::mem::take(&mut self.stored), std::slice::from_ref(call))
                }
                Step::Write { path, text, aside, .. } => {
                    let old = self.files.insert(path.clone(), text.clone());
                    if let Some(old) = old.filter(|_| *aside) {
                        self.files.insert(format!("{path}.mine"), old);
                    }
                    written.insert(path.clone());
                }
                Step::Rename { from, to, .. } => {
                    self.files.insert(to.clone(), stashed.remove(from).unwrap());
                    written.insert(to.clone());
                }
                Step::Remove { path, .. } => {
                    if !written.contains(path) {
                        self.files.remove(path);
                    }
                }
            }
        }
        self.base = plan.base.clone();
        plan
    }

    fn put(&mut self, n: usize, parent: usize, title: &str, body: &str) {
        let parent = if parent == 0 { ROOT.to_owned() } else { id(parent) };
        self.stored.retain(|one| one.id != id(n));
        let metadata = json!({"title": title}).as_object().unwrap().clone();
        let place = format!("{n:03}");
        let one = Stored {
            id: id(n),
            parent,
            place,
            revision: 1,
            metadata,
            human: true,
            mime: Mime::Markdown,
            body: body.into(),
        };
        self.stored.push(one);
    }

    fn body(&self, n: usize) -> &str {
        &self.stored.iter().find(|one| one.id == id(n)).unwrap().body
    }

    /// The same tree on both sides, and nothing left to do.
    fn check_in_step(&self) {
        let again = self.plan(BOTH);
        assert_eq!((again.steps, again.conflicts, again.left), (vec![], vec![], vec![]), "{self:#?}");
    }
}

/// `/A` with `/A/B` below it, on both sides.
fn pair() -> World {
    let mut world = World::default();
    world.put(1, 0, "A", "one");
    world.put(2, 1, "B", "two");
    assert!(world.meet(BOTH).conflicts.is_empty());
    assert_eq!(world.files.keys().collect::<Vec<_>>(), ["A.md", "A/B.md"]);
    world.check_in_step();
    world
}

#[test]
fn what_changed_on_one_side_goes_to_the_other() {
    let mut world = pair();
    world.put(1, 0, "A", "one more");
    let text = world.files["A/B.md"].replace("two", "second");
    world.files.insert("A/B.md".into(), text);
    world.files.insert("new/note.md".into(), "# Note".into());
    world.put(3, 2, "C/c", "three");
    world.meet(BOTH);
    assert!(world.files["A.md"].ends_with("one more"));
    assert_eq!(world.body(2), "second");
    assert!(world.files.contains_key("A/B/C-c.md"));
    assert_eq!(world.stored.len(), 5, "a note and its folder");
    world.check_in_step();
}

#[test]
fn what_changed_on_both_sides_is_told_and_stays() {
    let mut world = pair();
    world.put(1, 0, "A", "theirs");
    let ours = world.files["A.md"].replace("one", "ours");
    world.files.insert("A.md".into(), ours.clone());
    let plan = world.meet(BOTH);
    assert_eq!((plan.conflicts[0].why, plan.steps.len()), ("changed on both sides", 0));
    assert_eq!((world.files["A.md"].as_str(), world.body(1)), (ours.as_str(), "theirs"));
    let mut there = world.clone();
    there.meet(Ways { prefer: Some(Side::Folder), ..BOTH });
    assert_eq!(there.body(1), "ours");
    there.check_in_step();
    world.meet(Ways { prefer: Some(Side::Tree), ..BOTH });
    assert!(world.files["A.md"].ends_with("theirs"));
    assert_eq!(world.files.remove("A.md.mine"), Some(ours), "what was there is kept aside");
    world.check_in_step();
    // The same change on both sides is none.
    world.put(1, 0, "A", "same");
    let text = world.files["A.md"].replace("theirs", "same");
    world.files.insert("A.md".into(), text);
    assert!(world.meet(BOTH).conflicts.is_empty());
}

#[test]
fn what_is_gone_goes_only_when_asked_and_only_unchanged() {
    let mut world = pair();
    world.files.clear();
    let plan = world.plan(Ways { remove: false, ..BOTH });
    assert_eq!((plan.steps.len(), plan.left.len()), (0, 2), "{plan:?}");
    let calls = world.plan(BOTH).steps;
    assert_eq!(calls.len(), 1, "what is below goes with it: {calls:?}");
    let mut changed = world.clone();
    changed.put(2, 1, "B", "changed meanwhile");
    let plan = changed.meet(BOTH);
    let whys: Vec<&str> = plan.conflicts.iter().map(|conflict| conflict.why).collect();
    assert_eq!(
        whys,
        ["deleted in the folder, and what is below it stays", "deleted in the folder, changed in the tree"]
    );
    assert_eq!(changed.stored.len(), 2);
    world.meet(BOTH);
    assert!(world.stored.is_empty());
    world.check_in_step();
}

#[test]
fn what_the_tree_has_lost_goes_from_the_folder_when_asked() {
    let mut world = pair();
    world.stored.clear();
    assert_eq!(world.plan(Ways { remove: false, ..BOTH }).left.len(), 2);
    let mut changed = world.clone();
    changed.files.insert("A.md".into(), world.files["A.md"].replace("one", "changed"));
    assert_eq!(changed.meet(BOTH).conflicts[0].why, "changed in the folder, deleted in the tree");
    assert!(changed.files.contains_key("A.md"));
    world.meet(BOTH);
    assert!(world.files.is_empty() && world.base.is_empty());
}

#[test]
fn what_moves_in_the_tree_takes_its_files_along() {
    let mut world = pair();
    world.put(3, 0, "C", "three");
    world.put(1, 3, "A", "one");
    world.meet(BOTH);
    assert_eq!(world.files.keys().collect::<Vec<_>>(), ["C.md", "C/A.md", "C/A/B.md"]);
    world.check_in_step();
    // And back, by moving the files.
    let files = std::mem::take(&mut world.files);
    for (path, text) in files {
        world.files.insert(path.trim_start_matches("C/").to_owned(), text);
    }
    world.meet(BOTH);
    assert_eq!(world.stored.iter().find(|one| one.id == id(1)).unwrap().parent, ROOT);
    world.check_in_step();
}

#[test]
fn an_export_overwrites_nothing_that_was_changed() {
    let mut world = pair();
    world.put(1, 0, "A", "theirs");
    world.put(2, 1, "B", "theirs too");
    let ours = world.files["A.md"].replace("one", "ours");
    world.files.insert("A.md".into(), ours.clone());
    world.files.insert("own.md".into(), "mine".into());
    let plan = world.meet(EXPORT);
    assert_eq!(plan.conflicts.len(), 1);
    assert_eq!(world.files["A.md"], ours);
    assert!(world.files["A/B.md"].ends_with("theirs too") && world.files.contains_key("own.md"));
    world.files.remove("A/B.md");
    world.meet(EXPORT);
    assert!(world.files.contains_key("A/B.md"), "what the tree has is written again");
}

#[derive(Debug, Clone)]
enum Change {
    Put(usize, usize, String, String),
    Forget(usize),
    Write(usize, String),
    New(String, String),
    Lose(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => (1..6usize, 0..6usize, "[a-c]{1,2}", "[a-z]{0,4}").prop_map(|(n, p, t, b)| Change::Put(n, p, t, b)),
        1 => (1..6usize).prop_map(Change::Forget),
        2 => (0..6usize, "[a-z]{0,4}").prop_map(|(n, b)| Change::Write(n, b)),
        2 => ("[a-c]{1,2}(/[a-c]{1,2})?", "[a-z]{0,4}").prop_map(|(p, b)| Change::New(p, b)),
        1 => (0..6usize).prop_map(Change::Lose),
    ];
    proptest::collection::vec(change, 0..8)
}

fn apply(world: &mut World, change: &Change) {
    match change {
        // Below something that is there and was put earlier, so that the tree stays one.
        Change::Put(n, parent, title, body) => {
            let known = world.stored.iter().any(|one| one.id == id(*parent)) && parent < n;
            world.put(*n, if known { *parent } else { 0 }, title, body);
        }
        Change::Forget(n) => {
            let call = Call { action: DELETE, id: id(*n), path: String::new(), args: json!({}) };
            if world.stored.iter().any(|one| one.id == id(*n)) {
                world.stored = done(std::mem::take(&mut world.stored), &[call]);
            }
        }
        Change::Write(n, body) => {
            if let Some(path) = world.files.keys().nth(*n).cloned() {
                let mut file = read(&path, &world.files[&path]).unwrap();
                file.body.clone_from(body);
                world.files.insert(path, write(&file));
            }
        }
        Change::New(path, body) => drop(world.files.entry(format!("{path}.md")).or_insert(body.clone())),
        Change::Lose(n) => {
            if let Some(path) = world.files.keys().nth(*n).cloned() {
                world.files.remove(&path);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn both_sides_meet_or_it_is_said_why_not(rounds in proptest::collection::vec(changes(), 1..4)) {
        let mut world = World::default();
        for round in rounds {
            for change in &round {
                apply(&mut world, change);
            }
            prop_assume!(doubles(&world.files(), ROOT, &world.base).is_empty());
            let before = world.clone();
            let plan = world.meet(BOTH);
            for conflict in &plan.conflicts {
                let kept = |world: &World| world.stored.iter().find(|one| one.id == conflict.id).cloned();
                prop_assert_eq!(kept(&before), kept(&world), "a conflict leaves the tree alone");
                let file = |world: &World| {
                    world.files().into_iter().find(|file| file.id.as_deref() == Some(conflict.id.as_str()))
                };
                prop_assert_eq!(file(&before), file(&world), "and the folder");
            }
            if plan.conflicts.is_empty() && plan.left.is_empty() {
                world.check_in_step();
            }
            // Whoever prefers a side is in step soon: what a conflict held back may take one more time.
            let (mut settled, prefer) = (world.clone(), Ways { prefer: Some(Side::Tree), ..BOTH });
            for _ in 0..3 {
                settled.meet(prefer);
            }
            let again = settled.plan(prefer);
            prop_assert!(again.steps.is_empty() && again.conflicts.is_empty(), "{:?}", again);
        }
    }

    #[test]
    fn what_is_exported_is_imported_as_it_was(tree in proptest::collection::vec((0usize..8, "[a-cA/. ]{0,3}d", "[a-z\n\r]{0,9}"), 1..12)) {
        let mut world = World::default();
        for (n, (parent, title, body)) in tree.into_iter().enumerate() {
            world.put(n + 1, if parent < n + 1 { parent } else { 0 }, &title, &body);
        }
        world.meet(EXPORT);
        prop_assert_eq!(world.files.len(), world.stored.len(), "two documents in one file");
        world.check_in_step();
        let calls = super::super::plan(&world.files(), &world.stored, &world.base, ROOT);
        prop_assert_eq!(calls, vec![]);
        let sorted = |mut stored: Vec<Stored>| {
            stored.sort_by(|a, b| a.id.cmp(&b.id));
            stored.into_iter().map(|one| (one.id.clone(), one.print())).collect::<Vec<_>>()
        };
        let again = done(Vec::new(), &super::super::plan(&world.files(), &[], &world.base, ROOT));
        prop_assert_eq!(sorted(again), sorted(world.stored));
    }
}
