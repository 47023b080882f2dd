//! One WebSocket from its first message to its close.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::future::BoxFuture;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::ports::ids::For;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use super::feed::{Feed, Interest, Page};
use super::message::{self, Said};
use super::sse::established;
use crate::face::Face;
use crate::failure::Failure;
use crate::settings::SUBSCRIPTIONS;

/// How long the last word may take: the client may not be listening any more.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed, or is gone.
    Left,
    Idle,
    /// It did not take what was sent: it is closed so that it holds nothing, and can resume by id.
    Slow,
    /// It sent something that is no message of ours at all: too large, or not text.
    Misspoke,
    Shutdown,
    /// The feed failed.
    Failed,
}

impl End {
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            End::Left => return None,
            End::Idle => (close_code::AWAY, "nothing was heard for a minute"),
            End::Slow => (close_code::AGAIN, "too slow: events waited too long; resume with lastEventId"),
            End::Misspoke => (close_code::POLICY, "messages are JSON text of at most 64 KiB"),
            End::Shutdown => (close_code::RESTART, "the server is stopping"),
            End::Failed => (close_code::ERROR, "the feed failed; resume with lastEventId"),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }
}

struct Session {
    socket: WebSocket,
    face: Arc<Face>,
    feed: Feed,
    /// The next page, asked for and not yet there. Kept over everything else that happens, dropped when the interest changes.
    pending: Option<BoxFuture<'static, Result<Page, Failure>>>,
    heard: Instant,
}

pub(crate) async fn run(socket: WebSocket, face: Arc<Face>, feed: Feed) {
    let id = face.kernel.ports().ids.fresh(For::Connection).to_string();
    let mut session = Session { socket, face, feed, pending: None, heard: Instant::now() };
    let end = match session.serve(&id).await {
        Ok(never) => match never {},
        Err(end) => end,
    };
    let frame = end.frame();
    let log = session.face.kernel.log().clone();
    let why = frame.as_ref().map(|frame| frame.reason.to_string());
    // The client may be gone already; then there is nobody left to tell.
    let _ = timeout(CLOSE_TIMEOUT, session.socket.send(Message::Close(frame))).await;
    drop(session);
    log.debug("a WebSocket was closed", || json!({"connectionId": id, "reason": why}));
}

/// What one turn of the loop found.
enum Turn {
    Heard(Option<Result<Message, axum::Error>>),
    Page(Result<Page, Failure>),
    Heartbeat,
    Metrics,
}

