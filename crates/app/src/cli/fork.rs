//! `orchestr8 fork`: a new execution that keeps the outputs before one step of an old one, and runs from there.

use clap::Args;
use serde_json::{Value, json};

use super::going::Going;
use super::inputs::Inputs;
use super::reaching::{Intent, Reaching};
use super::words::text;
use super::{Shell, execution_id, files};
use crate::failure::Failure;
use crate::reach::{self, escape};

#[derive(Args)]
pub struct Fork {
    /// The execution: its id, at least eight characters of its beginning, or `last`.
    execution: String,
    /// The first step that runs anew; what does not depend on it keeps its output.
    #[arg(long, value_name = "STEP")]
    from_step: String,
    #[command(flatten)]
    inputs: Inputs,
    /// Go on with this definition instead of the old one.
    #[arg(long, value_name = "FILE")]
    workflow: Option<String>,
    #[command(flatten)]
    going: Going,
    #[command(flatten)]
    reaching: Reaching,
}

impl Fork {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let mut body = json!({});
        let inputs = self.inputs.read()?;
        if !inputs.is_empty() {
            body["inputs"] = Value::Object(inputs);
        }
        if let Some(file) = &self.workflow {
            body["workflow"] = Value::clone(&files::workflow(file)?.source);
        }
        let step = Some(self.from_step.clone());
        self.reaching.run(shell, Intent::Execute, async |reach| {
            let from = execution_id::resolve(reach, &self.execution).await?;
            let path = reach::path(&format!("/v1/executions/{}/fork", escape(&from)), &[("fromStep", step)]);
            let answer = reach.post(&path, &body).await?;
            let id = text(&answer, "executionId").to_owned();
            shell.terminal.note(&format!("execution {id} is forked from {from}"));
            self.going.go_on(shell, reach, &id, &answer, 0).await
        })
    }
}
