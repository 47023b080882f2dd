//! `orchestr8 delete`: deletes executions that have ended, with their journals and tags, for good.

use clap::Args;
use serde_json::json;

use super::Shell;
use super::bulk::{BulkOperation, ExecutionFilter};
use super::reaching::{Intent, Reaching};
use crate::failure::{Failure, exit};

#[derive(Args)]
pub struct Delete {
    /// The executions, or filters that pick them.
    #[arg(value_name = "EXECUTION", required_unless_present_any = ["tags", "status", "workflow", "since", "until"])]
    #[arg(conflicts_with_all = ["tags", "status", "workflow", "since", "until"])]
    executions: Vec<String>,
    #[command(flatten)]
    filter: ExecutionFilter,
    #[command(flatten)]
    reaching: Reaching,
}

impl Delete {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let mut body = self.filter.members()?;
        if !self.executions.is_empty() {
            body.insert("ids".into(), json!(self.executions));
        }
        let operation =
            BulkOperation { path: "/v1/executions/delete", verb: "delete", done: "deleted", body };
        let result = self
            .reaching
            .run(shell, Intent::Record, async |reach| operation.run(shell, reach, &self.filter).await)?;
        if let Some(result) = result {
            operation.tell(shell, &result);
        }
        Ok(exit::OK)
    }
}
