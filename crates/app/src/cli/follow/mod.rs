//! Watches an execution until its end, shows how it gets on, and knows what Ctrl-C means.

mod end;
mod lines;
mod tree;
mod waiting;

use std::time::Duration;

use http::{Method, StatusCode};
use orchestr8_contract::Code;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::Shell;
use super::interrupts::Interrupts;
use super::words::is_final;
use crate::failure::{Failure, exit};
use crate::reach::{self, Reach, escape};
use crate::terminal::{Terminal, styled_line};

pub use end::{conclude, exit_code, rollback};
pub use tree::{detail, mark};
pub use waiting::{Waiting, waiting};

/// How long one question about an execution stays open while nothing changes.
const POLL_MS: u64 = 1000;

/// How often running times are drawn anew.
const REDRAW: Duration = Duration::from_millis(100);

/// How long a server that went away may take to come back.
const ABSENCE_LIMIT: Duration = Duration::from_secs(120);

/// How long to leave an absent server in peace.
const ABSENCE_PAUSE: Duration = Duration::from_millis(500);

/// An hour is the longest anybody waits without saying so; it begins anew.
const NO_LIMIT: Duration = Duration::from_secs(3600);

/// Why watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Completed, failed, cancelled or compensated.
    Final,
    /// Nobody could let it go on while this process has the store: it waits for a person or an event, or is paused.
    Blocked,
    /// It took longer than whoever asked wanted to wait.
    TimedOut,
    /// Ctrl-C.
    Interrupted,
}

/// An execution as it was last seen, and why watching ended.
pub struct Followed {
    pub end: End,
    pub execution: Value,
}

pub struct Follow<'a> {
    pub shell: &'a Shell,
    pub reach: &'a Reach,
    /// How long to wait at most.
    pub limit: Option<Duration>,
    /// What it was told comes after this entry of its journal; until then its state is an old one.
    pub after: u64,
}

/// How far the journal of an execution has come.
pub fn sequence(execution: &Value) -> u64 {
    execution["lastSequence"].as_u64().unwrap_or(0)
}

