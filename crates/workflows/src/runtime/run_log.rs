//! What the server's log says of executions: failed steps and executions, retries, circuits. Bounded: beyond so many lines in a
//! while, lines are counted instead of written.

use std::collections::HashMap;

use orchestr8_contract::id::Tenant;
use orchestr8_kernel::log::Level;
use orchestr8_kernel::resilience::breaker::Change;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::actor::Actor;
use super::record;
use crate::engine::event::{Event, Note, Status, Task};
use crate::engine::state::Problem;
use crate::limits;

/// Counts the lines of the log that are about executions.
#[derive(Default)]
pub struct LogQuota(Mutex<LogWindow>);

#[derive(Default)]
struct LogWindow {
    ends_us: u64,
    written: usize,
    /// By tenant, so that one of them does not use up the lines of the others.
    by_tenant: HashMap<Tenant, usize>,
    left_out: u64,
}

impl LogQuota {
    /// Whether a line may be written now; and how many were left out in the while before, if that has just ended.
    fn take(&self, tenant: &Tenant, now_us: u64) -> (bool, u64) {
        let mut window = self.0.lock();
        let mut left_out = 0;
        if now_us >= window.ends_us {
            left_out = window.left_out;
            *window = LogWindow { ends_us: now_us + limits::LOG_WINDOW_MS * 1000, ..LogWindow::default() };
        }
        let own = window.by_tenant.get(tenant).copied().unwrap_or(0);
        if window.written >= limits::LOG_LINES || own >= limits::LOG_LINES_PER_TENANT {
            window.left_out += 1;
            return (false, left_out);
        }
        window.written += 1;
        window.by_tenant.insert(tenant.clone(), own + 1);
        (true, left_out)
    }
}

impl Actor {
    /// Logs what went wrong, before the event is applied.
    pub(super) fn log_event(&self, event: &Event) {
        match event {
            Event::Retrying { task, attempt, fault, wait_ms } => self.log_step(
                Level::Info,
                "a step failed and is tried again",
                *task,
                json!({"attempt": attempt, "delayMs": wait_ms, "error": record::told(&self.state, Some(*task), fault, *attempt)}),
            ),
            Event::Failed { task, attempts, fault } => self.log_step(
                Level::Warn,
                if task.undo { "an undo failed" } else { "a step failed" },
                *task,
                json!({"attempt": attempts, "error": record::told(&self.state, Some(*task), fault, *attempts)}),
            ),
            Event::Lost { task } => {
                self.log_step(Level::Warn, "the server stopped while a step ran", *task, json!({}));
            }
            Event::Begun { .. }
            | Event::Started { .. }
            | Event::Succeeded { .. }
            | Event::ChildBegun { .. }
            | Event::Resolved { .. }
            | Event::Due { .. }
            | Event::Signal { .. }
            | Event::Decided { .. }
            | Event::CancelAsked { .. }
            | Event::UndoAsked
            | Event::Forced
            | Event::Unwritable { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::Again
            | Event::AgainQueued => {}
        }
    }

    /// Logs what followed from an event, after it was applied.
    pub(super) fn log_note(&self, note: &Note) {
        match note {
            Note::Failed { step } => {
                let own = &self.state.steps[*step];
                let task = Task::of(*step);
                let error = own
                    .fault
                    .as_ref()
                    .map(|fault| record::told(&self.state, Some(task), fault, own.attempts));
                self.log_step(Level::Warn, "a step failed", task, json!({"error": error}));
            }
            Note::Finished { .. } => self.log_end(),
            Note::Paused => {
                let reason = self.state.pause.as_ref().map(|pause| &pause.reason);
                self.log_run(Level::Warn, "an execution was paused", json!({"reason": reason}));
            }
            Note::Compensating { .. } => {
                self.log_run(Level::Warn, "an execution is rolled back", json!({}));
            }
            Note::Completed { .. }
            | Note::Skipped { .. }
            | Note::Waiting { .. }
            | Note::UndoingChild { .. }
            | Note::Lost { .. }
            | Note::Closing { .. } => {}
        }
    }

    fn log_end(&self) {
        let (level, message) = match self.state.status {
            Status::Failed => (Level::Warn, "an execution failed"),
            Status::Compensated => (Level::Warn, "an execution was rolled back"),
            Status::Cancelled => (Level::Info, "an execution was cancelled"),
            Status::Completed
            | Status::Queued
            | Status::Running
            | Status::Waiting
            | Status::Paused
            | Status::Cancelling
            | Status::Compensating => return,
        };
        let first = self.state.errors.first();
        let error = first.map(|Problem { step, fault }| {
            let attempts = step.map_or(1, |step| self.state.steps[step].attempts);
            record::told(&self.state, step.map(Task::of), fault, attempts)
        });
        self.log_run(level, message, json!({"error": error}));
    }

    /// Logs that an attempt opened or closed a circuit.
    pub(super) fn log_circuit(&self, task: Task, key: &str, change: Change) {
        let (level, message) = match change {
            Change::Opened => (Level::Warn, "a circuit opened"),
            Change::Closed => (Level::Info, "a circuit closed"),
        };
        self.log_step(level, message, task, json!({"circuitKey": key}));
    }

    fn log_step(&self, level: Level, message: &str, task: Task, mut fields: Value) {
        fields["stepId"] = (*self.state.workflow().steps[task.step].id).into();
        if let Some(part) = task.part {
            fields["index"] = part.into();
        }
        self.log_run(level, message, fields);
    }

    fn log_run(&self, level: Level, message: &str, mut fields: Value) {
        let shared = &self.hub.0;
        let log = shared.log();
        if !log.is_on(level) {
            return;
        }
        let (may, left_out) = shared.log_quota.take(&self.seed.tenant, shared.ports.clock.elapsed_us());
        if left_out > 0 {
            log.warn("lines about executions were left out of the log", json!({"leftOut": left_out}));
        }
        if !may {
            return;
        }
        fields["executionId"] = (*self.state.identity.execution).into();
        fields["workflowId"] = (*self.state.workflow().id).into();
        fields["correlationId"] = self.state.identity.correlation.as_str().into();
        fields["tenant"] = self.seed.tenant.as_str().into();
        if let Some(trace) = &self.seed.given.trace {
            fields["traceparent"] = trace.to_string().into();
        }
        log.entry(level, message, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_for_each_tenant_and_for_all_and_what_is_left_out_is_counted() {
        let quota = LogQuota::default();
        let (one, two) = (Tenant::parse("one").unwrap(), Tenant::parse("two").unwrap());
        for _ in 0..limits::LOG_LINES_PER_TENANT {
            assert_eq!(quota.take(&one, 1), (true, 0));
        }
        assert_eq!(quota.take(&one, 1), (false, 0));
        assert_eq!(quota.take(&two, 1), (true, 0), "others still have lines");
        let next_us = 1 + limits::LOG_WINDOW_MS * 1000;
        assert_eq!(quota.take(&one, next_us), (true, 1));
        assert_eq!(quota.take(&one, next_us), (true, 0));
        let mut written = 2;
        for number in 0.. {
            let tenant = Tenant::parse(&format!("t{number}")).unwrap();
            if !quota.take(&tenant, next_us).0 {
                break;
            }
            written += 1;
        }
        assert_eq!(written, limits::LOG_LINES);
    }
}
