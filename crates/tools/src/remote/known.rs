//! The tools of other servers as they were last accepted, without starting or calling any server.

use orchestr8_contract::Fault;
use orchestr8_kernel::Ports;
use serde_json::Value;

use super::Server;
use super::names::names;
use super::pins::{Pin, PinKind, pins};

/// A tool that its server has told of before.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownTool {
    /// What it is called here.
    pub name: String,
    pub server: String,
    pub definition: Value,
}

/// What is known of the tools of these servers, in their order. Tools whose definition has changed are left out, as they are
/// when their server runs.
pub async fn known_tools(
    ports: &Ports,
    servers: &[Server],
    is_taken: impl Fn(&str) -> bool,
) -> Result<Vec<KnownTool>, Fault> {
    let all = pins(ports).await?;
    let mut known = Vec::new();
    for server in servers.iter().filter(|server| !server.disabled) {
        let own: Vec<&Pin> = all
            .iter()
            .filter(|pin| {
                pin.server == server.name && PinKind::Tool.is_of(&pin.tool) && server.takes(&pin.tool)
            })
            .collect();
        let tools: Vec<&str> = own.iter().map(|pin| pin.tool.as_str()).collect();
        let names = names(server.prefix.as_deref().unwrap_or(&server.name), &tools, &is_taken);
        known.extend(own.iter().zip(names).filter(|(pin, _)| pin.changed.is_none()).map(|(pin, name)| {
            KnownTool { name, server: server.name.clone(), definition: pin.definition.clone() }
        }));
    }
    Ok(known)
}
