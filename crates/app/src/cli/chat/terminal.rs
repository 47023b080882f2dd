//! The conversation at the terminal: what is typed, what it means, and how it is left.

use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use serde_json::{Value, json};

use super::super::telling::{Style, Telling};
use super::super::words;
use super::asking::Asking;
use super::commands::{self, Command, Next};
use super::conversation::{Conversation, Ended};
use super::lines::Lines;
use crate::failure::{Failure, exit};
use crate::terminal::{BOLD, DIM, PLAIN};

const STYLE: Style = Style { words: true, thinking: true, people: false, together: false };

/// What is typed when nothing is asked.
enum Typed {
    Line(String),
    /// Ctrl-D.
    End,
    /// Ctrl-C twice.
    Left,
}

pub async fn hold(conversation: &mut Conversation<'_>) -> Result<u8, Failure> {
    let terminal = conversation.terminal;
    let (session, model) = (conversation.session.clone(), conversation.model());
    terminal.note(&format!("{DIM}session {session}, model {model}; /help tells more, Ctrl-D leaves{PLAIN}"));
    let mut lines = Lines::of_stdin();
    let mut telling = Telling::new(terminal, STYLE);
    let code = loop {
        let line = match typed(conversation, &mut lines, &mut telling).await? {
            Typed::Line(line) => line,
            Typed::End => {
                terminal.note("");
                break exit::OK;
            }
            Typed::Left => break exit::INTERRUPTED,
        };
        match Command::read(&line) {
            None if line.trim().is_empty() => {}
            None => match say(conversation, meant(&line), &mut lines, &mut telling).await {
                Ok(true) => {}
                Ok(false) => break exit::INTERRUPTED,
                // One prompt that fails does not end the conversation.
                Err(failure) => terminal.fail(&failure),
            },
            Some(command) => match commands::run(conversation, command).await {
                Ok(Next::GoOn) => {}
                Ok(Next::Leave) => break exit::OK,
                Err(failure) => terminal.fail(&failure),
            },
        }
    };
    part(conversation).await;
    Ok(code)
}

/// Waits for a line, and tells meanwhile what others do in the session. A line that ends in a backslash goes on in the next.
async fn typed(
    conversation: &mut Conversation<'_>,
    lines: &mut Lines,
    telling: &mut Telling,
) -> Result<Typed, Failure> {
    let terminal = conversation.terminal;
    let mut whole = String::new();
    terminal.aside(&format!("{BOLD}>{PLAIN} "));
    loop {
        tokio::select! {
            line = lines.next() => match line {
                None => return Ok(Typed::End),
                Some(line) => match line.strip_suffix('\\') {
                    Some(part) => {
                        whole.push_str(part);
                        whole.push('\n');
                        terminal.aside(&format!("{BOLD}…{PLAIN} "));
                    }
                    None => {
                        whole.push_str(&line);
                        return Ok(Typed::Line(whole));
                    }
                },
            },
            told = conversation.talk.next() => if let Some(event) = conversation.heard(told).await? {
                telling.take(&event);
            },
            () = conversation.interrupts.next() => {
                if conversation.is_second_interrupt() {
                    terminal.note("");
                    return Ok(Typed::Left);
                }
                whole.clear();
                terminal.aside(&format!("\n{DIM}Ctrl-C again or Ctrl-D leaves{PLAIN}\n{BOLD}>{PLAIN} "));
            }
        }
    }
}

/// What a line says: `//help` is how to say `/help`.
fn meant(line: &str) -> &str {
    if line.starts_with("//") { &line[1..] } else { line }
}

/// False when whoever sits there has left.
async fn say(
    conversation: &mut Conversation<'_>,
    message: &str,
    lines: &mut Lines,
    telling: &mut Telling,
) -> Result<bool, Failure> {
    let terminal = conversation.terminal;
    let clock = Real::new();
    let began_ms = clock.now_ms();
    conversation.is_new = false;
    let mut asking = Asking { terminal, lines: Some(lines) };
    match conversation.prompt(message, telling, &mut asking, |_| {}).await? {
        Ended::Left => Ok(false),
        Ended::Stopped => Ok(true),
        Ended::Answered(answer) => {
            let took_ms = u64::try_from(clock.now_ms() - began_ms).unwrap_or(0);
            terminal.note(&format!("{DIM}{}, {}{PLAIN}", spent(&answer["usage"]), words::duration(took_ms)));
            Ok(true)
        }
    }
}

fn spent(usage: &Value) -> String {
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    let read = number("input") + number("cacheRead") + number("cacheWrite");
    format!("{read} tokens in, {} out, ${:.4}", number("output"), usage["cost"].as_f64().unwrap_or(0.0))
}

/// A session in which nothing was said is not kept.
async fn part(conversation: &mut Conversation<'_>) {
    if conversation.is_new {
        let _ = conversation.ask("delete_session", json!({})).await;
        return;
    }
    let session = &conversation.session;
    conversation.terminal.note(&format!("{DIM}go on with: orchestr8 chat --session {session}{PLAIN}"));
}
