//! Documents as the store keeps them, and as callers see them.

use orchestr8_contract::Fault;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{Error, Row};
use serde_json::{Map, Value, json};

use crate::limits;

/// The parent of documents at the top. It always exists and is no document.
pub const ROOT: &str = "root";

/// What a body is written in (KNO-8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mime {
    Markdown,
    Plain,
    Json,
}

impl Mime {
    pub const ALL: [Mime; 3] = [Mime::Markdown, Mime::Plain, Mime::Json];

    pub fn as_str(self) -> &'static str {
        match self {
            Mime::Markdown => "text/markdown",
            Mime::Plain => "text/plain",
            Mime::Json => "application/json",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mime| mime.as_str() == text)
    }
}

/// What happened to a document with a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Create,
    Update,
    Move,
    Delete,
    Restore,
}

impl Op {
    pub const ALL: [Op; 5] = [Op::Create, Op::Update, Op::Move, Op::Delete, Op::Restore];

    pub fn as_str(self) -> &'static str {
        match self {
            Op::Create => "create",
            Op::Update => "update",
            Op::Move => "move",
            Op::Delete => "delete",
            Op::Restore => "restore",
        }
    }
}

/// A document without its body.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub id: String,
    pub parent: String,
    /// Siblings are in the order of this, then of their ids.
    pub place: String,
    pub revision: i64,
    /// The revision that holds its body.
    pub content_revision: i64,
    pub title: String,
    pub mime: Mime,
    pub human: bool,
    pub metadata: Map<String, Value>,
    /// Characters of its body.
    pub chars: i64,
    pub created_ms: i64,
    pub updated_ms: i64,
    /// The document whose deletion hides it: itself or one above it.
    pub hidden_by: Option<String>,
    pub purge_ms: Option<i64>,
    /// When it is to be deleted.
    pub delete_ms: Option<i64>,
}

impl Document {
    /// Reads the columns of `tables::DOCUMENT`.
    pub fn of(row: &Row) -> Result<Self, Error> {
        let corrupt = |what: &str| Error::Corrupt(format!("a document has no {what}"));
        let Ok(Value::Object(metadata)) = serde_json::from_str(row.text(8)?) else {
            return Err(corrupt("metadata"));
        };
        Ok(Self {
            id: row.text(0)?.to_owned(),
            parent: row.text(1)?.to_owned(),
            place: row.text(2)?.to_owned(),
            revision: row.int(3)?,
            content_revision: row.int(4)?,
            title: row.text(5)?.to_owned(),
            mime: Mime::parse(row.text(6)?).ok_or_else(|| corrupt("type"))?,
            human: row.int(7)? != 0,
            metadata,
            chars: row.int(9)?,
            created_ms: row.int(10)?,
            updated_ms: row.int(11)?,
            hidden_by: row.optional_text(12)?.map(str::to_owned),
            purge_ms: optional(row, 13)?,
            delete_ms: optional(row, 14)?,
        })
    }

    pub fn visible(&self) -> bool {
        self.hidden_by.is_none()
    }

    pub fn tags(&self) -> Vec<&str> {
        let tags = self.metadata.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// What a list shows of it.
    pub fn entry(&self) -> Value {
        json!({"id": self.id, "parent_id": self.parent, "revision": self.revision, "title": self.title,
               "metadata": self.metadata, "mime_type": self.mime.as_str(), "is_human_readable": self.human,
               "content_length": self.chars, "created_at": iso(self.created_ms), "updated_at": iso(self.updated_ms)})
    }
}

/// The title and the tags of metadata, checked together with its size.
pub fn check_metadata(metadata: &Map<String, Value>) -> Result<String, Fault> {
    let wrong = |path: &str, what: String| unprocessable(format!("`{path}` {what}")).with("path", path);
    let Some(title) = metadata.get("title").and_then(Value::as_str).filter(|title| !title.trim().is_empty())
    else {
        return Err(wrong("metadata.title", String::from("must be a text that is not empty")));
    };
    if title.chars().count() > limits::TITLE_CHARS {
        return Err(wrong("metadata.title", format!("has more than {} characters", limits::TITLE_CHARS)));
    }
    if let Some(tags) = metadata.get("tags") {
        let fits = |tag: &Value| {
            tag.as_str().is_some_and(|tag| !tag.is_empty() && tag.chars().count() <= limits::TAG_CHARS)
        };
        let Some(tags) = tags.as_array().filter(|tags| tags.iter().all(fits)) else {
            let what = format!("must be a list of texts of 1 to {} characters", limits::TAG_CHARS);
            return Err(wrong("metadata.tags", what));
        };
        if tags.len() > limits::TAGS {
            return Err(wrong("metadata.tags", format!("has more than {} entries", limits::TAGS)));
        }
    }
    let bytes = serde_json::to_string(metadata).map_or(usize::MAX, |text| text.len());
    if bytes > limits::METADATA_BYTES {
        return Err(wrong("metadata", format!("has more than {} bytes", limits::METADATA_BYTES)));
    }
    Ok(title.to_owned())
}

/// Checks a body against its type.
pub fn check_body(mime: Mime, body: &str) -> Result<(), Fault> {
    let wrong = |what: String| unprocessable(format!("`content.body` {what}")).with("path", "content.body");
    if body.len() > limits::BODY_BYTES {
        return Err(
            wrong(format!("has more than {} bytes", limits::BODY_BYTES)).with("maxBytes", limits::BODY_BYTES)
        );
    }
    if body.contains('\0') {
        return Err(wrong(String::from("holds a character of code 0")));
    }
    if mime == Mime::Json && serde_json::from_str::<serde::de::IgnoredAny>(body).is_err() {
        return Err(wrong(String::from("is not JSON, as its type says")));
    }
    Ok(())
}

/// Well-formed, and wrong all the same: what the seed calls UNPROCESSABLE_ENTITY.
pub fn unprocessable(message: String) -> Fault {
    Fault::invalid(message).with("reason", "UNPROCESSABLE_ENTITY")
}

pub fn read(error: Error) -> Fault {
    store_fault(error)
}

pub fn optional(row: &Row, column: usize) -> Result<Option<i64>, Error> {
    use orchestr8_kernel::ports::store::Cell;
    match row.0.get(column) {
        Some(Cell::Null) => Ok(None),
        _ => row.int(column).map(Some),
    }
}
