//! Other MCP servers, as the settings name them.

use std::collections::BTreeMap;

use orchestr8_outbound::Allowed;
use orchestr8_tools::remote::{InstanceLimits, Link, Server, TenantRights, names_of};

use crate::config::{self, Environment};

pub struct Upstreams {
    pub servers: Vec<Server>,
    /// What the programs of other servers find in their environment.
    pub base_env: BTreeMap<String, String>,
    /// The variables that entries name as `${NAME}`, as far as they are set.
    pub named_env: BTreeMap<String, String>,
    pub limits: InstanceLimits,
    /// What tenants other than `local` may add at run time.
    pub tenant_rights: TenantRights,
    /// Where servers that they add may be.
    pub allowed: Allowed,
}

impl Upstreams {
    pub fn new(
        gateway: config::Gateway,
        servers: BTreeMap<String, config::McpServer>,
        environment: &Environment,
    ) -> Self {
        let servers: Vec<Server> =
            servers.into_iter().filter_map(|(name, one)| other_server(name, one)).collect();
        let names = servers.iter().flat_map(|server| names_of(&server.link));
        let named_env =
            names.filter_map(|name| Some((name.to_owned(), environment.get(name)?.to_owned()))).collect();
        Self {
            named_env,
            base_env: base_env(environment),
            limits: InstanceLimits {
                total: gateway.max_instances,
                per_tenant: gateway.max_instances_per_tenant,
            },
            tenant_rights: TenantRights { programs: gateway.tenant_programs },
            allowed: Allowed {
                hosts: gateway.allowed_hosts,
                private: gateway.allow_private,
                setting: "gateway",
            },
            servers,
        }
    }
}

/// What programs need to find their way, and nothing that may be a secret.
pub fn base_env(environment: &Environment) -> BTreeMap<String, String> {
    const NAMES: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];
    NAMES.iter().filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned()))).collect()
}

/// None for one that is switched off. The review has seen that it is reached in exactly one way.
fn other_server(name: String, server: config::McpServer) -> Option<Server> {
    let link = match (server.command, server.url) {
        (Some(command), _) => Link::Stdio { command, args: server.args, env: server.env, cwd: server.cwd },
        (None, Some(url)) => Link::Http { url, headers: server.headers },
        (None, None) => return None,
    };
    (!server.disabled).then_some(Server {
        name,
        link,
        prefix: server.prefix,
        timeout_ms: server.timeout_ms,
        start_timeout_ms: server.start_timeout_ms,
        max_concurrent: server.max_concurrent,
        allow: server.allow,
        deny: server.deny,
        disabled: false,
        shared: server.shared,
        idle_timeout_ms: server.idle_timeout_ms,
    })
}
