//! Every action of knowledge, declared once: what it takes, who may, and its work.

mod changes;
mod create;
mod delete;
mod edit;
mod list;
mod moving;
mod query;
mod read;
mod restore;
mod schemas;
mod tools;
mod update;
mod verify;
mod webhooks;
mod written;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_kernel::action::{Slotting, Work};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::hub::Hub;
use crate::limits;
use crate::order;
use crate::reading::plain_id;

/// The version that every action of the seed is at (KNO-8).
pub const VERSION: &str = "1.0.0";

type Run = fn(Hub, Args, Context) -> BoxFuture<'static, Result<Reply, Halt>>;

struct Row {
    name: &'static str,
    about: &'static str,
    writes: bool,
    input: Value,
    run: Run,
    /// How long it may take, if that differs from others.
    limit_ms: Option<u64>,
}

macro_rules! row {
    ($name:literal, $about:literal, $writes:literal, $input:expr, $run:path) => {
        Row {
            name: $name,
            about: $about,
            writes: $writes,
            input: $input,
            run: |hub, args, context| $run(hub, args, context).boxed(),
            limit_ms: None,
        }
    };
    ($name:literal, $about:literal, $writes:literal, $input:expr, $run:path, $limit_ms:expr) => {
        Row { limit_ms: Some($limit_ms), ..row!($name, $about, $writes, $input, $run) }
    };
}

/// Everything knowledge can do. The tools are for models, the rest is for faces.
pub fn all(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let mut actions: Vec<Action> =
        rows().into_iter().map(|row| action(hub, row)).collect::<Result<_, _>>()?;
    actions.extend(tools::all(hub)?);
    Ok(actions)
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    vec![
        row!("knowledge.create_document", "Adds a document to the tree.", true, schemas::create(), create::run),
        row!("knowledge.update_document", "Changes what the mask names of a document.", true, schemas::update(), update::run),
        row!("knowledge.delete_document", "Hides a document and all below it, now or later; kept for 90 days.", true, schemas::delete(), delete::run),
        row!("knowledge.delete_due", "Hides a document whose time has come, and all below it; for the upkeep.", true, schemas::one(), delete::due),
        row!("knowledge.move_document", "Moves a document to another parent or place.", true, schemas::relocate(), moving::run),
        row!("knowledge.restore_document", "Brings a deleted document back, with all that went with it.", true, schemas::one(), restore::run),
        row!("knowledge.edit", "Replaces a text that stands in a document exactly once.", true, schemas::edit(), edit::run),
        row!("knowledge.query_knowledge", "Finds the passages that answer a question.", false, schemas::query(), query::run),
        row!("knowledge.get_document", "Reads a document: its beginning, or all of it.", false, schemas::get(), read::one),
        row!("knowledge.get_many", "Reads several documents at once.", false, schemas::get_many(), read::many),
        row!("knowledge.list_children", "Lists what is directly below a document, in order.", false, schemas::children(), list::children),
        row!("knowledge.list", "Lists documents by the beginning of their path, or deleted ones.", false, schemas::list(), list::list),
        row!("knowledge.changes", "Lists what changed after a position, in order; for triggers of workflows.", false, schemas::changes(), changes::run),
        row!("knowledge.document_history", "Lists the revisions of a document, newest first.", false, schemas::history(), list::history),
        row!("knowledge.webhooks_add", "Tells an address of changes.", true, schemas::webhook_add(), webhooks::add),
        row!("knowledge.webhooks_list", "Lists the addresses that are told of changes.", false, schemas::nothing(), webhooks::list),
        row!("knowledge.webhooks_remove", "Tells an address nothing more.", true, schemas::webhook_remove(), webhooks::remove),
        row!("knowledge.verify", "Compares documents, passages, index and vectors, and mends what is wrong if asked to.", true, schemas::verify(), verify::verify, limits::VERIFY_MS),
        row!("knowledge.reindex", "Writes the indexes anew from the documents.", true, schemas::nothing(), verify::reindex, limits::VERIFY_MS),
    ]
}

struct Bound {
    hub: Hub,
    run: Run,
}

impl Work for Bound {
    fn run(&self, args: Args, context: Context) -> BoxFuture<'static, Result<Reply, Halt>> {
        (self.run)(self.hub.clone(), args, context)
    }
}

fn action(hub: &Hub, row: Row) -> Result<Action, schema::Error> {
    let policy = Policy {
        timeout_ms: row.limit_ms.or(Some(if row.writes { limits::WRITE_MS } else { limits::READ_MS })),
        payload_bytes: Some(limits::PAYLOAD_BYTES),
        slotting: Slotting::Wait { limit_ms: limits::SLOT_WAIT_MS },
        secret_args: &["secret"],
        ..if row.writes { Policy::stored() } else { Policy::read() }
    };
    let work = Arc::new(Bound { hub: hub.clone(), run: row.run });
    let mut action = Action::unlisted(row.name, row.about, row.input, policy, work)?;
    action.about.version = Some(VERSION.to_owned());
    action.about.meta = Map::from_iter([(String::from("face"), json!("knowledge"))]);
    Ok(action)
}

/// The id a call is about; its schema requires it.
fn document_id(args: &Args) -> Result<String, Fault> {
    named(args, "document_id")
}

fn named(args: &Args, name: &str) -> Result<String, Fault> {
    let id =
        args.text(name).ok_or_else(|| Fault::invalid(format!("`{name}` is missing")).with("path", name))?;
    Ok(plain_id(id))
}

fn known_revision(args: &Args) -> Option<i64> {
    args.get("last_known_revision").and_then(Value::as_i64)
}

/// The place among its siblings that a document is to have; whoever knows all of them has worked it out (`folder::places`).
fn wished_place(args: &Args) -> Result<Option<String>, Fault> {
    let Some(place) = args.get("position").and_then(|position| position.get("place")) else {
        return Ok(None);
    };
    let found = place.as_str().filter(|place| order::is_place(place));
    found.map(|place| Some(place.to_owned())).ok_or_else(|| {
        Fault::invalid("`position.place` is no place as knowledge.list gives it")
            .with("path", "position.place")
    })
}

/// A page is never longer than the longest.
fn page(args: &Args, usual: i64, most: i64) -> i64 {
    args.get("limit").and_then(Value::as_i64).unwrap_or(usual).clamp(1, most)
}

/// The moment an argument names.
fn moment(args: &Args, name: &str) -> Result<Option<i64>, Fault> {
    let Some(text) = args.text(name) else { return Ok(None) };
    let parsed = text.parse::<jiff::Timestamp>();
    let parsed =
        parsed.map_err(|_| Fault::invalid(format!("`{name}` is no date and time")).with("path", name))?;
    Ok(Some(parsed.as_millisecond()))
}
