//! The lines of a child's stdout, each changed before the library reads it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::incoming::IncomingText;
use super::oversized::{IdScanner, replacement};

/// Read at once from the pipe, which holds no more by default.
const CHUNK_BYTES: usize = 65_536;

/// Whole lines come out as `IncomingText` has them. In the place of a line longer than the limit comes an error for the request that
/// it answers, as soon as that is known; the rest of it is dropped.
pub struct Lines<R> {
    inner: R,
    incoming: IncomingText,
    limit: usize,
    chunk: Box<[u8]>,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// That line is too long: what is looked for in it, and whether the error has taken its place.
    oversized: Option<(IdScanner, bool)>,
    /// What is to be read, and how much of it was.
    ready: Vec<u8>,
    read: usize,
}

impl<R> Lines<R> {
    pub fn new(inner: R, incoming: IncomingText, limit: usize) -> Self {
        let chunk = vec![0; CHUNK_BYTES].into_boxed_slice();
        Self { inner, incoming, limit, chunk, line: Vec::new(), oversized: None, ready: Vec::new(), read: 0 }
    }

    fn take(&mut self, count: usize) {
        let Self { chunk, line, oversized, ready, limit, incoming, .. } = self;
        for part in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            let is_whole = part.ends_with(b"\n");
            if let Some((scanner, is_answered)) = oversized {
                answer_oversized(scanner, is_answered, part, *limit, ready);
            } else {
                line.extend_from_slice(part);
                if line.len() > *limit {
                    let (mut scanner, mut is_answered) = (IdScanner::default(), false);
                    answer_oversized(&mut scanner, &mut is_answered, line, *limit, ready);
                    *line = Vec::new();
                    *oversized = Some((scanner, is_answered));
                }
            }
            if !is_whole {
                continue;
            }
            if oversized.take().is_some() {
                continue;
            }
            let text = std::str::from_utf8(line).ok();
            match text.and_then(|text| incoming.change(text.trim_end_matches('\n'))) {
                Some(text) => {
                    ready.extend_from_slice(text.as_bytes());
                    ready.push(b'\n');
                    line.clear();
                }
                None => ready.append(line),
            }
        }
    }
}

/// Looks for the id in a part of a line that is too long, and puts the error in its place once it is known.
fn answer_oversized(
    scanner: &mut IdScanner,
    is_answered: &mut bool,
    part: &[u8],
    limit: usize,
    ready: &mut Vec<u8>,
) {
    if *is_answered {
        return;
    }
    if let Some(id) = scanner.feed(part) {
        ready.extend_from_slice(replacement(id, limit).as_bytes());
        ready.push(b'\n');
        *is_answered = true;
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let lines = &mut *self;
        while lines.read == lines.ready.len() {
            (lines.read, lines.ready) = (0, Vec::new());
            let mut chunk = ReadBuf::new(&mut lines.chunk);
            ready!(Pin::new(&mut lines.inner).poll_read(context, &mut chunk))?;
            let count = chunk.filled().len();
            if count == 0 {
                // What has no end is not a message, and the library says what becomes of it.
                std::mem::swap(&mut lines.ready, &mut lines.line);
                if lines.ready.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            lines.take(count);
        }
        let rest = &lines.ready[lines.read..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        lines.read += count;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read(text: &str, limit: usize) -> String {
        let mut read = String::new();
        Lines::new(text.as_bytes(), IncomingText::default(), limit).read_to_string(&mut read).await.unwrap();
        read
    }

    #[tokio::test]
    async fn lines_come_out_whole_and_in_order() {
        let plain = "{\"a\":1}\n\nno json\n";
        let task = r#"{"result":{"taskId":"t"}}"#;
        let lifted = r#"{"result":{"orchestr8/task":{"taskId":"t"}}}"#;
        assert_eq!(read(&format!("{plain}{task}\n{plain}"), 100).await, format!("{plain}{lifted}\n{plain}"));
        assert_eq!(
            read(&format!("{task}\n{task}"), 100).await,
            format!("{lifted}\n{task}"),
            "no end, no line"
        );
    }

    #[tokio::test]
    async fn an_error_takes_the_place_of_a_line_that_is_too_long() {
        let long = "ä".repeat(200_000);
        let fits = format!("{{\"text\":\"{long}\"}}\n");
        assert_eq!(read(&format!("{fits}{fits}"), 1_000_000).await, format!("{fits}{fits}"));
        let first = format!("{{\"id\":7,\"result\":\"{long}\"}}\n");
        let last = format!("{{\"result\":\"{long}\",\"id\":8}}\n");
        let small = "{\"id\":9,\"result\":1}\n";
        for limit in [40, CHUNK_BYTES, 399_999] {
            let answers = [7, 8].map(|id| format!("{}\n", replacement(&id.into(), limit)));
            assert_eq!(
                read(&format!("{first}{last}{fits}{small}"), limit).await,
                format!("{}{}{small}", answers[0], answers[1]),
                "{limit}"
            );
        }
    }
}
