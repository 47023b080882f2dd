//! `orchestr8 retry`: a failed, cancelled or compensated execution goes on from its failed steps; `--all` does so with many.

use clap::Args;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use serde_json::{Map, Value, json};

use super::confirm::confirm;
use super::follow::{Follow, exit_code, sequence};
use super::going::Going;
use super::reaching::{Intent, Reaching};
use super::words::{self, text};
use super::{Shell, execution_id};
use crate::failure::{Failure, exit};
use crate::reach::{self, Reach, escape};

#[derive(Args)]
pub struct Retry {
    /// The execution: its id, at least eight characters of its beginning, or `last`.
    #[arg(required_unless_present = "all")]
    execution: Option<String>,
    /// All that match.
    #[arg(long, conflicts_with = "execution")]
    all: bool,
    /// With --all: those with this status.
    #[arg(long, default_value = "failed", value_parser = ["failed", "cancelled", "compensated"], requires = "all")]
    status: String,
    /// With --all: those of this workflow.
    #[arg(long, value_name = "ID", requires = "all")]
    workflow: Option<String>,
    /// With --all: those created since: a moment, a day, or how long ago (2h).
    #[arg(long, value_name = "WHEN", requires = "all")]
    since: Option<String>,
    /// With --all: those created until.
    #[arg(long, value_name = "WHEN", requires = "all")]
    until: Option<String>,
    /// With --all: at most so many.
    #[arg(long, value_name = "COUNT", requires = "all", value_parser = clap::value_parser!(u64).range(1..=500))]
    limit: Option<u64>,
    /// With --all: do not ask.
    #[arg(long, requires = "all")]
    yes: bool,
    #[command(flatten)]
    going: Going,
    #[command(flatten)]
    reaching: Reaching,
}

impl Retry {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let Some(id) = &self.execution else { return self.many(shell) };
        self.reaching.run(shell, Intent::Execute, async |reach| {
            let id = &execution_id::resolve(reach, id).await?;
            let path = format!("/v1/executions/{}", escape(id));
            let before = sequence(&reach.get(&path).await?);
            let answer = reach.post(&format!("{path}/retry"), &json!({})).await?;
            self.going.go_on(shell, reach, id, &answer, before).await
        })
    }

    fn many(&self, shell: &Shell) -> Result<u8, Failure> {
        let now_ms = Real::new().now_ms();
        let when = |text: &Option<String>| text.as_deref().map(|text| words::since(text, now_ms)).transpose();
        let wanted = [
            ("status", Some(self.status.clone())),
            ("workflowId", self.workflow.clone()),
            ("since", when(&self.since)?),
            ("until", when(&self.until)?),
        ];
        let of = self.workflow.as_ref().map_or_else(String::new, |id| format!(" of {id}"));
        let plan = format!("all {} executions{of} that match go on from their failed steps", self.status);
        confirm(shell, self.yes, &plan)?;
        self.reaching.run(shell, Intent::Execute, async |reach| match reach.is_embedded() {
            true => self.one_by_one(shell, reach, &wanted).await,
            false => self.at_once(shell, reach, &wanted).await,
        })
    }

    /// A server goes on with them by itself.
    async fn at_once(&self, shell: &Shell, reach: &Reach, wanted: &[Filter]) -> Result<u8, Failure> {
        let given =
            wanted.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?.into())));
        let mut body: Map<String, Value> = given.collect();
        body.extend(self.limit.map(|limit| (String::from("limit"), limit.into())));
        let answer = reach.post("/v1/executions/retry", &Value::Object(body)).await?;
        tell(shell, &answer);
        Ok(exit::OK)
    }

    /// Without a server they go on only as long as this process is there: each is shown to its end.
    async fn one_by_one(&self, shell: &Shell, reach: &Reach, wanted: &[Filter]) -> Result<u8, Failure> {
        let limit = Some(self.limit.unwrap_or(MANY).to_string());
        let query: Vec<Filter> = wanted.iter().cloned().chain([("limit", limit)]).collect();
        let page = reach.get(&reach::path("/v1/executions", &query)).await?;
        let found = page["executions"].as_array().into_iter().flatten();
        let ids: Vec<&str> = found.map(|execution| text(execution, "executionId")).collect();
        let mut worst = exit::OK;
        for id in &ids {
            let path = format!("/v1/executions/{}", escape(id));
            let after = sequence(&reach.get(&path).await?);
            reach.post(&format!("{path}/retry"), &json!({})).await?;
            if !self.going.detach {
                let follow = Follow { shell, reach, limit: self.going.timeout, after };
                worst = worst.max(exit_code(&follow.to_the_end(id).await?));
            }
        }
        tell(shell, &json!({"retried": ids, "skipped": 0}));
        Ok(worst)
    }
}

/// A parameter of the list of executions.
type Filter = (&'static str, Option<String>);

/// As many as one request takes.
const MANY: u64 = 500;

fn tell(shell: &Shell, answer: &Value) {
    let ids: Vec<&str> =
        answer["retried"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if shell.terminal.json {
        shell.terminal.value(answer);
    } else if !ids.is_empty() {
        shell.terminal.data(&ids.join("\n"));
    }
    shell.terminal.note(&format!("{} went on", ids.len()));
}
