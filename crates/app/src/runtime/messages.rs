//! Puts messages between agents together: the agents of this process, the hub over them, its actions, and the face.

use std::sync::Arc;

use orchestr8_agents::aacp::Hub;
use orchestr8_agents::{Coordinator, Echo, all, of_messages};
use orchestr8_contract::Code;
use orchestr8_contract::id::AgentId;
use orchestr8_kernel::Kernel;
use orchestr8_messaging_face as face;
use orchestr8_secrets::SecretVault;

use super::Runtime;
use crate::failure::Failure;
use crate::settings::Settings;

/// Every action on agents and messages. Nothing that was left is taken up before the hub runs.
pub fn register(kernel: &Kernel, settings: &Settings, vault: &SecretVault) -> Result<Hub, Failure> {
    let ports = kernel.ports();
    let agents = Coordinator::new(kernel.bus().clone(), ports.clock.clone(), ports.log.clone());
    let echo = AgentId::parse(Echo::ID).map_err(|wrong| Failure::new(Code::Internal, wrong.to_string()))?;
    agents.register(echo, Arc::new(Echo)).map_err(Failure::from)?;
    let broken = |error: orchestr8_kernel::schema::Error| {
        Failure::new(Code::Internal, format!("an action is wrong: {error}"))
    };
    let of_agents = all(&agents, &orchestr8_agents::Settings { state_bytes: settings.state_bytes });
    let messages =
        orchestr8_agents::aacp::Settings { vault: Some(vault.clone()), ..settings.messages.clone() };
    let hub = Hub::new(kernel.clone(), agents, messages);
    for action in of_agents.map_err(broken)?.into_iter().chain(of_messages(&hub).map_err(broken)?) {
        kernel.registry().register(action).map_err(broken)?;
    }
    Ok(hub)
}

/// The face, with the limits the edge keeps.
pub fn router(runtime: &Runtime) -> axum::Router {
    let http = &runtime.settings.http;
    face::router(
        runtime.kernel.clone(),
        face::Settings {
            body_limit_bytes: http.body_limit_bytes,
            body_timeout_ms: http.body_timeout_ms,
            shutdown: runtime.stop.clone(),
            ..face::Settings::default()
        },
    )
}
