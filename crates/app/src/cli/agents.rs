//! `orchestr8 agents list|send|inbox|requests|pairs|purge`: messages between agents, from the command line.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::reaching::{Intent, Reaching};
use super::words::{self, cut, moment, text};
use super::{Shell, inputs};
use crate::failure::{Failure, exit};
use crate::reach::{self, Reach, escape};
use crate::terminal::{DIM, PLAIN, columns, visible_line};

#[derive(Subcommand)]
pub enum Agents {
    /// List the agents that messages can be sent to, and how they are.
    List(List),
    /// Send a message to an agent; a request waits for its answer.
    Send(Box<Send>),
    /// Read the messages that have come for an agent.
    Inbox(Inbox),
    /// Show what became of requests, or of one.
    Requests(Requests),
    /// Show between whom messages go, and what was not acknowledged.
    Pairs(Pairs),
    /// Delete messages and requests that have expired.
    Purge(Purge),
}

#[derive(Args)]
pub struct Purge {
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct List {
    /// Only those who listen to this topic.
    #[arg(long)]
    topic: Option<String>,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Send {
    /// The agent; 'topic:NAME' is all who listen to a topic, '*' is everybody.
    #[arg(value_name = "AGENT")]
    to: String,
    /// What it is told.
    #[arg(value_name = "JSON|@FILE", default_value = "null")]
    payload: String,
    /// In whose name.
    #[arg(long, value_name = "AGENT", default_value = "cli")]
    from: String,
    /// Tell it and want no answer; a message to several is always one.
    #[arg(long)]
    event: bool,
    /// An id of the request: sent again, it is not worked on again.
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// How long to wait for the answer, such as 30s; 0 does not wait.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = words::read_duration)]
    wait: Duration,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Inbox {
    /// The agent.
    agent: String,
    /// Only what came after this place; without it, what was not acknowledged.
    #[arg(long, value_name = "PLACE")]
    after: Option<u64>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    limit: u64,
    /// Acknowledge what was printed, so that it is not shown again.
    #[arg(long)]
    ack: bool,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Requests {
    /// Only this one, with its answer.
    id: Option<String>,
    /// Only those that stand so.
    #[arg(long, value_parser = ["PENDING", "COMPLETED", "FAILED", "UNKNOWN"], ignore_case = true)]
    status: Option<String>,
    /// Only those of or to this agent.
    #[arg(long)]
    agent: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=500))]
    limit: u64,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Pairs {
    /// Only those of this agent.
    #[arg(long)]
    agent: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=500))]
    limit: u64,
    #[command(flatten)]
    reaching: Reaching,
}

/// The longest wait one question takes; a longer one is asked again.
const WAIT_MS: u128 = 50_000;

const LETTERS: usize = 60;

impl Agents {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        match self {
            Agents::List(list) => list.run(shell).map(|()| exit::OK),
            Agents::Send(send) => send.run(shell),
            Agents::Inbox(inbox) => inbox.run(shell).map(|()| exit::OK),
            Agents::Requests(requests) => requests.run(shell),
            Agents::Pairs(pairs) => pairs.run(shell).map(|()| exit::OK),
            Agents::Purge(purge) => purge.run(shell).map(|()| exit::OK),
        }
    }
}

impl Purge {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let ask = async |reach: &Reach| reach.post("/aacp/purge", &json!({})).await;
        let done = self.reaching.run(shell, Intent::Record, ask)?;
        if shell.terminal.json {
            shell.terminal.value(&done);
        } else {
            shell.terminal.data(&format!("deleted {} expired records", done["purged"]));
        }
        Ok(())
    }
}

impl List {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let path = reach::path("/aacp/agents", &[("topic", self.topic.clone())]);
        let page = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
        if shell.terminal.json {
            shell.terminal.value(&page);
            return Ok(());
        }
        let row = |agent: &Value| {
            let topics: Vec<&str> =
                agent["topics"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            [
                visible_line(text(agent, "agentId")),
                text(agent, "kind").to_owned(),
                text(agent, "state").to_owned(),
                moment(&agent["lastSeenAt"]),
                visible_line(&topics.join(",")),
                cut(text(agent, "description"), LETTERS),
            ]
        };
        let agents = page["agents"].as_array().cloned().unwrap_or_default();
        let head = ["AGENT", "KIND", "STATE", "SEEN", "TOPICS", "DESCRIPTION"].map(String::from);
        let rows: Vec<[String; 6]> = std::iter::once(head).chain(agents.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }
}

impl Send {
    fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let mut body =
            json!({"sourceAgentId": self.from, "payload": inputs::json("PAYLOAD", &self.payload)?});
        let topic = self.to.strip_prefix("topic:");
        match topic {
            Some(topic) => body["topic"] = topic.into(),
            None => body["targetAgentId"] = self.to.as_str().into(),
        }
        let several = topic.is_some() || self.to == "*";
        body["messageType"] = if self.event || several { "EVENT" } else { "REQUEST" }.into();
        if let Some(id) = &self.request_id {
            body["requestId"] = id.as_str().into();
        }
        let is_request = body["messageType"] == "REQUEST";
        let sent = self.reaching.run(shell, Intent::Execute, async |reach| {
            let mut sent = reach.post("/aacp/messages", &body).await?;
            if is_request {
                sent["request"] = wait(reach, text(&sent["request"], "requestId"), self.wait).await?;
            }
            Ok(sent)
        })?;
        if shell.terminal.json {
            shell.terminal.value(&sent);
        } else if is_request {
            tell(shell, &sent["request"]);
        } else {
            let copies = sent["copies"].as_array().map_or(1, Vec::len);
            shell.terminal.data(&format!("message {} is kept for {copies} agents", text(&sent, "messageId")));
        }
        Ok(if is_request { code(&sent["request"]) } else { exit::OK })
    }
}

