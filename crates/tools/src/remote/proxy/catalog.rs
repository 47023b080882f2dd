//! What a server offers beside tools: resources, templates of resources, prompts, as clients of ours see them.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::visible::{visible, visible_line};
use orchestr8_kernel::ports::store;
use orchestr8_kernel::{Log, Ports};
use parking_lot::RwLock;
use rmcp::model::{
    ClientRequest, ErrorCode, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    PaginatedRequestParams, Tool,
};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value, json};

use super::super::Server;
use super::super::limits::{LIST_MS, LISTED, LISTED_BYTES, PAGES};
use super::super::offer::SERVER;
use super::super::pins::{self, PinKind, Standing};
use super::address::ours;

/// What the name of a prompt begins with where its definition is pinned beside those of tools.
pub const PINNED_PROMPT: &str = "prompts/";

/// The address or name that something has at its server, in its `_meta`.
pub const OWN_NAME: &str = "orchestr8/name";

/// What a server offers, as it was last listed.
#[derive(Debug, Default, PartialEq)]
pub struct Catalog {
    /// As they are listed, with our addresses, in order of these.
    pub resources: Vec<Map<String, Value>>,
    pub templates: Vec<Map<String, Value>>,
    /// In order of their own names.
    pub prompts: Vec<PromptDefinition>,
    pub can: Abilities,
}

/// A prompt of a server.
#[derive(Debug, PartialEq)]
pub struct PromptDefinition {
    /// Its own name there.
    pub name: String,
    /// As it is listed, but for its name here.
    pub listed: Map<String, Value>,
    /// Its definition is not the accepted one.
    pub quarantined: bool,
}

/// What a server says that it can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    pub resources: bool,
    pub subscribe: bool,
    pub prompts: bool,
    pub completions: bool,
    pub logging: bool,
}

impl Abilities {
    pub fn of(peer: &Peer<RoleClient>) -> Self {
        let Some(info) = peer.peer_info() else { return Self::default() };
        let declared = &info.capabilities;
        let resources = declared.resources.as_ref();
        Self {
            resources: resources.is_some(),
            subscribe: resources.and_then(|resources| resources.subscribe).unwrap_or(false),
            prompts: declared.prompts.is_some(),
            completions: declared.completions.is_some(),
            logging: declared.logging.is_some(),
        }
    }
}

/// The catalog of one server; kept while the server is away, as its tools are.
#[derive(Default)]
pub struct CatalogCell(RwLock<Arc<Catalog>>);

impl CatalogCell {
    pub fn get(&self) -> Arc<Catalog> {
        self.0.read().clone()
    }

    /// Says which lists are others than before.
    pub fn replace(&self, catalog: Catalog) -> (bool, bool) {
        let mut held = self.0.write();
        let resources = held.resources != catalog.resources || held.templates != catalog.templates;
        let prompts = held.prompts != catalog.prompts;
        *held = Arc::new(catalog);
        (resources, prompts)
    }
}

/// Asks a server for all it offers. A list that does not come is left out, and costs nothing else.
pub async fn learn(
    ports: &Ports,
    server: &Server,
    of: &CatalogOwner,
    peer: &Peer<RoleClient>,
    log: &Log,
) -> Catalog {
    let can = Abilities::of(peer);
    let list = async |kind: Kind, is_wanted: bool| match is_wanted {
        true => {
            let limit = ports.clock.sleep(Duration::from_millis(LIST_MS));
            let listed = tokio::select! {
                biased;
                listed = pages(peer, kind) => listed.map_err(|error| error.to_string()),
                () = limit => Err(format!("no answer within {LIST_MS} ms")),
            };
            listed.unwrap_or_else(|why| {
                log.warn(
                    "a list of an MCP server was not learned",
                    json!({"list": kind.member(), "why": why}),
                );
                Vec::new()
            })
        }
        false => Vec::new(),
    };
    let resources = list(Kind::Resources, can.resources).await;
    let templates = list(Kind::Templates, can.resources).await;
    let prompts = list(Kind::Prompts, can.prompts).await;
    Catalog {
        resources: addressed(server, resources, "uri"),
        templates: addressed(server, templates, "uriTemplate"),
        prompts: judged(ports, server, of, prompts, log).await,
        can,
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    fn member(self) -> &'static str {
        match self {
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
            Kind::Prompts => "prompts",
        }
    }

    fn request(self, params: PaginatedRequestParams) -> ClientRequest {
        match self {
            Kind::Resources => ListResourcesRequest::with_param(params).into(),
            Kind::Templates => ListResourceTemplatesRequest::with_param(params).into(),
            Kind::Prompts => ListPromptsRequest::with_param(params).into(),
        }
    }
}

