//! A kernel with actions that answer what a test says, and clients of the face over it.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use axum::Router;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::Method;
use orchestr8_contract::{AllowedRoles, Fault, Output};
use orchestr8_kernel::action::{Policy, Slotting};
use orchestr8_kernel::log::{Level, Sink};
use orchestr8_kernel::ports::{clock, ids};
use orchestr8_kernel::{Action, Context, Halt, Kernel, Log};
use orchestr8_testing::{Parts, request};
use orchestr8_workflows_face::Settings;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What an action does in a test.
type Does = Arc<dyn Fn(Value, Context) -> BoxFuture<'static, Result<Value, Fault>> + Send + Sync>;

/// One submission an action got.
#[derive(Debug, Clone)]
pub struct Heard {
    pub action: String,
    pub args: Value,
    pub correlation: String,
    pub principal: String,
}

/// Every action the face knows; each gives an empty object until a test says otherwise.
#[derive(Clone, Default)]
pub struct Domain {
    does: Arc<Mutex<HashMap<String, Does>>>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

const STORED: [&str; 16] = [
    "workflows.execute",
    "workflows.apply",
    "workflows.delete",
    "executions.cancel",
    "executions.pause",
    "executions.resume",
    "executions.retry",
    "executions.retry_many",
    "executions.fork",
    "executions.signal",
    "executions.approve",
    "executions.resolve",
    "schedules.apply",
    "schedules.delete",
    "schedules.pause",
    "schedules.trigger",
];
const READ: [&str; 18] = [
    "workflows.validate",
    "workflows.list",
    "workflows.show",
    "workflows.metrics",
    "workflows.system",
    "workflows.agents",
    "executions.get",
    "executions.list",
    "executions.journal",
    "executions.approvals",
    "executions.events",
    "schedules.list",
    "schedules.show",
    "schedules.resume",
    "workers.poll",
    "workers.complete",
    "workers.fail",
    "workers.heartbeat",
];

impl Domain {
    fn register(&self, kernel: &Kernel) {
        let stored = STORED.iter().map(|name| (*name, Policy::stored()));
        for (name, policy) in stored.chain(READ.iter().map(|name| (*name, Policy::read()))) {
            let (domain, policy) = (self.clone(), Policy { slotting: Slotting::Free, ..policy });
            let work = move |args: orchestr8_kernel::Args, context: Context| {
                domain.run(name, args.into_value(), context)
            };
            let action = Action::tool(name, "A part of the domain.", json!({"type": "object"}), policy, work);
            kernel.registry().register(action.unwrap().hidden().allowed_to(AllowedRoles::ANYONE)).unwrap();
        }
    }

    fn run(
        &self,
        name: &str,
        args: Value,
        context: Context,
    ) -> impl Future<Output = Result<orchestr8_kernel::Reply, Halt>> + Send + use<> {
        self.heard.lock().unwrap().push(Heard {
            action: name.to_owned(),
            args: args.clone(),
            correlation: context.correlation.to_string(),
            principal: context.principal.name.to_string(),
        });
        let does = self.does.lock().unwrap().get(name).cloned();
        async move {
            match does {
                Some(does) => Ok(Output::json(does(args, context).await?).into()),
                None => Ok(Output::json(json!({})).into()),
            }
        }
    }
}

/// What the log says, for a test to wait for.
#[derive(Clone, Default)]
pub struct Logged(Arc<(Mutex<String>, Notify)>);

impl Sink for Logged {
    fn write(&self, line: &str) {
        self.0.0.lock().unwrap().push_str(line);
        self.0.1.notify_waiters();
    }
}

impl Logged {
    pub async fn until(&self, text: &str) {
        loop {
            let more = self.0.1.notified();
            if self.0.0.lock().unwrap().contains(text) {
                return;
            }
            more.await;
        }
    }
}

pub struct World {
    pub logged: Logged,
    pub router: Router,
    pub kernel: Kernel,
    domain: Domain,
}

impl World {
    pub fn new() -> Self {
        Self::with(Settings::new("1.2.3"))
    }

    pub fn with(settings: Settings) -> Self {
        let logged = Logged::default();
        let kernel = kernel(&logged);
        let domain = Domain::default();
        domain.register(&kernel);
        let router = orchestr8_workflows_face::router(kernel.clone(), settings);
        Self { logged, router, kernel, domain }
    }

