//! One session that is spoken with: begun or taken up, prompted, interrupted, and taken up again when the server was away.

use std::time::Duration;

use orchestr8_contract::Code;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::Shell;
use super::super::interrupts::Interrupts;
use super::super::sessions::model;
use super::super::telling::Telling;
use super::super::words::text;
use super::asking::Asking;
use crate::failure::Failure;
use crate::reach::code_of;
use crate::talk::{Talk, Told, about, fresh_id};
use crate::terminal::Terminal;

/// A second Ctrl-C within this leaves.
const TWICE: Duration = Duration::from_secs(1);

/// Far behind every event there is.
const END_OF_TIME: u64 = 1 << 52;

/// What whoever starts it wants.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub session: Option<String>,
    /// Provider and id.
    pub model: Option<(String, String)>,
    pub thinking: Option<String>,
    pub system: Option<String>,
    pub cwd: Option<String>,
}

pub struct Conversation<'a> {
    pub terminal: Terminal,
    pub talk: Talk<'a>,
    pub interrupts: Interrupts,
    pub session: String,
    /// What is known of the session.
    pub info: Value,
    pub is_new: bool,
    /// The last event that was heard.
    seq: u64,
    pub interrupted: Option<Instant>,
}

/// How a prompt ended.
pub enum Ended {
    Answered(Value),
    /// Stopped by Ctrl-C.
    Stopped,
    /// Ctrl-C twice: nobody wants to hear more.
    Left,
}

impl<'a> Conversation<'a> {
    /// Takes up the session, or begins one. Gives the talk back if that fails.
    pub async fn enter(
        shell: &Shell,
        mut talk: Talk<'a>,
        interrupts: Interrupts,
        wanted: &Wanted,
    ) -> Result<Self, (Talk<'a>, Failure)> {
        match begin(&mut talk, wanted).await {
            Ok(Entered { session, info, seq, is_new }) => Ok(Self {
                terminal: shell.terminal,
                talk,
                interrupts,
                session,
                info,
                is_new,
                seq,
                interrupted: None,
            }),
            Err(failure) => Err((talk, failure)),
        }
    }

    pub fn model(&self) -> String {
        model(&self.info)
    }

    /// Nobody should take the offline model for a clever one.
    pub fn say_if_offline(&self) {
        if text(&self.info["model"], "provider") == "offline" && !self.terminal.json {
            self.terminal.note(
                "the offline model answers: it says back what it is told. For another one set ANTHROPIC_API_KEY or \
                 OPENAI_API_KEY, or see docs/guide/models.md",
            );
        }
    }

    /// Asks something about this session.
    pub async fn ask(&mut self, kind: &str, more: Value) -> Result<Value, Failure> {
        let mut command = about(kind, &self.session);
        if let (Value::Object(command), Value::Object(more)) = (&mut command, more) {
            command.extend(more);
        }
        self.talk.ask(command).await
    }

    /// What is known of the session, anew.
    pub async fn refresh(&mut self) -> Result<(), Failure> {
        self.info = self.ask("get_state", json!({})).await?;
        Ok(())
    }

    /// Goes over to another session.
    pub async fn turn_to(&mut self, session: &str) -> Result<(), Failure> {
        let (info, seq) = follow(&mut self.talk, session).await?;
        (self.session, self.info, self.seq, self.is_new) = (session.to_owned(), info, seq, false);
        Ok(())
    }

    /// Says something and tells what happens until the agent is done.
    pub async fn prompt(
        &mut self,
        message: &str,
        telling: &mut Telling,
        asking: &mut Asking<'_>,
        mut also: impl FnMut(&Value),
    ) -> Result<Ended, Failure> {
        let mut command = about("prompt", &self.session);
        command["message"] = message.into();
        let id = fresh_id();
        self.interrupted = None;
        self.talk.send_as(&id, command.clone()).await?;
        let mut stopping = false;
        loop {
            tokio::select! {
                told = self.talk.next() => match told {
                    Ok(Told::Answer { id: Some(own), result, .. }) if own == id => {
                        telling.close();
                        return ended(result, stopping);
                    }
                    Ok(Told::Event { session, seq, event }) if session == self.session => {
                        self.seq = seq;
                        also(&event);
                        telling.take(&event);
                        if text(&event, "type") == "extension_ui_request" && self.answer(&event, asking).await? {
                            stopping = true;
                            self.stop().await?;
                        }
                    }
                    Ok(Told::Event { .. } | Told::Deleted { .. } | Told::Answer { .. }) => {}
                    Err(lost) => {
                        telling.close();
                        self.take_up(lost).await?;
                        // Under the same id: what was done is not done again.
                        self.talk.send_as(&id, command.clone()).await?;
                    }
                },
                () = self.interrupts.next() => {
                    telling.close();
                    if self.is_second_interrupt() {
                        return Ok(Ended::Left);
                    }
                    stopping = true;
                    self.stop().await?;
                }
            }
        }
    }

    /// Whether Ctrl-C came twice in a row.
    pub fn is_second_interrupt(&mut self) -> bool {
        let now = Instant::now();
        let before = self.interrupted.replace(now);
        before.is_some_and(|before| now.duration_since(before) < TWICE)
    }

