//! Lines of stdin, one at a time, beside everything else that happens.

use std::collections::VecDeque;
use std::io::{BufRead, Read};

use tokio::sync::mpsc;

/// Lines typed ahead.
const AHEAD: usize = 16;

/// A longer line is cut; a prompt has fewer letters.
const LINE_BYTES: u64 = 1024 * 1024;

pub struct Lines {
    lines: mpsc::Receiver<String>,
    /// What was typed before a question was asked, and so is no answer to it.
    ahead: VecDeque<String>,
}

impl Lines {
    /// Reads stdin from a thread of its own, since a read of it cannot be given up.
    pub fn of_stdin() -> Self {
        let (tell, lines) = mpsc::channel(AHEAD);
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            let mut line = Vec::new();
            loop {
                line.clear();
                match (&mut stdin).take(LINE_BYTES).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
                if tell.blocking_send(text).is_err() {
                    return;
                }
            }
        });
        Self { lines, ahead: VecDeque::new() }
    }

    /// The next line; none at the end.
    pub async fn next(&mut self) -> Option<String> {
        match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.lines.recv().await,
        }
    }

    /// Sets aside what was typed so far: it is no answer to the question that is put next.
    pub fn set_aside(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.ahead.push_back(line);
        }
    }

    /// The next line after those that were set aside.
    pub async fn answer(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
