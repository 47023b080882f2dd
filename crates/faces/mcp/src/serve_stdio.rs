//! MCP over a pair of pipes: one thread reads and answers, another writes what tasks have to say.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memchr::memchr;
use orchestr8_kernel::{Principal, Transport};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{Connection, Incoming, Received};
use crate::face::{Face, Outlet};
use crate::outbox::Outbox;
use crate::reader_watch::ReaderWatch;
use crate::skeleton::Skeleton;
use crate::wire::ENVELOPE_BYTES;

/// What one read takes at most.
const READ_BYTES: usize = 65_536;
/// Replies of one read are written together, but not more than this at once.
const WRITE_BYTES: usize = 262_144;
/// The last lines are given this long to reach a client that may have stopped reading.
const FLUSH: Duration = Duration::from_secs(1);

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its side; every reply was given, or the time for it was over.
    Input,
    /// The client reads no more.
    Output,
    /// The process is ending.
    Shutdown,
}

/// Serves one client until it goes or `shutdown` fires; then drains what is in flight for at most `drain`.
///
/// The caller ends the process afterwards: a read that hangs in the system cannot be ended otherwise.
pub async fn serve(
    face: &Face,
    who: Arc<Principal>,
    input: impl Read + Send + 'static,
    output: impl Write + AsFd + Send + 'static,
    shutdown: CancellationToken,
    drain: Duration,
) -> io::Result<Ended> {
    let (watch, broken) = watch_reader(&output)?;
    let outbox = Arc::new(Outbox::new(output));
    tokio::spawn(break_off(outbox.clone(), broken));
    let connection = face.connect(who, Transport::Stdio, outbox.clone());
    let replies = TaskTracker::new();
    let is_stopping = Arc::new(AtomicBool::new(false));
    let (read_to_end, mut at_end) = oneshot::channel::<()>();
    let mut reader = Reader {
        connection: connection.clone(),
        outbox: outbox.clone(),
        replies: replies.clone(),
        runtime: Handle::current(),
        line_bytes: face.settings().message_bytes.max(face.kernel().limits().payload_bytes + ENVELOPE_BYTES),
        out: Vec::new(),
        is_stopping: is_stopping.clone(),
    };
    std::thread::Builder::new().name("mcp-read".into()).spawn(move || {
        reader.run(input);
        drop(read_to_end);
    })?;
    let (written_to_end, written) = oneshot::channel::<()>();
    let writing = outbox.clone();
    std::thread::Builder::new().name("mcp-write".into()).spawn(move || {
        writing.run();
        drop(written_to_end);
    })?;
    let ended = tokio::select! {
        biased;
        () = outbox.gone.cancelled() => Ended::Output,
        () = shutdown.cancelled() => Ended::Shutdown,
        _ = &mut at_end => Ended::Input,
    };
    is_stopping.store(true, Ordering::Release);
    connection.wind_down();
    let clock = &face.kernel().ports().clock;
    replies.close();
    tokio::select! {
        biased;
        () = outbox.gone.cancelled() => {}
        () = replies.wait() => {}
        () = clock.sleep(drain) => {
            face.kernel().log().warn("some replies were not ready in time", || json!({"waiting": connection.waiting()}));
        }
    }
    drop(watch);
    connection.close();
    outbox.close();
    tokio::select! {
        biased;
        _ = written => {}
        () = clock.sleep(FLUSH) => {}
    }
    outbox.let_go();
    Ok(ended)
}

/// Watches the other end of stdout, and says when it is closed.
fn watch_reader(output: &impl AsFd) -> io::Result<(ReaderWatch, oneshot::Receiver<()>)> {
    let (broken, breaks) = oneshot::channel();
    let watch = ReaderWatch::start(output, move || {
        let _ = broken.send(());
    })?;
    Ok((watch, breaks))
}

async fn break_off<W: Write + Send + 'static>(outbox: Arc<Outbox<W>>, broken: oneshot::Receiver<()>) {
    if broken.await.is_ok() {
        outbox.break_off();
    }
}

