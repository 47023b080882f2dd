//! Turns: who writes a document waits for whoever writes it now, until that is on record or has failed.
//!
//! The guards of the statements keep two writers apart whatever happens, also when several programs share a store. Turns only see
//! to it that within this program the second one reads what the first has written, and so is told exactly why it may not go on.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Turns nobody waits for are forgotten when there are more than this.
const KEPT: usize = 1_024;

/// All that are taken or waited for. Clones share them.
#[derive(Clone, Default)]
pub struct Turns(Arc<Mutex<HashMap<String, Arc<RwLock<()>>>>>);

/// A place in the tree of a tenant and at one document, until it is dropped.
pub struct Turn {
    _tree: Held,
    _document: Held,
}

enum Held {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl Turns {
    /// To change a document and leave the tree as it is, or add to it.
    pub async fn at_document(&self, tenant: &str, id: &str) -> Turn {
        let tree = Held::Shared { _guard: self.lock(tenant.to_owned()).read_owned().await };
        Turn { _tree: tree, _document: self.alone(tenant, id).await }
    }

    /// To change who is where in the tree.
    pub async fn in_tree(&self, tenant: &str, id: &str) -> Turn {
        let tree = Held::Alone { _guard: self.lock(tenant.to_owned()).write_owned().await };
        Turn { _tree: tree, _document: self.alone(tenant, id).await }
    }

    async fn alone(&self, tenant: &str, id: &str) -> Held {
        Held::Alone { _guard: self.lock(format!("{tenant}\n{id}")).write_owned().await }
    }

    fn lock(&self, key: String) -> Arc<RwLock<()>> {
        let mut locks = self.0.lock();
        if locks.len() > KEPT {
            // Whoever holds or waits for one has a share of it.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        locks.entry(key).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn writers_of_one_document_take_turns_and_others_do_not_wait() {
        let turns = Turns::default();
        let first = turns.at_document("t", "a").await;
        assert!(turns.at_document("t", "a").now_or_never().is_none());
        assert!(turns.at_document("t", "b").now_or_never().is_some());
        assert!(turns.at_document("u", "a").now_or_never().is_some());
        assert!(turns.in_tree("t", "b").now_or_never().is_none());
        drop(first);
        let tree = turns.in_tree("t", "b").now_or_never().unwrap();
        assert!(turns.at_document("t", "c").now_or_never().is_none());
        drop(tree);
        assert!(turns.at_document("t", "a").now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_forgotten() {
        let turns = Turns::default();
        for n in 0..10 * KEPT {
            drop(turns.at_document("t", &n.to_string()).await);
        }
        assert!(turns.0.lock().len() <= KEPT + 2);
    }
}
