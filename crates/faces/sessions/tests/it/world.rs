//! A face to try things on, and clients of it over both transports, in time that is simulated.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::{Kernel, Limits};
use orchestr8_sessions_face::{Ended, Face, Settings};
use orchestr8_stores::sqlite::simulated::Simulated;
use orchestr8_testing::{Parts, migrations};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use crate::fixtures::{self, Sessions};

/// Longer than anything in a test takes; simulated, so nobody waits it out.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Turns given to tasks that can go on, before a test concludes that nothing more is said.
const TURNS: usize = 300;

/// What is on its way between a client and the face, unless a test wants less.
const PIPE_BYTES: usize = 1 << 20;

pub struct World {
    pub face: Face,
    pub kernel: Kernel,
    pub sessions: Arc<Sessions>,
}

pub fn settings() -> Settings {
    // Rates and pings that only their own tests reach; a year is longer than any of them.
    const YEAR_MS: u64 = 31_536_000_000;
    let rates = Settings { bucket_commands: 100_000, global_commands: 100_000, ..Settings::new("1.2.3") };
    Settings { ping_ms: YEAR_MS, ..rates }
}

impl World {
    pub fn new() -> Self {
        Self::with(settings(), Limits::default())
    }

    pub fn with(settings: Settings, limits: Limits) -> Self {
        let store = Arc::new(Simulated::faultless(&migrations(&[])).unwrap());
        let clock = Arc::new(clock::Simulated::new());
        let kernel = Parts { clock, limits, ..Parts::on(store) }.kernel();
        let sessions = fixtures::register(&kernel);
        Self { sessions, ..Self::of(kernel, settings) }
    }

    /// A face on a kernel that has sessions already.
    pub fn of(kernel: Kernel, settings: Settings) -> Self {
        Self { face: Face::new(kernel.clone(), settings), kernel, sessions: Arc::default() }
    }

    /// A client that has heard the first words.
    pub async fn client(&self, over: Over) -> Client {
        let mut client = self.stranger(over, PIPE_BYTES).await;
        assert_eq!(client.hear().await["type"], "server_ready");
        client
    }

    /// A client that has heard nothing yet.
    pub async fn stranger(&self, over: Over, pipe_bytes: usize) -> Client {
        match over {
            Over::WebSocket => Client::Socket(Box::new(self.socket("/", pipe_bytes).await)),
            Over::Stdio => self.pipes(pipe_bytes),
        }
    }

    pub async fn socket(&self, path: &str, pipe_bytes: usize) -> WebSocketStream<DuplexStream> {
        let (near, far) = duplex(pipe_bytes);
        let service = TowerToHyperService::new(self.face.router());
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            let _ = connection.serve_connection(TokioIo::new(far), service).with_upgrades().await;
        });
        let address = format!("ws://localhost{path}");
        tokio_tungstenite::client_async(address, near).await.unwrap().0
    }

    fn pipes(&self, pipe_bytes: usize) -> Client {
        let (near, far) = duplex(pipe_bytes);
        let (input, output) = tokio::io::split(far);
        let (face, stop) = (self.face.clone(), CancellationToken::new());
        let stopping = stop.clone();
        let served = tokio::spawn(async move { face.serve_stdio(input, output, stopping).await });
        let (reader, writer) = tokio::io::split(near);
        Client::Pipes(Box::new(Pipes {
            reader: BufReader::new(reader),
            line: String::new(),
            writer: Some(writer),
            stop,
            served,
        }))
    }
}

/// The two ways to the face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    WebSocket,
    Stdio,
}

pub const BOTH: [Over; 2] = [Over::WebSocket, Over::Stdio];

pub struct Pipes {
    reader: BufReader<ReadHalf<DuplexStream>>,
    line: String,
    writer: Option<WriteHalf<DuplexStream>>,
    pub stop: CancellationToken,
    pub served: tokio::task::JoinHandle<Ended>,
}

pub enum Client {
    Socket(Box<WebSocketStream<DuplexStream>>),
    Pipes(Box<Pipes>),
}

impl Client {
    pub async fn tell(&mut self, command: Value) {
        self.tell_text(&command.to_string()).await;
    }

    pub async fn tell_text(&mut self, text: &str) {
        match self {
            Client::Socket(socket) => socket.send(Message::text(text)).await.unwrap(),
            Client::Pipes(pipes) => {
                let writer = pipes.writer.as_mut().unwrap();
                writer.write_all(text.as_bytes()).await.unwrap();
                writer.write_all(b"\n").await.unwrap();
            }
        }
    }

    /// Ends the input of a client over pipes.
    pub async fn end_input(&mut self) {
        let Client::Pipes(pipes) = self else { panic!("no pipes") };
        pipes.writer.take().unwrap().shutdown().await.unwrap();
    }

    /// The next text, or none at the end.
    pub async fn next_text(&mut self) -> Option<String> {
        match self {
            Client::Socket(socket) => loop {
                match socket.next().await {
                    Some(Ok(Message::Text(text))) => return Some(text.as_str().to_owned()),
                    Some(Ok(Message::Close(frame))) => {
                        let frame = frame.expect("a close says why");
                        return Some(format!("closed {} {}", u16::from(frame.code), frame.reason));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return None,
                }
            },
            Client::Pipes(pipes) => {
                // Kept over a call that is given up: a part of a line may have come.
                let read = pipes.reader.read_line(&mut pipes.line).await.unwrap();
                (read > 0).then(|| std::mem::take(&mut pipes.line).trim_end_matches('\n').to_owned())
            }
        }
    }

    pub async fn hear_text(&mut self) -> String {
        let next = tokio::time::timeout(PATIENCE, self.next_text()).await;
        next.expect("something should have been said").expect("the connection is there")
    }

    pub async fn hear(&mut self) -> Value {
        let text = self.hear_text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }

    /// Sends a command and waits for its response, letting go by what else is heard.
    pub async fn ask(&mut self, command: Value) -> Value {
        self.tell(command).await;
        self.response().await
    }

    pub async fn response(&mut self) -> Value {
        loop {
            let heard = self.hear().await;
            if heard["type"] == "response" {
                return heard;
            }
        }
    }

    /// The next thing of this type, letting go by what else is heard.
    pub async fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            let heard = self.hear().await;
            if heard["type"] == kind {
                return heard;
            }
        }
    }

    pub async fn create(&mut self, session: &str) {
        let created = self.ask(json!({"type": "create_session", "sessionId": session})).await;
        assert_eq!(created["success"], true, "{created}");
        assert_eq!(self.hear_of("session_created").await["data"]["sessionId"], session);
    }

    /// What has been said and not been heard, once nothing more can go on without time passing.
    pub async fn rest(&mut self) -> Vec<String> {
        let mut heard = Vec::new();
        loop {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            match Pin::new(&mut Box::pin(self.next_text())).now_or_never() {
                Some(Some(text)) => heard.push(text),
                Some(None) | None => return heard,
            }
        }
    }
}
