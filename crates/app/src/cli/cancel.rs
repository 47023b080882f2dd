//! `orchestr8 cancel`: stops an execution, or all that match; steps get five seconds to clean up.

use clap::Args;
use serde_json::{Value, json};

use super::bulk::{BulkOperation, ExecutionFilter};
use super::follow::{Follow, conclude, sequence};
use super::reaching::{Intent, Reaching};
use super::words::text;
use super::{Shell, execution_id};
use crate::failure::{Failure, exit};
use crate::reach::{Reach, escape};
use crate::terminal::visible_line;

#[derive(Args)]
pub struct Cancel {
    /// The execution: its id, at least eight characters of its beginning, or `last`. Or filters that pick several.
    #[arg(required_unless_present_any = ["tags", "status", "workflow", "since", "until"])]
    #[arg(conflicts_with_all = ["tags", "status", "workflow", "since", "until"])]
    execution: Option<String>,
    /// Why, for the journal.
    #[arg(long)]
    reason: Option<String>,
    /// Do not give its steps time to clean up, and do not roll back: a rollback that runs is stopped.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    filter: ExecutionFilter,
    #[command(flatten)]
    reaching: Reaching,
}

impl Cancel {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        match &self.execution {
            Some(id) => {
                self.reaching.run(shell, Intent::Execute, async |reach| self.cancel(shell, reach, id).await)
            }
            None => self.many(shell),
        }
    }

    fn many(&self, shell: &Shell) -> Result<u8, Failure> {
        let mut body = self.filter.members()?;
        body.insert("force".into(), self.force.into());
        body.extend(self.reason.iter().map(|reason| ("reason".to_owned(), Value::from(reason.as_str()))));
        let operation =
            BulkOperation { path: "/v1/executions/cancel", verb: "cancel", done: "cancelled", body };
        let result = self.reaching.run(shell, Intent::Execute, async |reach| {
            let result = operation.run(shell, reach, &self.filter).await?;
            // Without a server they are cancelled only as long as this process is there to do it.
            if let Some(result) = result.as_ref().filter(|_| reach.is_embedded()) {
                for id in &result.done {
                    let quiet = shell.quiet();
                    Follow { shell: &quiet, reach, limit: None, after: 0 }.to_the_end(id).await?;
                }
            }
            Ok(result)
        })?;
        if let Some(result) = result {
            operation.tell(shell, &result);
        }
        Ok(exit::OK)
    }

    async fn cancel(&self, shell: &Shell, reach: &Reach, execution: &str) -> Result<u8, Failure> {
        let mut body = json!({"graceful": !self.force, "force": self.force});
        if let Some(reason) = &self.reason {
            body["reason"] = Value::from(reason.as_str());
        }
        let id = &execution_id::resolve(reach, execution).await?;
        let path = format!("/v1/executions/{}", escape(id));
        let after = sequence(&reach.get(&path).await?);
        let answer = reach.post(&format!("{path}/cancel"), &body).await?;
        // Without a server it is cancelled or rolled back only as long as this process is there to do it.
        if reach.is_embedded() && matches!(text(&answer, "status"), "cancelling" | "compensating") {
            let followed = Follow { shell, reach, limit: None, after }.to_the_end(id).await?;
            let code = conclude(shell, reach, &followed);
            return Ok(if code == exit::INTERRUPTED { exit::OK } else { code });
        }
        if shell.terminal.json {
            shell.terminal.value(&answer);
        } else {
            let message = text(&answer, "message");
            let said = if message.is_empty() {
                format!("execution {id} is {}", text(&answer, "status"))
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
