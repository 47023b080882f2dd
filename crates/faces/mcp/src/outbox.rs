//! The way to stdout: one lock for writing, one bounded queue in front of it, so that nobody but a thread ever waits.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::face::Outlet;

/// What may wait for a slow client. A notification that finds no room is dropped; a reply waits for room.
pub const QUEUE_BYTES: usize = 8_388_608;

struct Queue {
    bytes: Vec<u8>,
    is_closed: bool,
}

/// Everything said to the client goes through here, whole lines only.
pub struct Outbox<W> {
    queue: Mutex<Queue>,
    /// Wakes the writing thread.
    filled: Condvar,
    /// Wakes replies that wait for room.
    drained: Notify,
    /// None once the pipe is let go of.
    writer: Mutex<Option<W>>,
    is_broken: AtomicBool,
    /// Fires when the client cannot be written to any more.
    pub gone: CancellationToken,
}

impl<W: Write + Send + 'static> Outbox<W> {
    pub fn new(writer: W) -> Self {
        Self {
            queue: Mutex::new(Queue { bytes: Vec::new(), is_closed: false }),
            filled: Condvar::new(),
            drained: Notify::new(),
            writer: Mutex::new(Some(writer)),
            is_broken: AtomicBool::new(false),
            gone: CancellationToken::new(),
        }
    }

    /// Writes what is queued and then these lines, and waits until the client has taken them. False: it is gone.
    pub fn write(&self, lines: &[u8]) -> bool {
        // The writer is locked before the queue is emptied: what was queued first is written first.
        let mut guard = self.writer.lock();
        let Some(writer) = guard.as_mut().filter(|_| !self.is_broken.load(Ordering::Acquire)) else {
            return false;
        };
        let queued = std::mem::take(&mut self.queue.lock().bytes);
        let written = match (queued.is_empty(), lines.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => writer.write_all(lines),
            (false, _) => {
                self.drained.notify_waiters();
                let mut all = queued;
                all.extend_from_slice(lines);
                writer.write_all(&all)
            }
        };
        match written.and_then(|()| writer.flush()) {
            Ok(()) => true,
            Err(_) => {
                self.break_off();
                false
            }
        }
    }

    /// The client reads no more.
    pub fn break_off(&self) {
        self.is_broken.store(true, Ordering::Release);
        self.gone.cancel();
        self.drained.notify_waiters();
    }

    /// Queues a reply; waits, without holding a thread, while there is no room.
    pub async fn send_reply(&self, text: String) {
        let mut text = Some(text);
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            // Listening begins before the queue is looked at, so that no waking is missed.
            drained.as_mut().enable();
            match text.take().and_then(|text| self.push(text)) {
                None => return,
                Some(refused) => text = Some(refused),
            }
            tokio::select! {
                () = drained => {}
                () = self.gone.cancelled() => return,
            }
        }
    }

    /// Writes what others queue, until the box is closed and empty or the client is gone.
    pub fn run(&self) {
        loop {
            {
                let mut queue = self.queue.lock();
                while queue.bytes.is_empty() && !queue.is_closed {
                    self.filled.wait(&mut queue);
                }
                if queue.bytes.is_empty() {
                    return;
                }
            }
            if !self.write(&[]) {
                return;
            }
        }
    }

    /// Takes nothing more; what is queued is still written.
    pub fn close(&self) {
        self.queue.lock().is_closed = true;
        self.filled.notify_one();
    }

    /// Lets go of the pipe, so that the client sees its end whoever still holds this box; a write that hangs keeps it.
    pub fn let_go(&self) {
        if let Some(mut writer) = self.writer.try_lock() {
            writer.take();
        }
    }

    /// Gives the text back when there is no room for it; takes it to nowhere when the client is gone.
    fn push(&self, text: String) -> Option<String> {
        let mut queue = self.queue.lock();
        if queue.is_closed || self.is_broken.load(Ordering::Acquire) {
            return None;
        }
        // A text longer than the whole queue gets it for itself.
        if !queue.bytes.is_empty() && queue.bytes.len() + text.len() >= QUEUE_BYTES {
            return Some(text);
        }
        queue.bytes.extend_from_slice(text.as_bytes());
        queue.bytes.push(b'\n');
        drop(queue);
        self.filled.notify_one();
        None
    }
}

impl<W: Write + Send + 'static> Outlet for Outbox<W> {
    fn send(&self, text: String) -> bool {
        let is_open = !self.queue.lock().is_closed && !self.is_broken.load(Ordering::Acquire);
        is_open && self.push(text).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_was_queued_first_is_written_first() {
        let outbox = Outbox::new(Vec::new());
        assert!(outbox.send("one".into()));
        assert!(outbox.write(b"two\n"));
        assert_eq!(outbox.writer.lock().as_deref(), Some(&b"one\ntwo\n"[..]));
        outbox.let_go();
        assert!(!outbox.write(b"three\n"));
    }

    #[test]
    fn a_notification_without_room_is_dropped_and_a_broken_pipe_is_noticed() {
        let outbox = Outbox::new(Vec::new());
        assert!(outbox.send("x".repeat(QUEUE_BYTES - 10)));
        assert!(!outbox.send("y".repeat(20)));

        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let outbox = Outbox::new(Broken);
        assert!(!outbox.write(b"x\n"));
        assert!(outbox.gone.is_cancelled());
        assert!(!outbox.send("x".into()));
    }

    #[tokio::test]
    async fn a_reply_waits_for_room() {
        let outbox = Arc::new(Outbox::new(Vec::new()));
        assert!(outbox.send("x".repeat(QUEUE_BYTES - 10)));
        let waiting = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.send_reply("y".repeat(20)).await }
        });
        tokio::task::yield_now().await;
        assert!(outbox.write(&[]));
        waiting.await.unwrap();
        assert!(outbox.write(&[]));
        assert!(outbox.writer.lock().as_deref().unwrap().ends_with(b"yyyy\n"));
    }
}