impl Follow<'_> {
    /// Watches it; returns when it is final, when nothing can happen any more, or when nobody wants to wait longer.
    pub async fn to_the_end(&self, id: &str) -> Result<Followed, Failure> {
        let mut interrupts = Interrupts::watch()?;
        self.reach.take_up(id).await?;
        let mut watch = Watch::new(self.shell.terminal);
        let mut ticks = interval(REDRAW);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut deadline = Instant::now() + self.limit.unwrap_or(NO_LIMIT);
        let Some(mut seen) = self.look(id, None).await? else { return Err(no_state(id)) };
        let mut cancelling = false;
        loop {
            watch.show(&seen.execution);
            if let Some(end) = self.ended(&seen.execution) {
                watch.finish();
                return Ok(Followed { end, execution: seen.execution });
            }
            let next = {
                let look = self.look(id, Some(&seen));
                tokio::pin!(look);
                loop {
                    tokio::select! {
                        next = &mut look => break next?,
                        _ = ticks.tick() => watch.redraw(),
                        () = sleep_until(deadline) => match self.limit {
                            None => deadline = Instant::now() + NO_LIMIT,
                            Some(_) => {
                                watch.finish();
                                return Ok(Followed { end: End::TimedOut, execution: seen.execution.clone() });
                            }
                        },
                        () = interrupts.next() => {
                            if cancelling {
                                std::process::exit(i32::from(exit::INTERRUPTED));
                            }
                            cancelling = true;
                            watch.finish();
                            if self.reach.is_embedded() {
                                self.shell.terminal.note("stopping; steps that run may finish, Ctrl-C again leaves at once");
                                interrupts.leave_at_the_next();
                                return Ok(Followed { end: End::Interrupted, execution: seen.execution.clone() });
                            }
                            self.cancel(id).await?;
                        }
                    }
                }
            };
            if let Some(next) = next {
                seen = next;
            }
        }
    }

    /// Through a server, Ctrl-C cancels the execution. Here it only leaves it: nothing is lost, and it can go on later.
    async fn cancel(&self, id: &str) -> Result<(), Failure> {
        self.shell.terminal.note("cancelling it; Ctrl-C again leaves at once");
        let path = format!("/v1/executions/{}/cancel", escape(id));
        self.reach.post(&path, &json!({"reason": "interrupted", "graceful": true})).await.map(|_| ())
    }

    fn ended(&self, execution: &Value) -> Option<End> {
        if sequence(execution) <= self.after {
            return None;
        }
        let status = execution["status"].as_str().unwrap_or_default();
        if is_final(status) {
            return Some(End::Final);
        }
        (self.reach.is_embedded() && waiting::is_blocked(execution)).then_some(End::Blocked)
    }

    /// The execution, once it is another than `known`, at the latest after a while. A server that is away is given time to
    /// come back.
    async fn look(&self, id: &str, known: Option<&Seen>) -> Result<Option<Seen>, Failure> {
        let given_up = Instant::now() + ABSENCE_LIMIT;
        let mut told = false;
        loop {
            match look(self.reach, id, known).await {
                Err(failure) if is_absence(&failure) && known.is_some() && Instant::now() < given_up => {
                    if !told {
                        self.shell
                            .terminal
                            .warn(&format!("{}; waiting for it to come back", failure.message));
                        told = true;
                    }
                    sleep(ABSENCE_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }
}

fn no_state(id: &str) -> Failure {
    Failure::new(Code::Internal, format!("the server does not say how execution {id} is"))
}

/// An execution and the tag of this state of it.
pub struct Seen {
    pub execution: Value,
    tag: String,
}

/// The execution as it is; with one known before, once it has changed or after a while. None: it is as it was.
pub async fn look(reach: &Reach, id: &str, known: Option<&Seen>) -> Result<Option<Seen>, Failure> {
    let wait = known.map(|_| format!("{POLL_MS}ms"));
    let path = reach::path(&format!("/v1/executions/{}", escape(id)), &[("wait", wait)]);
    let headers: Vec<(&str, &str)> = known.iter().map(|seen| ("if-none-match", seen.tag.as_str())).collect();
    let reply = reach.send(Method::GET, &path, &headers, None).await?;
    if reply.status == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let tag = reply.header("etag").unwrap_or_default().to_owned();
    Ok(Some(Seen { execution: reply.accepted()?, tag }))
}

fn is_absence(failure: &Failure) -> bool {
    matches!(failure.code, Code::Unavailable | Code::ShuttingDown)
}

/// Shows an execution: as a tree that is drawn anew, as lines, or not at all.
enum Watch {
    Tree { terminal: Terminal, clock: Real, drawn: usize, frame: usize, last: Value },
    Lines { terminal: Terminal, lines: lines::Lines },
    Silent,
}

impl Watch {
    fn new(terminal: Terminal) -> Self {
        match (terminal.is_live(), terminal.json || terminal.quiet) {
            (true, _) => Watch::Tree { terminal, clock: Real::new(), drawn: 0, frame: 0, last: Value::Null },
            (false, false) => Watch::Lines { terminal, lines: lines::Lines::default() },
            (false, true) => Watch::Silent,
        }
    }

    fn show(&mut self, execution: &Value) {
        match self {
            Watch::Tree { last, .. } => {
                *last = execution.clone();
                self.redraw();
            }
            Watch::Lines { terminal, lines } => {
                for line in lines.news(execution) {
                    terminal.note(&styled_line(&line));
                }
            }
            Watch::Silent => {}
        }
    }

    fn redraw(&mut self) {
        match self {
            Watch::Tree { terminal, clock, drawn, frame, last } if !last.is_null() => {
                *frame = frame.wrapping_add(1);
                let lines = tree::draw(last, clock.now_ms(), *frame, terminal.size());
                terminal.draw(&lines, *drawn);
                *drawn = lines.len();
            }
            Watch::Tree { .. } | Watch::Lines { .. } | Watch::Silent => {}
        }
    }

    /// What was drawn stays; what comes now is drawn below it.
    fn finish(&mut self) {
        self.redraw();
        match self {
            Watch::Tree { drawn, .. } => *drawn = 0,
            Watch::Lines { .. } | Watch::Silent => {}
        }
    }
}
