//! The topics somebody watches. A topic nobody watches any more is forgotten.

use std::borrow::Cow;
use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Topics are swept for forgotten ones whenever the map has grown to twice what it last held, and never below this.
const TOPICS_SWEPT_FROM: usize = 256;

#[derive(Default)]
pub(crate) struct Topics(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    senders: HashMap<String, watch::Sender<u64>>,
    sweep_at: usize,
}

impl Topics {
    pub fn watch(&self, topic: &str) -> watch::Receiver<u64> {
        let mut watched = self.0.lock();
        if let Some(sender) = watched.senders.get(topic) {
            return sender.subscribe();
        }
        if watched.senders.len() >= watched.sweep_at.max(TOPICS_SWEPT_FROM) {
            watched.senders.retain(|_, sender| sender.receiver_count() > 0);
            watched.sweep_at = watched.senders.len() * 2;
        }
        let (sender, receiver) = watch::channel(0);
        watched.senders.insert(topic.to_owned(), sender);
        receiver
    }

    pub fn wake(&self, topics: &[Cow<'static, str>]) {
        if topics.is_empty() {
            return;
        }
        let watched = self.0.lock();
        for topic in topics {
            if let Some(sender) = watched.senders.get(topic.as_ref()) {
                sender.send_modify(|count| *count = count.wrapping_add(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watchers_of_the_topic_wake() {
        let topics = Topics::default();
        let (mut a, mut b) = (topics.watch("a"), topics.watch("b"));
        topics.wake(&["a".into(), "nobody".into()]);
        assert!(a.has_changed().unwrap());
        assert!(!b.has_changed().unwrap());
        assert_eq!(*a.borrow_and_update(), 1);
        assert_eq!(*b.borrow_and_update(), 0);
    }

    #[test]
    fn topics_nobody_watches_are_forgotten() {
        let topics = Topics::default();
        let kept = topics.watch("kept");
        for n in 0..TOPICS_SWEPT_FROM * 10 {
            drop(topics.watch(&n.to_string()));
        }
        assert!(topics.0.lock().senders.len() <= TOPICS_SWEPT_FROM + 1);
        topics.wake(&["kept".into()]);
        assert!(kept.has_changed().unwrap());
    }
}
