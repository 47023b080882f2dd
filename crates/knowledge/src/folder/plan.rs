//! What is to be done so that the tree is what a folder says, and what a folder must hold to be what the tree says.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::front::File;
use crate::record::ROOT;

/// A document as it is stored, as far as a folder is concerned.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub id: String,
    pub parent: String,
    pub revision: i64,
    pub metadata: serde_json::Map<String, Value>,
    pub human: bool,
    pub body: String,
}

/// The calls that make the tree what the files say, in order: action and arguments. With `remove`, documents below the root that
/// no file stands for are deleted. Done calls do not come again, so a run that was cut off goes on where it was.
pub fn plan(files: &[File], stored: &[Stored], remove: bool) -> Vec<(&'static str, Value)> {
    let there: HashMap<&str, &Stored> = stored.iter().map(|one| (one.id.as_str(), one)).collect();
    let entries = entries(files);
    let ids: HashMap<&str, &str> =
        entries.iter().map(|(path, entry)| (path.as_str(), entry.id.as_str())).collect();
    let mut calls = Vec::new();
    // Sorted by depth, then by wished order, then by name: parents come before children, and siblings in their order.
    let mut sorted: Vec<(&String, &Entry)> = entries.iter().collect();
    sorted.sort_by_key(|(path, entry)| {
        (path.matches('/').count(), parent_path(path).to_owned(), entry.order, (*path).clone())
    });
    for (path, entry) in sorted {
        let parent = parent_path(path);
        let parent = if parent.is_empty() { ROOT } else { ids.get(parent).copied().unwrap_or(ROOT) };
        match there.get(entry.id.as_str()) {
            None => calls.push(("knowledge.create_document", entry.creation(parent))),
            Some(old) => {
                calls.extend(entry.update(old).map(|args| ("knowledge.update_document", args)));
                if old.parent != parent {
                    let args = json!({"document_id": entry.id, "new_parent_id": parent});
                    calls.push(("knowledge.move_document", args));
                }
            }
        }
    }
    if remove {
        let kept: HashSet<&str> = entries.values().map(|entry| entry.id.as_str()).collect();
        let gone: BTreeSet<&str> =
            stored.iter().map(|one| one.id.as_str()).filter(|id| !kept.contains(id)).collect();
        // What is below something that goes, goes with it.
        let top = |id: &&str| there.get(id).is_some_and(|one| !gone.contains(one.parent.as_str()));
        let top: Vec<&str> = gone.iter().copied().filter(top).collect();
        calls.extend(top.into_iter().map(|id| ("knowledge.delete_document", json!({"document_id": id}))));
    }
    calls
}

