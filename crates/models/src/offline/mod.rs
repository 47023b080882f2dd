//! A model that needs no network and always answers the same: for trying things out, and for every test.
//!
//! It does what the last prompt says, line by line. A line is a form only when it begins with one:
//!
//! | line | what it does |
//! |---|---|
//! | any other text | is said back, word by word |
//! | `/tool <name> <json>` | calls that tool; several lines are several calls in one message |
//! | `/then` | what follows is done once the results of the tools are there |
//! | `/think <text>` | thinks that first |
//! | `/long <n>` | says n words |
//! | `/json <text>` | says exactly that; see `answer` for several of them |
//! | `/slow <ms>` | waits that long before each delta |
//! | `/fail <CODE> [n]` | fails with that code, the first n times or always |
//!
//! When the results of tools are there and no `/then` says what to do with them, it quotes them.

mod answer;
mod script;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use indexmap::IndexMap;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::Clock;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::limits::OFFLINE_FAILURES;
use crate::message::Message;
use crate::model::{About, Delta, Model, Price, Request};
use answer::Answer;

pub const PROVIDER: &str = "offline";
pub const ID: &str = "echo";

pub struct Offline {
    about: About,
    clock: Arc<dyn Clock>,
    failures: Arc<Mutex<Failures>>,
}

/// How often each conversation has failed at the point where it is.
#[derive(Default)]
struct Failures(IndexMap<[u8; 32], u64>);

impl Offline {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let about = About {
            provider: PROVIDER.to_owned(),
            id: ID.to_owned(),
            name: "Offline echo".to_owned(),
            context_window: 128_000,
            max_output: 128_000,
            thinking: true,
            images: true,
            price: Price::default(),
        };
        Self::with(about, clock)
    }

    /// The same under another name and with other limits and prices.
    pub fn with(about: About, clock: Arc<dyn Clock>) -> Self {
        Self { about, clock, failures: Arc::default() }
    }
}

impl Model for Offline {
    fn about(&self) -> &About {
        &self.about
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, Fault>> {
        let (about, clock, failures) = (self.about.clone(), self.clock.clone(), self.failures.clone());
        let play = async move { Play::begin(&about, &request, clock, &failures, cancel) };
        stream::once(play).flat_map(|play| stream::unfold(play, Play::next)).fuse().boxed()
    }
}

/// An answer while it is given.
struct Play {
    items: std::vec::IntoIter<Result<Delta, Fault>>,
    wait: Duration,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
}

impl Play {
    fn begin(
        about: &About,
        request: &Request,
        clock: Arc<dyn Clock>,
        failures: &Mutex<Failures>,
        cancel: CancellationToken,
    ) -> Self {
        let answer = Answer::to(about, request);
        let wait = Duration::from_millis(answer.wait_ms);
        let fails = answer.fail.filter(|fail| match fail.times {
            None => true,
            Some(times) => failures.lock().once_more(&request.messages, times),
        });
        let items = match fails {
            Some(fail) => vec![Err(fault(fail.code))],
            None => answer.deltas(about, clock.now_ms()).into_iter().map(Ok).collect(),
        };
        Self { items: items.into_iter(), wait, clock, cancel }
    }

    async fn next(mut self) -> Option<(Result<Delta, Fault>, Self)> {
        if self.cancel.is_cancelled() {
            return None;
        }
        let item = self.items.next()?;
        let done = matches!(item, Ok(Delta::Done(_)));
        if !self.wait.is_zero() && !done {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return None,
                () = self.clock.sleep(self.wait) => {}
            }
        }
        Some((item, self))
    }
}

impl Failures {
    /// Counts a failure of this conversation, unless it has failed often enough; then it is forgotten.
    fn once_more(&mut self, messages: &[Message], times: u64) -> bool {
        let Ok(mut said) = serde_json::to_value(messages) else { return false };
        // What is said again later is the same conversation.
        for message in said.as_array_mut().into_iter().flatten().filter_map(serde_json::Value::as_object_mut)
        {
            message.remove("timestamp");
        }
        let key: [u8; 32] = Sha256::digest(said.to_string()).into();
        let failed = self.0.get(&key).copied().unwrap_or(0);
        if failed >= times {
            self.0.shift_remove(&key);
            return false;
        }
        if self.0.len() >= OFFLINE_FAILURES && failed == 0 {
            self.0.shift_remove_index(0);
        }
        self.0.insert(key, failed + 1);
        true
    }
}

fn fault(code: Code) -> Fault {
    let fault = Fault::new(code, "the prompt asked the offline model to fail").with("provider", PROVIDER);
    // With the details that the same failure of a real provider has.
    if code == Code::ResourceExhausted {
        fault.with("reason", "rate_limited").with("retryAfterMs", 10)
    } else if code == Code::InvalidArgument {
        fault.with("reason", "context_too_long")
    } else {
        fault
    }
}
