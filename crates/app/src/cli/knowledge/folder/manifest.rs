//! What a folder and the tree had in common when they last met: `.orchestr8-knowledge.json` in the folder.

use std::path::Path;

use orchestr8_contract::Code;
use orchestr8_knowledge::folder::{Base, Known};
use serde_json::{Value, json};

use super::super::super::files::unreadable;
use super::super::super::sessions;
use super::super::super::words::text;
use crate::failure::Failure;

const NAME: &str = ".orchestr8-knowledge.json";
const VERSION: u64 = 1;

/// Reads it; empty where there is none. A folder that belongs to another document is refused.
pub fn read(root: &Path, top: &str) -> Result<Base, Failure> {
    let path = root.join(NAME);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Base::default()),
        Err(cause) => return Err(unreadable(&path.display().to_string(), &cause)),
    };
    let wrong = |what: &str| {
        Failure::new(Code::InvalidArgument, format!("{} {what}", path.display()))
            .hinting("remove it; then every document that differs on both sides is a conflict")
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| wrong("is not JSON"))?;
    if value["version"] != VERSION {
        return Err(wrong("was written by another version"));
    }
    if text(&value, "top") != top {
        return Err(Failure::new(
            Code::IdConflict,
            format!("this folder belongs to the document {}", text(&value, "top")),
        )
        .hinting("name that document, or another folder"));
    }
    let documents = value["documents"].as_object().ok_or_else(|| wrong("has no documents"))?;
    let known = |(id, known): (&String, &Value)| {
        (id.clone(), Known { path: text(known, "path").to_owned(), print: text(known, "print").to_owned() })
    };
    Ok(documents.iter().map(known).collect())
}

/// Writes it, whole or not at all.
pub fn write(root: &Path, top: &str, base: &Base) -> Result<(), Failure> {
    let documents: serde_json::Map<String, Value> = base
        .iter()
        .map(|(id, known)| (id.clone(), json!({"path": known.path, "print": known.print})))
        .collect();
    let value = json!({"version": VERSION, "top": top, "documents": documents});
    sessions::write(&root.join(NAME), &format!("{value:#}\n"))
}
