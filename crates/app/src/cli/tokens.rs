//! `orchestr8 tokens create|list|rotate|revoke`: the API tokens that programs and people call this server with.

use clap::{Args, Subcommand};
use orchestr8_contract::Code;
use serde_json::{Map, Value, json};

use super::Shell;
use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::{moment, read_duration, text};
use crate::failure::Failure;
use crate::reach::{Reach, escape, path};
use crate::terminal::columns;

const TOKENS: &str = "/v1/tokens";

#[derive(Subcommand)]
pub enum Tokens {
    /// Create a token. It is shown once.
    Create(Create),
    /// List the tokens, what they may do and when they were last used.
    List(List),
    /// Give a token another secret; the old one works until its grace ends.
    Rotate(Rotate),
    /// End a token at once, its open connections included.
    Revoke(Revoke),
}

#[derive(Args)]
pub struct Create {
    /// Who shows the token: the name in lists, logs and the audit trail.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What its bearer may do: viewer, agent, operator, editor, approver, worker, admin, owner, planner, executor. May be given
    /// more than once [default: viewer].
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',')]
    roles: Vec<String>,
    /// Whose data its bearer works with [default: your own tenant].
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Only these faces and actions, such as face:mcp or executions.*. May be given more than once [default: all].
    #[arg(long = "scope", value_name = "PATTERN", value_delimiter = ',')]
    scope: Vec<String>,
    /// When it ends: a length of time such as 90d, or a moment such as 2027-01-31T00:00:00Z [default: never].
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
    /// Take over the name of a token that is gone, with the sessions, schedules and workflows that belong to it.
    #[arg(long)]
    reuse_name: bool,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct List {
    /// Only those of this tenant.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Those that were revoked too.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Rotate {
    /// The id of the token.
    id: String,
    /// How long the old secret still works, such as 1h; 0 ends it at once [default: 1d].
    #[arg(long, value_name = "TIME")]
    grace: Option<String>,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Revoke {
    /// The id of the token.
    id: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Tokens {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Tokens::Create(create) => create.run(shell),
            Tokens::List(list) => list.run(shell),
            Tokens::Rotate(rotate) => rotate.run(shell),
            Tokens::Revoke(revoke) => revoke.run(shell),
        }
    }
}

impl Create {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut body = Map::new();
        body.insert("name".into(), self.name.as_str().into());
        body.insert("roles".into(), self.roles.clone().into());
        body.insert("scope".into(), self.scope.clone().into());
        if let Some(tenant) = &self.tenant {
            body.insert("tenant".into(), tenant.as_str().into());
        }
        if let Some(expires) = &self.expires {
            body.insert("expiresAt".into(), end(expires)?.into());
        }
        if self.reuse_name {
            body.insert("reuseName".into(), true.into());
        }
        let body = Value::Object(body);
        let made = self.reaching.run(shell, Intent::Record, async |reach| reach.post(TOKENS, &body).await)?;
        show_once(shell, &made);
        Ok(())
    }
}

impl Rotate {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let body = match &self.grace {
            Some(grace) => {
                let grace = read_duration(grace).map_err(|what| Failure::new(Code::InvalidArgument, what))?;
                json!({"graceMs": u64::try_from(grace.as_millis()).unwrap_or(u64::MAX)})
            }
            None => json!({}),
        };
        let target = format!("{TOKENS}/{}/rotate", escape(&self.id));
        let made =
            self.reaching.run(shell, Intent::Record, async |reach| reach.post(&target, &body).await)?;
        show_once(shell, &made);
        if !shell.terminal.json && !made["oldSecretUntil"].is_null() {
            shell.terminal.note(&format!("the old secret works until {}", moment(&made["oldSecretUntil"])));
        }
        Ok(())
    }
}

/// The token is data: it goes to stdout and nowhere else.
fn show_once(shell: &Shell, made: &Value) {
    if shell.terminal.json {
        return shell.terminal.value(made);
    }
    shell.terminal.data(text(made, "token"));
    shell.terminal.note("keep it: this is the only time it is shown");
    let until = match made["expiresAt"].is_null() {
        true => String::from("until it is revoked"),
        false => format!("until {}", moment(&made["expiresAt"])),
    };
    let (name, id, tenant) = (text(made, "name"), text(made, "id"), text(made, "tenant"));
    shell
        .terminal
        .note(&format!("{name} ({id}) acts as {} in tenant {tenant} {until}", joined(&made["roles"])));
}

/// A length of time from now, or a moment as it is.
fn end(text: &str) -> Result<String, Failure> {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return Ok(text.to_owned());
    }
    let wrong = |what: String| {
        Failure::new(Code::InvalidArgument, what)
            .hinting("write --expires 90d or --expires 2027-01-31T00:00:00Z")
    };
    let length = read_duration(text).map_err(wrong)?;
    let length = jiff::SignedDuration::try_from(length).map_err(|error| wrong(error.to_string()))?;
    let at = jiff::Timestamp::now().checked_add(length).map_err(|error| wrong(error.to_string()))?;
    Ok(at.to_string())
}

fn joined(list: &Value) -> String {
    let words: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(",")
}

impl List {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut tokens = self.reaching.run(shell, Intent::Record, async |reach| self.fetch(reach).await)?;
        tokens.retain(|token| self.all || token["status"] != "revoked");
        if shell.terminal.json {
            shell.terminal.value(&json!({"tokens": tokens}));
            return Ok(());
        }
        if tokens.is_empty() {
            shell.terminal.note("there are no tokens; create one with orchestr8 tokens create --name NAME");
            return Ok(());
        }
        let row = |token: &Value| {
            let scope = joined(&token["scope"]);
            [
                text(token, "id").to_owned(),
                text(token, "name").to_owned(),
                text(token, "tenant").to_owned(),
                joined(&token["roles"]),
                if scope.is_empty() { String::from("all") } else { scope },
                text(token, "status").to_owned(),
                moment(&token["lastUsedAt"]),
                moment(&token["expiresAt"]),
            ]
        };
        let head =
            ["ID", "NAME", "TENANT", "ROLES", "SCOPE", "STATUS", "LAST USED", "EXPIRES"].map(String::from);
        let rows: Vec<_> = std::iter::once(head).chain(tokens.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }

    async fn fetch(&self, reach: &Reach) -> Result<Vec<Value>, Failure> {
        let (mut tokens, mut cursor) = (Vec::new(), None);
        loop {
            let query = [("tenant", self.tenant.clone()), ("cursor", cursor)];
            let page = reach.get(&path(TOKENS, &query)).await?;
            tokens.extend(page["tokens"].as_array().cloned().unwrap_or_default());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(tokens),
            }
        }
    }
}

impl Revoke {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let plan =
            format!("the token {} ends at once and for ever; its open connections are closed", self.id);
        confirm(shell, self.yes, &plan)?;
        let target = format!("{TOKENS}/{}/revoke", escape(&self.id));
        let revoked =
            self.reaching.run(shell, Intent::Record, async |reach| reach.post(&target, &json!({})).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&revoked),
            false => shell.terminal.data(&format!("{} is revoked", self.id)),
        }
        Ok(())
    }
}
