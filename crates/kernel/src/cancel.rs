//! Cooperative cancellation: one token, several triggers, and the first trigger is remembered (MCP-TIMEOUT-3).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio_util::sync::CancellationToken;

/// Why work should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The client asked.
    Client,
    /// The client is gone.
    Disconnect,
    /// The response deadline passed.
    Deadline,
}

/// The token an action looks at. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    token: CancellationToken,
    why: Arc<AtomicU8>,
}

impl Cancel {
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires it. Only the first reason counts.
    pub fn fire(&self, why: Why) {
        let code = match why {
            Why::Client => 1,
            Why::Disconnect => 2,
            Why::Deadline => 3,
        };
        let _ = self.why.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        self.token.cancel();
    }

    pub fn why(&self) -> Option<Why> {
        match self.why.load(Ordering::SeqCst) {
            1 => Some(Why::Client),
            2 => Some(Why::Disconnect),
            3 => Some(Why::Deadline),
            _ => None,
        }
    }

    pub fn is_fired(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Ends when it fires.
    pub async fn fired(&self) {
        self.token.cancelled().await;
    }

    /// The token itself, for libraries that take one.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// A cancel around a token of a library.
    pub fn from_token(token: CancellationToken) -> Cancel {
        Cancel { token, why: Arc::default() }
    }

    /// A token that fires with this one, and can fire alone.
    #[must_use]
    pub fn child(&self) -> Cancel {
        Cancel {
            token: self.token.child_token(),
            why: Arc::new(AtomicU8::new(self.why.load(Ordering::SeqCst))),
        }
    }
}

/// Fires when it is dropped: whoever waited for the work does not wait any more. Work that has ended does not mind.
#[must_use = "it fires when it is dropped"]
pub struct OnDrop {
    cancel: Cancel,
    why: Why,
}

impl Cancel {
    /// To be held for as long as somebody waits.
    pub fn on_drop(&self, why: Why) -> OnDrop {
        OnDrop { cancel: self.clone(), why }
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.cancel.fire(self.why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_is_kept() {
        let cancel = Cancel::new();
        assert_eq!((cancel.is_fired(), cancel.why()), (false, None));
        cancel.fire(Why::Deadline);
        cancel.fire(Why::Client);
        cancel.fired().await;
        assert_eq!(cancel.why(), Some(Why::Deadline));
    }

    #[test]
    fn it_fires_when_nobody_waits_any_more() {
        let cancel = Cancel::new();
        let waiting = cancel.on_drop(Why::Disconnect);
        assert!(!cancel.is_fired());
        drop(waiting);
        assert_eq!(cancel.why(), Some(Why::Disconnect));
    }

    #[test]
    fn a_child_fires_with_its_parent_and_alone() {
        let parent = Cancel::new();
        let (one, two) = (parent.child(), parent.child());
        one.fire(Why::Client);
        assert!(!parent.is_fired() && !two.is_fired());
        parent.fire(Why::Disconnect);
        assert!(two.is_fired());
    }
}
