//! A task that is running: its questions, its end, and those who wait for it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Cancel;
use orchestr8_kernel::peer::Ask;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};

use crate::tables::Owner;
use crate::to_wire::input_request;

/// A task may have this many questions open.
const OPEN_QUESTIONS: usize = 64;

/// What is told of where a task stands.
const MESSAGE_CHARACTERS: usize = 500;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Working => "working",
            Status::InputRequired => "input_required",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    pub fn is_final(self) -> bool {
        match self {
            Status::Completed | Status::Failed | Status::Cancelled => true,
            Status::Working | Status::InputRequired => false,
        }
    }
}

/// How a task ended; the texts are JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The result of the call.
    Completed(String),
    /// The protocol error the call would have got.
    Failed(String),
    Cancelled,
}

impl Ended {
    pub fn status(&self) -> Status {
        match self {
            Ended::Completed(_) => Status::Completed,
            Ended::Failed(_) => Status::Failed,
            Ended::Cancelled => Status::Cancelled,
        }
    }

    pub fn outcome(&self) -> Option<&str> {
        match self {
            Ended::Completed(json) | Ended::Failed(json) => Some(json),
            Ended::Cancelled => None,
        }
    }
}

/// A task as it was seen at one moment.
#[derive(Debug, Clone)]
pub struct Seen {
    pub id: String,
    pub status: Status,
    /// Where it stands, in words.
    pub message: Option<String>,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub ttl_ms: i64,
    pub ended: Option<Ended>,
    /// The open questions, by key.
    pub questions: Map<String, Value>,
}

/// A running task.
pub struct Task {
    pub id: String,
    pub owner: Owner,
    pub created_ms: i64,
    pub ttl_ms: i64,
    pub cancel: Cancel,
    state: Mutex<State>,
    /// Changes with every change of the state.
    changes: watch::Sender<u64>,
}

struct State {
    updated_ms: i64,
    message: Option<String>,
    ended: Option<Ended>,
    open: BTreeMap<String, (Value, oneshot::Sender<Value>)>,
    /// A key stands for one question for as long as the task lives.
    used: HashSet<String>,
    /// Questions that travel on another way than the task itself (legacy era).
    parked: usize,
}

/// The task waits for the client until this is dropped.
pub struct Parked(Arc<Task>);

impl Drop for Parked {
    fn drop(&mut self) {
        self.0.change(None, |state| state.parked = state.parked.saturating_sub(1));
    }
}

impl Task {
    pub fn new(id: String, owner: Owner, created_ms: i64, ttl_ms: i64) -> Arc<Self> {
        let state = State {
            updated_ms: created_ms,
            message: None,
            ended: None,
            open: BTreeMap::new(),
            used: HashSet::new(),
            parked: 0,
        };
        let (changes, _) = watch::channel(0);
        Arc::new(Self {
            id,
            owner,
            created_ms,
            ttl_ms,
            cancel: Cancel::new(),
            state: Mutex::new(state),
            changes,
        })
    }

    pub fn seen(&self) -> Seen {
        let state = self.state.lock();
        let waits = !state.open.is_empty() || state.parked > 0;
        let status = match &state.ended {
            Some(ended) => ended.status(),
            None if waits => Status::InputRequired,
            None => Status::Working,
        };
        Seen {
            id: self.id.clone(),
            status,
            message: state.message.clone(),
            created_ms: self.created_ms,
            updated_ms: state.updated_ms,
            ttl_ms: self.ttl_ms,
            ended: state.ended.clone(),
            questions: state.open.iter().map(|(key, (request, _))| (key.clone(), request.clone())).collect(),
        }
    }

    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> Ended {
        let mut changes = self.watch();
        loop {
            if let Some(ended) = self.state.lock().ended.clone() {
                return ended;
            }
            // The sender lives as long as the task does, so waiting cannot fail.
            let _ = changes.changed().await;
        }
    }

    /// Ends it, unless it has ended before: the first end is final.
    pub fn end(&self, ended: Ended, now_ms: i64) -> bool {
        if self.state.lock().ended.is_some() {
            return false;
        }
        let mut is_first = false;
        self.change(Some(now_ms), |state| {
            is_first = state.ended.is_none();
            if is_first {
                state.ended = Some(ended);
                state.message = None;
                state.open.clear();
            }
        });
        is_first
    }

    /// Says in words where it stands, cut to what a client can show. The same words again are no news.
    pub fn say(&self, message: &str, now_ms: i64) {
        let message: String = message.chars().take(MESSAGE_CHARACTERS).collect();
        let is_news = {
            let state = self.state.lock();
            state.ended.is_none() && state.message.as_ref() != Some(&message)
        };
        if is_news {
            self.change(Some(now_ms), |state| {
                if state.ended.is_none() {
                    state.message = Some(message);
                }
            });
        }
    }

    /// Asks the client, who finds the question when it looks after the task (modern era).
    pub async fn ask(&self, ask: Ask, now_ms: i64) -> Result<Value, Fault> {
        let (sender, receiver) = oneshot::channel();
        let mut refused = None;
        self.change(Some(now_ms), |state| {
            if state.open.len() >= OPEN_QUESTIONS || state.ended.is_some() {
                refused = Some(Fault::new(Code::ResourceExhausted, "the task can ask no more questions"));
                return;
            }
            let mut key = ask.key.clone();
            let mut count = 1;
            while state.used.contains(&key) {
                count += 1;
                key = format!("{}-{count}", ask.key);
            }
            state.used.insert(key.clone());
            state.open.insert(key, (input_request(&ask), sender));
        });
        match refused {
            Some(fault) => Err(fault),
            None => receiver.await.map_err(|_| Fault::new(Code::Cancelled, "the task was stopped")),
        }
    }

    /// Takes answers to open questions; others, and what can be no answer, are ignored.
    pub fn answer(&self, answers: Map<String, Value>, now_ms: i64) {
        self.change(Some(now_ms), |state| {
            for (key, value) in answers.into_iter().filter(|(_, value)| value.is_object()) {
                if let Some((_, sender)) = state.open.remove(&key) {
                    let _ = sender.send(value);
                }
            }
        });
    }

    /// Marks it as waiting for the client.
    pub fn park(self: &Arc<Self>, now_ms: i64) -> Parked {
        self.change(Some(now_ms), |state| state.parked += 1);
        Parked(self.clone())
    }

    fn change(&self, now_ms: Option<i64>, edit: impl FnOnce(&mut State)) {
        {
            let mut state = self.state.lock();
            edit(&mut state);
            if let Some(now_ms) = now_ms {
                state.updated_ms = state.updated_ms.max(now_ms);
            }
        }
        self.changes.send_modify(|count| *count += 1);
    }
}
