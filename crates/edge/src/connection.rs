//! One connection from its first byte to its last: HTTP on it, time limits over it, and a kind goodbye.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::Refusal;
use crate::census::Seat;
use crate::guard::{self, Guard};
use crate::settings::{BUFFER_LIMIT_BYTES, HEAD_LIMIT_BYTES, Timeouts};
use crate::turns::Own;
use crate::watch::{Answer, Wait, Watch, Wire};

/// After the last word we read on for a moment, because closing on unread bytes would destroy that word in flight.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);
/// A client that still sends this much after the last word is not listening.
const GOODBYE_LIMIT_BYTES: usize = 256 * 1024;

/// What all connections share.
pub(crate) struct Shared {
    pub guard: Guard,
    pub timeouts: Timeouts,
    pub drain: Drain,
    http: http1::Builder,
}

impl Shared {
    pub fn new(guard: Guard, timeouts: Timeouts) -> Self {
        let mut http = http1::Builder::new();
        // Our own clock covers heads, and silence between requests besides. The limit of 100 headers is
        // the parser's default; naming it would cost an allocation per request.
        http.header_read_timeout(None).max_header_size(HEAD_LIMIT_BYTES).max_buf_size(BUFFER_LIMIT_BYTES);
        Self { guard, timeouts, drain: Drain::default(), http }
    }
}

/// Tells every connection, once, that no further request is wanted.
#[derive(Default)]
pub(crate) struct Drain {
    begun: AtomicBool,
    bell: Notify,
}

impl Drain {
    pub fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
        self.bell.notify_waiters();
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }
}

/// How serving ended.
enum End {
    Closed(hyper::Result<()>),
    TimedOut(Wait),
    /// Drained while nobody was waiting for an answer.
    Quiet,
}

pub(crate) async fn run(stream: TcpStream, seat: Seat, shared: Arc<Shared>) {
    if !first_byte(&stream, &shared).await {
        return;
    }
    let watch = Arc::new(Watch::new());
    let service = {
        let (shared, watch) = (shared.clone(), watch.clone());
        service_fn(move |request: Request<Incoming>| {
            watch.request();
            let (shared, watch) = (shared.clone(), watch.clone());
            async move {
                let mut response = shared.guard.answer(request.map(|body| shared.guard.bounded(body))).await;
                if guard::upgrades(&response) {
                    watch.upgrade();
                } else if shared.drain.has_begun() {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response.map(|body| Answer::new(body, watch)))
            }
        })
    };
    let wire = TokioIo::new(Wire::new(stream, seat, watch.clone()));
    let mut http = shared.http.serve_connection(wire, service).with_upgrades();
    let end = drive(&mut http, &watch, &shared).await;
    // An upgraded socket belongs to its face now, and its seat went with it.
    let Some(parts) = http.into_parts() else { return };
    let (stream, _seat) = parts.io.into_inner().into_parts();
    let last_word = match end {
        End::Closed(Ok(())) => None,
        End::Closed(Err(error)) => complaint(&watch, &error),
        End::TimedOut(Wait::Head) => Some(Refusal::slow_head()),
        // Unsent bytes of a client that does not read must not stay behind in the system.
        End::TimedOut(Wait::Write) => return drop(stream.set_zero_linger()),
        End::TimedOut(Wait::Idle | Wait::Nothing) | End::Quiet => return,
    };
    let last_word = last_word.map(|refusal| refusal.raw(&shared.guard.fresh_id()));
    part(stream, last_word.as_deref()).await;
}