impl Session {
    async fn serve(&mut self, id: &str) -> Result<std::convert::Infallible, End> {
        let settings = &self.face.settings;
        let (heartbeat_ms, idle) = (settings.heartbeat_ms, Duration::from_millis(settings.idle_ms));
        let shutdown = settings.shutdown.clone();
        let mut heartbeat = every(heartbeat_ms);
        let mut metrics = every(settings.metrics_ms);
        let first = established(id, self.feed.last, heartbeat_ms, self.face.now_ms());
        self.send_text(String::from_utf8_lossy(&first).into_owned()).await?;
        loop {
            let wants = self.feed.interest != Interest::Nothing;
            if wants && self.pending.is_none() {
                self.pending = Some(self.feed.next(heartbeat_ms));
            }
            let page = async {
                match &mut self.pending {
                    Some(pending) => pending.await,
                    None => std::future::pending().await,
                }
            };
            let turn = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Err(End::Shutdown),
                heard = self.socket.recv() => Turn::Heard(heard),
                () = sleep_until(self.heard + idle) => return Err(End::Idle),
                _ = heartbeat.tick() => Turn::Heartbeat,
                _ = metrics.tick(), if wants => Turn::Metrics,
                page = page => Turn::Page(page),
            };
            match turn {
                Turn::Heard(heard) => self.hear(heard).await?,
                Turn::Page(page) => self.tell(page).await?,
                Turn::Heartbeat => self.send(Message::Ping(bytes::Bytes::new())).await?,
                Turn::Metrics => self.tell_metrics().await?,
            }
        }
    }

    async fn hear(&mut self, heard: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        self.heard = Instant::now();
        let text = match heard {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            // A message that is too large arrives as an error. So does a connection that broke, which hears no last word.
            Some(Ok(Message::Binary(_)) | Err(_)) => return Err(End::Misspoke),
            Some(Ok(Message::Close(_))) | None => return Err(End::Left),
        };
        let said = match message::read(&text) {
            Ok(said) => said,
            Err(failure) => return self.send_text(message::error(&self.now(), &failure)).await,
        };
        match said {
            Said::Ping => self.send_text(message::pong(&self.now())).await,
            Said::Subscribe { execution, after } => {
                if let Err(failure) = subscribe(&mut self.feed.interest, execution) {
                    return self.send_text(message::error(&self.now(), &failure)).await;
                }
                self.feed.last = after.unwrap_or(self.feed.last);
                self.pending = None;
                Ok(())
            }
            Said::Unsubscribe { execution } => {
                unsubscribe(&mut self.feed.interest, execution);
                self.pending = None;
                Ok(())
            }
        }
    }

    async fn tell(&mut self, page: Result<Page, Failure>) -> Result<(), End> {
        self.pending = None;
        let Ok(page) = page else { return Err(End::Failed) };
        for event in &page.events {
            self.send_text(event.to_string()).await?;
        }
        self.feed.last = page.last;
        Ok(())
    }

    async fn tell_metrics(&mut self) -> Result<(), End> {
        let Ok(figures) = self.feed.metrics().await else { return Err(End::Failed) };
        self.send_text(message::metrics(&self.now(), Value::Object(figures))).await
    }

    fn now(&self) -> String {
        clock::iso(self.face.now_ms())
    }

    async fn send_text(&mut self, text: String) -> Result<(), End> {
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), End> {
        let limit = Duration::from_millis(self.face.settings.send_timeout_ms);
        match timeout(limit, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Left),
            Err(_) => Err(End::Slow),
        }
    }
}

fn every(period_ms: u64) -> tokio::time::Interval {
    let period = Duration::from_millis(period_ms);
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Naming an execution narrows a connection that hears everything; naming none widens it again.
fn subscribe(interest: &mut Interest, execution: Option<String>) -> Result<(), Failure> {
    let Some(id) = execution else {
        *interest = Interest::All;
        return Ok(());
    };
    match interest {
        Interest::Only(ids) if ids.len() >= SUBSCRIPTIONS && !ids.contains(&id) => {
            let rule =
                format!("at most {SUBSCRIPTIONS} executions by name; subscribe without a name hears all");
            Err(Failure::invalid("/executionId", rule))
        }
        Interest::Only(ids) => {
            ids.insert(id);
            Ok(())
        }
        Interest::All | Interest::Nothing => {
            *interest = Interest::of(Some(&id));
            Ok(())
        }
    }
}

fn unsubscribe(interest: &mut Interest, execution: Option<String>) {
    match (execution, &mut *interest) {
        (Some(id), Interest::Only(ids)) => {
            ids.remove(&id);
            if ids.is_empty() {
                *interest = Interest::Nothing;
            }
        }
        (Some(_), Interest::All | Interest::Nothing) => {}
        (None, _) => *interest = Interest::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_narrow_widen_and_end() {
        let mut interest = Interest::All;
        subscribe(&mut interest, Some("a".into())).unwrap();
        subscribe(&mut interest, Some("b".into())).unwrap();
        assert_eq!(interest, Interest::Only(["a".to_owned(), "b".to_owned()].into()));
        unsubscribe(&mut interest, Some("a".into()));
        assert_eq!(interest, Interest::of(Some("b")));
        unsubscribe(&mut interest, Some("b".into()));
        assert_eq!(interest, Interest::Nothing);
        subscribe(&mut interest, None).unwrap();
        assert_eq!(interest, Interest::All);
        unsubscribe(&mut interest, None);
        assert_eq!(interest, Interest::Nothing);
    }

    #[test]
    fn there_is_a_limit_to_names() {
        let mut interest = Interest::All;
        for number in 0..SUBSCRIPTIONS {
            subscribe(&mut interest, Some(number.to_string())).unwrap();
        }
        assert!(subscribe(&mut interest, Some("one more".into())).is_err());
        subscribe(&mut interest, Some("0".into())).unwrap();
    }
}
