//! Questions to the client on the wire of the legacy era: requests of ours, and the answers that come back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::peer::Ask;
use orchestr8_kernel::ports::Clock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::face::Outlet;
use crate::to_wire::ask_method;
use crate::wire::{Id, Raw};

/// So many questions of one connection may be open; more are refused.
pub const OPEN: usize = 256;

type Answer = Result<Value, Fault>;

/// The open questions of one connection.
#[derive(Default)]
pub struct Asks {
    next: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
}

/// One open question; dropped, it is open no more.
struct Open<'a> {
    asks: &'a Asks,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.asks.open.lock().remove(&self.id);
    }
}

impl Asks {
    /// Sends a question over the first outlet that takes it and waits for the answer.
    pub async fn ask(
        &self,
        ask: &Ask,
        meta: Option<Value>,
        outlets: [&Arc<dyn Outlet>; 2],
        clock: &dyn Clock,
        limit_ms: u64,
    ) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let open = self.enter(sender)?;
        let mut params = ask.params.clone();
        if let (Some(meta), Some(params)) = (meta, params.as_object_mut()) {
            params.insert("_meta".into(), meta);
        }
        let request =
            json!({"jsonrpc": "2.0", "id": open.id, "method": ask_method(ask.about), "params": params});
        let text = request.to_string();
        if !outlets.iter().any(|outlet| outlet.send(text.clone())) {
            return Err(Fault::new(Code::Unavailable, "the client cannot be reached"));
        }
        tokio::select! {
            biased;
            answer = receiver => answer.unwrap_or_else(|_| Err(Fault::new(Code::Unavailable, "the client is gone"))),
            () = clock.sleep(Duration::from_millis(limit_ms)) => {
                let cancelled = json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": open.id, "reason": "no answer in time"},
                });
                let cancelled = cancelled.to_string();
                let _ = outlets.iter().any(|outlet| outlet.send(cancelled.clone()));
                Err(Fault::new(Code::Timeout, format!("the client did not answer within {limit_ms} ms"))
                    .with("timeoutMs", limit_ms))
            }
        }
    }

    /// An answer has come. One that nobody waits for is ignored.
    pub fn answered(&self, id: Option<&Id>, result: Option<Raw<'_>>, error: Option<Raw<'_>>) {
        let Some(id) = id.and_then(|id| id.as_json().parse().ok()) else { return };
        let Some(sender) = self.open.lock().remove(&id) else { return };
        let answer = match (result.map(|raw| serde_json::from_str(raw.get())), error) {
            (Some(Ok(value)), _) => Ok(value),
            (Some(Err(_)), _) => Err(Fault::new(Code::Unavailable, "the client's answer cannot be read")),
            (None, error) => {
                let error: Value =
                    error.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
                Err(Fault::new(Code::Unavailable, format!("the client refused: {message}"))
                    .with("clientError", error.clone()))
            }
        };
        let _ = sender.send(answer);
    }

    /// Nobody will answer any more.
    pub fn close(&self) {
        self.open.lock().clear();
    }

    fn enter(&self, sender: oneshot::Sender<Answer>) -> Result<Open<'_>, Fault> {
        let mut open = self.open.lock();
        if open.len() >= OPEN {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("{OPEN} questions to the client are open already"),
            ));
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        open.insert(id, sender);
        Ok(Open { asks: self, id })
    }
}
