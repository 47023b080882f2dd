//! The tree of a session: shown, walked, forked.

use std::sync::Arc;

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use orchestr8_models::Message;
use serde_json::{Value, json};

use super::registry::{begin, blank};
use super::{answer, session};
use crate::compact;
use crate::hub::Hub;
use crate::record::{self, Body, Entry, Place, entry_id, place_of};
use crate::session::{Draft, Session};
use crate::tree::{Node, Tree};

pub async fn messages(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (header, tree) = Tree::of(&hub, &session).await?;
    answer(json!({"messages": tree.messages(header.leaf)}))
}

pub async fn last_text(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (header, tree) = Tree::of(&hub, &session).await?;
    let last =
        tree.messages(header.leaf).into_iter().rev().find(|message| matches!(message, Message::Assistant(_)));
    answer(json!({"text": last.map(Message::text)}))
}

pub async fn usage(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let Ok(model) = session.with_header(|header| hub.model(header)) else { return answer(Value::Null) };
    let (header, tree) = Tree::of(&hub, &session).await?;
    let used = compact::used_tokens(&tree.context(header.leaf));
    let window = model.about().context_window;
    #[allow(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    let percent = used as f64 / window.max(1) as f64 * 100.0;
    answer(json!({"tokens": used, "contextWindow": window, "percent": percent}))
}

pub async fn show(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (header, tree) = Tree::of(&hub, &session).await?;
    let nodes: Vec<Value> = tree.nodes().map(|(place, node)| shown(place, node)).collect();
    answer(json!({"currentLeafId": header.leaf.map(entry_id), "nodes": nodes}))
}

fn shown(place: Place, node: &Node) -> Value {
    let entry = &node.entry;
    let role = entry.body.message().map(|message| record::json(message)["role"].take());
    let mut shown = json!({"entryId": entry_id(place), "parentId": entry.parent.map(entry_id),
        "entryType": entry.body.kind(), "role": role, "text": entry.body.text(), "timestamp": iso(entry.at_ms)});
    if let Some(label) = &node.label {
        shown["label"] = json!(label);
    }
    shown
}

/// The messages of people on the way to here: each is a place to fork from.
pub async fn fork_messages(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (header, tree) = Tree::of(&hub, &session).await?;
    let messages: Vec<Value> = tree
        .path(header.leaf)
        .into_iter()
        .filter_map(|place| Some((place, said(&tree, place)?)))
        .map(|(place, text)| json!({"entryId": entry_id(place), "text": text}))
        .collect();
    answer(json!({"messages": messages}))
}

/// What a person said there, if a person did.
fn said(tree: &Tree, place: Place) -> Option<String> {
    match tree.get(place)?.entry.body.message()? {
        message @ Message::User(_) => Some(message.text()),
        Message::Assistant(_) | Message::ToolResult(_) | Message::BashExecution(_) => None,
    }
}

fn entry(tree: &Tree, args: &Args, member: &str) -> Result<Place, Fault> {
    let id = args.text(member).unwrap_or_default();
    place_of(id).filter(|place| tree.get(*place).is_some()).ok_or_else(|| {
        Fault::invalid(format!("{member}: there is no entry '{id}'")).with("path", format!("/{member}"))
    })
}

/// Begins again with nothing said; what was said stays in the tree.
pub async fn new_session(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let mut draft = Draft::new(&session, hub.now_ms());
    (draft.header.leaf, draft.header.messages) = (None, 0);
    draft.header.parent = args.text("parentSession").map(str::to_owned).or(draft.header.parent);
    Ok(draft.into_reply(json!({"cancelled": false}), hub.kernel()))
}

/// A new session with everything before a message of a person, whose text is given back to be said otherwise.
pub async fn fork(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let from = session(&hub, &args, &context)?;
    let (mut header, tree) = Tree::of(&hub, &from).await?;
    let place = entry(&tree, &args, "entryId")?;
    let Some(text) = said(&tree, place) else {
        let wrong = Fault::invalid("entryId: must be a message of the user");
        return Err(wrong.with("path", "/entryId").into());
    };
    let id: Arc<str> = hub.kernel().ports().ids.fresh(For::Session).to_string().into();
    let room = hub.room(&from.tenant, &id)?;
    let fresh = blank(&hub, header.cwd.clone());
    (header.owner, header.shared) = (Some(context.principal.name.to_string()), fresh.shared);
    (header.parent, header.file) = (Some(from.id.to_string()), None);
    (header.leaf, header.next, header.messages, header.stats) =
        (fresh.leaf, fresh.next, fresh.messages, fresh.stats);
    let session = Arc::new(Session::new(from.tenant.clone(), id, hub.now_ms(), 0, header));
    let mut draft = Draft::new(&session, hub.now_ms());
    copy(&mut draft, &tree, tree.get(place).and_then(|node| node.entry.parent));
    let (header, entries) = draft.into_parts();
    session.install(header);
    let mut reply = begin(&hub, &context, session.clone(), room, entries);
    reply.effects.then_one(orchestr8_kernel::tables::version_create(from.tenant.as_str(), &session.id));
    reply.output = Output::json(json!({"sessionId": &*session.id, "sessionInfo": hub.info(&session),
        "text": text, "cancelled": false}));
    Ok(reply)
}

/// Copies the way to an entry, with new places.
fn copy(draft: &mut Draft, tree: &Tree, leaf: Option<Place>) {
    let mut moved = std::collections::HashMap::new();
    for place in tree.path(leaf) {
        let Some(node) = tree.get(place) else { continue };
        let mut body = node.entry.body.clone();
        if let Body::Compaction { first_kept, .. } = &mut body {
            *first_kept = moved.get(first_kept).copied().unwrap_or(0);
        }
        let at = draft.append_as(node.label.as_deref(), node.entry.at_ms, body);
        moved.insert(place, at);
    }
}

/// Goes to another place of the tree. A message of a person is given back to be said otherwise.
pub async fn navigate(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (header, tree) = Tree::of(&hub, &session).await?;
    let target = entry(&tree, &args, "targetId")?;
    let options = args.get("options").cloned().unwrap_or_default();
    let text = said(&tree, target);
    let leaf = match text {
        Some(_) => tree.get(target).and_then(|node| node.entry.parent),
        None => Some(target),
    };
    let mut draft = Draft::new(&session, hub.now_ms());
    if options["summarize"] == true
        && let Some(from) = header.leaf
    {
        let left = left_behind(&tree, header.leaf, leaf);
        let instructions = options["customInstructions"].as_str();
        let summary = compact::write(&hub, &session, &left, instructions, context.cancel.token()).await?;
        draft.header.leaf = leaf;
        draft.append(Body::BranchSummary { summary, from });
    } else {
        draft.header.leaf = leaf;
    }
    draft.header.messages = u64::try_from(tree.messages(leaf).len()).unwrap_or(0);
    if let Some(label) = options["label"].as_str() {
        draft.label(target, Some(label).filter(|label| !label.is_empty()));
    }
    let mut told = json!({"cancelled": false});
    if let Some(text) = text {
        told["editorText"] = json!(text);
    }
    Ok(draft.into_reply(told, hub.kernel()))
}

/// The messages of the branch that is left: from the last one both ways share.
fn left_behind(tree: &Tree, from: Option<Place>, to: Option<Place>) -> Vec<Message> {
    let stays = tree.path(to);
    let left: Vec<&Entry> = tree
        .path(from)
        .into_iter()
        .filter(|place| !stays.contains(place))
        .filter_map(|place| tree.get(place).map(|node| &node.entry))
        .collect();
    left.into_iter().filter_map(|entry| entry.body.message().cloned()).collect()
}
