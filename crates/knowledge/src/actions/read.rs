//! Reads documents: their beginning unless all is asked for, the present unless a revision is named.

use std::collections::HashMap;

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Row;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::document_id;
use crate::hub::{Hub, tenant};
use crate::limits::PARTIAL_CHARS;
use crate::reading::{missing, plain_id, tables};
use crate::record::{Document, Mime, read};
use crate::tables::Whose;
use crate::write::number;

pub async fn one(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), document_id(&args)?);
    let revision = args.get("revision").and_then(Value::as_i64);
    let value = document(&hub, Whose { tenant, id: &id }, full(&args), revision).await?;
    Ok(Output::json(value).into())
}

/// All of them with two reads of the store, in the order they were asked for.
pub async fn many(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, full) = (tenant(&context), full(&args));
    let ids = args.get("ids").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let ids: Vec<String> = ids.map(plain_id).collect();
    let chars = if full { i64::MAX } else { number(PARTIAL_CHARS) };
    let rows = hub.rows(tables::many(tenant, json!(ids).to_string(), chars)).await?;
    let (mut texts, mut documents) = (HashMap::new(), HashMap::new());
    for row in &rows {
        let (text, document) = with_text(row)?;
        texts.insert(document.id.clone(), text);
        documents.insert(document.id.clone(), document);
    }
    let paths = hub.paths(tenant, &documents.values().collect::<Vec<_>>()).await?;
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    for id in ids {
        match (documents.get(&id), texts.get(&id), paths.get(&id)) {
            (Some(document), Some(text), Some(path)) => {
                let shown = Shown { body: text, length: document.chars, path, full };
                found.push(shown.of(&hub, document));
            }
            _ => lost.push(id),
        }
    }
    Ok(Output::json(json!({"documents": found, "not_found": lost})).into())
}

fn with_text(row: &Row) -> Result<(String, Document), Fault> {
    let text = row.text(0).map_err(read)?.to_owned();
    let rest = Row(row.0.get(1..).unwrap_or_default().to_vec());
    Ok((text, Document::of(&rest).map_err(read)?))
}

fn full(args: &Args) -> bool {
    args.get("full").and_then(Value::as_bool).unwrap_or(false)
}

/// A document as callers see it.
pub async fn document(
    hub: &Hub,
    whose: Whose<'_>,
    full: bool,
    revision: Option<i64>,
) -> Result<Value, Fault> {
    let (mut found, path) = placed(hub, whose).await?;
    if let Some(revision) = revision.filter(|revision| *revision != found.revision) {
        found = as_it_was(hub, whose, found, revision).await?;
    }
    let (body, length) = if full || revision.is_some() {
        let body = hub.body(whose, found.content_revision).await?;
        let length = number(body.chars().count());
        (if full { body } else { body.chars().take(PARTIAL_CHARS).collect() }, length)
    } else {
        (hub.body_start(whose, found.content_revision, PARTIAL_CHARS).await?, found.chars)
    };
    Ok(Shown { body: &body, length, path: &path, full }.of(hub, &found))
}

/// A document and its path. Both are read one after the other: a document that was moved in between may have had a parent that is
/// gone, so it is read once more before that counts.
async fn placed(hub: &Hub, whose: Whose<'_>) -> Result<(Document, String), Fault> {
    let found = hub.document(whose).await?;
    match hub.path(whose.tenant, &found).await {
        Err(fault) if fault.code == Code::NotFound => {
            let found = hub.document(whose).await?;
            let path = hub.path(whose.tenant, &found).await?;
            Ok((found, path))
        }
        path => Ok((found, path?)),
    }
}

/// What callers see of a document beside its record.
struct Shown<'a> {
    body: &'a str,
    /// Characters of all of it.
    length: i64,
    path: &'a str,
    full: bool,
}

impl Shown<'_> {
    fn of(&self, hub: &Hub, found: &Document) -> Value {
        let mut value = json!({"id": found.id, "parent_id": found.parent, "revision": found.revision,
            "content": {"mime_type": found.mime.as_str(), "body": self.body}, "metadata": found.metadata,
            "is_human_readable": found.human, "created_at": iso(found.created_ms), "updated_at": iso(found.updated_ms),
            "path": self.path, "content_length": self.length});
        if !self.full && self.length > number(PARTIAL_CHARS) {
            value["truncated"] = json!(true);
        }
        if let Some(at_ms) = found.delete_ms {
            value["delete_at"] = json!(iso(at_ms));
        }
        if let Some(uri) = hub.web_uri(&found.id, found.human) {
            value["web_uri"] = json!(uri);
        }
        value
    }
}

async fn as_it_was(hub: &Hub, whose: Whose<'_>, now: Document, revision: i64) -> Result<Document, Fault> {
    let row = hub.row(tables::revision(whose, revision)).await?;
    let row = row.ok_or_else(|| missing("revision", &revision.to_string()))?;
    let then = || {
        Ok(Document {
            revision,
            title: row.text(0)?.to_owned(),
            mime: Mime::parse(row.text(1)?).unwrap_or(Mime::Plain),
            parent: row.text(2)?.to_owned(),
            metadata: serde_json::from_str(row.text(3)?).unwrap_or_default(),
            content_revision: row.int(4)?,
            updated_ms: row.int(5)?,
            ..now
        })
    };
    then().map_err(read)
}