    /// What others do in this session while nothing is asked.
    pub async fn heard(&mut self, told: Result<Told, Failure>) -> Result<Option<Value>, Failure> {
        match told {
            Ok(Told::Event { session, seq, event }) if session == self.session => {
                self.seq = seq;
                Ok(Some(event))
            }
            Ok(Told::Deleted { session }) if session == self.session => {
                Err(Failure::new(Code::NotFound, format!("session {session} was deleted")))
            }
            Ok(Told::Event { .. } | Told::Deleted { .. } | Told::Answer { .. }) => Ok(None),
            Err(lost) => self.take_up(lost).await.map(|()| None),
        }
    }

    pub async fn leave(self) {
        // Whoever is in a hurry presses once more.
        self.interrupts.leave_at_the_next();
        self.talk.close().await;
    }

    /// Asks the agent to stop. The answer to the prompt follows; that to this is of no interest.
    async fn stop(&mut self) -> Result<(), Failure> {
        self.talk.send(&about("abort", &self.session)).await
    }

    /// After the connection was lost: goes on with the event after the last that was heard.
    async fn take_up(&mut self, lost: Failure) -> Result<(), Failure> {
        let terminal = self.terminal;
        self.talk.reopen(&terminal, lost).await?;
        self.ask("switch_session", json!({"afterSeq": self.seq})).await.map(|_| ())
    }

    /// Puts a question of a tool to whoever sits there. True when they would rather stop.
    async fn answer(&mut self, event: &Value, asking: &mut Asking<'_>) -> Result<bool, Failure> {
        let response = tokio::select! {
            response = asking.ask(event) => Some(response),
            () = self.interrupts.next() => None,
        };
        let is_stopped = response.is_none();
        let response = response.unwrap_or_else(|| json!({"method": "cancelled"}));
        let told = json!({"requestId": event["requestId"], "response": response});
        match self.ask("extension_ui_response", told).await {
            Ok(_) => {}
            // The question was answered by somebody else, or nobody waits for it any more.
            Err(failure) => self.terminal.note(&failure.message),
        }
        Ok(is_stopped)
    }
}

struct Entered {
    session: String,
    info: Value,
    seq: u64,
    is_new: bool,
}

async fn begin(talk: &mut Talk<'_>, wanted: &Wanted) -> Result<Entered, Failure> {
    if let Some(session) = &wanted.session {
        match follow(talk, session).await {
            Ok((info, seq)) => return take_over(talk, wanted, session, info, seq).await,
            Err(failure) if failure.code == Code::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    let mut command = json!({"type": "create_session"});
    let (provider, id) = wanted.model.clone().unzip();
    for (name, value) in [
        ("sessionId", &wanted.session),
        ("cwd", &wanted.cwd),
        ("systemPrompt", &wanted.system),
        ("provider", &provider),
        ("modelId", &id),
        ("thinkingLevel", &wanted.thinking),
    ] {
        if let Some(value) = value {
            command[name] = value.as_str().into();
        }
    }
    let created = talk.ask(command).await?;
    let session = text(&created, "sessionId").to_owned();
    let (info, seq) = follow(talk, &session).await?;
    Ok(Entered { session, info, seq, is_new: true })
}

/// A session that is there keeps what it was begun with; only model and thinking can be another now.
async fn take_over(
    talk: &mut Talk<'_>,
    wanted: &Wanted,
    session: &str,
    mut info: Value,
    seq: u64,
) -> Result<Entered, Failure> {
    if wanted.system.is_some() || wanted.cwd.is_some() {
        let text = format!("session {session} is there already; --system and --cwd are for a new one");
        return Err(
            Failure::new(Code::StateConflict, text).hinting("leave them out, or name another session")
        );
    }
    if let Some((provider, id)) = &wanted.model {
        let mut command = about("set_model", session);
        (command["provider"], command["modelId"]) = (json!(provider), json!(id));
        info["model"] = talk.ask(command).await?["model"].take();
    }
    if let Some(level) = &wanted.thinking {
        let mut command = about("set_thinking_level", session);
        command["level"] = json!(level);
        talk.ask(command).await?;
        info["thinkingLevel"] = json!(level);
    }
    Ok(Entered { session: session.to_owned(), info, seq, is_new: false })
}

/// Follows a session from now on, without waiting for the end of what is under way in it.
async fn follow(talk: &mut Talk<'_>, session: &str) -> Result<(Value, u64), Failure> {
    let mut command = about("events", session);
    command["afterSeq"] = END_OF_TIME.into();
    let seq = talk.ask(command).await?["lastSeq"].as_u64().unwrap_or(0);
    let mut command = about("switch_session", session);
    command["afterSeq"] = seq.into();
    let info = talk.ask(command).await?["sessionInfo"].take();
    Ok((info, seq))
}

fn ended(result: Result<Value, Failure>, stopping: bool) -> Result<Ended, Failure> {
    match result {
        Err(failure) if stopping && failure.code == Code::Cancelled => Ok(Ended::Stopped),
        Err(failure) => Err(failure),
        Ok(answer) => match text(&answer, "stopReason") {
            "aborted" => Ok(Ended::Stopped),
            "error" => {
                let code = answer["errorCode"].as_str().and_then(code_of).unwrap_or(Code::Internal);
                let failure =
                    Failure::new(code, format!("the model failed: {}", text(&answer, "errorMessage")));
                // What a code advises is meant for clients of ours, and here we are the client.
                Err(failure
                    .hinting("docs/guide/models.md tells what it may be; orchestr8 doctor lists the models"))
            }
            _ => Ok(Ended::Answered(answer)),
        },
    }
}
