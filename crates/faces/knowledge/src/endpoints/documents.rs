//! Documents for people: plain REST over the same actions.

use std::sync::Arc;

use axum::response::Response;
use http::header::ETAG;
use http::{HeaderValue, StatusCode};
use orchestr8_kernel::Principal;
use serde_json::{Map, Value};

use crate::actions;
use crate::answer;
use crate::call::{Call, Given, Outcome};
use crate::failure::Failure;
use crate::limits::{BATCH, EXCERPT_CHARS};

/// `GET /documents/{id}`: its beginning, or all of it with `?full=true`.
pub(crate) async fn show(call: Call) -> Outcome {
    let query = call.query(&["full", "revision"])?;
    let (principal, full) = (call.person(&query).await?, query.flag("full")?);
    let mut args = about(&call)?;
    if let Some(revision) = query.number("revision")? {
        args.insert("revision".into(), revision.into());
    }
    args.insert("full".into(), full.into());
    let mut given = call.ask(&principal, actions::GET, args).await?;
    if !full {
        excerpt(&mut given.value);
    }
    let mut response = plain(StatusCode::OK, &given);
    if let Some(revision) = given.value.get("revision").and_then(Value::as_i64)
        && let Ok(tag) = HeaderValue::from_str(&format!("\"{revision}{}\"", if full { "" } else { "-p" }))
    {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// `GET /documents?prefix=…`
pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["prefix", "deleted", "cursor", "limit"])?;
    let principal = call.person(&query).await?;
    let mut args = page(&query)?;
    if query.flag("deleted")? {
        args.insert("deleted".into(), true.into());
    }
    if let Some(prefix) = query.text("prefix") {
        args.insert("prefix".into(), prefix.into());
    }
    Ok(plain(StatusCode::OK, &call.ask(&principal, actions::LIST, args).await?))
}

/// `POST /documents`: the arguments of `knowledge.create_document`.
pub(crate) async fn create(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    Ok(plain(StatusCode::CREATED, &call.ask(&principal, actions::CREATE, call.json()?).await?))
}

/// `POST /documents/batch {ids, full?}`
pub(crate) async fn batch(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let body = call.json()?;
    let ids = body.get("ids").and_then(Value::as_array);
    let fits = |ids: &&Vec<Value>| (1..=BATCH).contains(&ids.len()) && ids.iter().all(Value::is_string);
    let Some(ids) = ids.filter(fits) else {
        return Err(Failure::invalid("/ids", format!("it must be 1 to {BATCH} ids")));
    };
    let full = body.get("full").cloned().unwrap_or(Value::Bool(false));
    let args = Map::from_iter([("ids".to_owned(), Value::from(ids.clone())), ("full".to_owned(), full)]);
    Ok(plain(StatusCode::OK, &call.ask(&principal, actions::GET_MANY, args).await?))
}

/// `PATCH /documents/{id}`: `{old_str, new_str}` where the old text is there exactly once, or the `{patch, update_mask}` of
/// `knowledge.update_document`.
pub(crate) async fn edit(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let mut args = call.json()?;
    let action = if args.contains_key("patch") { actions::UPDATE } else { actions::EDIT };
    args.extend(about(&call)?);
    changed(&call, &principal, action, args).await
}

/// `DELETE /documents/{id}?reason=…&delete_at=…&last_known_revision=…`
pub(crate) async fn delete(call: Call) -> Outcome {
    let query = call.query(&["reason", "delete_at", "last_known_revision"])?;
    let principal = call.person(&query).await?;
    let mut args = about(&call)?;
    for name in ["reason", "delete_at"] {
        args.extend(query.text(name).map(|text| (name.to_owned(), text.into())));
    }
    if let Some(known) = query.number("last_known_revision")? {
        args.insert("last_known_revision".into(), known.into());
    }
    changed(&call, &principal, actions::DELETE, args).await
}

