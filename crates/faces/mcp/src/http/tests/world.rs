//! A server on a real socket with a few small tools, and sessions of clients on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orchestr8_contract::{AccessRole, AllowedRoles, Event, Output, Priority};
use orchestr8_edge as edge;
use orchestr8_kernel::peer::{About, Ask};
use orchestr8_kernel::ports::{clock, ids};
use orchestr8_kernel::{Action, Context, Halt, Kernel, Limits, Policy, Reply, Why};
use orchestr8_stores::sqlite::{self, Options, Place, Sqlite};
use orchestr8_testing::{Parts, migrations};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::client::{Answer, Client, initialize, initialized};
use crate::face::{Eras, Face, Settings};
use crate::http::{self, Endpoint};

/// What a test may want to be different.
pub struct Plan {
    pub http: http::Settings,
    pub eras: Eras,
    pub auth: edge::Auth,
    pub place: Place,
    pub clock: Arc<dyn clock::Clock>,
    pub edge_body_limit: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            http: http::Settings::default(),
            eras: Eras { legacy: true, modern: true },
            auth: edge::Auth::default(),
            place: Place::Memory,
            clock: Arc::new(clock::Real::new()),
            edge_body_limit: 64 * 1024 * 1024,
        }
    }
}

pub struct World {
    pub address: SocketAddr,
    pub kernel: Kernel,
    pub(in crate::http) endpoint: Arc<Endpoint>,
    pub store: Sqlite,
    /// Each permit lets one held tool end.
    pub gate: Arc<Semaphore>,
    /// Why held tools stopped without a permit.
    pub stopped: mpsc::UnboundedReceiver<Option<Why>>,
    stop: CancellationToken,
    serving: JoinHandle<Result<edge::Drained, edge::Error>>,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Plan::default()).await
    }

    pub async fn with(plan: Plan) -> Self {
        let store = open(plan.place);
        let kernel = kernel(&store, plan.clock);
        let gate = Arc::new(Semaphore::new(0));
        let (tell, stopped) = mpsc::unbounded_channel();
        for action in tools(&gate, &tell) {
            kernel.registry().register(action.allowed_to(AllowedRoles::ANYONE)).unwrap();
        }
        let settings = Settings { eras: plan.eras, ..Settings::new("test-server", "1.2.3", [7; 32]) };
        let stop = plan.http.shutdown.clone();
        let endpoint = Endpoint::new(Face::new(kernel.clone(), settings), plan.http);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let edge_settings = edge::Settings {
            auth: plan.auth,
            body_limit_bytes: plan.edge_body_limit,
            voices: vec![http::voice()],
            trust_this_process: true,
            ..edge::Settings::new(Arc::new(ids::Random))
        };
        let serving =
            tokio::spawn(edge::serve(listener, http::routes(endpoint.clone()), edge_settings, stop.clone()));
        Self { address, kernel, endpoint, store, gate, stopped, stop, serving }
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// A session that is ready, in the newest legacy revision.
    pub async fn session(&self) -> Session {
        self.session_of("2025-11-25", &[]).await
    }

    pub async fn session_of(&self, version: &str, headers: &[(&str, &str)]) -> Session {
        let mut client = self.client().await;
        let answer = client.post(headers, &initialize(version)).await;
        assert_eq!(answer.head.status, 200, "{answer:?}");
        let id = answer.head.get("mcp-session-id").unwrap().to_owned();
        let answer = client.post(&[headers, &[("Mcp-Session-Id", &id)]].concat(), &initialized()).await;
        assert_eq!((answer.head.status, answer.text.as_str()), (202, ""));
        Session { id, address: self.address }
    }

    /// Says that a list has changed, which goes to whoever listens.
    pub fn change(&self, list: &str) {
        self.kernel.bus().publish(Event {
            name: crate::audience::REGISTRY_CHANGED,
            subject: list.into(),
            priority: Priority::Critical,
            at_ms: 0,
            data: Arc::default(),
        });
    }

    pub fn sessions(&self) -> usize {
        self.endpoint.sessions.count()
    }

    /// How many want to hear of changes.
    pub fn listeners(&self) -> usize {
        self.endpoint.face.audience().size()
    }

    /// Stops serving, as a process that ends would.
    pub async fn end(self) -> edge::Drained {
        self.stop.cancel();
        let drained = self.serving.await.unwrap().unwrap();
        self.store.close().await;
        drained
    }
}

/// A client's session.
pub struct Session {
    pub id: String,
    address: SocketAddr,
}

