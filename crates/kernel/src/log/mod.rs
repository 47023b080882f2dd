//! The log: one JSON object a line, redacted and made safe to print at this one place (seed 000, StructuredLogger).
//!
//! ```text
//! log.warn("events are dropped", json!({"ratio": 0.2}));
//! log.debug("finished", || json!({"runId": run.to_string(), "error": log::error(&fault)}));
//! ```
//!
//! A level that is off costs one atomic load, and fields given as a closure are then never made. Writing never panics and
//! never waits for anything but the sink; its work is bounded by `LINE_BYTES`.

mod line;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use orchestr8_contract::Fault;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ports::Clock;
use crate::ports::clock::Simulated;
use crate::redact::Redactor;
pub use line::LINE_BYTES;

/// How much an entry matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// The value of the level that lets nothing through.
const OFF: u8 = 4;

impl Level {
    pub const ALL: [Level; 4] = [Level::Debug, Level::Info, Level::Warn, Level::Error];

    pub fn as_str(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }

    fn rank(self) -> u8 {
        match self {
            Level::Debug => 0,
            Level::Info => 1,
            Level::Warn => 2,
            Level::Error => 3,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A text that names no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a log level: use debug, info, warn or error")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        Level::ALL
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or_else(|| UnknownLevel(text.to_owned()))
    }
}

/// Where lines go. It is called from any thread, with a whole line and its line end.
///
/// It must not wait long, since whoever logs waits with it: a sink that cannot write drops the line. It must not log.
pub trait Sink: Send + Sync + 'static {
    fn write(&self, line: &str);
}

/// A handle to the log. Cloning it is cheap; clones and children share level and sink.
#[derive(Clone)]
pub struct Log {
    core: Arc<Core>,
    context: Option<Arc<Context>>,
}

struct Core {
    level: AtomicU8,
    sink: Box<dyn Sink>,
    redactor: Arc<Redactor>,
    clock: Arc<dyn Clock>,
}

/// Fields that every entry of a child has, and those of its parents.
struct Context {
    fields: Map<String, Value>,
    parent: Option<Arc<Context>>,
}

/// What an entry tells besides its message: an object, a closure that makes one when it is needed, or `()` for nothing.
pub trait Fields {
    fn make(self) -> Value;
}

impl Fields for Value {
    fn make(self) -> Value {
        self
    }
}

impl Fields for () {
    fn make(self) -> Value {
        Value::Null
    }
}

impl<F: FnOnce() -> Value> Fields for F {
    fn make(self) -> Value {
        self()
    }
}

impl Log {
    pub fn new(level: Level, sink: impl Sink, redactor: Arc<Redactor>, clock: Arc<dyn Clock>) -> Self {
        let core = Core { level: AtomicU8::new(level.rank()), sink: Box::new(sink), redactor, clock };
        Self { core: Arc::new(core), context: None }
    }

    /// A log that writes nothing.
    pub fn off() -> Self {
        let log = Self::new(Level::Error, Captured::default(), Arc::default(), Arc::new(Simulated::new()));
        log.core.level.store(OFF, Ordering::Relaxed);
        log
    }

    /// Changes the level of the whole process.
    pub fn set_level(&self, level: Level) {
        self.core.level.store(level.rank(), Ordering::Relaxed);
    }

    pub fn is_on(&self, level: Level) -> bool {
        level.rank() >= self.core.level.load(Ordering::Relaxed)
    }

    /// A log whose entries all have these fields too.
    #[must_use]
    pub fn child(&self, fields: Value) -> Self {
        let context = Context { fields: object(fields), parent: self.context.clone() };
        Self { core: self.core.clone(), context: Some(Arc::new(context)) }
    }

    pub fn debug(&self, message: &str, fields: impl Fields) {
        self.entry(Level::Debug, message, fields);
    }

    pub fn info(&self, message: &str, fields: impl Fields) {
        self.entry(Level::Info, message, fields);
    }

    pub fn warn(&self, message: &str, fields: impl Fields) {
        self.entry(Level::Warn, message, fields);
    }

    pub fn error(&self, message: &str, fields: impl Fields) {
        self.entry(Level::Error, message, fields);
    }

    pub fn entry(&self, level: Level, message: &str, fields: impl Fields) {
        if self.is_on(level) {
            let line =
                line::render(&self.core, level, message, &object(fields.make()), self.context.as_deref());
            self.core.sink.write(&line);
        }
    }
}

/// What failed, as the `error` field of an entry, with its cause: that is for the log alone.
pub fn error(fault: &Fault) -> Value {
    let mut error = Map::new();
    error.insert("code".into(), fault.code.as_str().into());
    error.insert("message".into(), fault.message.as_ref().into());
    if let Some(details) = &fault.details {
        error.insert("details".into(), Value::Object((**details).clone()));
    }
    if let Some(cause) = fault.cause() {
        error.insert("cause".into(), cause.to_string().into());
    }
    Value::Object(error)
}

/// Fields must have names; what has none is called `data`.
fn object(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other => Map::from_iter([("data".to_owned(), other)]),
    }
}

/// A sink that keeps the last lines in memory, for tests. Clones share them.
#[derive(Clone, Default)]
pub struct Captured(Arc<Mutex<VecDeque<String>>>);

impl Captured {
    /// Older lines are forgotten.
    pub const LINES: usize = 10_000;

    /// The lines so far, without their line ends.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().iter().map(|line| line.trim_end_matches('\n').to_owned()).collect()
    }

    /// The lines so far, parsed.
    pub fn entries(&self) -> Vec<Value> {
        self.lines().iter().map(|line| serde_json::from_str(line).unwrap_or(Value::Null)).collect()
    }
}

impl Sink for Captured {
    fn write(&self, line: &str) {
        let mut lines = self.0.lock();
        if lines.len() == Self::LINES {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }
}
