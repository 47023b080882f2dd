//! Definitions of other servers' tools are pinned: the first one seen is taken, a changed one is not until somebody accepts it.
//!
//! A tool whose description or schema changes under its users may try to talk models into something else than what was
//! looked at when the server was added. A pin is the SHA-256 of the canonical definition, kept with the definition itself.

use std::collections::HashMap;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, canonical};
use orchestr8_kernel::Ports;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ports::store::{self, Batch, Link, Row};
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::limits;
use super::proxy::catalog::PINNED_PROMPT;
use crate::tables;

/// Woken when a definition was accepted, so that its server offers the tool again.
pub const ACCEPTED: &str = "tool-pins";

/// A pinned definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Pin {
    pub server: String,
    /// The tool's own name there.
    pub tool: String,
    /// The SHA-256 of the accepted definition.
    pub accepted: String,
    pub definition: Value,
    /// Another definition that was seen since: the tool is quarantined.
    pub changed: Option<Changed>,
    /// Whether its server listed it the last time.
    pub is_listed: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub hash: String,
    pub definition: Value,
}

/// Whether a tool may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Accepted,
    /// Its definition is not the accepted one.
    Quarantined,
    /// It cannot even be remembered, for this reason.
    Refused(String),
}

/// Everything about a tool that a model or a client gets to see from us, but for whether it runs as a task: that changes how
/// its result is waited for, and nothing that anybody could be talked into.
pub fn definition(tool: &Tool) -> Value {
    json!({
        "name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema, "annotations": tool.annotations,
    })
}

/// All pins of the servers of the settings, in order of server and tool. Those with `changed` wait to be accepted.
pub async fn pins(ports: &Ports) -> Result<Vec<Pin>, Fault> {
    pins_of(ports, &Tenant::local()).await
}

/// The same, of the servers that a tenant decides about.
pub async fn pins_of(ports: &Ports, home: &Tenant) -> Result<Vec<Pin>, Fault> {
    let rows = ports.store.query(tables::pins_all(home.as_str())).await.map_err(unreadable)?;
    rows.iter().map(read).collect::<Result<_, _>>().map_err(unreadable)
}

/// Accepts the changed definition of a tool. With `hash`, only if it is that one, so that what is accepted is what was
/// looked at. The audit entry, if the caller has one, is written with it.
pub async fn accept(
    ports: &Ports,
    server: &str,
    tool: &str,
    hash: Option<&str>,
    audit: Option<Link>,
) -> Result<Pin, Fault> {
    accept_for(ports, &Tenant::local(), (server, tool), hash, audit).await
}

/// The same, for a server that a tenant decides about.
pub async fn accept_for(
    ports: &Ports,
    tenant: &Tenant,
    (server, tool): (&str, &str),
    hash: Option<&str>,
    audit: Option<Link>,
) -> Result<Pin, Fault> {
    let name = format!("{server}/{tool}");
    let nothing = || {
        Fault::new(Code::NotFound, format!("'{name}' has no changed definition to accept")).with("tool", tool)
    };
    let rows = ports.store.query(tables::pins_of(tenant.as_str(), server)).await.map_err(unreadable)?;
    let pins: Vec<Pin> = rows.iter().map(read).collect::<Result<_, _>>().map_err(unreadable)?;
    let pin = pins.into_iter().find(|pin| pin.tool == tool).ok_or_else(nothing)?;
    let changed = pin.changed.clone().ok_or_else(nothing)?;
    if hash.is_some_and(|hash| hash != changed.hash) {
        return Err(Fault::new(
            Code::VersionMismatch,
            format!("the definition of '{name}' has changed again since"),
        )
        .with("changed", changed.hash));
    }
    let mut batch = Batch::new();
    batch.then_one(tables::pin_accept(tenant.as_str(), server, tool, &changed.hash, ports.clock.now_ms()));
    batch.links.extend(audit);
    batch.wake(ACCEPTED);
    match ports.store.commit(batch).await {
        Ok(()) => Ok(Pin { accepted: changed.hash, definition: changed.definition, changed: None, ..pin }),
        Err(store::Error::Conflict { .. }) => Err(nothing()),
        Err(error) => {
            Err(Fault::new(Code::StoreFailed, "the acceptance could not be recorded").because(error))
        }
    }
}

/// What a pin is of. Prompts are pinned beside tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinKind {
    Tool,
    Prompt,
}

impl PinKind {
    pub fn is_of(self, name: &str) -> bool {
        name.starts_with(PINNED_PROMPT) == (self == PinKind::Prompt)
    }
}

/// Says for each tool whether it may be used, and remembers what was seen: by an instance of the tenant `home`, which decides about
/// the server and its tools.
pub async fn judge(
    ports: &Ports,
    home: &Tenant,
    server: &str,
    kind: PinKind,
    tools: &[Tool],
) -> Result<Vec<Standing>, store::Error> {
    let mut pins = read_pins(ports, home, server).await?;
    pins.retain(|pin| kind.is_of(&pin.tool));
    let mut room = limits::PINS.saturating_sub(pins.len());
    let known: HashMap<&str, &Pin> = pins.iter().map(|pin| (pin.tool.as_str(), pin)).collect();
    let mut batch = Batch::new();
    let mut standings = Vec::with_capacity(tools.len());
    for tool in tools {
        let definition = definition(tool);
        let text = canonical::text(&definition);
        if let Some(refused) = too_long(&text) {
            standings.push(refused);
            continue;
        }
        let row = tables::PinRow {
            tenant: home.as_str(),
            server,
            tool: &tool.name,
            hash: &canonical::sha256_hex(&definition),
            definition: &text,
            now_ms: ports.clock.now_ms(),
        };
        standings.push(match known.get(&*tool.name) {
            None if room == 0 => {
                Standing::Refused(format!("{} tools of this server are remembered already", limits::PINS))
            }
            None => {
                room -= 1;
                batch.then(tables::pin_first(&row));
                Standing::Accepted
            }
            Some(pin) => compare(pin, &row, &mut batch),
        });
    }
    note_listed(&pins, tools, (home, server), &mut batch);
    if !batch.is_empty() {
        ports.store.commit(batch).await?;
    }
    Ok(standings)
}

