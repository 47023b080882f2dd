//! `orchestr8 access`: every action of this installation, the roles that may run it, and what it is reached through.

use clap::Args;
use orchestr8_contract::access::{ACCESS, OPERATIONS};
use orchestr8_contract::{AccessRole, AllowedRoles, Code, RoleSet};
use orchestr8_kernel::action::{Action, Shown};
use orchestr8_kernel::log::Level;
use orchestr8_kernel::registry::Table;
use serde_json::{Value, json};

use super::Shell;
use crate::config::{Flags, suggestion};
use crate::failure::Failure;
use crate::runtime::{Purpose, Runtime, WhenHeld, block_on};
use crate::settings::Mode;
use crate::terminal::columns;

#[derive(Args)]
pub struct Access {
    /// Show only what this role may run.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

/// It looks at the registry only: nothing is started, and nothing is kept.
const PURPOSE: Purpose =
    Purpose { when_held: WhenHeld::UseMemory, at_least: Level::Warn, lasting: false, starts_servers: false };

/// One row: an action of the registry, or an operation that a face checks by its name.
struct AccessRow {
    name: String,
    /// How clients reach it: `tool`, `resource`, `prompt`, `session command`, `governed tool`, `api`, `operation`, or `off` where the
    /// configuration does not offer it.
    reached: &'static str,
    allowed: AllowedRoles,
}

impl Access {
    pub fn run(self, shell: &Shell) -> Result<(), Failure> {
        let role = self.role.as_deref().map(find_role).transpose()?;
        let settings = shell.settings(Flags::new(), Mode { ephemeral: true, ..Mode::default() })?;
        block_on(async {
            let runtime = Runtime::build(settings, PURPOSE)?;
            // The face registers the governed tools and the pages of long results.
            runtime.face().await?;
            let mut rows = rows(&runtime.kernel.registry().table());
            rows.retain(|row| role.is_none_or(|role| row.allowed.admit(RoleSet::of(&[role]))));
            print(shell, &rows);
            runtime.close().await;
            Ok(())
        })
    }
}

fn find_role(name: &str) -> Result<AccessRole, Failure> {
    AccessRole::parse(name).ok_or_else(|| {
        let failure = Failure::new(Code::InvalidArgument, format!("there is no role '{name}'"));
        let names = AccessRole::ALL.map(AccessRole::as_str);
        match suggestion(name, names.into_iter()) {
            Some(near) => failure.hinting(format!("did you mean '{near}'?")),
            None => failure.hinting(format!("the roles are {}", names.join(", "))),
        }
    })
}

fn rows(table: &Table) -> Vec<AccessRow> {
    let actions = table.all().iter().filter_map(|action| row(action));
    let others =
        ACCESS.iter().filter(|(name, _)| table.find(name).is_none()).map(|(name, allowed)| AccessRow {
            name: (*name).to_owned(),
            reached: if OPERATIONS.contains(name) { "operation" } else { "off" },
            allowed: *allowed,
        });
    let mut rows: Vec<AccessRow> = actions.chain(others).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

fn row(action: &Action) -> Option<AccessRow> {
    let name = action.name.as_str();
    let is_governed = name.starts_with(orchestr8_contract::envelope::GOVERNED);
    let reached = match &action.shown {
        Shown::Tool => "tool",
        Shown::Resource(_) => "resource",
        Shown::Prompt { .. } => "prompt",
        Shown::Hidden if name.starts_with(orchestr8_sessions::commands::PREFIX) => "session command",
        // Those that answer for calls of governed connections say no role: no client calls them.
        Shown::Hidden if is_governed && action.about.meta.is_empty() => "internal",
        Shown::Hidden if is_governed => "governed tool",
        Shown::Hidden => "api",
    };
    Some(AccessRow { name: name.to_owned(), reached, allowed: action.allowed? })
}

fn print(shell: &Shell, rows: &[AccessRow]) {
    let roles = |row: &AccessRow| row.allowed.sufficient().map(AccessRole::as_str).collect::<Vec<_>>();
    if shell.terminal.json {
        let shown =
            |row: &AccessRow| json!({"action": row.name, "reachedAs": row.reached, "roles": roles(row)});
        let actions: Vec<Value> = rows.iter().map(shown).collect();
        return shell.terminal.value(&json!({"actions": actions}));
    }
    let head = ["ACTION", "REACHED AS", "ROLES (any of)"].map(String::from);
    let cells = rows.iter().map(|row| [row.name.clone(), row.reached.to_owned(), roles(row).join(", ")]);
    shell.terminal.data(&columns(&std::iter::once(head).chain(cells).collect::<Vec<_>>()));
}
