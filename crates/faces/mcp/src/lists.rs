//! The lists: tools, resources, templates, prompts. In order of name (MCP-PROP-4), page by page.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use orchestr8_kernel::action::{Action, Address, Effect, Shown, Tasking};
use serde_json::{Map, Value, json};

use crate::body::{Body, CacheScope};
use crate::era::{Era, Revision};
use crate::governed;
use crate::request::{Answer, Request};
use crate::upstream;
use crate::wire::Error;

/// The name of an action's version and of its other names in `_meta`.
pub const VERSION_META: &str = "orchestr8/version";
pub const ALIASES_META: &str = "orchestr8/aliases";

pub fn tools(request: &Request<'_>) -> Result<Body, Error> {
    let table = request.kernel().registry().table();
    match governed::role(request.who()) {
        // `page` leaves out what the role may not use.
        Some(_) => page(request, "tools", table.all().iter().filter(|action| is_hidden(action)), |action| {
            let mut shown = tool(action, request.era);
            shown["name"] = governed::plain(action).into();
            shown
        }),
        None => {
            page(request, "tools", table.tools_for(&request.who().tenant), |action| tool(action, request.era))
        }
    }
}

pub fn prompts(request: &Request<'_>) -> Answer {
    let table = request.kernel().registry().table();
    let own = own_entries(request, table.prompts(), prompt);
    merged(request, "prompts", own, |entry| text(entry, "name"))
}

pub fn resources(request: &Request<'_>) -> Answer {
    let table = request.kernel().registry().table();
    let fixed = table.resources().filter(|action| matches!(address(action), Some(Address::Fixed(_))));
    merged(request, "resources", own_entries(request, fixed, resource), |entry| behind(&text(entry, "uri")))
}

pub fn templates(request: &Request<'_>) -> Answer {
    let table = request.kernel().registry().table();
    let templates = table.resources().filter(|action| matches!(address(action), Some(Address::Template(_))));
    let own = own_entries(request, templates, resource);
    merged(request, "resourceTemplates", own, |entry| behind(&text(entry, "uriTemplate")))
}

/// An entry of a list, and the key by which it is ordered.
type Entry = (String, Value);

fn own_entries<'a>(
    request: &Request<'_>,
    actions: impl Iterator<Item = &'a Arc<Action>>,
    show: impl Fn(&Action, Era) -> Value,
) -> Vec<Entry> {
    let (face, who) = (&request.connection.face, request.who());
    let seen = actions.filter(|action| face.lists(action, who));
    seen.map(|action| (action.name.to_string(), show(action, request.era))).collect()
}

fn text(entry: &Map<String, Value>, member: &str) -> String {
    entry.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The key of what comes after all that is our own: no name of an action has this character.
fn behind(uri: &str) -> String {
    format!("~{uri}")
}

/// Our own entries and those of other servers, page by page.
fn merged(
    request: &Request<'_>,
    member: &'static str,
    mut own: Vec<Entry>,
    key: fn(&Map<String, Value>) -> String,
) -> Answer {
    let after = match request.params.text("cursor") {
        Ok(cursor) => cursor.map(|cursor| read_cursor(member, &cursor)).transpose(),
        Err(error) => Err(error),
    };
    let after = match after {
        Ok(after) => after,
        Err(error) => return Err(error).into(),
    };
    let (size, ttl_ms) = (request.settings().page_size.max(1), request.settings().cache_ttl_ms);
    let page = move |mut entries: Vec<Entry>| {
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut rest = entries.into_iter().filter(|(key, _)| after.as_ref().is_none_or(|after| key > after));
        let shown: Vec<Entry> = rest.by_ref().take(size).collect();
        let values: Vec<&Value> = shown.iter().map(|(_, value)| value).collect();
        let body = Body::with_capacity(4096).value(member, &values).cached(ttl_ms, CacheScope::Private);
        match (rest.next(), shown.last()) {
            (Some(_), Some((last, _))) => body.text("nextCursor", &write_cursor(member, last)),
            (Some(_), None) | (None, _) => body,
        }
    };
    let Some(submission) = upstream::list(request, member) else { return Ok(page(own)).into() };
    let era = request.era;
    upstream::run(request, submission, move |settled| {
        let others = upstream::entries(&settled, era).into_iter();
        own.extend(others.map(|entry| (key(&entry), Value::Object(entry))));
        Ok(page(own)).into()
    })
}

fn is_hidden(action: &Action) -> bool {
    matches!(action.shown, Shown::Hidden)
}

/// One page: what comes after the cursor, and a cursor for the rest. A cursor is the name of the last item, so a list
/// that changes between two pages neither repeats nor skips what stays.
fn page<'a>(
    request: &Request<'_>,
    member: &str,
    items: impl Iterator<Item = &'a Arc<Action>>,
    show: impl Fn(&Action) -> Value,
) -> Result<Body, Error> {
    let after = match request.params.text("cursor")? {
        Some(cursor) => Some(read_cursor(member, &cursor)?),
        None => None,
    };
    let (face, who) = (&request.connection.face, request.who());
    let seen = items.filter(|action| face.lists(action, who));
    let mut rest = seen.filter(|action| after.as_deref().is_none_or(|after| action.name.as_str() > after));
    let size = request.settings().page_size.max(1);
    let shown: Vec<&Arc<Action>> = rest.by_ref().take(size).collect();
    let values: Vec<Value> = shown.iter().map(|action| show(action)).collect();
    let body = Body::with_capacity(4096)
        .value(member, &values)
        .cached(request.settings().cache_ttl_ms, CacheScope::Private);
    Ok(match (rest.next(), shown.last()) {
        (Some(_), Some(last)) => body.text("nextCursor", &write_cursor(member, last.name.as_str())),
        (Some(_), None) | (None, _) => body,
    })
}