/// The same for an instance of another tenant: it is compared with what was accepted, and changes nothing of that. None: nothing was
/// accepted yet, so that there is nothing to compare it with.
pub async fn judge_guest(
    ports: &Ports,
    home: &Tenant,
    server: &str,
    kind: PinKind,
    tools: &[Tool],
) -> Result<Option<Vec<Standing>>, store::Error> {
    let mut pins = read_pins(ports, home, server).await?;
    pins.retain(|pin| kind.is_of(&pin.tool));
    if pins.is_empty() {
        return Ok(None);
    }
    let known: HashMap<&str, &Pin> = pins.iter().map(|pin| (pin.tool.as_str(), pin)).collect();
    let judged = tools.iter().map(|tool| {
        let definition = definition(tool);
        match known.get(&*tool.name) {
            Some(pin) if pin.accepted == canonical::sha256_hex(&definition) => Standing::Accepted,
            Some(_) => Standing::Quarantined,
            None => Standing::Refused(format!(
                "it is not among the accepted tools of this server; the instance of the tenant '{home}' takes new ones"
            )),
        }
    });
    Ok(Some(judged.collect()))
}

/// The tools of a server as they were last listed and accepted, with whether they may be used.
pub async fn pinned_tools(
    ports: &Ports,
    home: &Tenant,
    server: &str,
) -> Result<Vec<(Tool, Standing)>, store::Error> {
    let pins = read_pins(ports, home, server).await?;
    let pinned =
        pins.into_iter().filter(|pin| pin.is_listed && PinKind::Tool.is_of(&pin.tool)).filter_map(|pin| {
            let standing = if pin.changed.is_some() { Standing::Quarantined } else { Standing::Accepted };
            // What was written from a definition can be read as one; a later form of the program may know better.
            Some((serde_json::from_value(pin.definition).ok()?, standing))
        });
    Ok(pinned.take(limits::TOOLS).collect())
}

async fn read_pins(ports: &Ports, home: &Tenant, server: &str) -> Result<Vec<Pin>, store::Error> {
    let rows = ports.store.query(tables::pins_of(home.as_str(), server)).await?;
    rows.iter().map(read).collect()
}

fn too_long(definition: &str) -> Option<Standing> {
    (definition.len() > limits::DEFINITION_BYTES).then(|| {
        Standing::Refused(format!("its definition has more than {} bytes", limits::DEFINITION_BYTES))
    })
}

/// Remembers which tools there are, for the next start.
fn note_listed(pins: &[Pin], tools: &[Tool], (home, server): (&Tenant, &str), batch: &mut Batch) {
    for pin in pins {
        let is_listed = tools.iter().any(|tool| tool.name == pin.tool);
        if is_listed != pin.is_listed {
            batch.then(tables::pin_listed(home.as_str(), server, &pin.tool, is_listed));
        }
    }
}

/// A tool that was seen before.
fn compare(pin: &Pin, row: &tables::PinRow<'_>, batch: &mut Batch) -> Standing {
    let changed = pin.changed.as_ref().map(|changed| changed.hash.as_str());
    if pin.accepted == row.hash {
        if changed.is_some() {
            // It is what it was again; there is nothing left to accept.
            batch.then(tables::pin_unchanged(row));
        }
        return Standing::Accepted;
    }
    if changed != Some(row.hash) {
        batch.then(tables::pin_changed(row));
        let name = format!("{}/{}", row.server, row.tool);
        let change = StateChange {
            detail: json!({"accepted": pin.accepted, "changed": row.hash}),
            ..StateChange::by_server("tools.quarantine", row.tenant, Some(&name))
        };
        batch.link(change.link(row.now_ms));
    }
    Standing::Quarantined
}

fn read(row: &Row) -> Result<Pin, store::Error> {
    let json = |text: &str| {
        serde_json::from_str(text)
            .map_err(|error| store::Error::Corrupt(format!("a tool's definition: {error}")))
    };
    let changed = match (row.optional_text(4)?, row.optional_text(5)?) {
        (Some(hash), Some(definition)) => {
            Some(Changed { hash: hash.to_owned(), definition: json(definition)? })
        }
        (None, _) | (_, None) => None,
    };
    Ok(Pin {
        server: row.text(0)?.to_owned(),
        tool: row.text(1)?.to_owned(),
        accepted: row.text(2)?.to_owned(),
        definition: json(row.text(3)?)?,
        changed,
        is_listed: row.int(6)? != 0,
    })
}

fn unreadable(error: store::Error) -> Fault {
    Fault::new(Code::StoreFailed, "the pinned definitions could not be read").because(error)
}
