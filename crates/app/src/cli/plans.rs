//! `orchestr8 plans list|show|approve|reject`: plans of governed workspaces that wait for a person's decision.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::Shell;
use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::text;
use crate::failure::Failure;
use crate::reach::{self, Reach, escape};
use crate::terminal::{columns, visible_line};

#[derive(Subcommand)]
pub enum Plans {
    /// List the plans that wait for a decision.
    List(List),
    /// Print a plan and what was decided on it.
    Show(Show),
    /// Approve a plan: from then on, agents may write files within it.
    Approve(Decide),
    /// Reject a plan, also one that was approved.
    Reject(Decide),
}

#[derive(Args)]
pub struct List {
    /// Those that were decided too.
    #[arg(long)]
    all: bool,
    /// Only those of this workspace.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    plan: PlanName,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Decide {
    #[command(flatten)]
    plan: PlanName,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reaching: Reaching,
}

/// Which plan.
#[derive(Args)]
pub struct PlanName {
    /// The hash of the plan, or as much of it as is unique among those that wait.
    hash: String,
    /// Its workspace, if several have it, or if it was put there without save_plan.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

const HASH_DIGITS: usize = 64;

impl Plans {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Plans::List(list) => list.run(shell),
            Plans::Show(show) => show.run(shell),
            Plans::Approve(decide) => decide.run(shell, "approve"),
            Plans::Reject(decide) => decide.run(shell, "reject"),
        }
    }
}

impl List {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let status = (!self.all).then(|| String::from("waiting"));
        let path =
            reach::path("/v1/plans", &[("status", status), ("workspace", real(self.workspace.as_deref())?)]);
        let page = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
        if shell.terminal.json {
            shell.terminal.value(&page);
            return Ok(());
        }
        let plans: Vec<&Value> = page["plans"].as_array().into_iter().flatten().collect();
        if plans.is_empty() {
            shell.terminal.note("no plan waits for a decision");
            return Ok(());
        }
        let row = |plan: &&Value| {
            let decided = text(plan, "decidedBy");
            [
                text(plan, "hash").chars().take(12).collect(),
                text(plan, "status").to_owned(),
                visible_line(text(plan, "title")),
                text(plan, "proposer").to_owned(),
                decided.to_owned(),
                visible_line(text(plan, "workspace")),
            ]
        };
        let head = ["PLAN", "STATUS", "TITLE", "PROPOSED BY", "DECIDED BY", "WORKSPACE"].map(String::from);
        let rows = std::iter::once(head).chain(plans.iter().map(row)).collect::<Vec<_>>();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }
}

impl Show {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let plan = self.reaching.run(shell, Intent::Record, async |reach| self.plan.find(reach).await)?;
        let plan = plan.ok_or_else(|| self.plan.missing())?;
        match shell.terminal.json {
            true => shell.terminal.value(&plan),
            false => print(shell, &plan),
        }
        Ok(())
    }
}

impl Decide {
    fn run(&self, shell: &Shell, decision: &str) -> Result<(), Failure> {
        let workspace = real(self.plan.workspace.as_deref())?;
        let decided = self.reaching.run(shell, Intent::Record, async |reach| {
            let plan = self.plan.find(reach).await?;
            let hash = match &plan {
                Some(plan) => text(plan, "hash").to_owned(),
                None if self.plan.is_whole() && workspace.is_some() => self.plan.hash.clone(),
                None => return Err(self.plan.missing()),
            };
            if let (Some(plan), false) = (&plan, self.yes || shell.terminal.json) {
                print(shell, plan);
            }
            confirm(shell, self.yes, &format!("{decision} plan {hash}"))?;
            let mut body = json!({"decision": decision});
            let known = plan.as_ref().and_then(|plan| plan["workspace"].as_str()).map(str::to_owned);
            if let Some(workspace) = known.or_else(|| workspace.clone()) {
                body["workspace"] = workspace.into();
            }
            if let Some(comment) = &self.comment {
                body["comment"] = comment.as_str().into();
            }
            reach.post(&format!("/v1/plans/{}", escape(&hash)), &body).await
        })?;
        match shell.terminal.json {
            true => shell.terminal.value(&decided),
            false => {
                let (status, hash) = (text(&decided, "status"), text(&decided, "hash"));
                shell
                    .terminal
                    .data(&format!("{status}: plan {hash} in {}", visible_line(text(&decided, "workspace"))));
            }
        }
        Ok(())
    }
}

impl PlanName {
    /// The plan with its text; none if the server does not know it.
    async fn find(&self, reach: &Reach) -> Result<Option<Value>, Failure> {
        let workspace = real(self.workspace.as_deref())?;
        let hash = match self.is_whole() {
            true => self.hash.clone(),
            false => {
                let page = reach.get(&reach::path("/v1/plans", &[("workspace", workspace.clone())])).await?;
                let all = page["plans"].as_array().into_iter().flatten().map(|plan| text(plan, "hash"));
                let mut fitting: Vec<&str> = all.filter(|hash| hash.starts_with(&self.hash)).collect();
                fitting.sort_unstable();
                fitting.dedup();
                match fitting.as_slice() {
                    [] => return Ok(None),
                    [one] => (*one).to_owned(),
                    several => {
                        let message = format!("{} plans begin with '{}'", several.len(), self.hash);
                        let lines = several.iter().map(|hash| (*hash).to_owned()).collect();
                        return Err(Failure::new(Code::InvalidArgument, message).listing(lines));
                    }
                }
            }
        };
        let path = reach::path(&format!("/v1/plans/{}", escape(&hash)), &[("workspace", workspace)]);
        let reply = reach.send(http::Method::GET, &path, &[], None).await?;
        match reply.status {
            http::StatusCode::NOT_FOUND => Ok(None),
            _ => reply.accepted().map(Some),
        }
    }

    fn is_whole(&self) -> bool {
        self.hash.len() == HASH_DIGITS
    }

    fn missing(&self) -> Failure {
        Failure::new(Code::NotFound, format!("there is no plan '{}'", self.hash))
            .hinting("`orchestr8 plans list --all` shows those there are; one that was not saved by a planner needs --workspace DIR")
    }
}

/// The real path of a folder, as the server knows workspaces.
fn real(folder: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(folder) = folder else { return Ok(None) };
    let real = std::fs::canonicalize(folder)
        .map_err(|error| Failure::new(Code::NotFound, format!("{}: {error}", folder.display())))?;
    Ok(Some(real.to_string_lossy().into_owned()))
}

fn print(shell: &Shell, plan: &Value) {
    for line in text(plan, "content").trim_matches('\n').lines() {
        shell.terminal.data(&visible_line(line));
    }
    let proposer = plan["proposer"].as_str().unwrap_or("unknown");
    shell.terminal.note(&format!(
        "plan {}\nworkspace {}\nstatus {}, proposed by {}{}",
        text(plan, "hash"),
        visible_line(text(plan, "workspace")),
        text(plan, "status"),
        visible_line(proposer),
        plan["decidedBy"]
            .as_str()
            .map_or_else(String::new, |by| format!(", decided by {}", visible_line(by))),
    ));
}