pub fn write_cursor(list: &str, last: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}:{last}"))
}

pub fn read_cursor(list: &str, cursor: &str) -> Result<String, Error> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let last = text.as_deref().and_then(|text| text.strip_prefix(list)?.strip_prefix(':'));
    last.map(str::to_owned).ok_or_else(|| Error::params("cursor is not one of this list; begin without one"))
}

pub fn address(action: &Action) -> Option<&Address> {
    match &action.shown {
        Shown::Resource(resource) => Some(&resource.address),
        Shown::Tool | Shown::Prompt { .. } | Shown::Hidden => None,
    }
}

/// What every list tells about an action.
fn about(action: &Action, era: Era) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.insert("name".into(), action.name.as_str().into());
    if !action.about.description.is_empty() {
        shown.insert("description".into(), action.about.description.as_str().into());
    }
    if let (Some(title), true) = (&action.about.title, era.since(Revision::V2025_06_18)) {
        shown.insert("title".into(), title.as_str().into());
    }
    if let (Some(icons), true) = (&action.about.icons, era.since(Revision::V2025_11_25)) {
        shown.insert("icons".into(), icons.clone());
    }
    let mut meta = action.about.meta.clone();
    if let Some(version) = &action.about.version {
        meta.insert(VERSION_META.into(), version.as_str().into());
    }
    if !action.about.aliases.is_empty() {
        meta.insert(ALIASES_META.into(), action.about.aliases.clone().into());
    }
    if !meta.is_empty() {
        shown.insert("_meta".into(), Value::Object(meta));
    }
    shown
}

fn tool(action: &Action, era: Era) -> Value {
    let mut shown = about(action, era);
    shown.insert("inputSchema".into(), action.input.source.clone());
    if let (Some(output), true) = (&action.output, era.since(Revision::V2025_06_18)) {
        shown.insert("outputSchema".into(), output.source.clone());
    }
    if era.since(Revision::V2025_03_26) {
        let policy = &action.policy;
        let is_read = policy.effect == Effect::Read;
        let annotations = json!({
            "readOnlyHint": is_read,
            "destructiveHint": !is_read && policy.destructive,
            "idempotentHint": policy.idempotent,
            "openWorldHint": policy.open_world,
        });
        shown.insert("annotations".into(), annotations);
    }
    let support = match action.policy.tasking {
        Tasking::Forbidden => None,
        Tasking::Optional => Some("optional"),
        Tasking::Required => Some("required"),
    };
    if let (Some(support), Era::Legacy(Revision::V2025_11_25)) = (support, era) {
        shown.insert("execution".into(), json!({"taskSupport": support}));
    }
    Value::Object(shown)
}

fn prompt(action: &Action, era: Era) -> Value {
    let mut shown = about(action, era);
    if let Shown::Prompt { arguments } = &action.shown
        && !arguments.is_empty()
    {
        let arguments: Vec<Value> = arguments
            .iter()
            .map(|argument| match &argument.description {
                Some(text) => {
                    json!({"name": argument.name, "description": text, "required": argument.required})
                }
                None => json!({"name": argument.name, "required": argument.required}),
            })
            .collect();
        shown.insert("arguments".into(), arguments.into());
    }
    Value::Object(shown)
}

fn resource(action: &Action, era: Era) -> Value {
    let mut shown = about(action, era);
    if let Shown::Resource(resource) = &action.shown {
        let (name, uri) = match &resource.address {
            Address::Fixed(uri) => ("uri", uri),
            Address::Template(uri) => ("uriTemplate", uri),
        };
        shown.insert(name.into(), uri.as_str().into());
        if let Some(mime_type) = &resource.mime_type {
            shown.insert("mimeType".into(), mime_type.as_str().into());
        }
        if let Some(size) = resource.size {
            shown.insert("size".into(), size.into());
        }
    }
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_its_list() {
        let cursor = write_cursor("tools", "echo");
        assert_eq!(read_cursor("tools", &cursor).unwrap(), "echo");
        assert!(read_cursor("prompts", &cursor).is_err());
        assert!(read_cursor("tools", "%%").is_err());
    }
}