/// `POST /documents/query`: the arguments of `knowledge.query_knowledge`.
pub(crate) async fn query(call: Call) -> Outcome {
    posted(call, actions::QUERY).await
}

/// `POST /documents/verify {repair?}`: the index against the documents.
pub(crate) async fn verify(call: Call) -> Outcome {
    posted(call, actions::VERIFY).await
}

/// `POST /documents/reindex {}`: the index anew from the documents.
pub(crate) async fn reindex(call: Call) -> Outcome {
    posted(call, actions::REINDEX).await
}

async fn posted(call: Call, action: &'static str) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let args = call.json()?;
    changed(&call, &principal, action, args).await
}

/// `GET /documents/{id}/children`; `root` is the parent of what has no other.
pub(crate) async fn children(call: Call) -> Outcome {
    let query = call.query(&["cursor", "limit"])?;
    let principal = call.person(&query).await?;
    let mut args = page(&query)?;
    args.insert("parent_id".into(), call.param("id")?.into());
    changed(&call, &principal, actions::CHILDREN, args).await
}

pub(crate) async fn history(call: Call) -> Outcome {
    let query = call.query(&["before_revision", "limit"])?;
    let principal = call.person(&query).await?;
    let mut args = page(&query)?;
    if let Some(before) = query.number("before_revision")? {
        args.insert("before_revision".into(), before.into());
    }
    args.extend(about(&call)?);
    changed(&call, &principal, actions::HISTORY, args).await
}

/// `POST /documents/{id}/move {new_parent_id, position?}`
pub(crate) async fn relocate(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let mut args = call.json()?;
    args.extend(about(&call)?);
    changed(&call, &principal, actions::MOVE, args).await
}

pub(crate) async fn restore(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let args = about(&call)?;
    changed(&call, &principal, actions::RESTORE, args).await
}

async fn changed(
    call: &Call,
    principal: &Arc<Principal>,
    action: &'static str,
    args: Map<String, Value>,
) -> Outcome {
    Ok(plain(StatusCode::OK, &call.ask(principal, action, args).await?))
}

fn plain(status: StatusCode, given: &Given) -> Response {
    let mut response = answer::json(status, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    response
}

fn about(call: &Call) -> Result<Map<String, Value>, Failure> {
    Ok(Map::from_iter([("document_id".to_owned(), call.param("id")?.into())]))
}

fn page(query: &crate::headers::Query) -> Result<Map<String, Value>, Failure> {
    let mut args = Map::new();
    if let Some(cursor) = query.text("cursor") {
        args.insert("cursor".into(), cursor.into());
    }
    if let Some(limit) = query.number("limit")? {
        args.insert("limit".into(), limit.into());
    }
    Ok(args)
}

/// The beginning of the content, and how long all of it is.
fn excerpt(document: &mut Value) {
    let Some(document) = document.as_object_mut() else { return };
    let body = match document.get_mut("content") {
        Some(Value::String(body)) => body,
        Some(Value::Object(content)) => match content.get_mut("body") {
            Some(Value::String(body)) => body,
            Some(_) | None => return,
        },
        Some(_) | None => return,
    };
    let length = body.chars().count();
    let Some((at, _)) = body.char_indices().nth(EXCERPT_CHARS) else { return };
    body.truncate(at);
    document.insert("truncated".into(), true.into());
    document.entry("content_length").or_insert_with(|| length.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn people_see_the_beginning_and_how_much_there_is() {
        let long = "é".repeat(EXCERPT_CHARS + 1);
        let mut document = json!({"content": {"body": long}});
        excerpt(&mut document);
        assert_eq!(document["content"]["body"], "é".repeat(EXCERPT_CHARS));
        assert_eq!((&document["truncated"], &document["content_length"]), (&json!(true), &json!(501)));
        let mut short = json!({"content": "é".repeat(EXCERPT_CHARS)});
        excerpt(&mut short);
        assert_eq!(short.get("truncated"), None);
    }
}
