//! The one thread that writes: it takes everything that waits into one transaction, so that one flush serves all of it.
//!
//! There is no timer. While a flush runs the next group gathers by itself; a batch that comes alone is committed at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use orchestr8_kernel::ports::store::Batch;
use tokio::sync::{mpsc, oneshot};

use super::cells::cell_bytes;
use super::engine::{Answer, Engine, Stop};
use super::errors::Failure;
use super::limits;
use super::log::Log;
use super::options::OnFatal;
use crate::topics::Topics;

pub(super) enum Job {
    Commit(Pending),
    /// Work between two groups, on the writer's own connection.
    Task(Box<dyn FnOnce(&mut Engine) + Send>),
    /// Ends the thread once everything before it is done.
    Close(oneshot::Sender<()>),
}

pub(super) struct Pending {
    pub batch: Batch,
    pub answer: oneshot::Sender<Answer>,
}

pub(super) struct Writer {
    engine: Engine,
    log: Log,
    queue: mpsc::Receiver<Job>,
    topics: Arc<Topics>,
    on_fatal: OnFatal,
}

impl Writer {
    pub fn new(
        engine: Engine,
        log: Log,
        queue: mpsc::Receiver<Job>,
        topics: Arc<Topics>,
        on_fatal: OnFatal,
    ) -> Self {
        Self { engine, log, queue, topics, on_fatal }
    }

    /// Runs until the store is closed or can no longer be trusted. A panic leaves the transaction in an unknown state, so it
    /// counts as fatal.
    pub fn run(self) {
        let on_fatal = self.on_fatal.clone();
        match catch_unwind(AssertUnwindSafe(|| self.serve())) {
            // The answer to a `Close` is given once everything is let go.
            Ok(Ok(closed)) => drop(closed.map(|closed| closed.send(()))),
            Ok(Err(Stopped)) => {}
            Err(_) => on_fatal("the store's writer panicked"),
        }
    }

    /// Whoever still waits when it returns finds the store closed.
    fn serve(mut self) -> Result<Option<oneshot::Sender<()>>, Stopped> {
        let mut next = self.queue.blocking_recv();
        while let Some(job) = next.take() {
            match job {
                Job::Commit(first) => {
                    let (group, left) = self.gather(first);
                    self.commit(group)?;
                    self.tend_log()?;
                    next = left;
                }
                Job::Task(task) => task(&mut self.engine),
                Job::Close(closed) => return Ok(Some(closed)),
            }
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

    fn commit(&mut self, group: Vec<Pending>) -> Result<(), Stopped> {
        let batches: Vec<&Batch> = group.iter().map(|pending| &pending.batch).collect();
        let answers = self.engine.commit(&batches).map_err(|stop| self.stop(&stop))?;
        // Watchers first: whoever has his answer finds what he watches changed.
        for (batch, answer) in batches.iter().zip(&answers) {
            if answer.is_ok() {
                self.topics.wake(&batch.topics);
            }
        }
        for (pending, answer) in group.into_iter().zip(answers) {
            // Who no longer waits does not need the answer; the batch is durable all the same.
            let _ = pending.answer.send(answer);
        }
        Ok(())
    }

    fn tend_log(&mut self) -> Result<(), Stopped> {
        match self.log.tend(&self.engine.connection) {
            Err(Failure::Broken(text)) => Err(self.stop(&Stop::Broken(text))),
            Ok(()) | Err(Failure::Refused(_) | Failure::Full(_) | Failure::Corrupt(_)) => Ok(()),
        }
    }

    /// Called while those who wait still wait: the process ends before anybody can draw conclusions.
    fn stop(&self, stop: &Stop) -> Stopped {
        match stop {
            Stop::Crash => std::process::abort(),
            Stop::Broken(text) => (self.on_fatal)(&format!("the store cannot trust its disk: {text}")),
        }
        Stopped
    }
}

/// The end has been announced.
struct Stopped;

fn batch_bytes(batch: &Batch) -> usize {
    let steps = batch.steps.iter().flat_map(|(statement, _)| &statement.cells).map(cell_bytes).sum::<usize>();
    steps + batch.links.iter().map(|link| link.body.len()).sum::<usize>()
}
