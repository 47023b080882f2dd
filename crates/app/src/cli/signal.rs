//! `orchestr8 signal`: tells an execution, or those that wait for a key, that something has happened.

use clap::Args;
use serde_json::{Value, json};

use super::follow::sequence;
use super::going::Going;
use super::reaching::{Intent, Reaching};
use super::{Shell, execution_id, inputs};
use crate::failure::{Failure, exit};
use crate::reach::escape;

#[derive(Args)]
pub struct Signal {
    /// The execution: its id, at least eight characters of its beginning, or `last`. With --key only the name of the event is given.
    #[arg(value_name = "EXECUTION")]
    first: String,
    /// The name of the event.
    #[arg(value_name = "NAME", required_unless_present = "key")]
    second: Option<String>,
    /// Send it to the executions that wait for this key: orchestr8 signal paid --key order-42.
    #[arg(long, value_name = "KEY", conflicts_with = "second")]
    key: Option<String>,
    /// With --key: every execution that waits, and not the oldest only.
    #[arg(long, requires = "key")]
    all: bool,
    /// What came with it.
    #[arg(long, value_name = "JSON|@FILE")]
    payload: Option<String>,
    /// An id of the event: the same event told twice counts once.
    #[arg(long)]
    id: Option<String>,
    #[command(flatten)]
    going: Going,
    #[command(flatten)]
    reaching: Reaching,
}

impl Signal {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let mut body = json!({});
        if let Some(payload) = &self.payload {
            body["payload"] = inputs::json("--payload", payload)?;
        }
        if let Some(id) = &self.id {
            body["id"] = Value::from(id.as_str());
        }
        match (&self.key, &self.second) {
            (Some(key), _) => self.send_to_key(shell, key, body),
            (None, name) => self.send(shell, name.as_deref().unwrap_or_default(), body),
        }
    }

    fn send_to_key(&self, shell: &Shell, key: &str, mut body: Value) -> Result<u8, Failure> {
        (body["name"], body["key"]) = (self.first.as_str().into(), key.into());
        if self.all {
            body["to"] = "all".into();
        }
        let answer =
            self.reaching.run(shell, Intent::Record, async |reach| reach.post("/v1/events", &body).await)?;
        let told = answer["executions"].as_array().map_or(0, Vec::len);
        match (shell.terminal.json, told) {
            (true, _) => shell.terminal.value(&answer),
            (false, 0) => shell.terminal.data(&format!("no execution waits for '{key}'; the event is kept")),
            (false, told) => shell.terminal.data(&format!("{told} executions were told '{}'", self.first)),
        }
        Ok(exit::OK)
    }

    fn send(&self, shell: &Shell, name: &str, mut body: Value) -> Result<u8, Failure> {
        body["name"] = name.into();
        self.reaching.run(shell, Intent::Execute, async |reach| {
            let id = &execution_id::resolve(reach, &self.first).await?;
            let path = format!("/v1/executions/{}", escape(id));
            let before = sequence(&reach.get(&path).await?);
            let answer = reach.post(&format!("{path}/events"), &body).await?;
            // A server goes on with it by itself; here it goes on only now.
            if reach.is_embedded() {
                return self.going.go_on(shell, reach, id, &answer, before).await;
            }
            match shell.terminal.json {
                true => shell.terminal.value(&answer),
                false => shell.terminal.data(&format!("execution {id} was told '{name}'")),
            }
            Ok(exit::OK)
        })
    }
}
