//! Lists: children in their order, documents by path, deleted ones, and the revisions of one.

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::Row;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::{document_id, page};
use crate::hub::{Hub, tenant};
use crate::limits::{HISTORY, HISTORY_MAX, PAGE, PAGE_MAX};
use crate::reading::{cursor, missing, plain_id, read_cursor, tables};
use crate::record::{Document, ROOT, read};
use crate::tables::Whose;
use crate::write::number;

pub async fn children(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let tenant = tenant(&context);
    let parent = args.text("parent_id").map_or_else(|| ROOT.to_owned(), plain_id);
    if parent != ROOT {
        hub.document(Whose { tenant, id: &parent }).await?;
    }
    let (place, id) = read_cursor(args.text("cursor"))?;
    let limit = page(&args, PAGE, PAGE_MAX);
    let rows = hub.rows(tables::children(Whose { tenant, id: &parent }, &place, &id, limit + 1)).await?;
    let found = rows.iter().map(Document::of).collect::<Result<Vec<_>, _>>().map_err(read)?;
    let (shown, next) = cut(&found, limit, |last| cursor(&last.place, &last.id));
    let shown: Vec<Value> = shown.iter().map(Document::entry).collect();
    Ok(Output::json(paged("children", shown, next)).into())
}

pub async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, limit) = (tenant(&context), page(&args, PAGE, PAGE_MAX));
    let (first, second) = read_cursor(args.text("cursor"))?;
    let (found, next) = if args.get("deleted").and_then(Value::as_bool).unwrap_or(false) {
        let rows = hub.rows(tables::deleted(tenant, &first, limit + 1)).await?;
        let found = rows.iter().map(Document::of).collect::<Result<Vec<_>, _>>().map_err(read)?;
        let (shown, next) = cut(&found, limit, |last| cursor(&last.id, ""));
        let shown = shown.iter().map(|document| {
            let mut entry = document.entry();
            entry["purge_at"] = json!(document.purge_ms.map(iso));
            entry
        });
        (shown.collect(), next)
    } else {
        let prefix = rooted(args.text("prefix").unwrap_or_default());
        let found = match prefix.as_str() {
            "" | "/" => all(&hub, tenant, &first, limit + 1).await?,
            prefix => {
                let rows = hub.rows(tables::list(tenant, prefix, (&first, &second), limit + 1)).await?;
                rows.iter().map(with_path).collect::<Result<Vec<_>, _>>()?
            }
        };
        let place = |(path, last): &(String, Document)| match prefix.as_str() {
            "" | "/" => cursor(&last.id, ""),
            _ => cursor(path, &last.id),
        };
        let (shown, next) = cut(&found, limit, place);
        let shown = shown.iter().map(|(path, document)| {
            let mut entry = document.entry();
            entry["path"] = json!(path);
            entry["place"] = json!(document.place);
            entry
        });
        (shown.collect::<Vec<Value>>(), next)
    };
    Ok(Output::json(paged("documents", found, next)).into())
}

/// A page of all documents in order of their ids, with their paths.
async fn all(hub: &Hub, tenant: &str, after: &str, limit: i64) -> Result<Vec<(String, Document)>, Fault> {
    let rows = hub.rows(tables::all(tenant, after, limit)).await?;
    let found = rows.iter().map(Document::of).collect::<Result<Vec<_>, _>>().map_err(read)?;
    let mut paths = hub.paths(tenant, &found.iter().collect::<Vec<_>>()).await?;
    Ok(found.into_iter().map(|one| (paths.remove(&one.id).unwrap_or_default(), one)).collect())
}

/// Deleted documents have a history, too: it says who deleted them, when and why.
pub async fn history(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), document_id(&args)?);
    let whose = Whose { tenant, id: &id };
    hub.any_document(whose).await?.ok_or_else(|| missing("document", &id))?;
    let before = args.get("before_revision").and_then(Value::as_i64).unwrap_or(i64::MAX);
    let rows = hub.rows(tables::history(whose, before, page(&args, HISTORY, HISTORY_MAX))).await?;
    let revisions = rows.iter().map(revision).collect::<Result<Vec<_>, _>>()?;
    Ok(Output::json(json!({"revisions": revisions})).into())
}

fn revision(row: &Row) -> Result<Value, Fault> {
    let shown = || {
        let mut value = json!({"revision": row.int(0)?, "at": iso(row.int(1)?), "by": row.text(2)?, "op": row.text(3)?,
                               "title": row.text(4)?});
        if let Some(note) = row.optional_text(5)? {
            value["reason"] = json!(note);
        }
        Ok(value)
    };
    shown().map_err(read)
}

/// Paths begin with a slash, whether or not it was typed.
fn rooted(prefix: &str) -> String {
    if prefix.is_empty() || prefix.starts_with('/') { prefix.to_owned() } else { format!("/{prefix}") }
}

fn with_path(row: &Row) -> Result<(String, Document), Fault> {
    let path = row.text(0).map_err(read)?.to_owned();
    let rest = Row(row.0.get(1..).unwrap_or_default().to_vec());
    Ok((path, Document::of(&rest).map_err(read)?))
}

/// A page, and where the next begins if there is one: one more than a page was read.
fn cut<T>(found: &[T], limit: i64, cursor: impl Fn(&T) -> String) -> (&[T], Option<String>) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if number(found.len()) <= number(limit) {
        return (found, None);
    }
    let shown = &found[..limit];
    (shown, shown.last().map(cursor))
}

fn paged(name: &str, shown: Vec<Value>, next: Option<String>) -> Value {
    let mut value = json!({ name: shown });
    if let Some(next) = next {
        value["next_cursor"] = json!(next);
    }
    value
}
