//! What waits to be said, and whether the turn under way will say it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::record::{Queued, When};

/// Messages that wait, each with its place in the stored queue. Clones share them.
#[derive(Clone, Default)]
pub struct Queue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// One that was coming is there, or will never be.
    came: Notify,
}

#[derive(Default)]
struct State {
    messages: VecDeque<(u64, Queued)>,
    last: u64,
    /// A turn is under way and takes up what comes.
    open: bool,
    /// So many were promised to the turn under way and are not durable yet.
    coming: usize,
}

/// The turn under way takes up messages until this is dropped.
pub struct Open(Queue);

/// A message that the turn under way waits for until this is dropped.
pub struct Coming(Queue);

impl Queue {
    /// A turn begins.
    pub fn open(&self) -> Open {
        self.0.state.lock().open = true;
        Open(self.clone())
    }

    /// The turn under way takes up nothing more: what comes from now on takes its own turn.
    pub fn close(&self) {
        self.0.state.lock().open = false;
    }

    /// Promises a message to the turn under way, if there is one that takes up more.
    pub fn promise(&self) -> Option<Coming> {
        let mut state = self.0.state.lock();
        state.open.then(|| {
            state.coming += 1;
            Coming(self.clone())
        })
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.0.state.lock().messages.len()
    }

    /// The place for a message that is to wait.
    pub fn place(&self) -> u64 {
        let mut state = self.0.state.lock();
        state.last += 1;
        state.last
    }

    pub fn put(&self, place: u64, queued: Queued) {
        let mut state = self.0.state.lock();
        state.last = state.last.max(place);
        state.messages.push_back((place, queued));
    }

    /// The messages that wait for this moment, oldest first. They stay until `remove`.
    pub fn waiting(&self, when: When) -> Vec<(u64, Queued)> {
        self.0.state.lock().messages.iter().filter(|(_, queued)| queued.when == when).cloned().collect()
    }

    pub fn remove(&self, place: u64) {
        self.0.state.lock().messages.retain(|(waiting, _)| *waiting != place);
    }
}

impl Open {
    /// Whether something waits for the turn that could end now. If not, nothing is promised to it any more: the last look and the
    /// end of promises are one step, so that nobody is told to wait for a turn that has looked for the last time.
    pub async fn has_more(&self, stop: &CancellationToken) -> bool {
        let shared = &self.0.0;
        loop {
            {
                let mut state = shared.state.lock();
                let is_over = stop.is_cancelled() || (state.messages.is_empty() && state.coming == 0);
                if is_over {
                    state.open = false;
                    return false;
                }
                if !state.messages.is_empty() {
                    return true;
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = shared.came.notified() => {}
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let mut state = self.0.0.state.lock();
        state.coming = state.coming.saturating_sub(1);
        drop(state);
        // Only the turn waits, and it looks again whenever it is told: a word from before it waited does no harm.
        self.0.0.came.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn message() -> Queued {
        Queued { when: When::FollowUp, content: Vec::new(), by: None }
    }

    #[tokio::test]
    async fn nothing_is_promised_after_the_last_look() {
        let (queue, stop) = (Queue::default(), CancellationToken::new());
        assert!(queue.promise().is_none(), "no turn is under way");
        let open = queue.open();
        let coming = queue.promise().unwrap();
        assert_eq!(open.has_more(&stop).now_or_never(), None, "it waits for what was promised");
        queue.put(queue.place(), message());
        drop(coming);
        assert!(open.has_more(&stop).await);
        queue.remove(1);
        assert!(!open.has_more(&stop).await);
        assert!(queue.promise().is_none(), "it has looked for the last time");
    }

    #[tokio::test]
    async fn a_promise_that_is_broken_or_a_turn_that_is_stopped_ends_the_wait() {
        let (queue, stop) = (Queue::default(), CancellationToken::new());
        let open = queue.open();
        drop(queue.promise());
        assert!(!open.has_more(&stop).await);
        let open = queue.open();
        let _coming = queue.promise().unwrap();
        stop.cancel();
        assert!(!open.has_more(&stop).await);
    }
}
