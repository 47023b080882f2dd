//! The line to an actor: how it is found and reached, from before its first commit until it is gone.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::actor::Message;
use super::{Live, MAILBOX, Shared};

/// The line over which an actor is reached, from before its first commit until it is gone.
pub struct Line {
    pub(super) sender: mpsc::Sender<Message>,
    pub(super) mailbox: mpsc::Receiver<Message>,
    pub(super) seen: watch::Sender<u64>,
    pub(super) listing: Listing,
}

impl Line {
    /// Only `Shared::claim` makes one, which lists it.
    pub fn new(shared: Arc<Shared>, num: i64) -> Self {
        let (sender, mailbox) = mpsc::channel(MAILBOX);
        let listing = Listing { shared, num, sender: sender.clone() };
        Self { sender, mailbox, seen: watch::Sender::new(0), listing }
    }

    pub fn live(&self) -> Live {
        Live { sender: self.sender.clone(), seen: self.seen.subscribe() }
    }
}

/// The actor can be found. Dropped, it cannot.
pub struct Listing {
    shared: Arc<Shared>,
    num: i64,
    pub(super) sender: mpsc::Sender<Message>,
}

impl Listing {
    /// Takes it off the list, unless another actor has taken its place.
    pub fn end(&self) {
        let mut live = self.shared.live.lock();
        if live.get(&self.num).is_some_and(|live| live.sender.same_channel(&self.sender)) {
            live.remove(&self.num);
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.end();
    }
}
