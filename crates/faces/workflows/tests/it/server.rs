//! The face on a real socket behind the real edge, and a feed of events a test fills.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use orchestr8_edge as edge;
use orchestr8_workflows_face::Settings;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// Longer than anything here takes; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Server {
    pub address: SocketAddr,
    pub world: World,
    pub feed: Feed,
    pub stop: CancellationToken,
}

impl Server {
    pub async fn start(settings: Settings) -> Self {
        Self::guarded(settings, edge::Auth::default()).await
    }

    pub async fn guarded(settings: Settings, auth: edge::Auth) -> Self {
        let stop = settings.shutdown.clone();
        let world = World::with(settings);
        let feed = Feed::default();
        feed.serve(&world);
        world.gives("workflows.metrics", json!({"running": 1}));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let voices = vec![orchestr8_workflows_face::voice(&world.kernel)];
        let settings =
            edge::Settings { auth, voices, trust_this_process: true, ..edge::Settings::new(world.ids()) };
        tokio::spawn(edge::serve(listener, world.router.clone(), settings, stop.clone()));
        Self { address, world, feed, stop }
    }

    /// Sends a request as it is and gives what can be read of the answer.
    pub async fn open(&self, request: &str) -> Reader {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        Reader { stream, text: String::new() }
    }
}

/// An answer that comes bit by bit.
pub struct Reader {
    stream: TcpStream,
    text: String,
}

impl Reader {
    /// Everything until the end, readable or not.
    pub async fn rest_lossy(mut self) -> String {
        let mut bytes = Vec::new();
        // A connection that is cut may end with an error; what came before counts.
        let _ = tokio::time::timeout(PATIENCE, self.stream.read_to_end(&mut bytes)).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads until the text is there, and gives everything up to its end.
    pub async fn until(&mut self, wanted: &str) -> String {
        let read = async {
            loop {
                if let Some(at) = self.text.find(wanted) {
                    let rest = self.text.split_off(at + wanted.len());
                    return std::mem::replace(&mut self.text, rest);
                }
                let mut piece = [0; 4096];
                let count = self.stream.read(&mut piece).await.unwrap();
                assert!(count > 0, "ended before {wanted:?}: {:?}", self.text);
                self.text.push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("no {wanted:?}"))
    }

    /// Everything that is left, once the server has closed.
    pub async fn rest(mut self) -> String {
        tokio::time::timeout(PATIENCE, self.stream.read_to_string(&mut self.text)).await.unwrap().unwrap();
        self.text
    }
}

/// What `executions.events` reads in a test.
#[derive(Clone, Default)]
pub struct Feed {
    events: Arc<Mutex<Vec<Value>>>,
    bell: Arc<Notify>,
}

impl Feed {
    pub fn push(&self, kind: &str, execution: &str) {
        let mut events = self.events.lock().unwrap();
        let id = events.len() + 1;
        events.push(json!({
            "id": id, "type": kind, "executionId": execution, "workflowId": "w", "timestamp": "2026-01-01T00:00:00.000Z",
            "data": {"error": {"code": "UNAVAILABLE", "message": "m", "isRetryable": true}},
        }));
        drop(events);
        self.bell.notify_waiters();
    }

    fn serve(&self, world: &World) {
        let feed = self.clone();
        world.on_later("executions.events", move |args, context| {
            let feed = feed.clone();
            async move {
                let wait = Duration::from_millis(args["waitMs"].as_u64().unwrap_or(0));
                let deadline = tokio::time::sleep(wait);
                tokio::pin!(deadline);
                loop {
                    let bell = feed.bell.notified();
                    let (found, last) = feed.after(&args);
                    if !found.is_empty() || args["after"].is_null() {
                        return Ok(json!({"events": found, "last": last}));
                    }
                    tokio::select! {
                        () = bell => {}
                        () = &mut deadline => return Ok(json!({"events": [], "last": last})),
                        () = context.cancel.fired() => return Ok(json!({"events": [], "last": last})),
                    }
                }
            }
        });
    }

    fn after(&self, args: &Value) -> (Vec<Value>, u64) {
        let events = self.events.lock().unwrap();
        let Some(after) = args["after"].as_u64() else { return (Vec::new(), events.len() as u64) };
        let wanted = |event: &&Value| {
            event["id"].as_u64() > Some(after)
                && (args["executionId"].is_null() || event["executionId"] == args["executionId"])
        };
        let limit = usize::try_from(args["limit"].as_u64().unwrap_or(100)).unwrap();
        let found: Vec<Value> = events.iter().filter(wanted).take(limit).cloned().collect();
        let last = found.last().and_then(|event| event["id"].as_u64()).unwrap_or(after);
        (found, last)
    }
}
