//! What is to be done so that the tree is what a folder says.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::entries::{Entry, Stored, entries, from_the_top};
use super::front::File;
use super::places::places;
use super::reconcile::Base;

pub const CREATE: &str = "knowledge.create_document";
pub const UPDATE: &str = "knowledge.update_document";
pub const MOVE: &str = "knowledge.move_document";
pub const DELETE: &str = "knowledge.delete_document";

/// One call: what is to be done with which document, and the path that it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub action: &'static str,
    pub id: String,
    pub path: String,
    pub args: Value,
}

/// The calls that make the tree below a document what the files say, in order; nothing is deleted. Done calls do not come again,
/// so a run that was cut off goes on where it was.
pub fn plan(files: &[File], stored: &[Stored], base: &Base, top: &str) -> Vec<Call> {
    let there: HashMap<&str, &Stored> = stored.iter().map(|one| (one.id.as_str(), one)).collect();
    let entries = entries(files, top, base);
    let sorted = from_the_top(&entries);
    let places = places(&sorted, stored);
    let mut calls = Vec::new();
    for (path, entry) in sorted {
        let old = there.get(entry.id.as_str()).copied();
        push(entry, old, places.get(&entry.id), path, &mut calls);
    }
    calls
}

/// The calls that make a document what the folder says of it, at this place if it is new there.
pub fn push(
    entry: &Entry<'_>,
    old: Option<&Stored>,
    place: Option<&String>,
    path: &str,
    calls: &mut Vec<Call>,
) {
    let call = |action, args| Call { action, id: entry.id.clone(), path: path.to_owned(), args };
    let Some(old) = old else {
        return calls.push(call(CREATE, placed(entry.creation(), place)));
    };
    calls.extend(entry.update(old).map(|args| call(UPDATE, args)));
    if old.parent != entry.parent {
        let args = json!({"document_id": entry.id, "new_parent_id": entry.parent});
        calls.push(call(MOVE, placed(args, place)));
    }
}

fn placed(mut args: Value, place: Option<&String>) -> Value {
    if let Some(place) = place {
        args["position"] = json!({"place": place});
    }
    args
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::folder::read;
    use crate::record::{Mime, ROOT};

    pub fn file(path: &str, text: &str) -> File {
        read(path, text).unwrap()
    }

    /// What the calls would leave behind.
    pub fn done(mut stored: Vec<Stored>, calls: &[Call]) -> Vec<Stored> {
        for Call { action, id, args, .. } in calls {
            let text = |path: &str| args.pointer(path).and_then(Value::as_str).map(str::to_owned);
            let at = stored.iter().position(|one| one.id == *id);
            let place = text("/position/place");
            match (*action, at) {
                (CREATE, None) => stored.push(Stored {
                    id: id.clone(),
                    parent: text("/parent_id").unwrap(),
                    place: place.unwrap_or_else(|| format!("{:09}", stored.len())),
                    revision: 1,
                    metadata: args["metadata"].as_object().unwrap().clone(),
                    human: args["is_human_readable"].as_bool().unwrap(),
                    mime: Mime::parse(&text("/content/mime_type").unwrap()).unwrap(),
                    body: text("/content/body").unwrap(),
                }),
                (UPDATE, Some(at)) => {
                    let mask: Vec<String> = serde_json::from_value(args["update_mask"].clone()).unwrap();
                    let one = &mut stored[at];
                    let content = json!({"body": one.body, "mime_type": one.mime.as_str()});
                    let mut value =
                        json!({"content": content, "metadata": one.metadata, "is_human_readable": one.human});
                    crate::patch::apply(&mut value, &args["patch"], &mask).unwrap();
                    one.body = value["content"]["body"].as_str().unwrap().to_owned();
                    one.mime = Mime::parse(value["content"]["mime_type"].as_str().unwrap()).unwrap();
                    one.metadata = value["metadata"].as_object().unwrap().clone();
                    one.human = value["is_human_readable"].as_bool().unwrap();
                }
                (MOVE, Some(at)) => {
                    stored[at].parent = text("/new_parent_id").unwrap();
                    stored[at].place = place.unwrap_or_else(|| stored[at].place.clone());
                }
                (DELETE, Some(_)) => {
                    let mut gone = vec![id.clone()];
                    while let Some(id) = gone.pop() {
                        gone.extend(stored.iter().filter(|one| one.parent == id).map(|one| one.id.clone()));
                        stored.retain(|one| one.id != id);
                    }
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
            file("guide/deep/x.md", "---\nmime_type: text/plain\na.b: {c: 1}\n---\nx"),
            file("readme.md", "hello"),
        ];
        let calls = plan(&files, &[], &Base::new(), ROOT);
        assert_eq!(calls.len(), 5, "three files and two folders");
        for cut in 0..=calls.len() {
            let half = done(Vec::new(), &calls[..cut]);
            let rest = plan(&files, &half, &Base::new(), ROOT);
            assert_eq!(rest.len(), calls.len() - cut);
            assert!(plan(&files, &done(half, &rest), &Base::new(), ROOT).is_empty());
        }
    }

    #[test]
    fn below_another_document_a_folder_is_another_folder() {
        let files = [file("a/b.md", "x")];
        let top = "00000000-0000-4000-8000-000000000009";
        let (one, other) = (plan(&files, &[], &Base::new(), ROOT), plan(&files, &[], &Base::new(), top));
        assert_eq!((&one[0].args["parent_id"], &other[0].args["parent_id"]), (&json!(ROOT), &json!(top)));
        assert_ne!(one[0].id, other[0].id);
        assert_eq!(other[1].args["parent_id"], json!(other[0].id));
    }

    #[test]
    fn what_the_file_does_not_say_any_more_is_removed() {
        let before = [file("a.md", "---\nsource: s\ntags: [x]\nmore: {a: 1, b: 2}\n---\nbody")];
        let stored = done(Vec::new(), &plan(&before, &[], &Base::new(), ROOT));
        let after = [file("a.md", "---\ntags: [y]\nmore: {b: 2}\nempty:\n---\nbody")];
        let calls = plan(&after, &stored, &Base::new(), ROOT);
        assert_eq!(
            calls[0].args["patch"]["metadata"],
            json!({"source": null, "tags": ["y"], "more": {"a": null}})
        );
        assert!(
            plan(&after, &done(stored, &calls), &Base::new(), ROOT).is_empty(),
            "a name without a value changes nothing"
        );
    }
}
