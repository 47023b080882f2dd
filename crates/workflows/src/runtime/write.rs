//! What an actor writes: entries of the journal, and the row of its execution.

use orchestr8_kernel::ports::store::{Batch, Statement};

use super::actor::Actor;
use super::record;
use crate::engine::{view, waiting};
use crate::tables;
use crate::{journal, limits, merkle};

impl Actor {
    /// Adds what others want written in the same commit.
    pub fn add(&mut self, batch: Batch) {
        self.batch.merge(batch);
    }

    pub fn statement(&mut self, statement: Statement) {
        self.batch.then(statement);
    }

    /// Whether it must commit before it takes in more. The limits are far below the store's.
    pub(super) fn is_batch_full(&self) -> bool {
        self.batch.steps.len() >= limits::COMMIT_STATEMENTS
            || self.commit_bytes >= limits::COMMIT_BYTES
            || self.fuel >= limits::COMMIT_FUEL
    }

    /// What is to be committed now.
    pub fn take_batch(&mut self) -> Batch {
        self.batch.wake(super::FEED);
        (self.commit_bytes, self.fuel) = (0, 0);
        std::mem::take(&mut self.batch)
    }

    /// Adds an entry to the journal, within its limits.
    pub(super) fn write(&mut self, entry: record::Entry, record: Option<String>, at_ms: i64) {
        let workflow = self.state.workflow().clone();
        let rules = &workflow.policies.journal;
        let mut prepared = journal::prepare(entry.data, rules, &self.hub.0.secrets.mask(&self.seed.tenant));
        if self.journal_bytes > limits::JOURNAL_BYTES {
            prepared = journal::left_out(&prepared);
        }
        self.journal_bytes += prepared.data.len();
        self.commit_bytes += prepared.data.len() + record.as_ref().map_or(0, String::len);
        self.seq += 1;
        let row = tables::journal_append(tables::JournalRow {
            execution: self.seed.num,
            seq: i64::try_from(self.seq).unwrap_or(i64::MAX),
            at_ms,
            kind: entry.kind,
            step: entry.step.map(|step| &*workflow.steps[step].id),
            level: entry.level,
            data: prepared.data,
            truncated: prepared.truncated,
            record,
        });
        self.batch.then_logged(row, merkle::LOG);
    }

    /// Keeps the row of the execution in step, once it is stored.
    pub(super) fn note_progress(&mut self) {
        let now = (waiting::status(&self.state), self.state.is_awake(), self.state.signals.len());
        if self.written.replace(now) != Some(now) && !self.is_new {
            self.batch.then_one(tables::execution_update(self.seed.num, self.progress()));
        }
    }

    /// What the row of the execution says of it now.
    pub(super) fn progress(&self) -> tables::Progress {
        let status = self.state.status;
        let name = |step: usize| &*self.state.workflow().steps[step].id;
        let first = self.state.errors.first().filter(|_| status.is_unsuccessful());
        tables::Progress {
            status: waiting::status(&self.state).as_str(),
            awake: self.state.is_awake(),
            started_ms: self.state.started_ms,
            ended_ms: self.state.ended_ms,
            error: first.map(|problem| {
                let attempts = problem.step.map_or(1, |step| self.state.steps[step].attempts);
                view::error(&problem.fault, problem.step.map(name), attempts).to_string()
            }),
            signals: i64::try_from(self.state.signals.len()).unwrap_or(i64::MAX),
        }
    }
}
