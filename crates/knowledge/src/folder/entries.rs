//! What a folder says about documents, entry by entry, and how that differs from what is stored.

use std::collections::{BTreeMap, HashMap, HashSet};

use orchestr8_contract::canonical;
use serde_json::{Map, Value, json};

use super::front::{File, without_nulls};
use super::names::{id_of, last, parent_path, stem};
use super::reconcile::Base;
use crate::record::Mime;

/// A document as it is stored, as far as a folder is concerned.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub id: String,
    pub parent: String,
    /// Sorts siblings.
    pub place: String,
    pub revision: i64,
    pub metadata: Map<String, Value>,
    pub human: bool,
    pub mime: Mime,
    pub body: String,
}

/// A file, or a folder without one.
pub struct Entry<'a> {
    pub id: String,
    pub parent: String,
    pub order: i64,
    pub file: Option<&'a File>,
    title: String,
}

/// Every path without its ending, folders included. A path that names no document keeps the one it once had.
pub fn entries<'a>(files: &'a [File], top: &str, base: &Base) -> BTreeMap<String, Entry<'a>> {
    let named: HashSet<&str> = files.iter().filter_map(|file| file.id.as_deref()).collect();
    let once: HashMap<&str, &str> = base
        .iter()
        .map(|(id, known)| (stem(&known.path), id.as_str()))
        .filter(|(_, id)| !named.contains(id))
        .collect();
    let id = |path: &str| once.get(path).map_or_else(|| id_of(top, path), |id| (*id).to_owned());
    let mut entries: BTreeMap<String, Entry<'a>> = BTreeMap::new();
    for file in files {
        let path = stem(&file.path).to_owned();
        let id = file.id.clone().unwrap_or_else(|| id(&path));
        let order = file.order.unwrap_or(i64::MAX);
        entries
            .insert(path, Entry { id, parent: String::new(), order, file: Some(file), title: String::new() });
    }
    for file in files {
        let mut path = parent_path(&file.path);
        while !path.is_empty() {
            let title = || last(path).to_owned();
            let entry =
                || Entry { id: id(path), parent: String::new(), order: i64::MAX, file: None, title: title() };
            entries.entry(path.to_owned()).or_insert_with(entry);
            path = parent_path(path);
        }
    }
    let ids: HashMap<String, String> =
        entries.iter().map(|(path, entry)| (path.clone(), entry.id.clone())).collect();
    for (path, entry) in &mut entries {
        entry.parent = ids.get(parent_path(path)).cloned().unwrap_or_else(|| top.to_owned());
    }
    entries
}

/// Sorted by depth, then by wished order, then by name: parents come before children, and siblings in their order.
pub fn from_the_top<'e, 'a>(entries: &'e BTreeMap<String, Entry<'a>>) -> Vec<(&'e str, &'e Entry<'a>)> {
    let mut sorted: Vec<(&str, &Entry<'a>)> =
        entries.iter().map(|(path, entry)| (path.as_str(), entry)).collect();
    sorted.sort_by_key(|(path, entry)| (path.matches('/').count(), parent_path(path), entry.order, *path));
    sorted
}

/// Files that stand for a document another file stands for already: the second and the first. Who names the document comes first.
pub fn doubles(files: &[File], top: &str, base: &Base) -> Vec<(String, String)> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    let entries = entries(files, top, base);
    let (named, others): (Vec<_>, Vec<_>) = entries
        .values()
        .filter_map(|entry| Some((entry, entry.file?)))
        .partition(|(_, file)| file.id.is_some());
    let mut found = Vec::new();
    for (entry, file) in named.into_iter().chain(others) {
        match seen.get(&entry.id) {
            Some(first) => found.push((file.path.clone(), (*first).to_owned())),
            None => drop(seen.insert(entry.id.clone(), &file.path)),
        }
    }
    found
}

