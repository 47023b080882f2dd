//! What models get to see of knowledge: three tools, and every document as a resource.

use orchestr8_contract::content::{ResourceContents, ResourceData};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{Address, Resource, Slotting};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Map, Value, json};

use super::{list, query, read, schemas};
use crate::hub::{Hub, tenant};
use crate::limits::{READ_MS, SLOT_WAIT_MS};
use crate::reading::{missing, plain_id};
use crate::tables::Whose;

/// The addresses of documents.
pub const ADDRESS: &str = "knowledge://{id}";

pub fn all(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    Ok(vec![search(hub)?, get(hub)?, documents(hub)?, resource(hub)?])
}

fn search(hub: &Hub) -> Result<Action, schema::Error> {
    let hub = hub.clone();
    let about = "Finds the passages of the stored documents that answer a question. Each comes with the id of its document and \
                 its place in it; read more with get_document.";
    let action =
        Action::tool("search_knowledge", about, schemas::query(), policy(), move |args, context| {
            query::run(hub.clone(), args, context)
        })?;
    Ok(action.titled("Search the knowledge"))
}

fn get(hub: &Hub) -> Result<Action, schema::Error> {
    let hub = hub.clone();
    let about = "Reads a stored document by its id: its first 500 characters, or all of it with full.";
    let action = Action::tool("get_document", about, schemas::get(), policy(), move |args, context| {
        read::one(hub.clone(), args, context)
    })?;
    Ok(action.titled("Read a document"))
}

fn documents(hub: &Hub) -> Result<Action, schema::Error> {
    let hub = hub.clone();
    let about =
        "Lists stored documents by the beginning of their path, such as /Handbook/; all of them without one.";
    let action = Action::tool("list_documents", about, schemas::list(), policy(), move |args, context| {
        list::list(hub.clone(), args, context)
    })?;
    Ok(action.titled("List documents"))
}

fn resource(hub: &Hub) -> Result<Action, schema::Error> {
    let hub = hub.clone();
    let address = Resource { address: Address::Template(ADDRESS.to_owned()), mime_type: None, size: None };
    let about = "A stored document.";
    let mut action = Action::resource("knowledge.document", about, address, move |args, context| {
        contents(hub.clone(), args, context)
    })?;
    action.policy = policy();
    Ok(action)
}

fn policy() -> Policy {
    let slotting = Slotting::Wait { limit_ms: SLOT_WAIT_MS };
    Policy { timeout_ms: Some(READ_MS), slotting, ..Policy::read() }
}

async fn contents(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let id = plain_id(args.text("id").unwrap_or_default());
    let uri = args.text("uri").map_or_else(|| ADDRESS.replace("{id}", &id), str::to_owned);
    let whose = Whose { tenant: tenant(&context), id: &id };
    let found = read::document(&hub, whose, true, None).await.map_err(|fault| match fault.code {
        Code::NotFound => missing("document", &id),
        _ => fault,
    })?;
    let text = |path: &str| found.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let body = text("/content/body").ok_or_else(|| Fault::internal("a document has no text"))?;
    let meta = Map::from_iter([
        (String::from("revision"), found["revision"].clone()),
        (String::from("path"), found["path"].clone()),
        (String::from("metadata"), json!(found["metadata"])),
    ]);
    let contents = ResourceContents {
        uri,
        mime_type: text("/content/mime_type"),
        data: ResourceData::Text(body),
        meta: Some(meta),
    };
    Ok(Output::Resource { contents: vec![contents] }.into())
}
