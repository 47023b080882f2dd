//! What it takes to write: whoever holds it commits, one at a time.
//!
//! Usually that is the writer thread. Waking it and being woken by it costs as much as a flush, so a small batch that comes
//! alone is committed where it was asked for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::ports::store::{Batch, Error};
use tokio::time::Instant;

use super::cells::cell_bytes;
use super::engine::{Answer, Engine, Stop};
use super::errors::Failure;
use super::limits;
use super::log::Log;
use super::options::OnFatal;
use crate::topics::Topics;

pub(super) struct Pen {
    pub engine: Engine,
    log: Log,
    topics: Arc<Topics>,
    on_fatal: OnFatal,
    /// How long the newest commit took.
    took: Duration,
}

/// The end has been announced: nobody may write any more.
pub(super) struct Stopped;

impl Pen {
    pub fn new(engine: Engine, log: Log, topics: Arc<Topics>, on_fatal: OnFatal) -> Self {
        Self { engine, log, topics, on_fatal, took: Duration::ZERO }
    }

    /// Commits and wakes those who watch: whoever has his answer finds what he watches changed.
    pub fn commit(&mut self, batches: &[&Batch]) -> Result<Vec<Answer>, Stopped> {
        let began = Instant::now();
        // A panic leaves the transaction in an unknown state.
        let answers = catch_unwind(AssertUnwindSafe(|| self.engine.commit(batches)))
            .unwrap_or_else(|_| Err(Stop::Broken(String::from("the commit panicked"))))
            .map_err(|stop| self.stop(&stop))?;
        self.took = began.elapsed();
        for (batch, answer) in batches.iter().zip(&answers) {
            if answer.is_ok() {
                self.topics.wake(&batch.topics);
            }
        }
        Ok(answers)
    }

    /// Commits one batch where it was asked for.
    pub fn commit_alone(&mut self, batch: &Batch) -> Result<Answer, Stopped> {
        let answer = self.commit(&[batch])?.pop();
        Ok(answer.unwrap_or_else(|| Err(Error::Refused(String::from("the batch was not answered")))))
    }

    /// Whether this batch holds nobody up who shares a thread with the one who asks: it is little work, and the disk was
    /// quick the last time.
    pub fn is_quick(&self, batch: &Batch) -> bool {
        batch.steps.len() + batch.links.len() <= limits::QUICK_STEPS
            && self.took <= limits::QUICK_COMMIT
            && batch_bytes(batch) <= limits::QUICK_BYTES
    }

    /// Whether the log has to be looked after before long.
    pub fn is_log_due(&self) -> bool {
        self.log.is_due()
    }

    /// Looks after the log; everybody has been answered by then.
    pub fn tend_log(&mut self) -> Result<(), Stopped> {
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

pub(super) fn batch_bytes(batch: &Batch) -> usize {
    let steps = batch.steps.iter().flat_map(|(statement, _)| &statement.cells).map(cell_bytes).sum::<usize>();
    steps + batch.links.iter().map(|link| link.body.len()).sum::<usize>()
}