/// The items of a list, as many as are taken of one. Read leniently: one that is malformed costs no other.
async fn pages(peer: &Peer<RoleClient>, kind: Kind) -> Result<Vec<Map<String, Value>>, ServiceError> {
    let (mut items, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES {
        let request = kind.request(PaginatedRequestParams::default().with_cursor(cursor));
        let page = match peer.send_request(request).await {
            Ok(page) => serde_json::to_value(page).unwrap_or_default(),
            // It declares the capability for the sake of another list.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => break,
            Err(error) => return Err(error),
        };
        let found = page.get(kind.member()).and_then(Value::as_array).cloned().unwrap_or_default();
        items.extend(found.into_iter().filter_map(|item| match item {
            Value::Object(item) => Some(item),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }));
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() || items.len() >= LISTED {
            break;
        }
    }
    items.truncate(LISTED);
    Ok(items)
}

/// With our addresses; what has no address or is too long is left out, and so is a repeat.
fn addressed(server: &Server, items: Vec<Map<String, Value>>, member: &str) -> Vec<Map<String, Value>> {
    let mut listed: Vec<Map<String, Value>> = Vec::with_capacity(items.len());
    for mut item in items {
        let Some(own) = item.get(member).and_then(Value::as_str).map(str::to_owned) else { continue };
        let uri = ours(&server.name, &own);
        show(&mut item, &server.name, own);
        item.insert(member.to_owned(), uri.into());
        if item.get("name").is_some_and(Value::is_string) && is_short(&item) {
            listed.push(item);
        }
    }
    listed.sort_by(|a, b| text(a, member).cmp(text(b, member)));
    listed.dedup_by(|a, b| text(a, member) == text(b, member));
    listed
}

/// Prompts whose definition changed since it was accepted are in quarantine, as tools are.
async fn judged(
    ports: &Ports,
    server: &Server,
    of: &CatalogOwner,
    items: Vec<Map<String, Value>>,
    log: &Log,
) -> Vec<PromptDefinition> {
    let (mut prompts, mut pinned) = (Vec::new(), Vec::new());
    for mut item in items {
        let Some(name) = item.get("name").and_then(Value::as_str).map(str::to_owned) else { continue };
        if !is_short(&item) || prompts.iter().any(|prompt: &PromptDefinition| prompt.name == name) {
            continue;
        }
        let Some(pin) = as_tool(&name, &item) else { continue };
        show(&mut item, &server.name, name.clone());
        prompts.push(PromptDefinition { name, listed: item, quarantined: false });
        pinned.push(pin);
    }
    match standings(ports, server, of, &pinned).await {
        Ok(standings) => {
            for (prompt, standing) in prompts.iter_mut().zip(standings) {
                prompt.quarantined = standing != Standing::Accepted;
            }
        }
        Err(error) => {
            log.warn("the prompts of an MCP server cannot be judged", json!({"why": error.to_string()}));
            prompts.clear();
        }
    }
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    prompts
}

/// Whose instance tells the prompts: that of its home decides what is new, those of other tenants are compared with it.
#[derive(Debug, Clone)]
pub struct CatalogOwner {
    pub home: Tenant,
    pub is_home: bool,
}

async fn standings(
    ports: &Ports,
    server: &Server,
    of: &CatalogOwner,
    pinned: &[Tool],
) -> Result<Vec<Standing>, store::Error> {
    let compared = match of.is_home {
        true => None,
        false => pins::judge_guest(ports, &of.home, &server.name, PinKind::Prompt, pinned).await?,
    };
    match compared {
        Some(standings) => Ok(standings),
        None => pins::judge(ports, &of.home, &server.name, PinKind::Prompt, pinned).await,
    }
}

/// The definition of a prompt in the shape in which definitions are pinned.
fn as_tool(name: &str, prompt: &Map<String, Value>) -> Option<Tool> {
    let arguments = prompt.get("arguments").cloned().unwrap_or_else(|| json!([]));
    serde_json::from_value(json!({
        "name": format!("{PINNED_PROMPT}{name}"), "title": prompt.get("title"),
        "description": prompt.get("description"), "inputSchema": {"type": "object", "arguments": arguments},
    }))
    .ok()
}

/// What people and models read holds nothing that they cannot see, and says whose it is.
fn show(item: &mut Map<String, Value>, server: &str, own: String) {
    for (name, value) in item.iter_mut() {
        if let Value::String(text) = value {
            match name.as_str() {
                "description" => *text = visible(text).into_owned(),
                "title" | "name" => *text = visible_line(text).into_owned(),
                _ => {}
            }
        }
    }
    for argument in item.get_mut("arguments").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::String(text)) = argument.get_mut("description") {
            *text = visible(text).into_owned();
        }
    }
    if let Value::Object(meta) = item.entry("_meta").or_insert_with(|| json!({})) {
        meta.insert(SERVER.into(), server.into());
        meta.insert(OWN_NAME.into(), own.into());
    }
}

fn is_short(item: &Map<String, Value>) -> bool {
    serde_json::to_string(item).is_ok_and(|text| text.len() <= LISTED_BYTES)
}

fn text<'a>(item: &'a Map<String, Value>, member: &str) -> &'a str {
    item.get(member).and_then(Value::as_str).unwrap_or_default()
}
