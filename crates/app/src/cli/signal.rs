//! `orchestr8 signal`: tells an execution that something it may wait for has happened.

use clap::Args;
use serde_json::{Value, json};

use super::follow::sequence;
use super::going::Going;
use super::reaching::{Intent, Reaching};
use super::{Shell, inputs};
use crate::failure::{Failure, exit};
use crate::reach::escape;

#[derive(Args)]
pub struct Signal {
    /// The execution.
    execution: String,
    /// The name of the event.
    name: String,
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
        let mut body = json!({"name": self.name});
        if let Some(payload) = &self.payload {
            body["payload"] = inputs::json("--payload", payload)?;
        }
        if let Some(id) = &self.id {
            body["id"] = Value::from(id.as_str());
        }
        let path = format!("/v1/executions/{}", escape(&self.execution));
        self.reaching.run(shell, Intent::Execute, async |reach| {
            let before = sequence(&reach.get(&path).await?);
            let answer = reach.post(&format!("{path}/events"), &body).await?;
            // A server goes on with it by itself; here it goes on only now.
            if reach.is_embedded() {
                return self.going.go_on(shell, reach, &self.execution, &answer, before).await;
            }
            match shell.terminal.json {
                true => shell.terminal.value(&answer),
                false => {
                    shell.terminal.data(&format!("execution {} was told '{}'", self.execution, self.name))
                }
            }
            Ok(exit::OK)
        })
    }
}
