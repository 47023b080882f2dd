//! Commits a group of batches as one transaction. The writer thread and the simulated store both run on it.

use std::sync::Arc;

use orchestr8_kernel::ports::store::{Batch, Error, Guard};
use rusqlite::Connection;

use super::cells;
use super::errors::Failure;
use super::faults::{FailPlan, Fault, Point};
use super::heads::Heads;
use super::limits;
use super::logs::Logs;

pub(super) type Answer = Result<(), Error>;

/// The store cannot go on: nobody may be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// A fail point asks for the death of the process.
    Crash,
    /// What is on the disk is not known.
    Broken(String),
}

pub(super) struct Engine {
    pub connection: Connection,
    heads: Heads,
    pub logs: Logs,
    /// Nothing is committed any more: the last head of the logs covers all there is.
    sealed: bool,
    faults: Arc<dyn FailPlan>,
}

/// Whether the batches of a transaction are taken to be right.
#[derive(Clone, Copy)]
enum Trust {
    /// One that is wrong undoes them all.
    All,
    /// One that is wrong undoes itself.
    None,
}

/// How a transaction ended when the store goes on.
enum Ended {
    /// One answer for each batch.
    Committed(Vec<Answer>),
    /// Nothing of any batch happened.
    RolledBack(Error),
}

impl Engine {
    pub fn new(connection: Connection, logs: Logs, faults: Arc<dyn FailPlan>) -> Self {
        Self { connection, heads: Heads::default(), logs, sealed: false, faults }
    }

    /// Commits the group and gives one answer for each batch, in order.
    ///
    /// Nearly always every batch is right, so the group is first tried as one. If any is wrong, it is undone whole and run
    /// again with each batch apart: setting batches apart costs, above all in the full-text index, which writes out what it
    /// has gathered at every savepoint.
    ///
    /// A transaction that fails even then is undone and each batch tried alone, so that one too big for the disk does not
    /// fail its neighbours, and so that no batch is told of a conflict with a neighbour that was undone.
    pub fn commit(&mut self, batches: &[&Batch]) -> Result<Vec<Answer>, Stop> {
        if batches.iter().all(|batch| batch.steps.is_empty() && batch.links.is_empty()) {
            return Ok(vec![Ok(()); batches.len()]);
        }
        if self.sealed {
            return Ok(vec![Err(Error::Closed); batches.len()]);
        }
        let error = match self.transact(batches, Trust::All)? {
            Ended::Committed(answers) => return Ok(answers),
            Ended::RolledBack(error) => error,
        };
        if batches.len() == 1 {
            return Ok(vec![Err(error)]);
        }
        if let Ended::Committed(answers) = self.transact(batches, Trust::None)? {
            return Ok(answers);
        }
        let mut answers = Vec::with_capacity(batches.len());
        for batch in batches {
            answers.extend(self.commit(&[batch])?);
        }
        Ok(answers)
    }

    /// Forgets what is only remembered, as a restart does.
    pub fn forget(&mut self) -> Result<(), Error> {
        self.heads.clear();
        self.logs.reload(&self.connection)
    }

    /// Stores the frontiers of the logs, so that a start need not compute them.
    pub fn checkpoint_logs(&mut self) -> Result<Answer, Stop> {
        let batch = self.logs.checkpoint();
        let answer = self.commit(&[&batch])?.pop().unwrap_or(Ok(()));
        if answer.is_ok() {
            self.logs.checkpointed();
        }
        Ok(answer)
    }

    /// The same, and nothing is committed after it.
    pub fn seal_logs(&mut self) -> Result<Answer, Stop> {
        let answer = self.checkpoint_logs()?;
        self.sealed = answer.is_ok();
        Ok(answer)
    }

    fn transact(&mut self, batches: &[&Batch], trust: Trust) -> Result<Ended, Stop> {
        let mark = self.logs.mark();
        let ended = match self.run_and_commit(batches, trust) {
            Ok(answers) => return Ok(Ended::Committed(answers)),
            Err(Trouble::Undo(error)) => Ok(Ended::RolledBack(error)),
            Err(Trouble::Stop(stop)) => Err(stop),
        };
        self.heads.clear();
        self.logs.rewind(&mark);
        // SQLite undoes some failures by itself; then there is nothing left to roll back.
        if !self.connection.is_autocommit() {
            self.control("ROLLBACK")
                .map_err(|failure| Stop::Broken(format!("rollback failed: {failure:?}")))?;
        }
        ended
    }

