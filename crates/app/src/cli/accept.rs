//! `orchestr8 tools accept`: lets a tool of another MCP server out of quarantine, after its change was looked at.

use std::path::PathBuf;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log::Level;
use orchestr8_kernel::ports::store::Link;
use orchestr8_kernel::{Ports, Source};
use orchestr8_tools::remote::{Changed, Pin, accept, pins};
use serde_json::json;

use super::install::unified;
use super::{Running, Shell};
use crate::failure::Failure;
use crate::runtime::{Purpose, Runtime, WhenHeld, block_on};

#[derive(Args)]
pub struct Accept {
    /// The tool, as server.tool.
    name: Option<String>,
    /// Show the change and accept nothing.
    #[arg(long)]
    dry_run: bool,
    /// The folder of the data.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// The store must be ours: a running server would not see the change of another's memory.
const PURPOSE: Purpose =
    Purpose { when_held: WhenHeld::Refuse, at_least: Level::Warn, lasting: false, starts_servers: false };

impl Accept {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let running = Running { data_dir: self.data_dir.clone(), ..Running::default() };
        let settings = shell.settings(running.flags(), running.mode())?;
        block_on(async {
            let runtime = Runtime::build(settings, PURPOSE).map_err(held)?;
            let done = match &self.name {
                None => list(shell, runtime.kernel.ports()).await,
                Some(name) => self.accept(shell, name, runtime.kernel.ports()).await,
            };
            runtime.close().await;
            done
        })
    }

    async fn accept(&self, shell: &Shell, name: &str, ports: &Ports) -> Result<(), Failure> {
        let waiting = waiting(ports).await?;
        let Some((pin, changed)) = waiting.iter().find(|(pin, _)| full_name(pin) == name) else {
            return Err(Failure::new(Code::NotFound, format!("no tool named {name} waits to be accepted"))
                .hinting("`orchestr8 tools accept` lists those that do"));
        };
        let diff = unified(name, &format!("{:#}\n", pin.definition), &format!("{:#}\n", changed.definition));
        let accepted = match self.dry_run {
            true => false,
            false => {
                let (hash, audit) = (Some(changed.hash.as_str()), Some(audited(name, &changed.hash, ports)));
                accept(ports, &pin.server, &pin.tool, hash, audit).await.map(|_| true)?
            }
        };
        if shell.terminal.json {
            shell.terminal.value(
                &json!({"tool": name, "accepted": accepted, "was": pin.definition, "is": changed.definition}),
            );
        } else {
            shell.terminal.data(&diff);
        }
        if accepted {
            shell.terminal.note(&format!("{name} is accepted as shown"));
        }
        Ok(())
    }
}

/// The audit entry of an acceptance by the person at this machine.
fn audited(name: &str, hash: &str, ports: &Ports) -> Link {
    let tenant = Tenant::local();
    let change = StateChange {
        principal: "local",
        source: Source::cli(),
        detail: json!({"accepted": hash}),
        ..StateChange::by_server("tools.accept", tenant.as_str(), Some(name))
    };
    change.link(ports.clock.now_ms())
}

async fn list(shell: &Shell, ports: &Ports) -> Result<(), Failure> {
    let names: Vec<String> = waiting(ports).await?.iter().map(|(pin, _)| full_name(pin)).collect();
    if shell.terminal.json {
        shell.terminal.value(&json!({"waiting": names}));
    } else if names.is_empty() {
        shell.terminal.note("no tool waits to be accepted");
    } else {
        shell.terminal.data(&names.join("\n"));
    }
    Ok(())
}

/// The pins that wait, each with what was seen since.
async fn waiting(ports: &Ports) -> Result<Vec<(Pin, Changed)>, Failure> {
    let pair = |pin: Pin| {
        let changed = pin.changed.clone()?;
        Some((pin, changed))
    };
    Ok(pins(ports).await?.into_iter().filter_map(pair).collect())
}

fn full_name(pin: &Pin) -> String {
    format!("{}.{}", pin.server, pin.tool)
}

fn held(failure: Failure) -> Failure {
    if failure.code == Code::Unavailable {
        return failure.hinting("accept it in the dashboard of the running server, or with POST /v1/tools/accept, or stop it first");
    }
    failure
}
