//! `orchestr8 triggers apply|list|show|delete|pause|resume`: stored workflows that start when something comes in.

use std::path::Path;

use clap::{Args, Subcommand};
use http::Method;
use orchestr8_contract::Code;
use serde_json::{Map, Value, json};

use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::{moment, text};
use super::{Shell, files, inputs};
use crate::failure::{Failure, exit};
use crate::reach::escape;
use crate::terminal::columns;

#[derive(Subcommand)]
pub enum Triggers {
    /// Store a trigger, or change it: from a file, or from the flags. A secret that is generated is printed once.
    Apply(Box<ApplyTrigger>),
    /// List the triggers with their last delivery and their counters.
    List(Reaching),
    /// Print a trigger.
    Show(OneTrigger),
    /// Delete a trigger and the deliveries that wait for it.
    Delete {
        #[command(flatten)]
        one: OneTrigger,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Refuse deliveries until it is resumed.
    Pause(OneTrigger),
    /// Take deliveries again.
    Resume(OneTrigger),
    /// Send again the notifications that were given up.
    Redrive(OneTrigger),
}

#[derive(Args)]
pub struct OneTrigger {
    /// The id of the trigger.
    id: String,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct ApplyTrigger {
    /// A JSON file with id, workflowId, webhook, inputs; or the id of a webhook trigger.
    #[arg(value_name = "FILE|ID")]
    which: String,
    /// The stored workflow it starts.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// The revision of the workflow [default: the newest now].
    #[arg(long, value_name = "NUMBER")]
    revision: Option<u64>,
    /// The named secret that signs deliveries, bound to trigger:ID [default: one is generated].
    #[arg(long, value_name = "NAME", conflicts_with = "new_secret")]
    secret: Option<String>,
    /// Generate a new secret in the place of the one it has.
    #[arg(long)]
    new_secret: bool,
    /// An input of the execution: NAME=EXPRESSION, such as order=${hook.body.id}.
    #[arg(long = "map", value_name = "NAME=EXPRESSION")]
    mapping: Vec<String>,
    /// Store it without letting it take deliveries.
    #[arg(long)]
    paused: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Triggers {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        match self {
            Triggers::Apply(apply) => apply.run(shell),
            Triggers::List(reaching) => list(shell, reaching),
            Triggers::Show(one) => one.ask(shell, Method::GET, "", ""),
            Triggers::Delete { one, yes } => {
                let what = format!("the trigger {} is deleted with what waits for it", one.id);
                confirm(shell, *yes, &what)?;
                one.ask(shell, Method::DELETE, "", "is deleted")
            }
            Triggers::Pause(one) => one.ask(shell, Method::POST, "/pause", "is paused"),
            Triggers::Redrive(one) => one.ask(shell, Method::POST, "/redrive", "sends them again"),
            Triggers::Resume(one) => one.ask(shell, Method::POST, "/resume", "is resumed"),
        }
        .map(|()| exit::OK)
    }
}

impl OneTrigger {
    fn ask(&self, shell: &Shell, method: Method, what: &str, done: &str) -> Result<(), Failure> {
        let path = format!("/v1/triggers/{}{what}", escape(&self.id));
        let body = (method == Method::POST).then(|| json!({}));
        let answer = self.reaching.run(shell, Intent::Record, async |reach| {
            reach.send(method, &path, &[], body.as_ref()).await?.accepted()
        })?;
        match shell.terminal.json || done.is_empty() {
            true => shell.terminal.value(&answer),
            false => shell.terminal.data(&format!("{} {done}", self.id)),
        }
        Ok(())
    }
}

impl ApplyTrigger {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let trigger = self.body()?;
        let Some(id) = trigger.get("id").and_then(Value::as_str).map(str::to_owned) else {
            return Err(Failure::new(Code::InvalidArgument, format!("{} has no id", self.which))
                .hinting("give the trigger an \"id\""));
        };
        let path = format!("/v1/triggers/{}", escape(&id));
        let body = Value::Object(trigger);
        let answer = self.reaching.run(shell, Intent::Record, async |reach| reach.put(&path, &body).await)?;
        if shell.terminal.json {
            shell.terminal.value(&answer);
            return Ok(());
        }
        shell.terminal.data(&format!("applied {id}; send deliveries to {}", text(&answer, "url")));
        if let Some(secret) = answer["secret"].as_str() {
            shell.terminal.data(&format!("secret {secret}"));
            shell.terminal.note("the secret is shown once; give it to the sender, which signs with it");
        }
        Ok(())
    }

    fn body(&self) -> Result<Map<String, Value>, Failure> {
        let mut trigger = self.base()?;
        let secret = match (&self.secret, self.new_secret) {
            (Some(name), _) => Some(json!({"name": name})),
            (None, true) => Some(json!({"generate": true})),
            (None, false) => None,
        };
        let flags = [
            ("workflowId", self.workflow.clone().map(Value::from)),
            ("revision", self.revision.map(Value::from)),
            ("secret", secret),
            ("paused", self.paused.then_some(Value::Bool(true))),
        ];
        trigger.extend(flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        let mut mapped = Map::new();
        for pair in &self.mapping {
            let Some((name, expression)) = pair.split_once('=') else {
                return Err(Failure::new(Code::InvalidArgument, format!("--map {pair}: there is no ="))
                    .hinting("write --map 'order=${hook.body.id}'"));
            };
            mapped.insert(name.to_owned(), expression.into());
        }
        if !mapped.is_empty() {
            trigger.insert("inputs".into(), Value::Object(mapped));
        }
        Ok(trigger)
    }

    /// What the file says, or only the id.
    fn base(&self) -> Result<Map<String, Value>, Failure> {
        if !files::is_file(&self.which) {
            let members = [("id", Value::from(self.which.as_str())), ("webhook", json!({}))];
            return Ok(members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect());
        }
        let text = files::read(&self.which)?;
        inputs::object(&Path::new(&self.which).display().to_string(), text.trim_start())
    }
}

fn list(shell: &Shell, reaching: &Reaching) -> Result<(), Failure> {
    let page = reaching.run(shell, Intent::Record, async |reach| reach.get("/v1/triggers").await)?;
    if shell.terminal.json {
        shell.terminal.value(&page);
        return Ok(());
    }
    let triggers = page["triggers"].as_array().cloned().unwrap_or_default();
    if triggers.is_empty() {
        shell.terminal.note("there are no triggers; make one with orchestr8 triggers apply");
        return Ok(());
    }
    let row = |trigger: &Value| {
        let state = match trigger["paused"] == true {
            true => format!("paused ({})", text(trigger, "pauseReason")),
            false => String::from("active"),
        };
        [
            text(trigger, "id").to_owned(),
            text(trigger, "workflowId").to_owned(),
            state,
            trigger["deliveries"].to_string(),
            trigger["started"].to_string(),
            trigger["pending"].to_string(),
            moment(&trigger["lastDeliveryAt"]),
        ]
    };
    let head = ["TRIGGER", "WORKFLOW", "STATE", "DELIVERIES", "STARTED", "PENDING", "LAST"].map(String::from);
    shell.terminal.data(&columns(&std::iter::once(head).chain(triggers.iter().map(row)).collect::<Vec<_>>()));
    Ok(())
}