    fn run_and_commit(&mut self, batches: &[&Batch], trust: Trust) -> Result<Vec<Answer>, Trouble> {
        self.point(Point::BeforeBegin)?;
        self.control("BEGIN IMMEDIATE")?;
        let mut answers = Vec::with_capacity(batches.len());
        for batch in batches {
            answers.push(match trust {
                Trust::All => Ok(self.run(batch)?.map_err(Trouble::Undo)?),
                Trust::None => self.run_apart(batch)?,
            });
            self.point(Point::AfterBatch)?;
        }
        self.point(Point::BeforeCommit)?;
        self.control("COMMIT")?;
        self.point(Point::AfterCommit).map_err(Trouble::stopping)?;
        Ok(answers)
    }

    /// Runs a batch so that its failure undoes nothing but itself.
    fn run_apart(&mut self, batch: &Batch) -> Result<Answer, Trouble> {
        let mark = self.logs.mark();
        self.control("SAVEPOINT batch")?;
        let answer = self.run(batch)?;
        if let Err(error) = &answer {
            if self.connection.is_autocommit() {
                return Err(Trouble::Undo(error.clone()));
            }
            self.heads.forget(&batch.links);
            self.logs.rewind(&mark);
            self.control("ROLLBACK TO batch")?;
        }
        self.control("RELEASE batch")?;
        Ok(answer)
    }

    /// The inner result is the batch's own: it was wrong, and only it has to be undone.
    fn run(&mut self, batch: &Batch) -> Result<Answer, Trouble> {
        match self.try_run(batch) {
            Ok(()) => Ok(Ok(())),
            Err(Wrong::Conflict(error)) => Ok(Err(error)),
            Err(Wrong::Failure(failure @ (Failure::Refused(_) | Failure::Corrupt(_)))) => {
                Ok(Err(failure.into()))
            }
            Err(Wrong::Failure(failure @ (Failure::Full(_) | Failure::Broken(_)))) => Err(failure.into()),
        }
    }

    fn try_run(&mut self, batch: &Batch) -> Result<(), Wrong> {
        if batch.steps.len() + batch.links.len() > limits::BATCH_STEPS_MAX {
            let text = format!("a batch takes at most {} steps and links", limits::BATCH_STEPS_MAX);
            return Err(Failure::Refused(text).into());
        }
        for (step, (statement, guard)) in batch.steps.iter().enumerate() {
            let found = cells::change(&self.connection, statement)?;
            match *guard {
                Guard::Any => {}
                Guard::Rows(expected) if expected == found => {}
                Guard::Leaf(log) if found == 1 => {
                    self.logs.append_row(log, self.connection.last_insert_rowid(), &statement.cells)?;
                }
                Guard::Rows(_) | Guard::Leaf(_) => {
                    let expected = guard.rows().unwrap_or_default();
                    return Err(Wrong::Conflict(Error::Conflict { step, expected, found }));
                }
            }
        }
        for link in &batch.links {
            let entry = self.heads.append(&self.connection, link)?;
            self.logs.append_entry(&link.chain, entry.seq, &entry.hash)?;
        }
        Ok(())
    }

    fn control(&self, sql: &str) -> Result<(), Failure> {
        let run = || self.connection.prepare_cached(sql)?.raw_execute();
        run().map(|_| ()).map_err(|error| Failure::of(&error))
    }

    fn point(&self, point: Point) -> Result<(), Trouble> {
        match self.faults.at(point) {
            Fault::None => Ok(()),
            Fault::Full => {
                Err(Trouble::Undo(Error::Full(String::from("the fail plan says the disk is full"))))
            }
            Fault::Broken => {
                Err(Trouble::Stop(Stop::Broken(String::from("the fail plan says a write failed"))))
            }
            Fault::Crash => Err(Trouble::Stop(Stop::Crash)),
        }
    }
}

/// What is wrong with one batch.
enum Wrong {
    Conflict(Error),
    Failure(Failure),
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        Wrong::Failure(failure)
    }
}

/// What ends the transaction.
enum Trouble {
    Undo(Error),
    Stop(Stop),
}

impl Trouble {
    /// After the commit nothing can be undone any more.
    fn stopping(self) -> Self {
        match self {
            Trouble::Undo(error) => Trouble::Stop(Stop::Broken(error.to_string())),
            Trouble::Stop(stop) => Trouble::Stop(stop),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(_) | Failure::Full(_) | Failure::Corrupt(_) => Trouble::Undo(failure.into()),
            Failure::Broken(text) => Trouble::Stop(Stop::Broken(text)),
        }
    }
}