/// Says `last_word`, if any, and closes so that the client can still read it.
pub(crate) async fn part(mut stream: TcpStream, last_word: Option<&[u8]>) {
    let goodbye = async {
        if let Some(word) = last_word {
            stream.write_all(word).await?;
        }
        stream.shutdown().await?;
        let mut left = GOODBYE_LIMIT_BYTES;
        let mut scrap = vec![0; 4096];
        while left > 0 {
            match stream.read(&mut scrap).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        std::io::Result::Ok(())
    };
    // The client may be gone already; then there is nobody left to tell.
    let _ = timeout(GOODBYE_TIMEOUT, goodbye).await;
}

/// Waits for a client to say anything at all; a silent one costs no HTTP state.
async fn first_byte(stream: &TcpStream, shared: &Shared) -> bool {
    let bell = shared.drain.bell.notified();
    let mut byte = [0];
    if shared.drain.has_begun() {
        return false;
    }
    tokio::select! {
        biased;
        seen = stream.peek(&mut byte) => seen.is_ok_and(|count| count > 0),
        () = bell => false,
        () = tokio::time::sleep(shared.timeouts.first_byte) => false,
    }
}

/// What is left to say when the HTTP layer gave up on its input.
fn complaint(watch: &Watch, error: &hyper::Error) -> Option<Refusal> {
    match (watch.complaint(), watch.wait()) {
        (Some(status), _) => Some(Refusal::unparsed(status)),
        // The parser closes without a word on an HTTP/2 preface and on a head cut short.
        (None, Wait::Head) if error.is_parse() || error.is_incomplete_message() => {
            Some(Refusal::unparsed(400))
        }
        (None, Wait::Head | Wait::Idle | Wait::Write | Wait::Nothing) => None,
    }
}

/// Drives HTTP until it ends, a time limit passes, or draining finds nothing in flight.
async fn drive<H>(http: &mut H, watch: &Watch, shared: &Shared) -> End
where
    H: Future<Output = hyper::Result<()>> + Unpin,
{
    let mut clock = Clock::new(shared.timeouts);
    let mut alarm = pin!(sleep_until(clock.next_look()));
    let mut bell = pin!(shared.drain.bell.notified());
    let mut own: Option<Own> = None;
    poll_fn(|cx| {
        // A spawned task keeps its waker, so one poll is enough to be called when draining begins.
        let own = own.get_or_insert_with(|| {
            let _ = bell.as_mut().poll(cx);
            Own::of(cx.waker())
        });
        if let Poll::Ready(outcome) = own.poll(|cx| Pin::new(&mut *http).poll(cx)) {
            return Poll::Ready(End::Closed(outcome));
        }
        clock.note(watch.wait(), watch.turn());
        if clock.wait == Wait::Idle && shared.drain.has_begun() {
            return Poll::Ready(End::Quiet);
        }
        while alarm.as_mut().poll(cx).is_ready() {
            if clock.is_over() {
                return Poll::Ready(End::TimedOut(clock.wait));
            }
            alarm.as_mut().reset(clock.next_look());
        }
        Poll::Pending
    })
    .await
}

/// How long the present wait has lasted. The alarm is not reset per request: it looks in at least once per
/// shortest limit, which is never later than any wait's end.
struct Clock {
    timeouts: Timeouts,
    shortest: Duration,
    wait: Wait,
    turn: u32,
    since: Instant,
}

impl Clock {
    fn new(timeouts: Timeouts) -> Self {
        let shortest = timeouts.header.min(timeouts.idle).min(timeouts.write);
        Self { timeouts, shortest, wait: Wait::Head, turn: 0, since: Instant::now() }
    }

    fn note(&mut self, wait: Wait, turn: u32) {
        if (self.wait, self.turn) == (wait, turn) {
            return;
        }
        (self.wait, self.turn) = (wait, turn);
        if wait != Wait::Nothing {
            self.since = Instant::now();
        }
    }

    fn end(&self) -> Option<Instant> {
        match self.wait {
            Wait::Head => Some(self.since + self.timeouts.header),
            Wait::Idle => Some(self.since + self.timeouts.idle),
            Wait::Write => Some(self.since + self.timeouts.write),
            Wait::Nothing => None,
        }
    }

    fn is_over(&self) -> bool {
        self.end().is_some_and(|end| end <= Instant::now())
    }

    fn next_look(&self) -> Instant {
        let latest = Instant::now() + self.shortest;
        self.end().map_or(latest, |end| end.min(latest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_begins_a_new_wait_and_the_alarm_never_looks_late() {
        let ms = Duration::from_millis;
        let timeouts =
            Timeouts { first_byte: ms(1), header: ms(10_000), idle: ms(60_000), write: ms(30_000) };
        let mut clock = Clock::new(timeouts);
        let begun = clock.since;
        // The same wait goes on: dripping bytes gains no time.
        clock.note(Wait::Head, 0);
        assert_eq!(clock.since, begun);
        assert_eq!(clock.end(), Some(begun + ms(10_000)));
        // One request later the same kind of wait is a new one.
        clock.note(Wait::Idle, 1);
        let first = clock.since;
        clock.note(Wait::Idle, 2);
        assert!(clock.since > first && !clock.is_over());
        assert_eq!(clock.end(), Some(clock.since + ms(60_000)));
        // Whatever wait begins after a look, the next look is not later than that wait's end.
        let look = clock.next_look();
        clock.note(Wait::Head, 2);
        assert!(clock.end() >= Some(look));
        clock.note(Wait::Nothing, 3);
        assert_eq!(clock.end(), None);
        // A wait that has lasted long enough is over.
        clock.note(Wait::Write, 4);
        clock.since -= ms(30_000);
        assert!(clock.is_over());
    }
}
