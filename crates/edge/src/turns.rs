//! Whose turn it is: two ways to spare the scheduler work, and the threads it would wake for it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// How often a task that keeps waking itself goes on at once; after that the others have their turn.
const AT_ONCE_MAX: usize = 8;

/// A task that may wake itself while it runs, as HTTP does twice for each body: the parser and the reader of a body are the
/// same task. The scheduler would put it at the end of its queue and wake another thread to take it from there.
pub(crate) struct Own {
    bell: Arc<Bell>,
    waker: Waker,
}

struct Bell {
    task: Waker,
    running: AtomicBool,
    rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        if !self.running.load(Ordering::SeqCst) {
            self.task.wake_by_ref();
        }
    }
}

impl Own {
    pub fn of(task: &Waker) -> Self {
        let bell = Arc::new(Bell {
            task: task.clone(),
            running: AtomicBool::new(false),
            rung: AtomicBool::new(false),
        });
        Self { waker: bell.clone().into(), bell }
    }

    /// Polls until it is ready or waits for somebody else.
    pub fn poll<T>(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..AT_ONCE_MAX {
            self.bell.running.store(true, Ordering::SeqCst);
            self.bell.rung.store(false, Ordering::SeqCst);
            let polled = poll(&mut context);
            // Whoever rings from here on wakes the task.
            self.bell.running.store(false, Ordering::SeqCst);
            if polled.is_ready() || !self.bell.rung.load(Ordering::SeqCst) {
                return polled;
            }
        }
        self.bell.task.wake_by_ref();
        Poll::Pending
    }
}

/// Lets others on this thread go first: for an answer that only says that something was heard, while others wait for what was
/// heard.
pub async fn after_others() {
    let mut others = pin!(tokio::task::yield_now());
    let mut ended: Option<Arc<Ended>> = None;
    poll_fn(|cx| match &ended {
        // It may be polled for other reasons, which are no reason to go on.
        Some(ended) if ended.is_so.load(Ordering::SeqCst) => Poll::Ready(()),
        Some(_) => Poll::Pending,
        None => {
            let bell =
                ended.insert(Arc::new(Ended { task: cx.waker().clone(), is_so: AtomicBool::new(false) }));
            others.as_mut().poll(&mut Context::from_waker(&bell.clone().into()))
        }
    })
    .await;
}

struct Ended {
    task: Waker,
    is_so: AtomicBool,
}

impl Wake for Ended {
    fn wake(self: Arc<Self>) {
        self.is_so.store(true, Ordering::SeqCst);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_task_that_wakes_itself_goes_on_at_once_and_not_for_ever() {
        let counted = Arc::new(Counted(AtomicUsize::new(0)));
        let own = Own::of(&counted.clone().into());
        let mut polls = 0;
        let polled = own.poll(|cx| {
            polls += 1;
            if polls < 3 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(polls)
        });
        assert_eq!(polled, Poll::Ready(3));
        assert_eq!(counted.0.load(Ordering::SeqCst), 0, "the scheduler heard nothing of it");
        let polled: Poll<()> = own.poll(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert!(polled.is_pending());
        assert_eq!(counted.0.load(Ordering::SeqCst), 1, "it comes back after the others");
    }

    #[test]
    fn what_others_ring_while_it_rests_or_runs_is_heard() {
        let counted = Arc::new(Counted(AtomicUsize::new(0)));
        let own = Own::of(&counted.clone().into());
        let mut kept: Option<Waker> = None;
        let polled: Poll<()> = own.poll(|cx| {
            kept = Some(cx.waker().clone());
            Poll::Pending
        });
        assert!(polled.is_pending());
        let kept = kept.unwrap();
        kept.wake_by_ref();
        assert_eq!(counted.0.load(Ordering::SeqCst), 1);
        // From another thread, in the middle of a poll: it is polled once more.
        let mut polls = 0;
        let polled = own.poll(|_| {
            polls += 1;
            if polls == 1 {
                let kept = kept.clone();
                std::thread::spawn(move || kept.wake()).join().unwrap();
                return Poll::Pending;
            }
            Poll::Ready(())
        });
        assert_eq!((polled, polls), (Poll::Ready(()), 2));
    }

    #[tokio::test]
    async fn others_have_gone_on_before_it_does() {
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..20 {
            let ran = ran.clone();
            tokio::spawn(async move { ran.fetch_add(1, Ordering::SeqCst) });
        }
        after_others().await;
        assert_eq!(ran.load(Ordering::SeqCst), 20);
    }

    #[tokio::test]
    async fn being_polled_for_another_reason_is_no_turn() {
        let mut waiting = pin!(after_others());
        let mut nobody = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut nobody).is_pending());
        assert!(waiting.as_mut().poll(&mut nobody).is_pending());
        tokio::time::timeout(Duration::from_secs(60), async {
            tokio::task::yield_now().await;
            waiting.as_mut().await;
        })
        .await
        .unwrap();
    }
}
