//! `orchestr8 run`: runs a workflow and shows how it gets on; through a server if one runs, else in this process.

use clap::Args;
use http::Method;
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::going::Going;
use super::inputs::{Inputs, pairs};
use super::reaching::{Intent, Reaching};
use super::words::text;
use super::{Shell, files};
use crate::failure::Failure;
use crate::reach::{Reach, Reply};

#[derive(Args)]
pub struct Run {
    /// A workflow file, or the id of a stored workflow; `-` is stdin.
    #[arg(value_name = "FILE|ID")]
    workflow: String,
    #[command(flatten)]
    inputs: Inputs,
    /// An idempotency key: a repeat with the same key joins the first execution instead of beginning another.
    #[arg(long)]
    key: Option<String>,
    /// The id under which all that belongs together is found again.
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
    /// A tag that the execution is found by: orchestr8 list --where NAME=VALUE. Can be given again.
    #[arg(long = "tag", value_name = "NAME=VALUE")]
    tags: Vec<String>,
    /// Higher goes first, from -100 to 100.
    #[arg(long, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-100..=100))]
    priority: Option<i32>,
    /// Of a stored workflow, run this version instead of the newest.
    #[arg(long, value_name = "VERSION")]
    workflow_version: Option<String>,
    /// Of a stored workflow, run this revision instead of the newest.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    revision: Option<i64>,
    #[command(flatten)]
    going: Going,
    #[command(flatten)]
    reaching: Reaching,
}

impl Run {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        // Everything that can be wrong with the command is said before anything is opened.
        let body = self.body()?;
        self.reaching.run(shell, Intent::Execute, async |reach| {
            let reply = self.start(reach, &body).await?;
            if reply.header("idempotency-replayed") == Some("true") {
                shell.terminal.note("this key was used before: joining that execution");
            }
            let answer = reply.accepted()?;
            let id = text(&answer, "executionId").to_owned();
            self.going.go_on(shell, reach, &id, &answer, 0).await
        })
    }

    fn body(&self) -> Result<Value, Failure> {
        let mut body = json!({});
        if files::is_file(&self.workflow) {
            if self.workflow_version.is_some() || self.revision.is_some() {
                return Err(Failure::new(
                    Code::InvalidArgument,
                    "--workflow-version and --revision are for stored workflows",
                )
                .hinting("a file has the version it says"));
            }
            body["workflow"] = Value::clone(&files::workflow(&self.workflow)?.source);
        } else {
            body["workflowId"] = Value::from(self.workflow.as_str());
        }
        let inputs = self.inputs.read()?;
        if !inputs.is_empty() {
            body["inputs"] = Value::Object(inputs);
        }
        if !self.tags.is_empty() {
            body["tags"] = Value::Object(pairs("--tag", &self.tags)?);
        }
        if let Some(version) = &self.workflow_version {
            body["version"] = Value::from(version.as_str());
        }
        if let Some(revision) = self.revision {
            body["revision"] = Value::from(revision);
        }
        if let Some(id) = &self.correlation {
            body["context"] = json!({"correlationId": id});
        }
        if let Some(priority) = self.priority {
            body["priority"] = Value::from(priority);
        }
        Ok(body)
    }

    async fn start(&self, reach: &Reach, body: &Value) -> Result<Reply, Failure> {
        let key = self.key.as_deref().map(|key| ("idempotency-key", key));
        let headers: Vec<(&str, &str)> = key.into_iter().collect();
        let reply = reach.send(Method::POST, "/v1/workflows/execute", &headers, Some(body)).await?;
        if reply.status.is_success() {
            return Ok(reply);
        }
        let failure = crate::reach::refusal(reply.status, &reply.body);
        let is_unknown = failure.code == Code::NotFound && body.get("workflowId").is_some();
        Err(match is_unknown {
            true => failure
                .hinting("orchestr8 workflows list shows what is stored; a file needs its ending: NAME.json"),
            false => failure,
        })
    }
}