impl Entry<'_> {
    fn metadata(&self) -> Value {
        match self.file {
            Some(file) => Value::Object(file.metadata.clone()),
            None => json!({"title": self.title}),
        }
    }

    pub fn creation(&self) -> Value {
        let (mime, body) = self.file.map_or((Mime::Markdown, ""), |file| (file.mime, file.body.as_str()));
        json!({"document_id": self.id, "parent_id": self.parent, "metadata": self.metadata(),
               "content": {"mime_type": mime.as_str(), "body": body},
               "is_human_readable": self.file.is_none_or(|file| file.human)})
    }

    /// What differs; a folder alone changes nothing of its document.
    pub fn update(&self, old: &Stored) -> Option<Value> {
        let file = self.file?;
        let (mut mask, mut patch) = (Vec::new(), json!({}));
        if file.body != old.body {
            mask.push("content.body");
            patch["content"]["body"] = json!(file.body);
        }
        if file.mime != old.mime {
            mask.push("content.mime_type");
            patch["content"]["mime_type"] = json!(file.mime.as_str());
        }
        if file.human != old.human {
            mask.push("is_human_readable");
            patch["is_human_readable"] = json!(file.human);
        }
        let change = change(&old.metadata, &file.metadata);
        if !change.is_empty() {
            mask.push("metadata");
            patch["metadata"] = Value::Object(change);
        }
        let args = || json!({"document_id": self.id, "patch": patch, "update_mask": mask, "last_known_revision": old.revision});
        (!mask.is_empty()).then(args)
    }

    /// What tells this content and place from others; none for a folder, which says nothing.
    pub fn print(&self) -> Option<String> {
        let file = self.file?;
        Some(print(&self.parent, &file.metadata, file.human, file.mime, &file.body))
    }

    /// The same for what a folder makes when its document is not there.
    pub fn bare_print(&self) -> String {
        let metadata = Map::from_iter([(String::from("title"), Value::from(self.title.as_str()))]);
        print(&self.parent, &metadata, true, Mime::Markdown, "")
    }
}

impl Stored {
    pub fn print(&self) -> String {
        print(&self.parent, &self.metadata, self.human, self.mime, &self.body)
    }

    pub fn title(&self) -> &str {
        self.metadata.get("title").and_then(Value::as_str).unwrap_or_default()
    }

    /// The file that stands for it.
    pub fn file(&self, path: String, order: Option<i64>) -> File {
        File {
            path,
            id: Some(self.id.clone()),
            metadata: self.metadata.clone(),
            titled: true,
            human: self.human,
            mime: self.mime,
            order,
            body: self.body.clone(),
        }
    }
}

/// The merge patch (RFC 7396) from one to the other; empty if they are the same.
fn change(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, value) in old {
        if !value.is_null() && new.get(name).is_none_or(Value::is_null) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    for (name, value) in new {
        match (old.get(name), value) {
            (Some(Value::Object(before)), Value::Object(after)) => {
                let inner = change(before, after);
                if !inner.is_empty() {
                    patch.insert(name.clone(), Value::Object(inner));
                }
            }
            (before, value) if before != Some(value) && !value.is_null() => {
                patch.insert(name.clone(), value.clone());
            }
            _ => {}
        }
    }
    patch
}

fn print(parent: &str, metadata: &Map<String, Value>, human: bool, mime: Mime, body: &str) -> String {
    let mut metadata = metadata.clone();
    without_nulls(&mut metadata);
    canonical::sha256_hex(&json!([parent, metadata, human, mime.as_str(), body]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ROOT;

    #[test]
    fn a_change_names_what_differs_and_what_is_gone() {
        let old = json!({"a": 1, "b": {"c": 1, "d": 2}, "e.f": [1], "n": null});
        let new = json!({"b": {"c": 1, "x": {"y": 1}}, "e.f": [1, null], "n": null});
        let (old, new) = (old.as_object().unwrap(), new.as_object().unwrap());
        assert_eq!(
            Value::Object(change(old, new)),
            json!({"a": null, "b": {"d": null, "x": {"y": 1}}, "e.f": [1, null]})
        );
        assert!(change(new, new).is_empty());
    }

    #[test]
    fn two_files_of_one_document_are_noticed() {
        let file = |path: &str, id: &str| {
            let text = if id.is_empty() { String::new() } else { format!("---\nid: {id}\n---\n") };
            super::super::read(path, &text).unwrap()
        };
        let found = |files: &[File]| doubles(files, ROOT, &Base::new());
        let (one, other) = (id_of(ROOT, "c"), id_of(ROOT, "d"));
        assert_eq!(found(&[file("a.md", &one), file("b.md", &one)]), [("b.md".into(), "a.md".into())]);
        // One that names none may get the id that another one names.
        assert_eq!(found(&[file("c.md", ""), file("z.md", &one)]), [("c.md".into(), "z.md".into())]);
        assert!(found(&[file("c.md", ""), file("z.md", &other)]).is_empty());
    }
}
