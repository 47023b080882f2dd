//! One connection from its first byte to its last: TLS if configured, HTTP on it, time limits over it, and a kind goodbye.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::connections::ConnectionSlot;
use crate::goodbye::Goodbye;
use crate::guard::{self, Guard};
use crate::settings::{BUFFER_LIMIT_BYTES, HEAD_LIMIT_BYTES, Timeouts};
use crate::signal::ConnectionSignal;
use crate::socket::Socket;
use crate::tls::{TLS_FIRST_BYTE, Tls};
use crate::turns::Own;
use crate::watch::{Answer, Wait, Watch, Wire};
use crate::{Refusal, health};

/// What all connections share.
pub(crate) struct Shared {
    pub guard: Guard,
    pub timeouts: Timeouts,
    pub drain: Drain,
    pub tls: Option<Tls>,
    http: http1::Builder,
}

impl Shared {
    pub fn new(guard: Guard, timeouts: Timeouts, tls: Option<Tls>) -> Self {
        let mut http = http1::Builder::new();
        // Our own clock covers heads, and silence between requests besides. The limit of 100 headers is
        // the parser's default; naming it would cost an allocation per request.
        http.header_read_timeout(None).max_header_size(HEAD_LIMIT_BYTES).max_buf_size(BUFFER_LIMIT_BYTES);
        Self { guard, timeouts, drain: Drain::default(), tls, http }
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
    /// Evicted, or its token was revoked.
    Cut,
}

/// A client that was let in only in case it is a health probe has this long to say so.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// Serves one client. With `beyond` the limits are reached: a health probe is answered, anything else gets this refusal.
pub(crate) async fn run(
    stream: TcpStream,
    slot: ConnectionSlot,
    shared: Arc<Shared>,
    beyond: Option<Refusal>,
) {
    let mut timeouts = shared.timeouts;
    if beyond.is_some() {
        timeouts.first_byte = timeouts.first_byte.min(PROBE_PATIENCE);
        timeouts.header = timeouts.header.min(PROBE_PATIENCE);
    }
    if let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) {
        slot.signal.set_ends(peer, local);
    }
    let Some(first) = first_byte(&stream, &slot.signal, &shared, timeouts.first_byte).await else {
        // Told at once what is wrong, even if it only waits to be spoken to.
        let word = beyond.filter(|_| shared.tls.is_none() && !slot.signal.is_closing());
        let word = word.map(|refusal| refusal.raw(&shared.guard.fresh_id()));
        return if word.is_some() {
            Goodbye::SHORT.say(stream, word.as_deref()).await
        };
    };
    let Some(socket) = secure(stream, first, &slot.signal, &shared).await else { return };
    let (watch, signal) = (Arc::new(Watch::new()), slot.signal.clone());
    let service = {
        let (shared, watch, signal) = (shared.clone(), watch.clone(), signal.clone());
        service_fn(move |request: Request<Incoming>| {
            watch.request();
            let exchange = Exchange { shared: shared.clone(), watch: watch.clone(), signal: signal.clone() };
            let beyond = beyond.clone();
            async move { Ok::<_, Infallible>(exchange.answer(request, beyond).await) }
        })
    };
    let wire = TokioIo::new(Wire::new(socket, slot, watch.clone()));
    let mut http = shared.http.serve_connection(wire, service).with_upgrades();
    let end = drive(&mut http, &watch, &signal, &shared, timeouts).await;
    // An upgraded socket belongs to its face now, and its slot went with it.
    let Some(parts) = http.into_parts() else { return };
    let (socket, _slot) = parts.io.into_inner().into_parts();
    let last_word = match end {
        End::Closed(Ok(())) => None,
        End::Closed(Err(error)) => complaint(&watch, &error),
        End::TimedOut(Wait::Head) => Some(Refusal::slow_head()),
        // Unsent bytes of a client that does not read must not stay behind in the system.
        End::TimedOut(Wait::Write) => return drop(socket.tcp().set_zero_linger()),
        End::Cut if signal.is_revoked() && !watch.is_answered() => Some(Refusal::revoked_token()),
        End::TimedOut(Wait::Idle | Wait::Nothing) | End::Quiet | End::Cut => return,
    };
    let last_word = last_word.map(|refusal| refusal.raw(&shared.guard.fresh_id()));
    Goodbye::ANSWERED.say(socket, last_word.as_deref()).await;
}

/// One request and its answer.
struct Exchange {
    shared: Arc<Shared>,
    watch: Arc<Watch>,
    signal: Arc<ConnectionSignal>,
}

impl Exchange {
    async fn answer(self, request: Request<Incoming>, beyond: Option<Refusal>) -> Response<Answer> {
        let Self { shared, watch, signal } = self;
        let refused = beyond.clone().filter(|_| !health::is_open(request.uri().path()));
        let mut response = match refused {
            Some(refusal) => shared.guard.turn_away(request.uri(), refusal),
            None => {
                let request = request.map(|body| shared.guard.bounded(body, &signal));
                shared.guard.answer(request, &signal).await
            }
        };
        signal.complete();
        watch.answer();
        if guard::upgrades(&response) {
            watch.upgrade();
            signal.upgrade();
        } else if shared.drain.has_begun() || beyond.is_some() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.map(|body| Answer::new(body, watch, signal))
    }
}

/// The socket, behind TLS where the server has a certificate. A client that speaks plain HTTP there is told so.
async fn secure(stream: TcpStream, first: u8, signal: &ConnectionSignal, shared: &Shared) -> Option<Socket> {
    let Some(tls) = &shared.tls else { return Some(Socket::Plain(stream)) };
    if first != TLS_FIRST_BYTE {
        Goodbye::SHORT.say(stream, Some(&Refusal::plain_http().raw(&shared.guard.fresh_id()))).await;
        return None;
    }
    tokio::select! {
        accepted = tls.accept(stream) => accepted.map(Socket::Tls),
        () = signal.closed() => None,
    }
}

/// Waits for a client to say anything at all; a silent one costs no HTTP state. Gives the first byte.
async fn first_byte(
    stream: &TcpStream,
    signal: &ConnectionSignal,
    shared: &Shared,
    limit: Duration,
) -> Option<u8> {
    let bell = shared.drain.bell.notified();
    let mut byte = [0];
    if shared.drain.has_begun() {
        return None;
    }
    tokio::select! {
        biased;
        seen = stream.peek(&mut byte) => seen.is_ok_and(|count| count > 0).then_some(byte[0]),
        () = bell => None,
        () = signal.closed() => None,
        () = tokio::time::sleep(limit) => None,
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
async fn drive<H>(
    http: &mut H,
    watch: &Watch,
    signal: &ConnectionSignal,
    shared: &Shared,
    timeouts: Timeouts,
) -> End
where
    H: Future<Output = hyper::Result<()>> + Unpin,
{
    let mut clock = Clock::new(timeouts);
    let mut alarm = pin!(sleep_until(clock.next_look()));
    let mut bell = pin!(shared.drain.bell.notified());
    let mut own: Option<Own> = None;
    poll_fn(|cx| {
        // A spawned task keeps its waker, so one poll is enough to be called when draining begins.
        let own = own.get_or_insert_with(|| {
            let _ = bell.as_mut().poll(cx);
            signal.register(cx.waker());
            Own::of(cx.waker())
        });
        if signal.is_closing() {
            return Poll::Ready(End::Cut);
        }
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
