//! `orchestr8 sessions tail`: what was said last in a session and what happens in it, told as it happens.

use clap::Args;
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::interrupts::Interrupts;
use super::super::reaching::Reaching;
use super::super::telling::{Style, Telling};
use super::super::words::text;
use super::with_talk;
use crate::failure::{Failure, exit};
use crate::talk::{Talk, Told, about};

#[derive(Args)]
pub struct Tail {
    /// The session.
    session: String,
    /// Begin with so many of the last messages.
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10)]
    messages: usize,
    /// Begin after the event of this number; 0 is everything that is kept.
    #[arg(long, value_name = "NUMBER", conflicts_with = "messages")]
    after: Option<u64>,
    /// Stop after so many events.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    reaching: Reaching,
}

const STYLE: Style = Style { words: true, thinking: true, people: true, together: true };

/// Events of one page; the server gives no more at once.
const PAGE: u64 = 1000;

/// Why it is over.
enum Over {
    /// So many were wanted.
    Enough,
    Interrupted,
    /// Nobody but us could make anything happen.
    Alone,
}

impl Tail {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let over = with_talk(&self.reaching, shell, async |talk| self.follow(shell, talk).await)?;
        Ok(match over {
            Over::Enough => exit::OK,
            Over::Interrupted => exit::INTERRUPTED,
            Over::Alone => {
                shell
                    .terminal
                    .note("no server runs, so nothing more happens; start one with orchestr8 serve");
                exit::OK
            }
        })
    }

    async fn follow(&self, shell: &Shell, talk: &mut Talk<'_>) -> Result<Over, Failure> {
        let mut interrupts = Interrupts::watch()?;
        let past = self.past(talk).await?;
        let mut shown = Shown { shell, telling: Telling::new(shell.terminal, STYLE), left: self.limit };
        let mut last = past.reached;
        for told in &past.events {
            if shown.show(told["seq"].as_u64().unwrap_or(0), &told["event"]) {
                return Ok(Over::Enough);
            }
        }
        if talk.is_embedded() {
            return Ok(Over::Alone);
        }
        self.switch(talk, last).await?;
        loop {
            tokio::select! {
                told = talk.next() => match told {
                    Ok(Told::Event { session, seq, event }) if session == self.session && seq > last => {
                        last = seq;
                        if shown.show(seq, &event) {
                            return Ok(Over::Enough);
                        }
                    }
                    Ok(Told::Deleted { session }) if session == self.session => {
                        shown.telling.close();
                        return Err(Failure::new(Code::NotFound, format!("session {session} was deleted")));
                    }
                    Ok(Told::Event { .. } | Told::Deleted { .. } | Told::Answer { .. }) => {}
                    Err(lost) => {
                        shown.telling.close();
                        talk.reopen(&shell.terminal, lost).await?;
                        self.switch(talk, last).await?;
                    }
                },
                () = interrupts.next() => {
                    shown.telling.close();
                    return Ok(Over::Interrupted);
                }
            }
        }
    }

    /// Follows the session from this event on.
    async fn switch(&self, talk: &mut Talk<'_>, after: u64) -> Result<(), Failure> {
        let mut command = about("switch_session", &self.session);
        command["afterSeq"] = after.into();
        talk.ask(command).await.map(|_| ())
    }

    /// What happened before, as far as it is wanted.
    async fn past(&self, talk: &mut Talk<'_>) -> Result<Past, Failure> {
        let mut events: Vec<Value> = Vec::new();
        let mut after = self.after.unwrap_or(0);
        loop {
            let mut command = about("events", &self.session);
            (command["afterSeq"], command["limit"]) = (json!(after), json!(PAGE));
            let mut page = talk.ask(command).await?;
            let (last, complete) = (page["lastSeq"].as_u64().unwrap_or(0), page["complete"] == true);
            let found: Vec<Value> = page["events"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let reached = found.last().and_then(|event| event["seq"].as_u64());
            events.extend(found);
            let Some(reached) = reached.filter(|_| !complete) else {
                let reached =
                    events.last().and_then(|event| event["seq"].as_u64()).unwrap_or(after.max(last));
                return Ok(Past { reached, events: self.wanted(events) });
            };
            after = reached;
        }
    }

    fn wanted(&self, events: Vec<Value>) -> Vec<Value> {
        if self.after.is_some() {
            return events;
        }
        let ends_message = |event: &&Value| text(&event["event"], "type") == "message_end";
        let seq = |event: &Value| event["seq"].as_u64();
        let first = match self.messages {
            0 => events.last().and_then(seq).map(|last| last + 1),
            count => events.iter().rev().filter(ends_message).nth(count).and_then(seq),
        };
        events.into_iter().filter(|event| first.is_none_or(|first| seq(event) > Some(first))).collect()
    }
}

/// What happened before, and the number of the last event there was.
struct Past {
    reached: u64,
    events: Vec<Value>,
}

struct Shown<'a> {
    shell: &'a Shell,
    telling: Telling,
    left: Option<u64>,
}

impl Shown<'_> {
    /// True when it was the last one wanted.
    fn show(&mut self, seq: u64, event: &Value) -> bool {
        match self.shell.terminal.json {
            true => self.shell.terminal.record(&json!({"seq": seq, "event": event})),
            false => self.telling.take(event),
        }
        let Some(left) = &mut self.left else { return false };
        *left -= 1;
        if *left == 0 {
            self.telling.close();
        }
        *left == 0
    }
}
