//! A kernel with the tools of this crate, a store in memory, and a client that answers as it was told to.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::id::{CorrelationId, Key};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::peer::{About, Answered, Ask, Peer, Severity};
use orchestr8_kernel::ports::{clock, ids, random};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{
    Action, Args, Halt, Kernel, Limits, Log, Policy, Ports, Principal, Settled, Submission, Transport,
};
use orchestr8_stores::Migration;
use orchestr8_stores::sqlite::{self, Options, Place};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::{Settings, all, changed, tables};

pub struct World {
    pub kernel: Kernel,
}

pub fn settings() -> Settings {
    Settings::new("test-server", "1.2.3")
}

impl World {
    pub fn new(settings: &Settings) -> Self {
        Self::with_limits(settings, Limits::default())
    }

    pub fn with_limits(settings: &Settings, limits: Limits) -> Self {
        let lists = [orchestr8_kernel::tables::MIGRATIONS, tables::MIGRATIONS].concat();
        let migrations = lists.into_iter().map(|(name, sql)| Migration { name, sql }).collect();
        let clock = Arc::new(clock::Real::new());
        let ports = Ports {
            clock: clock.clone(),
            ids: Arc::new(ids::Counted::default()),
            random: Arc::new(random::Seeded::new(1)),
            store: Arc::new(sqlite::open(Options::new(Place::Memory, migrations)).unwrap()),
            log: Log::off(),
            redactor: Arc::default(),
        };
        let bus = Bus::new(&Config::default(), clock, Log::off());
        let kernel = Kernel::new(ports, limits, bus);
        for action in all(settings).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        changed(&kernel, settings.search_above).unwrap();
        Self { kernel }
    }

    /// Stands in for the agents crate: gives back what it was sent.
    pub fn with_agent(self) -> Self {
        let input = json!({"type": "object", "required": ["targetAgentId", "message"]});
        let action =
            Action::tool("agent.sendMessage", "for tests", input, Policy::read(), |args: Args, _| {
                let reply = match args.text("targetAgentId") {
                    Some("echo") => Ok(Output::json(args.get("message").cloned().unwrap_or_default()).into()),
                    _ => Err(Halt::Fault(Fault::new(Code::NotFound, "no such agent"))),
                };
                std::future::ready(reply)
            });
        self.kernel.registry().register(action.unwrap()).unwrap();
        self
    }

    pub fn submission(&self, action: &str, args: Value) -> Submission {
        let Value::Object(map) = args else { panic!("arguments are an object") };
        let correlation = CorrelationId::parse("test").unwrap();
        let mut submission =
            Submission::new(action, Args::new(map), Arc::new(Principal::local()), correlation);
        submission.transport = Transport::Stdio;
        submission
    }

    pub async fn call(&self, action: &str, args: Value) -> Settled {
        self.kernel.submit(self.submission(action, args)).await
    }

    pub async fn call_with(&self, peer: &Arc<Client>, action: &str, args: Value) -> Settled {
        let mut submission = self.submission(action, args);
        submission.peer = Some(peer.clone());
        self.kernel.submit(submission).await
    }

    pub async fn call_keyed(&self, key: &str, action: &str, args: Value) -> Settled {
        let mut submission = self.submission(action, args);
        let key = Key::parse(key).unwrap();
        submission.identities.push(Identity { scope: Scope("test".into()), key, ttl_ms: 60_000 });
        self.kernel.submit(submission).await
    }

    pub fn listed(&self) -> Vec<String> {
        self.kernel.registry().table().tools().map(|action| action.name.as_str().to_owned()).collect()
    }
}

/// The JSON a call gave.
pub fn value(settled: Settled) -> Value {
    match settled.result {
        Ok(Output::Json { value }) => value,
        other => panic!("expected JSON, found {other:?}"),
    }
}

/// Anything else a call gave, as a client of MCP would see it.
pub fn wire(settled: Settled) -> Value {
    match settled.result {
        Ok(Output::Blocks { blocks, failed, .. }) => json!({"content": blocks, "isError": failed}),
        Ok(Output::Resource { contents }) => json!({"contents": contents}),
        Ok(Output::Prompt { messages, .. }) => json!({"messages": messages}),
        other => panic!("expected content, found {other:?}"),
    }
}

/// The one text a call gave.
pub fn text(settled: Settled) -> String {
    let wire = wire(settled);
    let found = wire.pointer("/content/0/text").or_else(|| wire.pointer("/messages/0/content/text"));
    found.and_then(Value::as_str).unwrap_or_else(|| panic!("no text in {wire}")).to_owned()
}

/// The questions a call ended with.
pub fn asks(settled: Settled) -> Vec<Ask> {
    match settled.result {
        Err(Halt::Asks(asks)) => asks,
        other => panic!("expected questions, found {other:?}"),
    }
}

/// A client of the modern era: it answers what it has answers for, and takes the other questions home.
#[derive(Default)]
pub struct Client {
    pub can: Vec<About>,
    pub answers: Map<String, Value>,
    pub heard: Mutex<Vec<Value>>,
    /// What a filter hides from it.
    pub hidden: Vec<String>,
}

impl Client {
    pub fn able(can: &[About], answers: Value) -> Arc<Self> {
        let Value::Object(answers) = answers else { panic!("answers are an object") };
        Arc::new(Self { can: can.to_vec(), answers, ..Self::default() })
    }

    pub fn all(answers: Value) -> Arc<Self> {
        Self::able(&[About::Sample, About::Elicit, About::Roots], answers)
    }
}

impl Peer for Client {
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
        async move {
            if !self.can(ask.about) {
                return Err(Fault::new(Code::CapabilityMissing, "this client cannot be asked that"));
            }
            Ok(self.answers.get(&ask.key).cloned().map_or(Answered::Later, Answered::With))
        }
        .boxed()
    }

    fn sees(&self, action: &Action) -> bool {
        !self.hidden.iter().any(|name| name == action.name.as_str())
    }

    fn close_stream(&self) {
        self.heard.lock().push(json!("closed"));
    }
}
