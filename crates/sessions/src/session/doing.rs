//! What a session is doing, and how to stop it.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A thing that can be under way and stopped by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A prompt.
    Turn,
    /// A summary of what came before.
    Compaction,
    /// The wait before another attempt.
    Retry,
    /// A command of the shell.
    Bash,
}

/// What is under way. Clones share it.
#[derive(Clone)]
pub struct Doing(Arc<watch::Sender<Slots>>);

type Slots = [Option<CancellationToken>; 4];

impl Default for Doing {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Slots::default())))
    }
}

/// Something is under way until this is dropped.
pub struct Held {
    doing: Doing,
    slot: Slot,
    pub token: CancellationToken,
}

impl Doing {
    /// Begins something. It also stops when the parent does.
    pub fn begin(&self, slot: Slot, parent: &CancellationToken) -> Held {
        let token = parent.child_token();
        self.0.send_modify(|slots| slots[place(slot)] = Some(token.clone()));
        Held { doing: self.clone(), slot, token }
    }

    pub fn is(&self, slot: Slot) -> bool {
        self.0.borrow()[place(slot)].is_some()
    }

    /// Stops it if it is under way, and waits for its end.
    pub async fn stop(&self, slot: Slot) {
        let token = self.0.borrow()[place(slot)].clone();
        if let Some(token) = token {
            token.cancel();
            self.over(slot).await;
        }
    }

    /// Ends when nothing of the kind is under way.
    pub async fn over(&self, slot: Slot) {
        // The sender lives as long as the session: waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|slots| slots[place(slot)].is_none()).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.doing.0.send_modify(|slots| slots[place(self.slot)] = None);
    }
}

fn place(slot: Slot) -> usize {
    match slot {
        Slot::Turn => 0,
        Slot::Compaction => 1,
        Slot::Retry => 2,
        Slot::Bash => 3,
    }
}
