//! Speaking with sessions: one client of the session protocol, over a WebSocket to a server, or over a pipe to the same face
//! in this process.
//!
//! ```text
//! Talk (ids, answers, events) -> Line -> socket (a running server)
//!                                     -> pipe   (the face, run here)
//! ```

mod line;
mod pipe;
mod socket;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_kernel::ports::Ids;
use orchestr8_kernel::ports::ids::{For, Random};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::failure::Failure;
use crate::reach::{Reach, code_of};
use crate::terminal::Terminal;
use line::Line;

/// A command may wait behind a prompt, which has five minutes by default.
const ANSWER_LIMIT: Duration = Duration::from_secs(330);

/// The first word of a server comes at once.
const GREETING_LIMIT: Duration = Duration::from_secs(10);

/// Events that wait while an answer is waited for. Pieces of answers beyond it are let go: the whole follows them.
const HELD: usize = 4096;

/// A server that is being restarted is back within this.
const ABSENCE_LIMIT: Duration = Duration::from_secs(60);
const ABSENCE_PAUSE: Duration = Duration::from_millis(250);

/// What a server says.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The answer to a command: to that of this id, or to the last of its kind without one.
    Answer { id: Option<String>, command: String, result: Result<Value, Failure> },
    /// Something happened in a session that is followed.
    Event { session: String, seq: u64, event: Value },
    /// A session is gone.
    Deleted { session: String },
}

/// One conversation with a server, or with this process.
pub struct Talk<'a> {
    reach: &'a Reach,
    line: Line,
    held: VecDeque<Told>,
}

impl<'a> Talk<'a> {
    /// Connects, and waits until the server is ready.
    pub async fn open(reach: &'a Reach) -> Result<Self, Failure> {
        let line = match reach {
            Reach::Server(server) => socket::open(server).await?,
            Reach::Embedded(embedded) => pipe::open(embedded.sessions()),
        };
        let mut talk = Self { reach, line, held: VecDeque::new() };
        talk.greeted().await?;
        Ok(talk)
    }

    /// Connects again once the server is back. What was asked and not answered has to be asked again, under the same id.
    pub async fn reopen(&mut self, terminal: &Terminal, lost: Failure) -> Result<(), Failure> {
        if self.reach.is_embedded() || !is_absence(&lost) {
            return Err(lost);
        }
        terminal.warn(&format!("{}; waiting for it to come back", lost.message));
        let given_up = Instant::now() + ABSENCE_LIMIT;
        loop {
            sleep(ABSENCE_PAUSE).await;
            match Self::open(self.reach).await {
                Ok(talk) => {
                    // What was heard before the connection broke is still true.
                    self.line = talk.line;
                    self.held.extend(talk.held);
                    return Ok(());
                }
                Err(failure) if is_absence(&failure) && Instant::now() < given_up => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Whether the sessions live only as long as this process.
    pub fn is_embedded(&self) -> bool {
        self.reach.is_embedded()
    }

    /// Sends a command whose answer is of no interest, or is known by its kind. It leaves no trace beyond what it does.
    pub async fn send(&mut self, command: &Value) -> Result<(), Failure> {
        self.line.send(command.to_string()).await
    }

    /// Sends a command under this id: its outcome is kept, so it can be sent again and is not done twice.
    pub async fn send_as(&mut self, id: &str, mut command: Value) -> Result<(), Failure> {
        command["id"] = id.into();
        self.send(&command).await
    }

    /// Sends a command and waits for its answer. Events that come meanwhile are kept for `next`.
    pub async fn ask(&mut self, command: Value) -> Result<Value, Failure> {
        self.send(&command).await?;
        let deadline = Instant::now() + ANSWER_LIMIT;
        loop {
            let told = match timeout_at(deadline, self.hear()).await {
                Ok(told) => told?,
                Err(_) => return Err(late()),
            };
            match told {
                Told::Answer { id: None, command: own, result } if command["type"] == own.as_str() => {
                    return result;
                }
                told => self.hold(told)?,
            }
        }
    }

    /// What the server says next.
    pub async fn next(&mut self) -> Result<Told, Failure> {
        match self.held.pop_front() {
            Some(told) => Ok(told),
            None => self.hear().await,
        }
    }

    /// Ends the conversation; what is under way in this process is waited for.
    pub async fn close(self) {
        self.line.close().await;
    }

    async fn hear(&mut self) -> Result<Told, Failure> {
        loop {
            if let Some(told) = read(self.line.next().await?) {
                return Ok(told);
            }
        }
    }

    fn hold(&mut self, told: Told) -> Result<(), Failure> {
        let is_piece = matches!(&told, Told::Event { event, .. } if event["type"] == "message_update");
        match self.held.len() {
            0..HELD => self.held.push_back(told),
            _ if is_piece => {}
            _ => {
                return Err(Failure::new(
                    Code::ResourceExhausted,
                    "more happens in the session than can be kept",
                )
                .hinting("follow it with orchestr8 sessions tail"));
            }
        }
        Ok(())
    }

    async fn greeted(&mut self) -> Result<(), Failure> {
        let first = match tokio::time::timeout(GREETING_LIMIT, self.line.next()).await {
            Ok(first) => first?,
            Err(_) => return Err(late()),
        };
        let version = first["data"]["protocolVersion"].as_str().unwrap_or_default();
        if first["type"] != "server_ready" || !version.starts_with("1.") {
            let text = format!("the server does not speak version 1 of the session protocol but '{version}'");
            return Err(Failure::new(Code::Unavailable, text).hinting("use the same orchestr8 on both sides"));
        }
        Ok(())
    }
}

/// An id nobody else uses.
pub fn fresh_id() -> String {
    format!("cli-{}", Random.fresh(For::Record))
}

/// A command about a session.
pub fn about(kind: &str, session: &str) -> Value {
    json!({"type": kind, "sessionId": session})
}

fn late() -> Failure {
    Failure::new(Code::Timeout, "there was no answer in time")
        .hinting("the agent may be at work: orchestr8 sessions list tells")
}

/// Whether waiting may help.
pub fn is_absence(failure: &Failure) -> bool {
    matches!(failure.code, Code::Unavailable | Code::ShuttingDown)
}

/// What concerns us of a message.
fn read(mut message: Value) -> Option<Told> {
    let session = |message: &Value| message["sessionId"].as_str().unwrap_or_default().to_owned();
    match message["type"].as_str()? {
        "response" => {
            let id = message["id"].as_str().map(str::to_owned);
            let command = message["command"].as_str()?.to_owned();
            let result = match message["success"] == true {
                true => Ok(message["data"].take()),
                false => Err(refusal(&message)),
            };
            Some(Told::Answer { id, command, result })
        }
        "event" => {
            let seq = message["seq"].as_u64()?;
            Some(Told::Event { session: session(&message), seq, event: message["event"].take() })
        }
        "session_deleted" => Some(Told::Deleted { session: session(&message["data"]) }),
        _ => None,
    }
}

fn refusal(message: &Value) -> Failure {
    let code = message["errorCode"].as_str().and_then(code_of).unwrap_or(Code::Internal);
    let failure = Failure::new(code, message["error"].as_str().unwrap_or("it was refused"));
    match message["command"].as_str() {
        Some("set_model" | "create_session") if code == Code::NotFound => {
            failure.hinting("orchestr8 doctor lists the models that can be used")
        }
        Some(_) if code == Code::NotFound => failure.hinting("orchestr8 sessions list shows those there are"),
        Some(_) | None => failure,
    }
}
