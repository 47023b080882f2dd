//! Reads documents: their beginning unless all is asked for, the present unless a revision is named.

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::ports::clock::iso;
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

pub async fn many(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, full) = (tenant(&context), full(&args));
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    let ids = args.get("ids").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for id in ids.map(plain_id) {
        context.check()?;
        match document(&hub, Whose { tenant, id: &id }, full, None).await {
            Ok(value) => found.push(value),
            Err(fault) if fault.code == orchestr8_contract::Code::NotFound => lost.push(id),
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(Output::json(json!({"documents": found, "not_found": lost})).into())
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
    let mut found = hub.document(whose).await?;
    let path = hub.path(whose.tenant, &found).await?;
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
    let mut value = json!({"id": found.id, "parent_id": found.parent, "revision": found.revision,
        "content": {"mime_type": found.mime.as_str(), "body": body}, "metadata": found.metadata,
        "is_human_readable": found.human, "created_at": iso(found.created_ms), "updated_at": iso(found.updated_ms),
        "path": path, "content_length": length});
    if !full && length > number(PARTIAL_CHARS) {
        value["truncated"] = json!(true);
    }
    if let Some(at_ms) = found.delete_ms {
        value["delete_at"] = json!(iso(at_ms));
    }
    if let Some(uri) = hub.web_uri(&found.id, found.human) {
        value["web_uri"] = json!(uri);
    }
    Ok(value)
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
