//! Operations on many executions: which they are, the plan, and the calls that carry it out.

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use serde_json::{Map, Value, json};

use super::Shell;
use super::confirm::confirm;
use super::inputs::pairs;
use super::words::{self, moment, text};
use crate::failure::Failure;
use crate::reach::Reach;
use crate::terminal::visible_line;

#[derive(Args)]
pub struct ExecutionFilter {
    /// Those with this tag. Given several times: with all of them.
    #[arg(long = "where", value_name = "NAME=VALUE")]
    tags: Vec<String>,
    /// Those with this status.
    #[arg(long)]
    status: Option<String>,
    /// Those of this workflow.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Those created since: a moment, a day, or how long ago (2h).
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Those created until.
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Show which executions it would be, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

impl ExecutionFilter {
    /// The members of a request that say which executions it is about.
    pub fn members(&self) -> Result<Map<String, Value>, Failure> {
        let now_ms = Real::new().now_ms();
        let when = |text: &Option<String>| text.as_deref().map(|text| words::since(text, now_ms)).transpose();
        let given = [
            ("status", self.status.clone()),
            ("workflowId", self.workflow.clone()),
            ("since", when(&self.since)?),
            ("until", when(&self.until)?),
        ];
        let mut members: Map<String, Value> =
            given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        if !self.tags.is_empty() {
            members.insert("where".into(), Value::Object(pairs("--where", &self.tags)?));
        }
        Ok(members)
    }
}

/// One of the operations.
pub struct BulkOperation {
    pub path: &'static str,
    /// What the plan says: cancel, delete.
    pub verb: &'static str,
    /// The member of the answer that lists what was changed.
    pub done: &'static str,
    /// What the request says besides the cursor.
    pub body: Map<String, Value>,
}

/// What was changed: ids, and what stayed as it is.
pub struct BulkResult {
    pub done: Vec<String>,
    skipped: Vec<Value>,
}

impl BulkOperation {
    /// Shows the plan, asks, and carries it out. Nothing: there was nothing to do, or it was a dry run.
    pub async fn run(
        &self,
        shell: &Shell,
        reach: &Reach,
        filter: &ExecutionFilter,
    ) -> Result<Option<BulkResult>, Failure> {
        let mut preview = self.body.clone();
        preview.insert("dryRun".into(), true.into());
        let preview = reach.post(self.path, &Value::Object(preview)).await?;
        self.check(&preview)?;
        if filter.dry_run && shell.terminal.json {
            shell.terminal.value(&preview);
            return Ok(None);
        }
        let plan = self.plan(&preview);
        if filter.dry_run || preview["count"] == 0 {
            shell.terminal.data(&plan);
            return Ok(None);
        }
        confirm(shell, filter.yes, &plan)?;
        self.carry_out(reach).await.map(Some)
    }

    /// Executions that were named and are not there, or not in a state for this.
    fn check(&self, preview: &Value) -> Result<(), Failure> {
        if let Some(id) = preview["notFound"][0].as_str() {
            return Err(Failure::new(Code::NotFound, format!("there is no execution named '{id}'"))
                .hinting("nothing was changed; orchestr8 list shows what there is"));
        }
        match preview["skipped"].get(0) {
            Some(one) => {
                let what =
                    format!("{} cannot be {}: {}", text(one, "executionId"), self.done, text(one, "reason"));
                Err(Failure::new(Code::StateConflict, what).hinting("nothing was changed"))
            }
            None => Ok(()),
        }
    }

    fn plan(&self, preview: &Value) -> String {
        let count = preview["count"].as_u64().unwrap_or(0);
        let least = if preview["countIsLimited"] == true { "at least " } else { "" };
        let noun = if count == 1 { "execution" } else { "executions" };
        let mut lines = vec![format!("{} {least}{count} {noun}", self.verb)];
        let sample = preview["sample"].as_array().map(Vec::as_slice).unwrap_or_default();
        for row in sample {
            let workflow = text(&row["workflow"], "id");
            let (id, status) = (text(row, "executionId"), text(row, "status"));
            lines.push(visible_line(&format!("  {id}  {status}  {workflow}  {}", moment(&row["createdAt"]))));
        }
        let more = count.saturating_sub(sample.len() as u64);
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
        lines.join("\n")
    }

    /// Call by call: one takes a limited number.
    async fn carry_out(&self, reach: &Reach) -> Result<BulkResult, Failure> {
        let mut result = BulkResult { done: Vec::new(), skipped: Vec::new() };
        let mut body = self.body.clone();
        loop {
            let answer = reach.post(self.path, &Value::Object(body.clone())).await?;
            let ids = answer[self.done].as_array().into_iter().flatten();
            result.done.extend(ids.filter_map(|id| id.as_str().map(str::to_owned)));
            result.skipped.extend(answer["skipped"].as_array().cloned().unwrap_or_default());
            match answer["nextCursor"].as_str() {
                Some(cursor) => body.insert("cursor".into(), cursor.into()),
                None => return Ok(result),
            };
        }
    }

    pub fn tell(&self, shell: &Shell, result: &BulkResult) {
        if shell.terminal.json {
            let mut answer = json!({"count": result.done.len(), "skipped": result.skipped});
            answer[self.done] = json!(result.done);
            return shell.terminal.value(&answer);
        }
        shell.terminal.data(&format!("{} {}", self.done, result.done.len()));
        for one in &result.skipped {
            let line = format!("left as it is: {}: {}", text(one, "executionId"), text(one, "reason"));
            shell.terminal.note(&visible_line(&line));
        }
    }
}
