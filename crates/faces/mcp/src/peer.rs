//! The client of one run: progress, log messages and questions, in the words of its era.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_kernel::action::Action;
use orchestr8_kernel::peer::{About, Answered, Ask, Peer, Severity};
use orchestr8_kernel::{Cancel, Transport};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::connection::Connection;
use crate::era::{Era, RELATED_TASK_KEY};
use crate::face::Outlet;
use crate::from_wire::Capabilities;
use crate::questions::Retry;
use crate::tasks::Task;
use crate::to_wire::ask_impossible;

/// The client as the work of one action sees it.
pub struct Client {
    pub connection: Arc<Connection>,
    pub related: Arc<dyn Outlet>,
    pub era: Era,
    pub capabilities: Capabilities,
    pub log_level: Option<Severity>,
    /// The JSON text of the token under which it wants to hear of progress.
    pub progress_token: Option<Box<str>>,
    /// Nothing is said about a request once it has been stopped.
    pub cancel: Cancel,
    /// The task it runs in, if it does.
    pub task: Option<Arc<Task>>,
    /// What it has answered on this and earlier tries (modern era).
    pub retry: Option<Arc<Retry>>,
    /// Progress only ever grows.
    pub done: Mutex<Option<f64>>,
}

impl Client {
    /// The same client, for work that goes on in a task.
    #[must_use]
    pub fn in_task(mut self, task: &Arc<Task>) -> Self {
        self.cancel = task.cancel.clone();
        self.task = Some(task.clone());
        self
    }

    fn may_speak(&self) -> bool {
        // The modern era has neither progress nor log messages of tasks.
        let is_silent_task = self.era.is_modern() && self.task.is_some();
        !self.cancel.is_fired() && !is_silent_task
    }

    fn tell(&self, method: &str, mut params: Value) {
        if let (Some(meta), Some(params)) = (self.task_meta(), params.as_object_mut()) {
            params.insert("_meta".into(), meta);
        }
        let text = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        if !self.related.send(text.clone()) && self.task.is_some() {
            // The stream of the request that began a task is over long before the task is.
            let _ = self.connection.outlet.send(text);
        }
    }

    fn task_meta(&self) -> Option<Value> {
        let task = self.task.as_ref()?;
        Some(json!({RELATED_TASK_KEY: {"taskId": task.id}}))
    }

    async fn ask_legacy(&self, ask: Ask) -> Result<Answered, Fault> {
        let face = &self.connection.face;
        let outlets = [&self.related, &self.connection.outlet];
        let clock = &face.kernel().ports().clock;
        let _parked = self.task.as_ref().map(|task| task.park(clock.now_ms()));
        let limit_ms = face.settings().ask_timeout_ms;
        let answer = self.connection.asks.ask(&ask, self.task_meta(), outlets, &**clock, limit_ms).await?;
        Ok(Answered::With(answer))
    }
}

impl Peer for Client {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(message) = message {
            // In the modern era this is all that a client hears of the progress of a task.
            self.status(message);
        }
        let Some(token) = &self.progress_token else { return };
        if !self.may_speak() || !done.is_finite() {
            return;
        }
        {
            let mut before = self.done.lock();
            if before.is_some_and(|before| done <= before) {
                return;
            }
            *before = Some(done);
        }
        let mut params = Map::new();
        params.insert("progressToken".into(), serde_json::from_str(token).unwrap_or_default());
        params.insert("progress".into(), number(done));
        if let Some(total) = total {
            params.insert("total".into(), number(total));
        }
        if let Some(message) = message {
            params.insert("message".into(), message.into());
        }
        self.tell("notifications/progress", Value::Object(params));
    }

    fn log(&self, severity: Severity, logger: Option<&str>, data: Value) {
        if !self.may_speak() || self.log_level.is_none_or(|level| severity < level) {
            return;
        }
        let data = self.connection.face.kernel().ports().redactor.value(&data);
        let mut params = json!({"level": severity, "data": data});
        if let Some(logger) = logger {
            params["logger"] = logger.into();
        }
        self.tell("notifications/message", params);
    }

    fn can(&self, about: About) -> bool {
        self.capabilities.can(about, &Value::Null)
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Answered, Fault>> {
        async move {
            if !self.capabilities.can(ask.about, &ask.params) {
                return Err(ask_impossible(ask.about));
            }
            if let Some(answer) = self.retry.as_ref().and_then(|retry| retry.answers.get(&ask.key)) {
                return Ok(Answered::With(answer.clone()));
            }
            match (self.era, &self.task) {
                (Era::Legacy(_), _) => self.ask_legacy(ask).await,
                (Era::Modern, Some(task)) => {
                    let now_ms = self.connection.face.kernel().ports().clock.now_ms();
                    task.ask(ask, now_ms).await.map(Answered::With)
                }
                (Era::Modern, None) => Ok(Answered::Later),
            }
        }
        .boxed()
    }

    fn sees(&self, action: &Action) -> bool {
        self.connection.face.shows(action)
    }

    fn conversation(&self) -> Option<Arc<str>> {
        let connection = &self.connection;
        // In the modern era a connection over HTTP is one request: what lasts is who asks.
        match (self.era, connection.transport) {
            (Era::Modern, Transport::Http) => {
                Some(format!("{}/{}", connection.who.tenant.as_str(), connection.who.name).into())
            }
            (Era::Modern | Era::Legacy(_), _) => Some(connection.id.as_str().into()),
        }
    }

    fn in_task(&self) -> bool {
        self.task.is_some()
    }

    fn status(&self, message: &str) {
        if let Some(task) = &self.task {
            task.say(message, self.connection.face.kernel().ports().clock.now_ms());
        }
    }

    fn log_level(&self) -> Option<Severity> {
        self.log_level
    }

    fn hears_broadcasts(&self) -> bool {
        !self.era.is_modern()
    }

    fn close_stream(&self) {
        self.related.close();
    }
}

/// A whole number is written as one.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "the value is whole and within what an integer holds")]
    match value.fract() == 0.0 && value.abs() < EXACT {
        true => Value::from(value as i64),
        false => Value::from(value),
    }
}