/// The files that stand for a tree, given with siblings in their order.
pub fn files(stored: &[Stored]) -> Vec<File> {
    let mut below: HashMap<&str, Vec<&Stored>> = HashMap::new();
    for one in stored {
        below.entry(one.parent.as_str()).or_default().push(one);
    }
    let (mut found, mut open) = (Vec::with_capacity(stored.len()), vec![(ROOT, String::new())]);
    while let Some((parent, folder)) = open.pop() {
        let mut taken = HashSet::new();
        for (order, one) in below.get(parent).into_iter().flatten().enumerate() {
            let title = one.metadata.get("title").and_then(Value::as_str).unwrap_or_default();
            let mut name = slug(title);
            // Two of the same name are told apart by their ids, so that the names stay as they are when one goes.
            if !taken.insert(name.clone()) {
                name = format!("{name}-{}", one.id);
                taken.insert(name.clone());
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            found.push(File {
                path: format!("{path}.md"),
                id: Some(one.id.clone()),
                metadata: one.metadata.clone(),
                human: one.human,
                order: i64::try_from(order).ok(),
                body: one.body.clone(),
            });
            open.push((one.id.as_str(), path));
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// A file, or a folder without one.
struct Entry<'a> {
    id: String,
    order: i64,
    file: Option<&'a File>,
    title: String,
}

impl Entry<'_> {
    fn metadata(&self) -> Value {
        match self.file {
            Some(file) => Value::Object(file.metadata.clone()),
            None => json!({"title": self.title}),
        }
    }

    fn creation(&self, parent: &str) -> Value {
        json!({"document_id": self.id, "parent_id": parent, "metadata": self.metadata(),
               "content": {"mime_type": "text/markdown", "body": self.file.map_or("", |file| file.body.as_str())},
               "is_human_readable": self.file.is_none_or(|file| file.human)})
    }

    /// What differs; a folder alone changes nothing of its document.
    fn update(&self, old: &Stored) -> Option<Value> {
        let file = self.file?;
        let (mut mask, mut patch) = (Vec::new(), json!({}));
        if file.body != old.body {
            mask.push(String::from("content.body"));
            patch["content"] = json!({"body": file.body});
        }
        if file.human != old.human {
            mask.push(String::from("is_human_readable"));
            patch["is_human_readable"] = json!(file.human);
        }
        if file.metadata != old.metadata {
            patch["metadata"] = self.metadata();
            let names: BTreeSet<&String> = file.metadata.keys().chain(old.metadata.keys()).collect();
            // Named one by one, so that what the file does not say any more is removed.
            let changed =
                names.into_iter().filter(|name| file.metadata.get(*name) != old.metadata.get(*name));
            mask.extend(changed.map(|name| format!("metadata.{name}")));
        }
        let args = || json!({"document_id": self.id, "patch": patch, "update_mask": mask, "last_known_revision": old.revision});
        (!mask.is_empty()).then(args)
    }
}

/// Every path without its ending, folders included.
fn entries(files: &[File]) -> BTreeMap<String, Entry<'_>> {
    let mut entries: BTreeMap<String, Entry<'_>> = BTreeMap::new();
    for file in files {
        let path = file.path.strip_suffix(".md").unwrap_or(&file.path).to_owned();
        let id = file.id.clone().unwrap_or_else(|| id_of(&path));
        entries.insert(
            path,
            Entry { id, order: file.order.unwrap_or(i64::MAX), file: Some(file), title: String::new() },
        );
    }
    for file in files {
        let mut path = parent_path(&file.path);
        while !path.is_empty() {
            let title = path.rsplit('/').next().unwrap_or(path).to_owned();
            let entry = || Entry { id: id_of(path), order: i64::MAX, file: None, title };
            entries.entry(path.to_owned()).or_insert_with(entry);
            path = parent_path(path);
        }
    }
    entries
}

fn parent_path(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// The id of a file that names none: always the same for the same path, so that importing twice changes nothing.
fn id_of(path: &str) -> String {
    let hash = Sha256::digest(format!("orchestr8-knowledge\n{path}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().hyphenated().to_string()
}

/// A title as a file name: what every file system takes.
fn slug(title: &str) -> String {
    let letter = |found: char| match found {
        '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => '-',
        found if found.is_control() => '-',
        found => found,
    };
    let name: String = title.trim().chars().take(80).map(letter).collect();
    let name = name.trim_matches(['.', ' ']);
    if name.is_empty() { String::from("untitled") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::{read, write};
    use proptest::prelude::*;
    use uuid::Uuid;

    fn file(path: &str, text: &str) -> File {
        read(path, text).unwrap()
    }

    /// What the calls would leave behind.
    fn done(mut stored: Vec<Stored>, calls: &[(&'static str, Value)]) -> Vec<Stored> {
        for (name, args) in calls {
            let id = args["document_id"].as_str().unwrap().to_owned();
            let text = |path: &str| args.pointer(path).and_then(Value::as_str).map(str::to_owned);
            let place = stored.iter().position(|one| one.id == id);
            match (*name, place) {
                ("knowledge.create_document", None) => stored.push(Stored {
                    id,
                    parent: text("/parent_id").unwrap(),
                    revision: 1,
                    metadata: args["metadata"].as_object().unwrap().clone(),
                    human: args["is_human_readable"].as_bool().unwrap(),
                    body: text("/content/body").unwrap(),
                }),
                ("knowledge.update_document", Some(at)) => {
                    let mask: Vec<String> = serde_json::from_value(args["update_mask"].clone()).unwrap();
                    let one = &mut stored[at];
                    let mut value = json!({"content": {"body": one.body}, "metadata": one.metadata, "is_human_readable": one.human});
                    crate::patch::apply(&mut value, &args["patch"], &mask).unwrap();
                    one.body = value["content"]["body"].as_str().unwrap().to_owned();
                    one.metadata = value["metadata"].as_object().unwrap().clone();
                    one.human = value["is_human_readable"].as_bool().unwrap();
                }
                ("knowledge.move_document", Some(at)) => stored[at].parent = text("/new_parent_id").unwrap(),
                ("knowledge.delete_document", Some(at)) => {
                    stored.remove(at);
                }
                other => panic!("{other:?}"),
            }
        }
        stored
    }

    #[test]
    fn importing_twice_changes_nothing_and_a_cut_off_run_goes_on() {
        let files = [
            file("guide/setup.md", "# Setup\ntext"),
            file("guide/deep/x.md", "x"),
            file("readme.md", "hello"),
        ];
        let calls = plan(&files, &[], false);
        assert_eq!(calls.len(), 5, "three files and two folders");
        for cut in 0..=calls.len() {
            let half = done(Vec::new(), &calls[..cut]);
            let rest = plan(&files, &half, true);
            assert_eq!(rest.len(), calls.len() - cut);
            assert!(plan(&files, &done(half, &rest), true).is_empty());
        }
    }

    #[test]
    fn a_file_that_goes_takes_its_document_along_only_when_asked() {
        let stored =
            done(Vec::new(), &plan(&[file("a.md", "1"), file("a/b.md", "2"), file("c.md", "3")], &[], false));
        assert!(plan(&[file("c.md", "3")], &stored, false).is_empty());
        let calls = plan(&[file("c.md", "3")], &stored, true);
        assert_eq!(calls.len(), 1, "what is below goes with it: {calls:?}");
    }

    #[test]
    fn what_the_file_does_not_say_any_more_is_removed() {
        let stored =
            done(Vec::new(), &plan(&[file("a.md", "---\nsource: s\ntags: [x]\n---\nbody")], &[], false));
        let calls = plan(&[file("a.md", "---\ntags: [y]\n---\nbody")], &stored, false);
        assert_eq!(calls[0].1["update_mask"], json!(["metadata.source", "metadata.tags"]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn what_is_exported_is_imported_as_it_was(tree in proptest::collection::vec((0usize..8, "[a-c/. ]{0,3}d", "[a-z\n]{0,9}"), 1..12)) {
            let id = |n: usize| Uuid::from_u128(n as u128 + 1).to_string();
            let stored: Vec<Stored> = tree.into_iter().enumerate().map(|(n, (parent, title, body))| Stored {
                id: id(n),
                parent: if parent < n { id(parent) } else { ROOT.to_owned() },
                revision: 1,
                metadata: serde_json::Map::from_iter([(String::from("title"), json!(title))]),
                human: n % 2 == 0,
                body,
            }).collect();
            let files: Vec<File> = files(&stored).iter().map(file_again).collect();
            let paths: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
            prop_assert_eq!(paths.len(), stored.len(), "two documents in one file");
            prop_assert_eq!(plan(&files, &stored, true), vec![]);
            let sorted = |mut stored: Vec<Stored>| { stored.sort_by(|a, b| a.id.cmp(&b.id)); stored };
            prop_assert_eq!(sorted(done(Vec::new(), &plan(&files, &[], true))), sorted(stored));
        }
    }

    fn file_again(file: &File) -> File {
        read(&file.path, &write(file)).unwrap()
    }
}
