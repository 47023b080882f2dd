//! `orchestr8 resume`: lets an execution go on that is paused, was left unfinished, or has a step nobody knows the end of.

use clap::Args;
use orchestr8_contract::Code;
use serde_json::{Map, Value, json};

use super::follow::sequence;
use super::going::Going;
use super::reaching::{Intent, Reaching};
use super::words::{is_final, text};
use super::{Shell, execution_id, inputs};
use crate::failure::Failure;
use crate::reach::{Reach, escape};

#[derive(Args)]
pub struct Resume {
    /// The execution: its id, at least eight characters of its beginning, or `last`.
    execution: String,
    /// Raise a budget: wallClockMs, steps, tokens or cost. Can be given again.
    #[arg(long, value_name = "NAME=VALUE")]
    budget: Vec<String>,
    /// A step whose end nobody knows after a crash.
    #[arg(long, value_name = "STEP", requires = "resolution")]
    step: Option<String>,
    /// What to do with that step: run it again, count it as failed, or as completed.
    #[arg(long = "as", id = "resolution", value_parser = ["retry", "fail", "complete"], requires = "step")]
    resolution: Option<String>,
    /// The output of that step, for --as complete.
    #[arg(long, value_name = "JSON|@FILE", requires = "step")]
    output: Option<String>,
    #[command(flatten)]
    going: Going,
    #[command(flatten)]
    reaching: Reaching,
}

const BUDGETS: [&str; 4] = ["wallClockMs", "steps", "tokens", "cost"];

impl Resume {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let budget = budget(&self.budget)?;
        self.reaching.run(shell, Intent::Execute, async |reach| {
            let id = &execution_id::resolve(reach, &self.execution).await?;
            let path = format!("/v1/executions/{}", escape(id));
            let before = reach.get(&path).await?;
            match self.resume(reach, &path, &before, budget).await? {
                Some(answer) => self.going.go_on(shell, reach, id, &answer, sequence(&before)).await,
                None => self.going.go_on(shell, reach, id, &before, 0).await,
            }
        })
    }

    /// What it was told; none if it goes on by itself.
    async fn resume(
        &self,
        reach: &Reach,
        path: &str,
        execution: &Value,
        budget: Map<String, Value>,
    ) -> Result<Option<Value>, Failure> {
        if let (Some(step), Some(resolution)) = (&self.step, &self.resolution) {
            let mut body = json!({"action": resolution});
            if let Some(output) = &self.output {
                body["output"] = inputs::json("--output", output)?;
            }
            return reach.post(&format!("{path}/steps/{}/resolve", escape(step)), &body).await.map(Some);
        }
        let status = text(execution, "status");
        if is_final(status) {
            let id = text(execution, "executionId");
            let message = format!("execution {id} is {status} already");
            let hint = match status {
                "completed" => {
                    format!("run a part of it again with orchestr8 fork {id} --from-step STEP")
                }
                _ => format!("go on from its failed steps with orchestr8 retry {id}"),
            };
            return Err(Failure::new(Code::IdConflict, message).hinting(hint));
        }
        // One that was left unfinished goes on by itself as soon as somebody has the store; only a paused one is told to.
        if status != "paused" && budget.is_empty() {
            return Ok(None);
        }
        let body = if budget.is_empty() { json!({}) } else { json!({"budget": budget}) };
        reach.post(&format!("{path}/resume"), &body).await.map(Some)
    }
}

fn budget(pairs: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut budget = Map::new();
    for pair in pairs {
        let wrong = || {
            Failure::new(Code::InvalidArgument, format!("--budget {pair} is not a budget"))
                .hinting(format!("write NAME=NUMBER with one of {}", BUDGETS.join(", ")))
        };
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        let value: Value = serde_json::from_str(value).map_err(|_| wrong())?;
        if !BUDGETS.contains(&name) || !value.is_number() {
            return Err(wrong());
        }
        budget.insert(name.to_owned(), value);
    }
    Ok(budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_have_names_and_numbers() {
        let read = |pairs: &[&str]| budget(&pairs.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            Value::Object(read(&["steps=20", "cost=1.5"]).unwrap()),
            json!({"steps": 20, "cost": 1.5})
        );
        for wrong in ["steps", "steps=many", "money=5", "steps=\"5\""] {
            assert_eq!(read(&[wrong]).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
