//! `orchestr8 limits list|set|unset`: limits of queues, agents and tenants, changed while the server runs.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Shell;
use super::reaching::{Intent, Reaching};
use super::words::text;
use crate::failure::Failure;
use crate::reach;
use crate::terminal::columns;

#[derive(Subcommand)]
pub enum Limits {
    /// List the limits, and where each comes from.
    List {
        /// Those of another tenant.
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        #[command(flatten)]
        reaching: Reaching,
    },
    /// Change a limit at once, until it is unset.
    Set {
        #[command(flatten)]
        limit: LimitName,
        /// How many.
        value: u64,
        #[command(flatten)]
        reaching: Reaching,
    },
    /// Let a limit be what the settings say.
    Unset {
        #[command(flatten)]
        limit: LimitName,
        #[command(flatten)]
        reaching: Reaching,
    },
}

#[derive(Args)]
pub struct LimitName {
    /// What is limited.
    #[arg(value_parser = ["queue", "agent", "tenant"])]
    scope: String,
    /// The worker queue, the agent, or of a tenant: executions, stepSlots, startsPerMinute.
    name: String,
    /// Of another tenant.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl Limits {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Limits::List { tenant, reaching } => {
                let path = reach::path("/v1/limits", &[("tenant", tenant.clone())]);
                let page = reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
                list(shell, &page);
            }
            Limits::Set { limit, value, reaching } => {
                let mut body = json!({"scope": limit.scope, "name": limit.name, "value": value});
                if let Some(tenant) = &limit.tenant {
                    body["tenant"] = Value::from(tenant.as_str());
                }
                let answer = reaching
                    .run(shell, Intent::Record, async |reach| reach.put("/v1/limits", &body).await)?;
                tell(shell, &answer);
            }
            Limits::Unset { limit, reaching } => {
                let query = [
                    ("scope", Some(limit.scope.clone())),
                    ("name", Some(limit.name.clone())),
                    ("tenant", limit.tenant.clone()),
                ];
                let path = reach::path("/v1/limits", &query);
                let answer = reaching.run(shell, Intent::Record, async |reach| reach.delete(&path).await)?;
                tell(shell, &answer);
            }
        }
        Ok(())
    }
}

fn value(limit: &Value) -> String {
    limit["value"].as_u64().map_or_else(|| String::from("none"), |value| value.to_string())
}

fn tell(shell: &Shell, limit: &Value) {
    if shell.terminal.json {
        return shell.terminal.value(limit);
    }
    let (scope, name, origin) = (text(limit, "scope"), text(limit, "name"), text(limit, "origin"));
    shell.terminal.data(&format!("{scope} {name}: {} ({origin})", value(limit)));
}

fn list(shell: &Shell, page: &Value) {
    if shell.terminal.json {
        return shell.terminal.value(page);
    }
    let row = |limit: &Value| {
        [
            text(limit, "scope").to_owned(),
            text(limit, "name").to_owned(),
            value(limit),
            limit["maximum"].as_u64().map_or_else(String::new, |most| most.to_string()),
            text(limit, "origin").to_owned(),
            text(limit, "setBy").to_owned(),
        ]
    };
    let head = ["SCOPE", "NAME", "LIMIT", "MAXIMUM", "ORIGIN", "SET BY"].map(String::from);
    let limits = page["limits"].as_array().into_iter().flatten().map(row);
    shell.terminal.data(&columns(&std::iter::once(head).chain(limits).collect::<Vec<_>>()));
}
