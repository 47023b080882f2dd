//! What the configuration says about other MCP servers, as the domain of tools takes it.

use orchestr8_secrets::SecretVault;
use orchestr8_tools::remote::{self, NameSources};

use crate::settings::Settings;

/// `are_started`: false for commands that need none of them.
pub fn settings(settings: &Settings, vault: &SecretVault, are_started: bool) -> remote::Settings {
    let upstreams = &settings.upstreams;
    remote::Settings {
        servers: upstreams.servers.clone(),
        starts_servers: are_started,
        allowed: upstreams.allowed.clone(),
        tenant_rights: upstreams.tenant_rights,
        base_env: upstreams.base_env.clone(),
        client_name: settings.server_name.clone(),
        client_version: settings.server_version.clone(),
        search_above: settings.search_above,
        instances: upstreams.limits,
        names: NameSources { environment: upstreams.named_env.clone(), vault: Some(vault.clone()) },
    }
}
