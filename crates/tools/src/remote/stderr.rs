//! What a child writes to its stderr, in our log: line by line, cut, and not too much of it. The last lines are kept for its status.

use std::collections::VecDeque;
use std::sync::Arc;

use orchestr8_kernel::Log;
use orchestr8_kernel::ports::Clock;
use parking_lot::{Mutex, RwLock};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::Link;
use super::address_mask::mask_addresses;
use super::incoming::IncomingText;
use super::limits::{
    STDERR_LINE_BYTES, STDERR_LINES, STDERR_STATUS_LINES, STDERR_TAIL_CHARACTERS, STDERR_TAIL_LINES,
    STDERR_WINDOW_MS,
};

/// The last lines of a server's stderr, across its restarts, without its credentials.
pub struct StderrTail {
    incoming: RwLock<IncomingText>,
    lines: Mutex<VecDeque<String>>,
}

impl StderrTail {
    pub fn of(link: &Link) -> Self {
        Self { incoming: RwLock::new(IncomingText::of(link)), lines: Mutex::default() }
    }

    /// From now on these credentials are masked.
    pub fn set_mask(&self, incoming: IncomingText) {
        *self.incoming.write() = incoming;
    }

    /// A text of the server without its credentials.
    pub fn mask(&self, text: &str) -> String {
        mask_addresses(&self.incoming.read().mask(text))
    }

    /// The last lines, for its status.
    pub fn last_lines(&self) -> Vec<String> {
        let lines = self.lines.lock();
        lines.iter().skip(lines.len().saturating_sub(STDERR_STATUS_LINES)).cloned().collect()
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().iter().cloned().collect()
    }

    fn push(&self, line: &str) {
        let line = self.mask(line).chars().take(STDERR_TAIL_CHARACTERS).collect();
        let mut lines = self.lines.lock();
        if lines.len() >= STDERR_TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Reads to the end of it.
pub async fn tell(stderr: impl AsyncRead + Unpin, log: Log, clock: Arc<dyn Clock>, tail: Arc<StderrTail>) {
    let mut reader = BufReader::new(stderr);
    let mut speaker = Speaker { log, clock, tail, line: Vec::new(), said: 0, dropped: 0, window_us: 0 };
    while let Ok(bytes) = reader.fill_buf().await {
        if bytes.is_empty() {
            break;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        speaker.take(&bytes[..end.unwrap_or(bytes.len())]);
        let used = end.map_or(bytes.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            speaker.say();
        }
    }
    speaker.say();
    speaker.confess();
}

struct Speaker {
    log: Log,
    clock: Arc<dyn Clock>,
    tail: Arc<StderrTail>,
    line: Vec<u8>,
    /// Lines said and dropped since the window began.
    said: u32,
    dropped: u64,
    window_us: u64,
}

impl Speaker {
    fn take(&mut self, bytes: &[u8]) {
        let room = STDERR_LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn say(&mut self) {
        let now_us = self.clock.elapsed_us();
        if now_us.saturating_sub(self.window_us) >= STDERR_WINDOW_MS * 1000 {
            self.confess();
            (self.said, self.window_us) = (0, now_us);
        }
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        self.tail.push(text);
        if self.said >= STDERR_LINES {
            self.dropped += 1;
            return;
        }
        self.said += 1;
        self.log.info("an MCP server wrote to stderr", json!({"line": text}));
    }

    fn confess(&mut self) {
        if self.dropped > 0 {
            self.log.warn("lines an MCP server wrote to stderr were dropped", json!({"lines": self.dropped}));
            self.dropped = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::log::{Captured, Level};
    use orchestr8_kernel::ports::clock::Simulated;

    fn tail(link: &Link) -> Arc<StderrTail> {
        Arc::new(StderrTail::of(link))
    }

    fn stdio() -> Link {
        let env = [("API_TOKEN".to_owned(), "canary-of-a-variable".to_owned())].into();
        Link::Stdio { command: String::new(), args: Vec::new(), env, cwd: None }
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_without_credentials() {
        let (clock, tail) = (Arc::new(Simulated::new()), tail(&stdio()));
        let text = format!("{}last of canary-of-a-variable\n", "a\n".repeat(STDERR_TAIL_LINES));
        tell(text.as_bytes(), Log::off(), clock, tail.clone()).await;
        let lines = tail.lines();
        assert_eq!(lines.len(), STDERR_TAIL_LINES);
        assert_eq!(lines[STDERR_TAIL_LINES - 1], "last of [REDACTED]");
        assert_eq!(tail.last_lines(), lines[STDERR_TAIL_LINES - STDERR_STATUS_LINES..]);
    }

    async fn told(text: &[u8]) -> Vec<serde_json::Value> {
        let (captured, clock) = (Captured::default(), Arc::new(Simulated::new()));
        let log = Log::new(Level::Debug, captured.clone(), Arc::default(), clock.clone());
        tell(text, log, clock, tail(&stdio())).await;
        captured.entries()
    }

    #[tokio::test]
    async fn lines_are_told_and_cut() {
        let long = "x".repeat(STDERR_LINE_BYTES + 10);
        let entries = told(format!("one\r\n\n{long}\n\u{1b}[31mred").as_bytes()).await;
        let lines: Vec<&str> = entries.iter().map(|entry| entry["line"].as_str().unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!((lines[0], lines[1].len()), ("one", STDERR_LINE_BYTES));
        assert!(!lines[2].contains('\u{1b}'), "the log makes it safe to print");
    }

    #[tokio::test]
    async fn too_many_lines_are_counted_instead() {
        let entries = told("a\n".repeat(60).as_bytes()).await;
        assert_eq!(entries.len(), 51);
        assert_eq!(entries[50]["lines"], 10);
    }
}
