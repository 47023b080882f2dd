//! Folders of Markdown: `import`, `export` and `sync`. What is to be done is decided by `orchestr8_knowledge::folder`; here it is
//! read, shown, done and remembered.

mod carry;
mod disk;
mod export;
mod flight;
mod import;
mod manifest;
mod progress;
mod sync;

pub use export::Export;
pub use import::Import;
pub use sync::Sync;

use std::path::Path;

use futures::{StreamExt, stream};
use orchestr8_contract::Code;
use orchestr8_knowledge::folder::{Base, File, Stored, doubles};
use orchestr8_knowledge::record::Mime;
use serde_json::Value;

use super::super::words::text;
use super::shelf::{BATCH, Shelf};
use super::tree::Branches;
use crate::failure::Failure;
use disk::{Problem, Scan};

/// What a folder holds: the files that can be taken, and why others cannot.
struct Folder {
    files: Vec<File>,
    problems: Vec<Problem>,
    others: usize,
}

/// Reads a folder.
fn read(path: &Path) -> Result<Folder, Failure> {
    let Scan { files, problems, others } = disk::scan(path)?;
    Ok(Folder { files, problems, others })
}

impl Folder {
    /// A file that stands for a document another one stands for already is a problem.
    fn told_apart(mut self, top: &str, base: &Base) -> Self {
        for (second, first) in doubles(&self.files, top, base) {
            self.files.retain(|file| file.path != second);
            let what = format!("it stands for the same document as {first}; give it an id of its own");
            self.problems.push(Problem { path: second, what });
        }
        self
    }
}

/// The documents below one, with their texts.
async fn stored(
    shelf: &Shelf<'_>,
    top: &str,
    progress: &mut progress::Progress,
) -> Result<Vec<Stored>, Failure> {
    let all = shelf.list(&[]).await?;
    let branches = Branches::of(&all);
    let ids = branches.ids(top);
    let places: std::collections::HashMap<&str, &str> =
        all.iter().map(|entry| (text(entry, "id"), text(entry, "place"))).collect();
    let mut stored = Vec::with_capacity(ids.len());
    progress.begin("reading", ids.len());
    let mut read = stream::iter(ids.chunks(BATCH)).map(|batch| shelf.many(batch)).buffered(flight::AT_ONCE);
    while let Some(batch) = read.next().await {
        let batch = batch?;
        for document in &batch {
            let place = places.get(text(document, "id")).copied().unwrap_or_default();
            stored.push(of(document, place)?);
        }
        progress.advance(batch.len(), "");
    }
    drop(read);
    progress.clear();
    Ok(stored)
}

fn of(document: &Value, place: &str) -> Result<Stored, Failure> {
    let content = &document["content"];
    let mime = Mime::parse(text(content, "mime_type"))
        .ok_or_else(|| Failure::new(Code::Unavailable, "the server gave a document of an unknown type"))?;
    Ok(Stored {
        id: text(document, "id").to_owned(),
        parent: text(document, "parent_id").to_owned(),
        place: place.to_owned(),
        revision: document["revision"].as_i64().unwrap_or(0),
        metadata: document["metadata"].as_object().cloned().unwrap_or_default(),
        human: document["is_human_readable"] != false,
        mime,
        body: text(content, "body").to_owned(),
    })
}
