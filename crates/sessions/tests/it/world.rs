//! A kernel with sessions, the offline model and a tool or two; and commands as a face would submit them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use orchestr8_contract::id::{Lane, SubmissionId};
use orchestr8_contract::{AllowedRoles, Event, Output};
use orchestr8_kernel::bus::{Filter, Subscription};
use orchestr8_kernel::peer::{About, Ask};
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::submission::{Scope, Version};
use orchestr8_kernel::{Action, Kernel, Policy, Settled, Submission};
use orchestr8_models::{Catalog, Ports};
use orchestr8_sessions::{Hub, Settings, news, tables};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Holding, Parts, memory, settled, submission};
use serde_json::{Value, json};

pub struct World {
    pub kernel: Kernel,
    pub hub: Hub,
    pub store: Sqlite,
    /// How often the tool `add` ran.
    pub added: Arc<AtomicUsize>,
}

impl World {
    pub async fn new() -> Self {
        Self::on(memory(&[tables::MIGRATIONS])).await
    }

    /// What a restart is: another process on the same store.
    pub async fn on(store: Sqlite) -> Self {
        Self::with(store, quick()).await
    }

    /// With a folder for session files, where sessions also work.
    pub async fn at(folder: &Path) -> Self {
        Self::with(memory(&[tables::MIGRATIONS]), Settings::new(folder.into(), folder.join("sessions"))).await
    }

    /// With a store that stops where a test wants it to.
    pub async fn holding() -> (Self, Arc<Holding>) {
        let store = memory(&[tables::MIGRATIONS]);
        let holding = Holding::on(Arc::new(store.clone()));
        (Self::through(holding.clone(), store, quick()).await, holding)
    }

    pub async fn with(store: Sqlite, settings: Settings) -> Self {
        Self::through(Arc::new(store.clone()), store, settings).await
    }

    async fn through(port: Arc<dyn Store>, store: Sqlite, settings: Settings) -> Self {
        let parts = Parts::on(port);
        let kernel = Parts { ids: Arc::new(orchestr8_kernel::ports::ids::Random), ..parts }.kernel();
        let catalog = Catalog::new(Default::default(), Ports::of(&kernel)).unwrap();
        let hub = Hub::new(kernel.clone(), catalog, settings);
        for action in orchestr8_sessions::all(&hub).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        let world = Self { kernel, hub, store, added: Arc::default() };
        world.tools();
        world.hub.start().await.unwrap();
        world
    }

    fn tools(&self) {
        let added = self.added.clone();
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}});
        let add = Action::tool("math.add", "Adds.", schema, Policy::read(), move |args, _| {
            added.fetch_add(1, Ordering::SeqCst);
            let sum = args.get("a").and_then(Value::as_f64).unwrap()
                + args.get("b").and_then(Value::as_f64).unwrap();
            async move { Ok(Output::text(sum.to_string()).into()) }
        });
        self.kernel.registry().register(add.unwrap().allowed_to(AllowedRoles::ANYONE)).unwrap();
        let ask = Action::tool(
            "ask",
            "Asks.",
            json!({"type": "object"}),
            Policy::read(),
            |_, context| async move {
                let form = json!({"message": "sure?", "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}});
                let answer = context.ask(Ask { key: "q".into(), about: About::Elicit, params: form }).await?;
                Ok(Output::json(answer).into())
            },
        );
        self.kernel.registry().register(ask.unwrap().allowed_to(AllowedRoles::ANYONE)).unwrap();
    }

    /// A command as the face would submit it.
    pub fn wish(&self, name: &str, args: Value) -> Submission {
        let action = self.kernel.registry().find(&format!("session.{name}")).unwrap();
        let session = args["sessionId"].as_str().map(str::to_owned);
        let side = action.about.meta["lane"] == "side" || args.get("streamingBehavior").is_some();
        let mut wish = submission(&format!("session.{name}"), args);
        let lane = match (&session, side) {
            (Some(session), true) => format!("session:{session}:side"),
            (Some(session), false) => format!("session:{session}"),
            (None, _) => String::from("server"),
        };
        wish.lane = Some(Lane::parse(&lane).unwrap());
        wish.version = session.map(|session| Version { subject: session.into(), expected: None });
        wish
    }

    pub fn named(&self, id: &str, name: &str, args: Value) -> Submission {
        let id = SubmissionId::parse(id).unwrap();
        self.wish(name, args).named(Scope("session-id".into()), id, 60_000)
    }

    pub async fn settle(&self, name: &str, args: Value) -> Settled {
        self.kernel.submit(self.wish(name, args)).await
    }

    pub async fn ask(&self, name: &str, args: Value) -> Value {
        settled::value(self.settle(name, args).await)
    }

    /// A session named `s`.
    pub async fn session(&self) {
        self.ask("create_session", json!({"sessionId": "s"})).await;
    }

    pub async fn prompt(&self, message: &str) -> Value {
        self.ask("prompt", json!({"sessionId": "s", "message": message})).await
    }

    pub fn spawn(&self, name: &str, args: Value) -> tokio::task::JoinHandle<Settled> {
        let (kernel, wish) = (self.kernel.clone(), self.wish(name, args));
        tokio::spawn(async move { kernel.submit(wish).await })
    }

    pub fn listen(&self) -> Heard {
        Heard(self.kernel.bus().subscribe(&Filter::names([news::EVENT]).about("s")).unwrap())
    }

    pub async fn texts(&self) -> Vec<String> {
        let messages = self.ask("get_messages", json!({"sessionId": "s"})).await;
        let texts = messages["messages"].as_array().unwrap().iter().map(|message| {
            format!(
                "{}: {}",
                message["role"].as_str().unwrap(),
                message["content"][0]["text"].as_str().unwrap_or("-")
            )
        });
        texts.collect()
    }
}

/// Without a folder, and without long waits for a model that is away.
fn quick() -> Settings {
    let mut settings = Settings::new(PathBuf::from("/"), PathBuf::from("/nowhere"));
    settings.retry_base_ms = 1;
    settings
}

/// What a subscriber hears.
pub struct Heard(Subscription);

impl Heard {
    pub async fn next(&mut self) -> Event {
        orchestr8_testing::within(self.0.next()).await.unwrap()
    }

    /// Waits for an event of this type.
    pub async fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await;
            if event.data["event"]["type"] == kind {
                return event.data["event"].clone();
            }
        }
    }

    /// The types of everything up to one, without deltas.
    pub async fn types_until(&mut self, kind: &str) -> Vec<String> {
        let mut types = Vec::new();
        loop {
            let event = self.next().await;
            let found = event.data["event"]["type"].as_str().unwrap().to_owned();
            if found != "message_update" {
                types.push(found.clone());
            }
            if found == kind {
                return types;
            }
        }
    }
}
