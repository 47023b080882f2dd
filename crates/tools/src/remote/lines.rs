//! The lines of a child's stdout, each changed before the library reads it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::incoming::IncomingText;
use super::long_line::LongLine;

/// Read at once from the pipe, which holds no more by default.
const CHUNK_BYTES: usize = 65_536;

/// Whole lines come out as `IncomingText` has them. In place of an answer longer than the limit comes an error.
pub struct Lines<R> {
    inner: R,
    incoming: IncomingText,
    limit: usize,
    chunk: Box<[u8]>,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The same, once it is too long.
    long: Option<LongLine>,
    /// What is to be read, and how much of it was.
    ready: Vec<u8>,
    read: usize,
}

impl<R> Lines<R> {
    pub fn new(inner: R, incoming: IncomingText, limit: usize) -> Self {
        let chunk = vec![0; CHUNK_BYTES].into_boxed_slice();
        Self { inner, incoming, limit, chunk, line: Vec::new(), long: None, ready: Vec::new(), read: 0 }
    }

    fn take(&mut self, count: usize) {
        let Self { chunk, line, long, ready, limit, incoming, .. } = self;
        for part in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            let is_whole = part.ends_with(b"\n");
            if long.is_none() && line.len() + part.len() > *limit + 1 {
                long.get_or_insert_default().feed(line);
                *line = Vec::new();
            }
            if let Some(long_line) = long {
                long_line.feed(part);
                if is_whole {
                    let error = long.take().and_then(|line| line.error(*limit));
                    ready.extend(error.into_iter().flat_map(|error| (error + "\n").into_bytes()));
                }
                continue;
            }
            line.extend_from_slice(part);
            if !is_whole {
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
    async fn lines_up_to_the_limit_come_through_and_longer_ones_become_errors() {
        let long = format!("{{\"text\":\"{}\",\"id\":7}}\n", "ä".repeat(200_000));
        let length = long.len() - 1;
        assert_eq!(read(&format!("{long}{long}"), length).await, format!("{long}{long}"));
        for limit in [10, CHUNK_BYTES, length - 1] {
            let heard = read(&format!("{long}{{}}\n{long}"), limit).await;
            let lines: Vec<&str> = heard.lines().collect();
            assert_eq!((lines.len(), lines[1]), (3, "{}"), "{limit}");
            for line in [lines[0], lines[2]] {
                assert!(line.contains("\"id\":7") && line.contains("error"), "{line}");
            }
        }
    }
}