/// Asks until the request has ended or the time is over.
async fn wait(reach: &Reach, id: &str, limit: Duration) -> Result<Value, Failure> {
    let mut left_ms = limit.as_millis();
    loop {
        let now_ms = left_ms.min(WAIT_MS);
        let path = format!("/aacp/requests/{}?wait={now_ms}ms", escape(id));
        let request = reach.get(&path).await?;
        left_ms -= now_ms;
        if left_ms == 0 || matches!(text(&request, "status"), "COMPLETED" | "FAILED") {
            return Ok(request);
        }
    }
}

/// A request in words: its answer as data, everything else for people.
fn tell(shell: &Shell, request: &Value) {
    let id = text(request, "requestId");
    match text(request, "status") {
        "COMPLETED" => shell.terminal.value(&request["response"]),
        "FAILED" => {
            let error = &request["error"];
            shell.terminal.data(&format!(
                "FAILED {} {}",
                text(error, "code"),
                visible_line(text(error, "message"))
            ));
        }
        status => {
            shell.terminal.data(&format!("{status} {id}"));
            shell
                .terminal
                .note(&format!("nobody has answered yet; look again with orchestr8 agents requests {id}"));
        }
    }
}

fn code(request: &Value) -> u8 {
    match text(request, "status") {
        "COMPLETED" => exit::OK,
        "FAILED" => exit::FAILED,
        _ => exit::TIMED_OUT,
    }
}

impl Inbox {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let base = format!("/aacp/agents/{}", escape(&self.agent));
        let after = self.after.map(|after| after.to_string());
        let path = reach::path(
            &format!("{base}/inbox"),
            &[("afterSeq", after), ("limit", Some(self.limit.to_string()))],
        );
        let page = self.reaching.run(shell, Intent::Record, async |reach| {
            let page = reach.get(&path).await?;
            let some = page["messages"].as_array().is_some_and(|messages| !messages.is_empty());
            if self.ack && some {
                reach.post(&format!("{base}/acks"), &json!({"inboxSeq": page["lastSeq"]})).await?;
            }
            Ok(page)
        })?;
        if shell.terminal.json {
            shell.terminal.value(&page);
            return Ok(());
        }
        let messages = page["messages"].as_array().cloned().unwrap_or_default();
        if messages.is_empty() {
            shell.terminal.note("nothing waits there");
        }
        for message in &messages {
            let envelope = &message["envelope"];
            let (place, at) = (message["inboxSeq"].as_u64().unwrap_or(0), moment(&envelope["timestamp"]));
            let (kind, source) =
                (text(envelope, "messageType"), visible_line(text(envelope, "sourceAgentId")));
            let payload = envelope["payload"].to_string();
            shell.terminal.data(&format!("{DIM}{place:>6} {at}{PLAIN} {kind} {source} {payload}"));
        }
        Ok(())
    }
}

impl Requests {
    fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        if let Some(id) = &self.id {
            let path = format!("/aacp/requests/{}", escape(id));
            let request = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
            match shell.terminal.json {
                true => shell.terminal.value(&request),
                false => tell(shell, &request),
            }
            return Ok(code(&request));
        }
        let path = reach::path(
            "/aacp/requests",
            &[
                ("status", self.status.as_ref().map(|status| status.to_ascii_uppercase())),
                ("agentId", self.agent.clone()),
                ("limit", Some(self.limit.to_string())),
            ],
        );
        let page = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
        if shell.terminal.json {
            shell.terminal.value(&page);
            return Ok(exit::OK);
        }
        let requests = page["requests"].as_array().cloned().unwrap_or_default();
        if requests.is_empty() {
            shell.terminal.note("there are no such requests; make one with orchestr8 agents send");
            return Ok(exit::OK);
        }
        let row = |request: &Value| {
            [
                text(request, "requestId").to_owned(),
                text(request, "status").to_owned(),
                visible_line(text(request, "sourceAgentId")),
                visible_line(text(request, "targetAgentId")),
                request["attempts"].to_string(),
                moment(&request["timestamp"]),
            ]
        };
        let head = ["REQUEST", "STATUS", "FROM", "TO", "ATTEMPTS", "ASKED"].map(String::from);
        let rows: Vec<[String; 6]> = std::iter::once(head).chain(requests.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(exit::OK)
    }
}

impl Pairs {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let filter = [("agentId", self.agent.clone()), ("limit", Some(self.limit.to_string()))];
        let path = reach::path("/aacp/pairs", &filter);
        let page = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&path).await)?;
        if shell.terminal.json {
            shell.terminal.value(&page);
            return Ok(());
        }
        let pairs = page["pairs"].as_array().cloned().unwrap_or_default();
        if pairs.is_empty() {
            shell.terminal.note("no agent has sent another anything");
            return Ok(());
        }
        let row = |pair: &Value| {
            [
                visible_line(text(pair, "sourceAgentId")),
                visible_line(text(pair, "targetAgentId")),
                pair["seq"].to_string(),
                pair["ack"].to_string(),
                pair["unacknowledged"].to_string(),
                pair["held"].to_string(),
                moment(&pair["waitingSince"]),
            ]
        };
        let head = ["FROM", "TO", "SENT", "ACKNOWLEDGED", "WAITING", "HELD", "SINCE"].map(String::from);
        let rows: Vec<[String; 7]> = std::iter::once(head).chain(pairs.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }
}
