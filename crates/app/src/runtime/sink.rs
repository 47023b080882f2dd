//! The log's way to stderr: one line, one write, and never a wait for whoever does not read it.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::log::Sink;
use parking_lot::{Condvar, Mutex};

/// Lines that may wait for stderr. A client that starts us and never reads our stderr must not make us hang, so what is
/// beyond is dropped and counted.
const WAITING_LINES: usize = 4096;

/// Clones share the queue and the thread behind it.
#[derive(Clone)]
pub struct Stderr(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    emptied: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<String>,
    dropped: u64,
    /// A line was taken out and is not written yet.
    writing: bool,
}

impl Stderr {
    /// Where no thread can be started, lines are dropped, and nothing else can be done.
    pub fn start() -> Self {
        Self::writing_to(std::io::stderr())
    }

    fn writing_to(out: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new().name(String::from("log"));
        let _ = thread.spawn({
            let shared = shared.clone();
            move || shared.write_for_ever(out)
        });
        Self(shared)
    }

    /// Waits until what was logged is written, at most so long.
    pub fn flush(&self, limit: Duration) {
        let mut queue = self.0.queue.lock();
        while !queue.lines.is_empty() || queue.writing {
            if self.0.emptied.wait_for(&mut queue, limit).timed_out() {
                return;
            }
        }
    }
}

impl Sink for Stderr {
    fn write(&self, line: &str) {
        let mut queue = self.0.queue.lock();
        if queue.lines.len() < WAITING_LINES {
            queue.lines.push_back(line.to_owned());
            self.0.filled.notify_one();
        } else {
            queue.dropped += 1;
        }
    }
}

impl Shared {
    fn write_for_ever(&self, mut out: impl Write) {
        loop {
            let (line, dropped) = self.next();
            // A stderr that is gone cannot be told about.
            let _ = out.write_all(line.as_bytes());
            if dropped > 0 {
                let told = format!(
                    "{{\"level\":\"warn\",\"message\":\"log lines were dropped\",\"dropped\":{dropped}}}\n"
                );
                let _ = out.write_all(told.as_bytes());
            }
        }
    }

    fn next(&self) -> (String, u64) {
        let mut queue = self.queue.lock();
        queue.writing = false;
        loop {
            if let Some(line) = queue.lines.pop_front() {
                queue.writing = true;
                return (line, std::mem::take(&mut queue.dropped));
            }
            self.emptied.notify_all();
            self.filled.wait(&mut queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, sync_channel};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_come_out_in_order_and_a_flush_waits_for_them() {
        let kept = Kept::default();
        let sink = Stderr::writing_to(kept.clone());
        for number in 0..100 {
            sink.write(&format!("{number}\n"));
        }
        sink.flush(Duration::from_secs(10));
        let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8(kept.0.lock().clone()).unwrap(), expected);
    }

    /// A reader that reads nothing, until it is let go.
    struct Stuck(Receiver<()>, Kept);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            self.1.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stderr_nobody_reads_holds_nobody_up_and_the_loss_is_told() {
        let (go, wait) = sync_channel(0);
        let kept = Kept::default();
        let sink = Stderr::writing_to(Stuck(wait, kept.clone()));
        let extra = 50;
        for _ in 0..WAITING_LINES + extra {
            sink.write("line\n");
        }
        drop(go);
        sink.flush(Duration::from_secs(10));
        let text = String::from_utf8(kept.0.lock().clone()).unwrap();
        let told: u64 = text
            .lines()
            .filter_map(|line| line.split("\"dropped\":").nth(1)?.trim_end_matches('}').parse::<u64>().ok())
            .sum();
        let written = text.lines().filter(|line| *line == "line").count() as u64;
        assert!(told >= 1);
        assert_eq!(written + told, (WAITING_LINES + extra) as u64);
    }
}
