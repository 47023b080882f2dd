//! Knowledge itself, each of its actions counted, and actions that a test can hold up, read back or let fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{AllowedRoles, Code, Fault, Output};
use orchestr8_kernel::action::{Slotting, Work};
use orchestr8_kernel::{Action, Args, Context, Halt, Kernel, Policy, Reply};
use orchestr8_knowledge::{Hub, Settings, actions};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// What outlives a restart of the face.
#[derive(Clone, Default)]
pub struct Domain {
    /// How often each action ran.
    runs: Arc<Mutex<BTreeMap<String, usize>>>,
    pub release: Arc<Notify>,
}

struct Counted {
    name: String,
    runs: Arc<Mutex<BTreeMap<String, usize>>>,
    work: Arc<dyn Work>,
}

impl Work for Counted {
    fn run(&self, args: Args, context: Context) -> BoxFuture<'static, Result<Reply, Halt>> {
        *self.runs.lock().unwrap().entry(self.name.clone()).or_default() += 1;
        self.work.run(args, context)
    }
}

impl Domain {
    pub fn register(&self, kernel: &Kernel) {
        let hub = Hub::new(kernel.clone(), Settings { test_mode: true, ..Settings::default() });
        for mut action in actions::all(&hub).unwrap() {
            let (name, runs) = (action.name.as_str().to_owned(), self.runs.clone());
            action.work = Arc::new(Counted { name, runs, work: action.work.clone() });
            kernel.registry().register(action).unwrap();
        }
        kernel.registry().register(self.slow("test.slow", Policy::stored())).unwrap();
        kernel.registry().register(self.slow("test.slow_read", Policy::read())).unwrap();
        kernel.registry().register(langroid()).unwrap();
        kernel.registry().register(fault()).unwrap();
        kernel.registry().register(self.flaky()).unwrap();
    }

    /// Works after it has failed so many times; what it is asked for is written down when it works.
    fn flaky(&self) -> Action {
        let runs = self.runs.clone();
        let work = move |args: Args, _: Context| {
            let (name, fails) =
                (args.text("name").unwrap().to_owned(), args.get("fails").and_then(Value::as_u64));
            let mut runs = runs.lock().unwrap();
            let run = runs.entry(name.clone()).or_default();
            *run += 1;
            let result = match u64::try_from(*run).unwrap() > fails.unwrap_or(0) {
                true => Ok(Output::json(json!({"name": name, "run": *run})).into()),
                false => Err(Fault::new(Code::Unavailable, "not yet").into()),
            };
            async move { result }.boxed()
        };
        public(
            "test.flaky",
            Policy { slotting: Slotting::Free, ..Policy::stored() },
            json!({"a2a": true}),
            work,
        )
    }

    pub fn runs(&self, action: &str) -> usize {
        self.runs.lock().unwrap().get(action).copied().unwrap_or(0)
    }

    /// Takes until a test lets it go.
    fn slow(&self, name: &str, policy: Policy) -> Action {
        let release = self.release.clone();
        let work = move |args: Args, context: Context| {
            let release = release.clone();
            async move {
                tokio::select! {
                    () = release.notified() => {}
                    () = context.cancel.fired() => return Err(Fault::new(Code::Cancelled, "stopped").into()),
                }
                match args.get("fail") {
                    Some(_) => Err(Fault::new(Code::Unavailable, "it did not work").into()),
                    None => Ok(Output::json(json!({"done": true})).into()),
                }
            }
            .boxed()
        };
        let policy = Policy { slotting: Slotting::Free, ..policy };
        public(name, policy, json!({"a2a": true}), work)
    }
}

/// What a Langroid agent would do with its arguments: here it says them back.
fn langroid() -> Action {
    let work = |args: Args, _: Context| async move { Ok(Output::json(args.into_value()).into()) }.boxed();
    public("test.langroid", Policy::read(), json!({"a2a": true, "executor": "langroid"}), work)
}

/// Fails in the way it is told to.
fn fault() -> Action {
    let work = |args: Args, _: Context| {
        let code = Code::ALL.iter().find(|code| Some(code.as_str()) == args.text("code"));
        let fault = Fault::new(*code.unwrap(), "as it was told");
        async move { Err(Halt::Fault(fault)) }.boxed()
    };
    public("test.fault", Policy::read(), json!({"a2a": true}), work)
}

fn public(
    name: &str,
    policy: Policy,
    meta: Value,
    work: impl Fn(Args, Context) -> BoxFuture<'static, Result<Reply, Halt>> + Send + Sync + 'static,
) -> Action {
    let any = json!({"type": "object"});
    let mut action = Action::tool(name, "What it is for.", any, policy, work)
        .unwrap()
        .hidden()
        .allowed_to(AllowedRoles::ANYONE);
    action.about.meta = meta.as_object().cloned().unwrap_or_else(Map::new);
    action
}
