//! `orchestr8 cancel`: stops an execution; its steps get five seconds to clean up.

use clap::Args;
use serde_json::{Value, json};

use super::Shell;
use super::follow::{Follow, conclude, sequence};
use super::reaching::{Intent, Reaching};
use super::words::text;
use crate::failure::{Failure, exit};
use crate::reach::{Reach, escape};
use crate::terminal::visible_line;

#[derive(Args)]
pub struct Cancel {
    /// The execution.
    execution: String,
    /// Why, for the journal.
    #[arg(long)]
    reason: Option<String>,
    /// Do not give its steps time to clean up, and do not roll back: a rollback that runs is stopped.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Cancel {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        self.reaching.run(shell, Intent::Execute, async |reach| self.cancel(shell, reach).await)
    }

    async fn cancel(&self, shell: &Shell, reach: &Reach) -> Result<u8, Failure> {
        let mut body = json!({"graceful": !self.force, "force": self.force});
        if let Some(reason) = &self.reason {
            body["reason"] = Value::from(reason.as_str());
        }
        let path = format!("/v1/executions/{}", escape(&self.execution));
        let after = sequence(&reach.get(&path).await?);
        let answer = reach.post(&format!("{path}/cancel"), &body).await?;
        // Without a server it is cancelled or rolled back only as long as this process is there to do it.
        if reach.is_embedded() && matches!(text(&answer, "status"), "cancelling" | "compensating") {
            let followed = Follow { shell, reach, limit: None, after }.to_the_end(&self.execution).await?;
            let code = conclude(shell, reach, &followed);
            return Ok(if code == exit::INTERRUPTED { exit::OK } else { code });
        }
        if shell.terminal.json {
            shell.terminal.value(&answer);
        } else {
            let message = text(&answer, "message");
            let said = if message.is_empty() {
                format!("execution {} is {}", self.execution, text(&answer, "status"))
            } else {
                visible_line(message)
            };
            shell.terminal.data(&said);
            for one in answer["notUndone"].as_array().into_iter().flatten() {
                let item = one["index"].as_u64().map_or_else(String::new, |index| format!(" [{index}]"));
                shell.terminal.data(&visible_line(&format!("not undone: {}{item}", text(one, "stepId"))));
            }
        }
        Ok(exit::OK)
    }
}