/// The reading thread. It runs what is quick itself; a client that does not read its replies is not read either.
struct Reader<W: Write + Send + 'static> {
    connection: Arc<Connection>,
    outbox: Arc<Outbox<W>>,
    replies: TaskTracker,
    runtime: Handle,
    /// A longer line is not kept.
    line_bytes: usize,
    /// The replies of one read.
    out: Vec<u8>,
    is_stopping: Arc<AtomicBool>,
}

impl<W: Write + Send + 'static> Reader<W> {
    fn run(&mut self, mut input: impl Read) {
        let runtime = self.runtime.clone();
        let _inside = runtime.enter();
        let mut lines = Lines { buffer: Vec::new(), line_bytes: self.line_bytes, oversized: None };
        let mut chunk = vec![0; READ_BYTES];
        loop {
            let read = match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            if self.is_stopping.load(Ordering::Acquire) {
                return;
            }
            lines.take(&chunk[..read], |line| self.receive(line));
            if !self.flush() {
                return;
            }
        }
        // A last line without a line end is a line all the same.
        lines.finish(|line| self.receive(line));
        self.flush();
    }

    fn receive(&mut self, line: Line<'_>) {
        let outlet: Arc<dyn Outlet> = self.outbox.clone();
        let received = match line {
            Line::Whole(line) => self.connection.receive(line, &Incoming::default(), outlet),
            Line::Oversized(skeleton) => self.connection.receive_oversized(&skeleton, outlet),
        };
        match received {
            Received::Nothing => {}
            Received::Reply(reply) => {
                self.out.extend_from_slice(reply.text.as_bytes());
                self.out.push(b'\n');
                if self.out.len() >= WRITE_BYTES {
                    self.flush();
                }
            }
            Received::Pending(pending) => {
                let outbox = self.outbox.clone();
                self.replies.spawn_on(
                    async move {
                        if let Some(reply) = pending.await {
                            outbox.send_reply(reply.text).await;
                        }
                    },
                    &self.runtime,
                );
            }
        }
    }

    /// False: the client is gone.
    fn flush(&mut self) -> bool {
        if self.out.is_empty() {
            return !self.outbox.gone.is_cancelled();
        }
        let written = self.outbox.write(&self.out);
        self.out.clear();
        self.out.shrink_to(WRITE_BYTES);
        written
    }
}

/// Bytes as they come, cut into lines.
struct Lines {
    /// The beginning of a line whose end has not come.
    buffer: Vec<u8>,
    line_bytes: usize,
    /// A line that is too long to be kept, as far as it has come.
    oversized: Option<Box<Skeleton>>,
}

enum Line<'a> {
    Whole(&'a [u8]),
    Oversized(Box<Skeleton>),
}

impl Lines {
    fn take(&mut self, mut bytes: &[u8], mut give: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            if self.buffer.is_empty() && self.oversized.is_none() && end <= self.line_bytes {
                give_line(&bytes[..end], &mut give);
            } else {
                self.grow(&bytes[..end]);
                self.finish(&mut give);
            }
            bytes = &bytes[end + 1..];
        }
        self.grow(bytes);
    }

    /// Gives what has come of a line as a line.
    fn finish(&mut self, mut give: impl FnMut(Line<'_>)) {
        match self.oversized.take() {
            Some(skeleton) => give(Line::Oversized(skeleton)),
            None => give_line(&self.buffer, &mut give),
        }
        self.buffer.clear();
        self.buffer.shrink_to(READ_BYTES);
    }

    fn grow(&mut self, bytes: &[u8]) {
        if let Some(skeleton) = &mut self.oversized {
            skeleton.feed(bytes);
        } else if self.buffer.len() + bytes.len() > self.line_bytes {
            let mut skeleton = Box::<Skeleton>::default();
            skeleton.feed(&self.buffer);
            skeleton.feed(bytes);
            self.buffer = Vec::new();
            self.oversized = Some(skeleton);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }
}

/// Without one carriage return at its end. A line of nothing but white space says nothing.
fn give_line(line: &[u8], give: &mut impl FnMut(Line<'_>)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.trim_ascii().is_empty() {
        give(Line::Whole(line));
    }
}
