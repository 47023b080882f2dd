//! The log's way to stderr: one line, one write, and never a wait for whoever does not read it.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use orchestr8_kernel::log::Sink;

/// Lines that may wait for stderr. A client that starts us and never reads our stderr must not make us hang, so what is
/// beyond is dropped and counted.
const WAITING_LINES: usize = 4096;

enum Item {
    Line(String),
    /// Everything before it has been written once it is answered.
    Flush(SyncSender<()>),
}

/// Clones share the queue and the thread behind it.
#[derive(Clone)]
pub struct Stderr {
    queue: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
}

impl Stderr {
    /// Without its thread lines are written where they are logged: later, but not lost.
    pub fn start() -> Self {
        Self::writing_to(std::io::stderr())
    }

    fn writing_to(out: impl Write + Send + 'static) -> Self {
        let (queue, items) = sync_channel(WAITING_LINES);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = dropped.clone();
        let thread = std::thread::Builder::new().name(String::from("log"));
        // Where no thread can be started, the queue has no reader: lines are dropped, and nothing else can be done.
        let _ = thread.spawn(move || run(&items, out, &counted));
        Self { queue, dropped }
    }

    /// Waits until what was logged is written, at most so long.
    pub fn flush(&self, limit: Duration) {
        let (done, written) = sync_channel(1);
        if self.queue.try_send(Item::Flush(done)).is_ok() {
            let _ = written.recv_timeout(limit);
        }
    }
}

impl Sink for Stderr {
    fn write(&self, line: &str) {
        match self.queue.try_send(Item::Line(line.to_owned())) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn run(items: &Receiver<Item>, mut out: impl Write, dropped: &AtomicU64) {
    while let Ok(item) = items.recv() {
        match item {
            Item::Line(line) => {
                let lost = dropped.swap(0, Ordering::Relaxed);
                // A stderr that is gone cannot be told about.
                let _ = out.write_all(line.as_bytes());
                if lost > 0 {
                    let _ = out.write_all(
                        format!("{{\"level\":\"warn\",\"message\":\"log lines were dropped\",\"dropped\":{lost}}}\n").as_bytes(),
                    );
                }
            }
            Item::Flush(done) => {
                let _ = out.flush();
                let _ = done.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

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
