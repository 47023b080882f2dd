//! `orchestr8 pause`: running steps finish, nothing new begins until it is resumed.

use clap::Args;
use serde_json::{Value, json};

use super::follow::{Follow, sequence};
use super::reaching::{Intent, Reaching};
use super::words::text;
use super::{Shell, execution_id};
use crate::failure::Failure;
use crate::reach::escape;

#[derive(Args)]
pub struct Pause {
    /// The execution: its id, at least eight characters of its beginning, or `last`.
    execution: String,
    /// Why, for whoever resumes it.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    reaching: Reaching,
}

impl Pause {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut body = json!({});
        if let Some(reason) = &self.reason {
            body["reason"] = Value::from(reason.as_str());
        }
        let (id, answer) = self.reaching.run(shell, Intent::Execute, async |reach| {
            let id = execution_id::resolve(reach, &self.execution).await?;
            let path = format!("/v1/executions/{}", escape(&id));
            let after = sequence(&reach.get(&path).await?);
            let answer = reach.post(&format!("{path}/pause"), &body).await?;
            if reach.is_embedded() {
                // Heard by the execution before this process ends.
                Follow { shell: &shell.quiet(), reach, limit: None, after }.to_the_end(&id).await?;
            }
            Ok((id, answer))
        })?;
        match shell.terminal.json {
            true => shell.terminal.value(&answer),
            false => shell.terminal.data(&format!(
                "execution {id} is {}; go on with orchestr8 resume {id}",
                text(&answer, "status")
            )),
        }
        Ok(())
    }
}
