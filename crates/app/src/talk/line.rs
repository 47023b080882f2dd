//! One connection, whatever it is made of: texts out, messages in, both bounded.

use std::time::Duration;

use orchestr8_contract::Code;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::failure::Failure;

/// Messages on their way, each side.
const WAITING: usize = 256;

/// A server takes what it is sent within this, or it is gone.
const SEND_LIMIT: Duration = Duration::from_secs(30);

/// What is under way may finish within this when the connection is closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(35);

pub struct Line {
    outgoing: mpsc::Sender<String>,
    incoming: mpsc::Receiver<Result<Value, Failure>>,
    carrier: JoinHandle<()>,
}

/// The other end of a line, for whoever carries its messages.
pub struct End {
    pub outgoing: mpsc::Receiver<String>,
    pub incoming: mpsc::Sender<Result<Value, Failure>>,
}

impl Line {
    /// A line whose messages this carries.
    pub fn new<F>(carry: impl FnOnce(End) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (outgoing, of_client) = mpsc::channel(WAITING);
        let (of_server, incoming) = mpsc::channel(WAITING);
        let carrier = tokio::spawn(carry(End { outgoing: of_client, incoming: of_server }));
        Self { outgoing, incoming, carrier }
    }

    pub async fn send(&self, text: String) -> Result<(), Failure> {
        match timeout(SEND_LIMIT, self.outgoing.send(text)).await {
            Ok(sent) => sent.map_err(|_| broken()),
            Err(_) => Err(Failure::new(Code::Unavailable, "the server does not take what it is sent")),
        }
    }

    pub async fn next(&mut self) -> Result<Value, Failure> {
        self.incoming.recv().await.unwrap_or_else(|| Err(broken()))
    }

    pub async fn close(self) {
        let Self { outgoing, mut incoming, carrier } = self;
        drop(outgoing);
        let rest = async {
            while incoming.recv().await.is_some() {}
            // A panic of the carrier has been logged.
            let _ = carrier.await;
        };
        // What takes longer is ended with this process.
        let _ = timeout(CLOSE_LIMIT, rest).await;
    }
}

fn broken() -> Failure {
    Failure::new(Code::Unavailable, "the connection to the server was lost")
}

/// What a server wrote, unless it concerns nobody here. Everybody hears of everybody's commands; that would only fill the line.
pub fn read(text: &str) -> Option<Result<Value, Failure>> {
    match serde_json::from_str::<Value>(text) {
        Ok(message) => {
            let is_lifecycle = message["type"].as_str().is_some_and(|kind| kind.starts_with("command_"));
            (!is_lifecycle).then_some(Ok(message))
        }
        Err(error) => {
            Some(Err(Failure::new(Code::Internal, format!("the server does not speak JSON: {error}"))
                .hinting("is it orchestr8 that listens there?")))
        }
    }
}