    pub fn ids(&self) -> Arc<dyn ids::Ids> {
        self.kernel.ports().ids.clone()
    }

    /// What an action gives from here on.
    pub fn on(&self, action: &str, does: impl Fn(&Value) -> Result<Value, Fault> + Send + Sync + 'static) {
        self.on_later(action, move |args, _| {
            let result = does(&args);
            async move { result }
        });
    }

    pub fn gives(&self, action: &str, value: Value) {
        self.on(action, move |_| Ok(value.clone()));
    }

    pub fn fails(&self, action: &str, fault: Fault) {
        self.on(action, move |_| Err(fault.clone()));
    }

    pub fn on_later<F, R>(&self, action: &str, does: F)
    where
        F: Fn(Value, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, Fault>> + Send + 'static,
    {
        let does: Does = Arc::new(move |args, context| does(args, context).boxed());
        self.domain.does.lock().unwrap().insert(action.to_owned(), does);
    }

    /// Everything the actions were asked, in order.
    pub fn heard(&self) -> Vec<Heard> {
        self.domain.heard.lock().unwrap().clone()
    }

    /// What the one action was asked.
    pub fn heard_once(&self, action: &str) -> Heard {
        let mut found: Vec<Heard> = self.heard().into_iter().filter(|heard| heard.action == action).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.ask(Method::GET, target, &[], None).await
    }

    pub async fn get_with(&self, target: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, target, headers, None).await
    }

    pub async fn post(&self, target: &str, body: Value) -> Answer {
        self.post_with(target, &[], body).await
    }

    pub async fn post_with(&self, target: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        self.ask(Method::POST, target, &headers, Some(body.to_string())).await
    }

    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Answer {
        let request = request(method, target, headers, body.unwrap_or_default());
        Answer(orchestr8_testing::Answer::of(&self.router, request).await)
    }
}

/// An answer, with what this face promises of every one.
pub struct Answer(pub orchestr8_testing::Answer);

impl Deref for Answer {
    type Target = orchestr8_testing::Answer;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Answer {
    /// Checks that it is a whole error of the contract, and gives the code.
    pub fn error(&self, status: u16) -> String {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        let error = &body["error"];
        for name in ["code", "message", "category"] {
            assert!(error[name].is_string(), "{name} in {body}");
        }
        assert!(error["isRetryable"].is_boolean(), "{body}");
        assert_eq!(self.header("x-error-code"), error["code"], "{body}");
        assert_eq!(self.header("x-correlation-id"), body["correlationId"], "{body}");
        assert!(!self.header("x-correlation-id").is_empty());
        assert!(body["timestamp"].as_str().unwrap().ends_with('Z'), "{body}");
        error["code"].as_str().unwrap().to_owned()
    }
}

fn kernel(logged: &Logged) -> Kernel {
    // It moves only by waiting, so a busy machine changes nothing.
    let clock: Arc<dyn clock::Clock> = Arc::new(clock::Simulated::new());
    let log = Log::new(Level::Debug, logged.clone(), Arc::default(), clock.clone());
    Parts { clock, log, ..Parts::in_memory(&[]) }.kernel()
}

/// An execution as the domain gives it.
pub fn execution(status: &str) -> Value {
    json!({
        "executionId": "e1", "status": status, "workflow": {"id": "w", "name": "W", "version": "1.0.0", "hash": "h"},
        "steps": {"a": {"status": "completed", "output": {"n": 1}, "attempts": 1}}, "stepOrder": ["a"],
        "outputs": {"a": {"n": 1}}, "errors": [], "variables": {}, "createdAt": "2026-01-01T00:00:00.000Z",
        "startedAt": "2026-01-01T00:00:00.001Z", "completedAt": "2026-01-01T00:00:00.010Z", "duration": 9,
        "correlationId": "c1", "usage": {}, "lastSequence": 4,
    })
}

pub fn accepted() -> Value {
    json!({
        "executionId": "e1", "status": "running", "workflowId": "w", "workflowName": "W", "workflowVersion": "1.0.0",
        "correlationId": "c1", "queueDepth": 0,
    })
}

pub fn workflow() -> Value {
    json!({"workflow": {"id": "w", "version": "1.0.0", "name": "W", "steps": []}})
}
