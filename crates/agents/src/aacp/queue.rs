//! Where wishes wait for the post. There is one post, and whoever finds it free works it until nobody waits: a message that
//! comes alone is decided, written and answered where it was asked for, without a task being woken. While one works, the others
//! hand in their wishes and are answered together.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use futures::FutureExt;
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;

use super::hub::Shared;
use super::post::{Order, Post};
use crate::limits;

pub struct Queue(Mutex<Waiting>);

struct Waiting {
    orders: VecDeque<Order>,
    /// Nothing while somebody works it.
    post: Option<Box<Post>>,
    last: Round,
}

/// The newest group of wishes: when it was answered, and how long that took.
#[derive(Clone, Copy, Default)]
struct Round {
    orders: usize,
    took_us: u64,
    ended_us: u64,
}

impl Round {
    /// Whether wishes come one at a time: those that follow on each other's heels are gathered.
    fn is_calm(self, now_us: u64) -> bool {
        self.orders <= 1 && now_us.saturating_sub(self.ended_us) >= self.took_us / 4
    }
}

impl Queue {
    pub fn of(post: Post) -> Self {
        Self(Mutex::new(Waiting {
            orders: VecDeque::new(),
            post: Some(Box::new(post)),
            last: Round::default(),
        }))
    }

    /// Those who are answered next; without any, the post is put back for whoever comes.
    fn next(&self, post: Box<Post>) -> Option<(Vec<Order>, Box<Post>)> {
        let mut waiting = self.0.lock();
        let count = waiting.orders.len().min(limits::GROUP);
        if count == 0 {
            waiting.post = Some(post);
            return None;
        }
        Some((waiting.orders.drain(..count).collect(), post))
    }

    /// Notes a round, and tells whether others wait.
    fn ended(&self, round: Round) -> bool {
        let mut waiting = self.0.lock();
        waiting.last = round;
        !waiting.orders.is_empty()
    }
}

impl Shared {
    /// Takes a wish, and sees to it that somebody works on it.
    pub(super) fn hand_in(self: &Arc<Self>, order: Order) -> Result<(), Fault> {
        let mut waiting = self.queue.0.lock();
        if waiting.orders.len() >= limits::WAITING_SENDS {
            let text = format!("{} messages wait to be written; send again shortly", limits::WAITING_SENDS);
            return Err(Fault::new(Code::ResourceExhausted, text).with("reason", "post_full"));
        }
        waiting.orders.push_back(order);
        let (post, last) = (waiting.post.take(), waiting.last);
        drop(waiting);
        let Some(post) = post else { return Ok(()) };
        let is_calm = last.is_calm(self.kernel.ports().clock.elapsed_us());
        let mut work = Box::pin(self.clone().work(post));
        let mut nobody = Context::from_waker(Waker::noop());
        // What has to wait for the disk, or for others, goes on in a task, whether or not anybody waits for it.
        if !is_calm || Pin::new(&mut work).poll(&mut nobody).is_pending() {
            tokio::spawn(work);
        }
        Ok(())
    }

    /// Works the post until nobody waits.
    async fn work(self: Arc<Self>, mut post: Box<Post>) {
        let clock = self.kernel.ports().clock.clone();
        while let Some((group, taken)) = self.queue.next(post) {
            post = taken;
            let (orders, began_us) = (group.len(), clock.elapsed_us());
            if AssertUnwindSafe(post.settle(group)).catch_unwind().await.is_err() {
                post.doubt();
            }
            let ended_us = clock.elapsed_us();
            if self.queue.ended(Round { orders, took_us: ended_us - began_us, ended_us }) {
                // Whoever has his answer is not kept for those who came meanwhile: they are answered by a task.
                tokio::task::yield_now().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Round;

    #[test]
    fn what_follows_on_the_heels_of_another_or_came_with_others_is_gathered() {
        let alone = Round { orders: 1, took_us: 400, ended_us: 1_000 };
        assert!(alone.is_calm(1_100));
        assert!(!alone.is_calm(1_099));
        assert!(!Round { orders: 2, ..alone }.is_calm(9_999));
        assert!(Round::default().is_calm(0), "the first is alone");
    }
}
