//! The one thread that writes for many: it takes everything that waits into one transaction, so that one flush serves all of it.
//!
//! There is no timer. While a flush runs the next group gathers by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use orchestr8_kernel::ports::store::Batch;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::engine::{Answer, Engine};
use super::limits;
use super::options::OnFatal;
use super::pen::{Pen, Stopped, batch_bytes};

pub(super) enum Job {
    Commit(Pending),
    /// Work between two groups, on the writer's own connection.
    Task(Box<dyn FnOnce(&mut Engine) + Send>),
    /// Somebody else has written, and left the log to be looked after.
    Tend,
    /// Ends the thread once everything before it is done.
    Close(oneshot::Sender<()>),
}

pub(super) struct Pending {
    pub batch: Batch,
    /// The batch goes back with the answer: memory is given back cheapest where it was taken.
    pub answer: oneshot::Sender<(Answer, Batch)>,
}

/// The pen and who waits for it, shared by the thread and by those who commit where they are.
#[derive(Clone)]
pub(super) struct Desk {
    /// Nothing once nobody may write any more.
    pub pen: Arc<Mutex<Option<Pen>>>,
    /// Jobs that were given to the thread and are not done. While there are any, nobody goes first.
    pub waiting: Arc<AtomicUsize>,
}

pub(super) struct Writer {
    pub desk: Desk,
    pub queue: mpsc::Receiver<Job>,
    pub on_fatal: OnFatal,
}

impl Writer {
    /// Runs until the store is closed or can no longer be trusted.
    pub fn run(mut self) {
        let closed = catch_unwind(AssertUnwindSafe(|| self.serve()));
        // Whoever commits where he is has done so by now, and nobody does any more.
        drop(self.desk.pen.lock().take());
        match closed {
            // The answer to a `Close` is given once everything is let go.
            Ok(Ok(closed)) => drop(closed.map(|closed| closed.send(()))),
            Ok(Err(Stopped)) => {}
            Err(_) => (self.on_fatal)("the store's writer panicked"),
        }
    }

    /// Whoever still waits when it returns finds the store closed.
    fn serve(&mut self) -> Result<Option<oneshot::Sender<()>>, Stopped> {
        let mut next = self.queue.blocking_recv();
        while let Some(job) = next.take() {
            let desk = self.desk.clone();
            let mut held = desk.pen.lock();
            let pen = held.as_mut().ok_or(Stopped)?;
            let done = match job {
                Job::Commit(first) => {
                    let (group, left) = self.gather(first);
                    next = left;
                    let done = group.len();
                    commit(pen, group)?;
                    pen.tend_log()?;
                    done
                }
                Job::Task(task) => {
                    task(&mut pen.engine);
                    1
                }
                Job::Tend => {
                    pen.tend_log()?;
                    1
                }
                Job::Close(closed) => return Ok(Some(closed)),
            };
            drop(held);
            desk.waiting.fetch_sub(done, Ordering::SeqCst);
            if next.is_none() {
                next = self.queue.blocking_recv();
            }
        }
        Ok(None)
    }

    /// Everything that waits, up to the limits, and the job that ended the gathering.
    fn gather(&mut self, first: Pending) -> (Vec<Pending>, Option<Job>) {
        let mut bytes = batch_bytes(&first.batch);
        let mut group = vec![first];
        while group.len() < limits::GROUP_BATCHES_MAX && bytes < limits::GROUP_BYTES_MAX {
            match self.queue.try_recv() {
                Ok(Job::Commit(pending)) => {
                    bytes += batch_bytes(&pending.batch);
                    group.push(pending);
                }
                Ok(other) => return (group, Some(other)),
                Err(_) => break,
            }
        }
        (group, None)
    }
}

fn commit(pen: &mut Pen, group: Vec<Pending>) -> Result<(), Stopped> {
    let batches: Vec<&Batch> = group.iter().map(|pending| &pending.batch).collect();
    let answers = pen.commit(&batches)?;
    for (pending, answer) in group.into_iter().zip(answers) {
        // Who no longer waits does not need the answer; the batch is durable all the same.
        let _ = pending.answer.send((answer, pending.batch));
    }
    Ok(())
}
