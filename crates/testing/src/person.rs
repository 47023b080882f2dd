//! A client on the other side of a run: hears, answers, and remembers both.

use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Action;
use orchestr8_kernel::peer::{About, Answered, Ask, Peer, Severity};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// How a person answers.
pub enum Answers {
    /// At once, always the same.
    Always(Value),
    /// What it has an answer for, by the key of the question. It takes other questions home, to send the call again with
    /// their answers, as clients of MCP's modern era do.
    ByKey(Map<String, Value>),
}

/// A client. The default one can be asked nothing.
pub struct Person {
    pub can: Vec<About>,
    pub answers: Answers,
    /// It has its calls as tasks.
    pub in_task: bool,
    /// Names of actions that a filter hides from it.
    pub hidden: Vec<String>,
    /// Progress as `{"progress", "total"}`, messages as `{"level", "data"}`, where it stands as `{"status"}`, the end of a stream as `"closed"`.
    pub heard: Mutex<Vec<Value>>,
    pub asked: Mutex<Vec<Ask>>,
}

impl Default for Person {
    fn default() -> Self {
        Self {
            can: Vec::new(),
            answers: Answers::ByKey(Map::new()),
            in_task: false,
            hidden: Vec::new(),
            heard: Mutex::default(),
            asked: Mutex::default(),
        }
    }
}

impl Person {
    /// Can be asked these things, and always answers the same.
    pub fn always(can: &[About], answer: Value) -> Arc<Self> {
        Arc::new(Self { can: can.to_vec(), answers: Answers::Always(answer), ..Self::default() })
    }

    /// Can be asked these things, and answers by the key of the question.
    pub fn by_key(can: &[About], answers: Value) -> Arc<Self> {
        let Value::Object(answers) = answers else { panic!("answers are an object") };
        Arc::new(Self { can: can.to_vec(), answers: Answers::ByKey(answers), ..Self::default() })
    }
}

impl Peer for Person {
    fn progress(&self, done: f64, total: Option<f64>, _: Option<&str>) {
        self.heard.lock().push(json!({"progress": done, "total": total}));
    }

    fn log(&self, severity: Severity, _: Option<&str>, data: Value) {
        self.heard.lock().push(json!({"level": severity, "data": data}));
    }

    fn can(&self, about: About) -> bool {
        self.can.contains(&about)
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Answered, Fault>> {
        let answer = match &self.answers {
            _ if !self.can(ask.about) => {
                Err(Fault::new(Code::CapabilityMissing, "this client cannot be asked that"))
            }
            Answers::Always(answer) => Ok(Answered::With(answer.clone())),
            Answers::ByKey(answers) => {
                Ok(answers.get(&ask.key).cloned().map_or(Answered::Later, Answered::With))
            }
        };
        self.asked.lock().push(ask);
        Box::pin(std::future::ready(answer))
    }

    fn sees(&self, action: &Action) -> bool {
        !self.hidden.iter().any(|name| name == action.name.as_str())
    }

    fn in_task(&self) -> bool {
        self.in_task
    }

    fn status(&self, message: &str) {
        self.heard.lock().push(json!({"status": message}));
    }

    fn close_stream(&self) {
        self.heard.lock().push(json!("closed"));
    }
}
