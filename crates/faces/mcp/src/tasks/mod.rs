//! Tasks: calls that a client asks after later. A task is on record before it is answered with, and so is its end.

mod shape;
mod task;

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement};
use orchestr8_kernel::{Kernel, Principal};
use parking_lot::Mutex;
use serde_json::{Map, json};

pub use shape::{created, seen, value};
pub use task::{Ended, Seen, Task};

use crate::tables::{self, Owner, TaskRow};
use crate::wire;

/// So many tasks may run at once; more are refused.
const RUNNING: usize = 10_000;
/// How long a task can be asked after, unless the client wishes otherwise, and at most.
const LIFETIME_MS: i64 = 3_600_000;
const LIFETIME_MAX_MS: i64 = 86_400_000;
const LIFETIME_MIN_MS: i64 = 1000;
/// Expired ones deleted with each new one.
const SWEPT: i64 = 100;

/// The tasks that run in this process.
#[derive(Default)]
pub struct Tasks {
    running: Mutex<HashMap<String, Arc<Task>>>,
}

impl Tasks {
    /// A new task, on record.
    pub async fn create(
        &self,
        kernel: &Kernel,
        who: &Principal,
        action: &str,
        wished_ttl_ms: Option<i64>,
    ) -> Result<Arc<Task>, Fault> {
        let ports = kernel.ports();
        let ttl_ms = wished_ttl_ms.unwrap_or(LIFETIME_MS).clamp(LIFETIME_MIN_MS, LIFETIME_MAX_MS);
        let (id, now_ms) = (ports.ids.fresh(For::Task).to_string(), ports.clock.now_ms());
        let task = Task::new(id.clone(), Owner::of(who), now_ms, ttl_ms);
        {
            let mut running = self.running.lock();
            if running.len() >= RUNNING {
                return Err(Fault::new(
                    Code::ResourceExhausted,
                    format!("{RUNNING} tasks are running already"),
                ));
            }
            running.insert(id.clone(), task.clone());
        }
        let row =
            TaskRow { owner: &task.owner, id: &id, action, created_ms: now_ms, expires_ms: now_ms + ttl_ms };
        let mut batch = Batch::new();
        batch.then(Statement::new(tables::TASK_SWEEP, vec![now_ms.into(), SWEPT.into()]));
        batch.then_one(tables::task_insert(&row));
        if let Err(error) = ports.store.commit(batch).await {
            self.running.lock().remove(&id);
            return Err(Fault::new(Code::StoreFailed, "the task could not be recorded").because(error));
        }
        Ok(task)
    }

    /// A task that runs here, if it is this owner's.
    pub fn running(&self, owner: &Owner, id: &str) -> Option<Arc<Task>> {
        self.running.lock().get(id).filter(|task| task.owner == *owner).cloned()
    }

    /// A task as it stands, running or ended.
    pub async fn find(&self, kernel: &Kernel, owner: &Owner, id: &str) -> Result<Option<Seen>, Fault> {
        if let Some(task) = self.running(owner, id) {
            return Ok(Some(task.seen()));
        }
        let ports = kernel.ports();
        let found = ports.store.query(tables::task_find(owner, id, ports.clock.now_ms())).await;
        let rows = found.map_err(unreadable)?;
        rows.first().map(from_row).transpose().map_err(unreadable)
    }

    /// Tasks in order of creation, after one of them.
    pub async fn page(
        &self,
        kernel: &Kernel,
        owner: &Owner,
        after: (i64, &str),
        limit: usize,
    ) -> Result<Vec<Seen>, Fault> {
        // Before the records are read: one that ends meanwhile would be in neither, and a record without an end tells of a server
        // that stopped.
        let running: HashMap<String, Arc<Task>> = {
            let running = self.running.lock();
            let own = running.iter().filter(|(_, task)| task.owner == *owner);
            own.map(|(id, task)| (id.clone(), task.clone())).collect()
        };
        let ports = kernel.ports();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = ports.store.query(tables::task_page(owner, after, ports.clock.now_ms(), limit)).await;
        let mut tasks = Vec::new();
        for row in found.map_err(unreadable)? {
            let recorded = from_row(&row).map_err(unreadable)?;
            tasks.push(running.get(&recorded.id).map_or(recorded, |task| task.seen()));
        }
        Ok(tasks)
    }

    /// Ends a task: on record first, then for everybody who waits. False when it had ended before.
    pub async fn end(&self, kernel: &Kernel, task: &Arc<Task>, ended: Ended) -> bool {
        let ports = kernel.ports();
        let now_ms = ports.clock.now_ms();
        let mut batch = Batch::new();
        batch.then_one(tables::task_end(
            &task.owner,
            &task.id,
            ended.status().as_str(),
            ended.outcome(),
            now_ms,
        ));
        let is_first = match ports.store.commit(batch).await {
            Ok(()) => true,
            // It has ended before, and that end stands.
            Err(Error::Conflict { .. }) => false,
            Err(error) => {
                ports.log.error(
                    "the end of a task could not be recorded",
                    || json!({"taskId": task.id, "error": error.to_string()}),
                );
                true
            }
        };
        let is_first = is_first && task.end(ended, now_ms);
        self.running.lock().remove(&task.id);
        is_first
    }
}

fn unreadable(error: Error) -> Fault {
    Fault::new(Code::StoreFailed, "the task could not be read").because(error)
}

/// A row of a task that runs no more. One that never ended was running when its process died.
fn from_row(row: &Row) -> Result<Seen, Error> {
    let outcome = row.optional_text(2)?.unwrap_or("{}").to_owned();
    let ended = match row.text(1)? {
        "completed" => Ended::Completed(outcome),
        "failed" => Ended::Failed(outcome),
        "cancelled" => Ended::Cancelled,
        _ => Ended::Failed(
            json!({
                "code": wire::INTERNAL, "message": "the server stopped while the task ran; its outcome is not known",
                "data": {"code": Code::OutcomeUnknown.as_str()},
            })
            .to_string(),
        ),
    };
    let created_ms = row.int(3)?;
    Ok(Seen {
        id: row.text(0)?.to_owned(),
        status: ended.status(),
        message: None,
        created_ms,
        updated_ms: row.int(4)?,
        ttl_ms: row.int(5)? - created_ms,
        ended: Some(ended),
        questions: Map::new(),
    })
}