impl Session {
    pub fn header(&self) -> (&str, &str) {
        ("Mcp-Session-Id", &self.id)
    }

    /// One message on a connection of its own.
    pub async fn post(&self, body: &Value) -> Answer {
        Client::connect(self.address).await.post(&[self.header()], body).await
    }

    /// A GET whose head has come.
    pub async fn get(&self, headers: &[(&str, &str)]) -> (Client, super::client::Head) {
        let mut client = Client::connect(self.address).await;
        client.send("GET", &[&[super::client::EVENTS, self.header()], headers].concat(), b"").await;
        let head = client.head().await;
        (client, head)
    }

    pub async fn delete(&self) -> Answer {
        Client::connect(self.address).await.ask("DELETE", &[self.header()], b"").await
    }
}

fn open(place: Place) -> Sqlite {
    let migrations = migrations(&[crate::tables::MIGRATIONS, http::tables::MIGRATIONS]);
    sqlite::open(Options::new(place, migrations)).unwrap()
}

fn kernel(store: &Sqlite, clock: Arc<dyn clock::Clock>) -> Kernel {
    let limits = Limits { concurrent_runs: 64, ..Limits::default() };
    // Ids that a restart does not give out again.
    let ids = Arc::new(ids::Random);
    Parts { clock, ids, limits, ..Parts::on(Arc::new(store.clone())) }.kernel()
}

type Told = mpsc::UnboundedSender<Option<Why>>;

/// Ends with a permit, or when told to stop.
async fn hold(gate: Arc<Semaphore>, told: Told, context: Context) -> Result<Reply, Halt> {
    tokio::select! {
        permit = gate.acquire() => {
            permit.unwrap().forget();
            Ok(Output::text("let go").into())
        }
        () = context.cancel.fired() => {
            told.send(context.cancel.why()).unwrap();
            Ok(Output::text("stopped").into())
        }
    }
}

fn tools(gate: &Arc<Semaphore>, told: &Told) -> Vec<Action> {
    let any = || json!({"type": "object"});
    let echo =
        json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]});
    let mirrored =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let (held, parked, talked) =
        ((gate.clone(), told.clone()), (gate.clone(), told.clone()), (gate.clone(), told.clone()));
    let count = AtomicU64::new(0);
    let actions = [
        Action::tool("echo", "Repeats.", echo, Policy::quick_read(), |args, _| {
            std::future::ready(Ok(Output::text(args.text("message").unwrap_or_default()).into()))
        }),
        Action::tool("hold", "Waits.", any(), Policy::read(), move |_, context| {
            hold(held.0.clone(), held.1.clone(), context)
        }),
        // Says something first, so that its answer is a stream.
        Action::tool("talk", "Talks, then waits.", any(), Policy::read(), move |_, context: Context| {
            context.progress(1.0, Some(2.0), None);
            hold(talked.0.clone(), talked.1.clone(), context)
        }),
        // Sends its client away before it waits.
        Action::tool("park", "Waits elsewhere.", any(), Policy::read(), move |_, context: Context| {
            context.close_stream();
            hold(parked.0.clone(), parked.1.clone(), context)
        }),
        Action::tool("say", "Says several things.", any(), Policy::read(), async |args, context: Context| {
            let times = args.get("times").and_then(Value::as_u64).unwrap_or(3);
            for done in 1..=times {
                context.progress(done as f64, None, None);
            }
            Ok(Output::text("said").into())
        }),
        Action::tool("ask", "Asks.", any(), Policy::read(), async |_, context: Context| {
            let params =
                json!({"message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}});
            let answer = context.ask(Ask { key: "name".into(), about: About::Elicit, params }).await?;
            Ok(Output::text(answer["content"]["name"].as_str().unwrap_or("nobody")).into())
        }),
        Action::tool("who", "Tells who asks.", any(), Policy::quick_read(), |_, context: Context| {
            let who = json!({"name": &*context.principal.name, "admin": context.principal.roles.union(context.principal.elevated).has(AccessRole::Admin)});
            std::future::ready(Ok(Output::text(who.to_string()).into()))
        }),
        Action::tool("count", "Counts its runs.", any(), Policy::stored(), move |_, _| {
            let runs = count.fetch_add(1, Ordering::SeqCst) + 1;
            std::future::ready(Ok(Output::text(runs.to_string()).into()))
        }),
        Action::tool("mirror", "Has a header.", mirrored, Policy::quick_read(), |_, _| {
            std::future::ready(Ok(Output::text("mirrored").into()))
        }),
    ];
    actions.into_iter().collect::<Result<_, _>>().unwrap()
}
