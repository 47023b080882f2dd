//! `orchestr8 keys new|list|rotate|revoke`: the keys agents sign with. The secret half never leaves this command but once.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use orchestr8_contract::Code;
use orchestr8_knowledge_face::security::keys::{self, Owner, Pair};
use serde_json::{Value, json};

use super::Shell;
use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::{moment, text};
use crate::failure::Failure;
use crate::reach::{Reach, escape, path};
use crate::terminal::columns;

const KEYS: &str = "/admin/keys";

/// Keys must be rotated before they are so old (KNO-3); from then on a list says that it is time.
const LIFE_DAYS: u64 = 90;
const WARN_DAYS: u64 = 76;

#[derive(Subcommand)]
pub enum Keys {
    /// Make a key for an agent. Its secret half is shown once.
    New(New),
    /// List the keys, whose they are and how long they last.
    List(List),
    /// Make a new key for whom an old one speaks; the old one signs for one day more.
    Rotate(Rotate),
    /// Let a key sign nothing from now on.
    Revoke(Revoke),
}

#[derive(Args)]
pub struct New {
    /// The tenant whose documents the agent works with.
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// The agent, as principal.sub of its envelopes names it.
    #[arg(long, value_name = "NAME")]
    principal: String,
    /// What it may do: owner, editor, viewer, agent. May be given more than once.
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',', required = true)]
    roles: Vec<String>,
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    reaching: Reaching,
}

/// What is said about a key that is made.
#[derive(Args)]
struct Made {
    /// What the key is called [default: made from the key].
    #[arg(long, value_name = "KID")]
    kid: Option<String>,
    /// Write the secret key to this new file, for its owner only, instead of stdout.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub struct List {
    /// Only those of this tenant.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Rotate {
    /// The key to rotate.
    old: String,
    #[command(flatten)]
    made: Made,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Revoke {
    /// The key.
    kid: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Keys {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Keys::New(new) => new.run(shell),
            Keys::List(list) => list.run(shell),
            Keys::Rotate(rotate) => rotate.run(shell),
            Keys::Revoke(revoke) => revoke.run(shell),
        }
    }
}

impl New {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let whose = json!({"tenant_id": self.tenant, "principal": self.principal, "roles": self.roles});
        self.made.make(shell, &self.reaching, KEYS, whose)
    }
}

impl Rotate {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let target = format!("{KEYS}/{}/rotate", escape(&self.old));
        self.made.make(shell, &self.reaching, &target, json!({}))?;
        shell.terminal.note(&format!("{} signs for one day more", self.old));
        Ok(())
    }
}

impl Made {
    /// Makes a key here, keeps its secret half, and gives the other half to the server.
    fn make(&self, shell: &Shell, reaching: &Reaching, target: &str, mut body: Value) -> Result<(), Failure> {
        let (pair, record) = keys::make("", Owner::default(), keys::fresh_seed()?, 0);
        let kid = self.kid.clone().unwrap_or_else(|| keys::kid_of(&record.public));
        let pair = Pair { kid: kid.clone(), ..pair };
        let secret = pair.to_jwk();
        (body["kid"], body["public"]) = (kid.as_str().into(), secret["x"].clone());
        // The secret is safe before anybody trusts the key; a key nobody trusts is forgotten again.
        let file = self.out.as_deref().map(|file| write(file, &secret)).transpose()?;
        let made = reaching.run(shell, Intent::Record, async |reach| reach.post(target, &body).await);
        let made = made.inspect_err(|_| {
            if let Some(file) = file {
                let _ = std::fs::remove_file(file);
            }
        })?;
        tell(shell, &made["data"], &secret, file);
        Ok(())
    }
}

/// Says what was made. The secret is data: it goes to stdout, or into the file and nowhere else.
fn tell(shell: &Shell, made: &Value, secret: &Value, file: Option<&Path>) {
    let kid = text(made, "kid");
    if shell.terminal.json {
        let mut told = made.clone();
        match file {
            Some(file) => told["file"] = file.display().to_string().into(),
            None => told["key"] = secret.clone(),
        }
        shell.terminal.value(&told);
        return;
    }
    match file {
        Some(file) => shell.terminal.data(&format!("{kid} is in {}", file.display())),
        None => {
            shell.terminal.json_text(&secret.to_string());
            shell.terminal.note("keep it: this is the only time it is shown");
        }
    }
    let until = moment(&made["expires_at"]);
    shell.terminal.note(&format!("{kid} signs until {until}; orchestr8 keys rotate {kid} before that"));
}

fn write<'a>(file: &'a Path, secret: &Value) -> Result<&'a Path, Failure> {
    const OWNER_ONLY: u32 = 0o600;
    let opened = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(file);
    let written = opened.and_then(|mut opened| {
        opened.write_all(format!("{secret}\n").as_bytes())?;
        opened.sync_all()
    });
    written.map(|()| file).map_err(|cause| {
        let code = match cause.kind() {
            std::io::ErrorKind::AlreadyExists => Code::IdConflict,
            _ => Code::InvalidArgument,
        };
        Failure::new(code, format!("{}: {cause}", file.display()))
            .hinting("name a file that does not exist yet, in a folder that does")
    })
}

impl List {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let keys = self.reaching.run(shell, Intent::Record, async |reach| self.all(reach).await)?;
        if shell.terminal.json {
            shell.terminal.value(&json!({"keys": keys}));
            return Ok(());
        }
        if keys.is_empty() {
            shell.terminal.note("there are no keys; make one with orchestr8 keys new");
            return Ok(());
        }
        let row = |key: &Value| {
            let roles: Vec<&str> =
                key["roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            [
                text(key, "kid").to_owned(),
                text(key, "tenant_id").to_owned(),
                text(key, "principal").to_owned(),
                roles.join(","),
                text(key, "status").to_owned(),
                format!("{} of {LIFE_DAYS} days", key["age_days"]),
                moment(&key["ends_at"]),
            ]
        };
        let head = ["KEY", "TENANT", "PRINCIPAL", "ROLES", "STATUS", "AGE", "ENDS"].map(String::from);
        let rows: Vec<_> = std::iter::once(head).chain(keys.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        for key in keys.iter().filter(|key| key["status"] == "active") {
            if key["age_days"].as_u64().is_some_and(|days| days >= WARN_DAYS) {
                let kid = text(key, "kid");
                shell
                    .terminal
                    .warn(&format!("{kid} is refused from {} on; rotate it", moment(&key["ends_at"])));
            }
        }
        Ok(())
    }

    async fn all(&self, reach: &Reach) -> Result<Vec<Value>, Failure> {
        let (mut keys, mut after) = (Vec::new(), None);
        loop {
            let query = [("tenant_id", self.tenant.clone()), ("after", after)];
            let page = reach.get(&path(KEYS, &query)).await?;
            keys.extend(page["data"]["keys"].as_array().cloned().unwrap_or_default());
            match page["data"]["next"].as_str() {
                Some(next) => after = Some(next.to_owned()),
                None => return Ok(keys),
            }
        }
    }
}

impl Revoke {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let plan = format!("the key {} signs nothing from now on, for ever", self.kid);
        confirm(shell, self.yes, &plan)?;
        let target = format!("{KEYS}/{}/revoke", escape(&self.kid));
        let revoked =
            self.reaching.run(shell, Intent::Record, async |reach| reach.post(&target, &json!({})).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&revoked["data"]),
            false => shell.terminal.data(&format!("{} is revoked", self.kid)),
        }
        Ok(())
    }
}
