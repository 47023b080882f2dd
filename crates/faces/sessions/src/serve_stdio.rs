//! The protocol over a pair of pipes: one JSON object a line in both directions, and nothing else on the way out.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::{Source, Transport};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Open};
use crate::face::{Face, Inner};
use crate::limits::{CLOSE_MS, PIPE_BYTES};
use crate::lines::{Line, Lines};
use crate::metrics::count;
use crate::outbox::Outbox;

/// Why a conversation over pipes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its side; every command was answered, or the time for it was over.
    Input,
    /// The client reads no more.
    Output,
    /// The client left too much unread.
    Slow,
    /// The server stops.
    Shutdown,
    /// There were too many clients already.
    TurnedAway,
}

pub async fn serve(
    face: &Face,
    inner: &Arc<Inner>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    stop: CancellationToken,
) -> Ended {
    let principal = inner.principal(None);
    let Some(open) =
        principal.and_then(|local| Open::new(inner, local, Transport::Stdio, Source::stdio("sessions")))
    else {
        return Ended::TurnedAway;
    };
    inner.listen();
    open.greet().await;
    let (connection, clock) = (open.0.clone(), inner.kernel.ports().clock.clone());
    let mut reading = std::pin::pin!(read(&connection, input));
    let mut writing = std::pin::pin!(write(&connection.outbox, output));
    let ended = tokio::select! {
        biased;
        () = &mut writing => Ended::Output,
        () = connection.outbox.overflow() => Ended::Slow,
        () = inner.closing.cancelled() => Ended::Shutdown,
        () = stop.cancelled() => Ended::Shutdown,
        () = &mut reading => Ended::Input,
    };
    let drain = Duration::from_millis(inner.settings.drain_ms);
    match ended {
        Ended::Output | Ended::TurnedAway => return ended,
        Ended::Slow => {
            count(&inner.metrics.slow_readers);
            return ended;
        }
        Ended::Input => tokio::select! {
            biased;
            () = &mut writing => return ended,
            () = connection.idle() => {}
            () = clock.sleep(drain) => {
                inner.kernel.log().warn("some commands were not answered in time", || json!({"transport": "stdio"}));
            }
        },
        // Commands that come meanwhile are refused, each with an answer.
        Ended::Shutdown => tokio::select! {
            biased;
            () = &mut writing => return ended,
            () = inner.closing.cancelled() => {}
            _ = face.shutdown("graceful_shutdown", drain) => {}
            () = async { reading.await; std::future::pending().await } => {}
        },
    }
    connection.outbox.close();
    tokio::select! {
        biased;
        () = writing => {}
        () = clock.sleep(Duration::from_millis(CLOSE_MS)) => {}
    }
    ended
}

/// Reads until the end of the input. A client that does not read its answers is not read either.
async fn read(connection: &Arc<Connection>, mut input: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(connection.face.settings.message_bytes);
    let mut chunk = vec![0; PIPE_BYTES];
    loop {
        connection.outbox.room().await;
        let read = match input.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        let mut rest = &chunk[..read];
        while !rest.is_empty() {
            if let Some(line) = lines.next(&mut rest) {
                receive(connection, &line);
                if !connection.outbox.has_room() {
                    connection.outbox.room().await;
                }
            }
        }
    }
    if let Some(line) = lines.finish() {
        receive(connection, &line);
    }
}

fn receive(connection: &Arc<Connection>, line: &Line<'_>) {
    match line {
        Line::Whole(line) => connection.receive(line),
        Line::Oversized(bytes) => connection.refuse_oversized(*bytes),
    }
}

/// Writes whole lines until there are no more, or nobody takes them.
async fn write(outbox: &Outbox, mut output: impl AsyncWrite + Unpin) {
    let mut chunk = Vec::new();
    while outbox.filled().await {
        while let Some(frame) = outbox.pop() {
            chunk.extend_from_slice(frame.as_bytes());
            chunk.push(b'\n');
            if chunk.len() >= PIPE_BYTES {
                break;
            }
        }
        outbox.stall(true);
        if output.write_all(&chunk).await.is_err() || output.flush().await.is_err() {
            return;
        }
        outbox.stall(false);
        chunk.clear();
        chunk.shrink_to(PIPE_BYTES);
    }
}
