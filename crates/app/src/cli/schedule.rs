//! `orchestr8 schedule apply|list|show|delete|pause|resume|trigger`: stored workflows that run by the clock.

use std::path::Path;

use clap::{Args, Subcommand};
use http::Method;
use orchestr8_contract::Code;
use serde_json::{Map, Value, json};

use super::confirm::confirm;
use super::going::Going;
use super::inputs::{self, Inputs};
use super::reaching::{Intent, Reaching};
use super::words::{moment, text};
use super::{Shell, files};
use crate::failure::{Failure, exit};
use crate::reach::escape;
use crate::terminal::columns;

#[derive(Subcommand)]
pub enum Schedule {
    /// Store a schedule, or change it: from a file, or from the flags.
    Apply(Box<Apply>),
    /// List the schedules and when each runs next.
    List(Reaching),
    /// Print a schedule.
    Show(One),
    /// Forget a schedule; executions it began go on.
    Delete {
        #[command(flatten)]
        one: One,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Stop beginning executions until it is resumed.
    Pause(One),
    /// Begin executions again.
    Resume(One),
    /// Begin an execution at once, whatever the clock says.
    Trigger {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        going: Going,
    },
}

#[derive(Args)]
pub struct One {
    /// The id of the schedule.
    id: String,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Apply {
    /// A JSON file with id, workflowId, cron, timeZone, inputs, tags, overlap, backfill; or the id of the schedule.
    #[arg(value_name = "FILE|ID")]
    which: String,
    /// The stored workflow it runs.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// When, as cron says it: '0 3 * * *' is every day at three.
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// The time zone of the expression, such as Europe/Berlin [default: UTC].
    #[arg(long, value_name = "NAME")]
    time_zone: Option<String>,
    /// What to do when the one before still runs.
    #[arg(long, value_parser = ["skip", "queue", "cancel", "allow"])]
    overlap: Option<String>,
    /// What to do about moments that passed while nobody was there.
    #[arg(long, value_parser = ["none", "one", "all"])]
    backfill: Option<String>,
    /// Store it without starting it.
    #[arg(long)]
    paused: bool,
    /// A tag of what it starts. Can be given again.
    #[arg(long = "tag", value_name = "NAME=VALUE")]
    tags: Vec<String>,
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    reaching: Reaching,
}

impl Schedule {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        match self {
            Schedule::Apply(apply) => apply.run(shell),
            Schedule::List(reaching) => list(shell, reaching),
            Schedule::Show(one) => one.ask(shell, Method::GET, "", "").map(|_| ()),
            Schedule::Delete { one, yes } => {
                confirm(shell, *yes, &format!("the schedule {} is forgotten", one.id))?;
                one.ask(shell, Method::DELETE, "", "is forgotten").map(|_| ())
            }
            Schedule::Pause(one) => one.ask(shell, Method::POST, "/pause", "is paused").map(|_| ()),
            Schedule::Resume(one) => one.ask(shell, Method::POST, "/resume", "is resumed").map(|_| ()),
            Schedule::Trigger { one, going } => return one.trigger(shell, going),
        }
        .map(|()| exit::OK)
    }
}

impl One {
    /// Through a server it goes on by itself; else it is shown to its end.
    fn trigger(&self, shell: &Shell, going: &Going) -> Result<u8, Failure> {
        let path = format!("/v1/schedules/{}/trigger", escape(&self.id));
        self.reaching.run(shell, Intent::Execute, async |reach| {
            let answer = reach.post(&path, &json!({})).await?;
            let id = text(&answer, "executionId").to_owned();
            let going = Going { detach: going.detach || !reach.is_embedded(), ..going.clone() };
            going.go_on(shell, reach, &id, &answer, 0).await
        })
    }

    /// Asks about one schedule; tells it in a few words, or as it is.
    fn ask(&self, shell: &Shell, method: Method, what: &str, done: &str) -> Result<Value, Failure> {
        let path = format!("/v1/schedules/{}{what}", escape(&self.id));
        let body = (method == Method::POST).then(|| json!({}));
        let answer = self.reaching.run(shell, Intent::Record, async |reach| {
            reach.send(method, &path, &[], body.as_ref()).await?.accepted()
        })?;
        match shell.terminal.json || done.is_empty() {
            true => shell.terminal.value(&answer),
            false => shell.terminal.data(&format!("{} {done}", self.id)),
        }
        Ok(answer)
    }
}

impl Apply {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut schedule = self.base()?;
        let paused = self.paused.then_some(Value::Bool(true));
        let flags = [
            ("workflowId", self.workflow.clone().map(Value::from)),
            ("cron", self.cron.clone().map(Value::from)),
            ("timeZone", self.time_zone.clone().map(Value::from)),
            ("overlap", self.overlap.clone().map(Value::from)),
            ("backfill", self.backfill.clone().map(Value::from)),
            ("paused", paused),
        ];
        schedule.extend(flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        let inputs = self.inputs.read()?;
        if !inputs.is_empty() {
            schedule.insert("inputs".into(), Value::Object(inputs));
        }
        if !self.tags.is_empty() {
            schedule.insert("tags".into(), Value::Object(inputs::pairs("--tag", &self.tags)?));
        }
        let Some(id) = schedule.get("id").and_then(Value::as_str).map(str::to_owned) else {
            return Err(Failure::new(Code::InvalidArgument, format!("{} has no id", self.which))
                .hinting("give the schedule an \"id\""));
        };
        let path = format!("/v1/schedules/{}", escape(&id));
        let body = Value::Object(schedule);
        let answer = self.reaching.run(shell, Intent::Record, async |reach| reach.put(&path, &body).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&answer),
            false => shell.terminal.data(&format!("applied {id}; next at {}", moment(&answer["nextAt"]))),
        }
        Ok(())
    }

    /// What the file says, or only the id.
    fn base(&self) -> Result<Map<String, Value>, Failure> {
        if !files::is_file(&self.which) {
            return Ok(Map::from_iter([("id".to_owned(), Value::from(self.which.as_str()))]));
        }
        let text = files::read(&self.which)?;
        inputs::object(&Path::new(&self.which).display().to_string(), text.trim_start())
    }
}

fn list(shell: &Shell, reaching: &Reaching) -> Result<(), Failure> {
    let page = reaching.run(shell, Intent::Record, async |reach| reach.get("/v1/schedules").await)?;
    if shell.terminal.json {
        shell.terminal.value(&page);
        return Ok(());
    }
    let schedules = page["schedules"].as_array().cloned().unwrap_or_default();
    if schedules.is_empty() {
        shell.terminal.note("there are no schedules; make one with orchestr8 schedule apply");
        return Ok(());
    }
    let row = |schedule: &Value| {
        let next = match schedule["paused"] == true {
            true => String::from("paused"),
            false => moment(&schedule["nextAt"]),
        };
        let zone = text(schedule, "timeZone");
        [
            text(schedule, "id").to_owned(),
            text(schedule, "workflowId").to_owned(),
            text(schedule, "cron").to_owned(),
            zone.to_owned(),
            next,
        ]
    };
    let head = ["SCHEDULE", "WORKFLOW", "CRON", "TIME ZONE", "NEXT"].map(String::from);
    shell
        .terminal
        .data(&columns(&std::iter::once(head).chain(schedules.iter().map(row)).collect::<Vec<_>>()));
    Ok(())
}
