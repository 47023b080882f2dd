//! Reading a request body: bounded before and while it comes, and never at the pace of a client that stalls.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use crate::Refusal;
use crate::signal::ConnectionSignal;

/// What a body must bring in each timeout span: with the default ten seconds, 1.6 kB/s.
/// A client that drips one byte at a time would otherwise hold a connection for ever.
pub const PROGRESS_BYTES: usize = 16 * 1024;

/// Reserved at first, whatever length the client announces: memory follows what arrives.
const FIRST_RESERVE_BYTES: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the body is larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    #[error("the body came too slowly")]
    Slow,
    #[error("the body broke off: {0}")]
    Broken(axum::Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::TooLarge { limit_bytes } => Refusal::body_too_large(limit_bytes),
            Error::Slow => Refusal::slow_body(),
            Error::Broken(_) => Refusal::broken_body(),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        Refusal::from(self).into_response()
    }
}

/// The whole body. A length announced over the limit is refused before a byte is read, so a client that
/// sent `Expect: 100-continue` never sends it.
pub async fn read(mut body: Body, limit_bytes: usize, timeout: Duration) -> Result<Bytes, Error> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit_bytes {
        return Err(Error::TooLarge { limit_bytes });
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut pace = Pace { deadline: Instant::now() + timeout, timeout, brought: 0 };
    // Most bodies come in one piece, which is then passed on without a copy.
    let Some(first) = pace.next(&mut body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit_bytes {
        return Err(Error::TooLarge { limit_bytes });
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut whole: Option<BytesMut> = None;
    while let Some(piece) = pace.next(&mut body).await? {
        let whole = whole.get_or_insert_with(|| {
            let mut start =
                BytesMut::with_capacity(announced.clamp(first.len(), FIRST_RESERVE_BYTES.max(first.len())));
            start.extend_from_slice(&first);
            start
        });
        if piece.len() > limit_bytes - whole.len() {
            return Err(Error::TooLarge { limit_bytes });
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.map_or(first, BytesMut::freeze))
}

/// The body as faces get it: none can read more than the edge allows, even one that forgets to look.
pub(crate) fn bound(body: Incoming, limit_bytes: usize, signal: &Arc<ConnectionSignal>) -> Body {
    let broken = move |cause: axum::BoxError| match cause.is::<LengthLimitError>() {
        true => Error::TooLarge { limit_bytes },
        false => Error::Broken(axum::Error::new(cause)),
    };
    if body.is_end_stream() {
        signal.complete();
        return Body::new(Limited::new(body, limit_bytes).map_err(broken));
    }
    signal.receive();
    Body::new(Limited::new(Tracked { body, signal: signal.clone() }, limit_bytes).map_err(broken))
}

/// A body that tells the connection when it has come whole.
struct Tracked {
    body: Incoming,
    signal: Arc<ConnectionSignal>,
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.signal.complete();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Asks for progress in every span instead of a whole in one: large bodies on slow lines are fine.
struct Pace {
    deadline: Instant,
    timeout: Duration,
    brought: usize,
}

impl Pace {
    /// The next piece of data; trailers are passed over.
    async fn next(&mut self, body: &mut Body) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = timeout_at(self.deadline, body.frame()).await.map_err(|_| Error::Slow)?;
            let Some(frame) = frame else { return Ok(None) };
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            self.brought += data.len();
            if self.brought >= PROGRESS_BYTES {
                self.brought = 0;
                self.deadline = Instant::now() + self.timeout;
            }
            return Ok(Some(data));
        }
    }
}

/// An error of ours, if the edge's own bound was met; otherwise the connection's.
fn broken(error: axum::Error) -> Error {
    match error.into_inner().downcast::<Error>() {
        Ok(own) => *own,
        Err(cause) => Error::Broken(axum::Error::new(cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use std::convert::Infallible;

    fn pieces(sizes: &[usize]) -> Body {
        let pieces: Vec<_> =
            sizes.iter().map(|size| Ok::<_, Infallible>(Bytes::from(vec![b'x'; *size]))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    async fn length(body: Body, limit_bytes: usize) -> Result<usize, Error> {
        read(body, limit_bytes, Duration::from_secs(60)).await.map(|bytes| bytes.len())
    }

    #[tokio::test]
    async fn the_limit_is_exact_whether_announced_or_not() {
        for (sizes, limit_bytes, fits) in [
            (&[][..], 0, true),
            (&[10], 10, true),
            (&[11], 10, false),
            (&[5, 5], 10, true),
            (&[5, 6], 10, false),
            (&[5, 5, 1], 10, false),
            (&[70_000, 70_000], 140_000, true),
        ] {
            let total: usize = sizes.iter().sum();
            let streamed = length(pieces(sizes), limit_bytes).await;
            let announced = length(Body::from(vec![b'x'; total]), limit_bytes).await;
            for outcome in [streamed, announced] {
                match outcome {
                    Ok(length) => assert!(fits && length == total, "{sizes:?}"),
                    Err(Error::TooLarge { limit_bytes: named }) => assert!(!fits && named == limit_bytes),
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_stalls_is_slow() {
        let never = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        assert!(matches!(read(never, 10, Duration::from_millis(1)).await, Err(Error::Slow)));
    }

    #[tokio::test]
    async fn a_body_that_breaks_is_broken() {
        let broken = Body::from_stream(stream::iter([Ok(Bytes::from_static(b"x")), Err("cut")]));
        let error = read(broken, 10, Duration::from_secs(60)).await.unwrap_err();
        assert!(matches!(&error, Error::Broken(_)));
        assert_eq!(Refusal::from(error).status, 400);
    }
}
