//! The body of an event stream: what its reader gets, comments while it is silent, and the end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::connection::{Connection, Pending};

use super::event;
use super::session::Busy;
use super::stream::Reader;

pub(super) struct Events {
    reader: Reader,
    /// Goes out with the first event, or alone if there is none yet, in one write with the head.
    first: Option<Bytes>,
    /// The request whose stream this is, where the client's leaving cancels it.
    pending: Option<Pending>,
    stop: Option<Stop>,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
    /// The session counts as used while it is read.
    _busy: Option<Busy>,
}

/// Ends a stream that would otherwise never end, when the server stops.
pub(super) struct Stop {
    pub fires: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The conversation that has a last word to say; without one the stream just ends.
    pub connection: Option<Arc<Connection>>,
}

impl Events {
    pub fn new(reader: Reader, first: Bytes, keep_alive: Duration) -> Self {
        let silence = Box::pin(tokio::time::sleep(keep_alive));
        Self { reader, first: Some(first), pending: None, stop: None, keep_alive, silence, _busy: None }
    }

    /// Dropping the body drops this, which tells the work that its client is gone.
    pub fn with_pending(self, pending: Option<Pending>) -> Self {
        Self { pending, ..self }
    }

    pub fn with_stop(self, stop: Stop) -> Self {
        Self { stop: Some(stop), ..self }
    }

    pub fn with_busy(self, busy: Busy) -> Self {
        Self { _busy: Some(busy), ..self }
    }

    pub fn into_body(self) -> Body {
        Body::new(self)
    }

    fn poll_sources(&mut self, context: &mut Context<'_>) {
        if let Some(stop) = &mut self.stop
            && stop.fires.as_mut().poll(context).is_ready()
        {
            match stop.connection.take() {
                Some(connection) => connection.wind_down(),
                None => self.reader.stream().end(),
            }
            self.stop = None;
        }
        if let Some(pending) = &mut self.pending
            && let Poll::Ready(reply) = Pin::new(pending).poll(context)
        {
            self.pending = None;
            self.reader.stream().finish(reply);
        }
    }
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let events = &mut *self;
        events.poll_sources(context);
        let frame = match events.reader.poll_events(context, &mut events.first) {
            Poll::Ready(Some(frame)) => frame,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {
                if events.silence.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                event::COMMENT
            }
        };
        let keep_alive = events.keep_alive;
        events.silence.as_mut().reset(Instant::now() + keep_alive);
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}
