//! Statements over schedules.

use orchestr8_kernel::ports::store::{Cell, Statement};

use super::Schedule;

const COLUMNS: &str = "id, spec, paused, next_ms, last_ms, last_execution, tenant, seal";

pub fn put(schedule: &Schedule, seal: Option<String>) -> Statement {
    Statement::new(
        "INSERT INTO wf_schedules (tenant, id, spec, paused, next_ms, seal) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (tenant, id) DO UPDATE SET spec = excluded.spec, paused = excluded.paused, next_ms = excluded.next_ms,
            seal = excluded.seal",
        cells(schedule, seal),
    )
}

fn cells(schedule: &Schedule, seal: Option<String>) -> Vec<Cell> {
    let Schedule { tenant, id, source, paused, next_ms, .. } = schedule;
    vec![
        tenant.as_str().into(),
        id.as_str().into(),
        source.as_str().into(),
        i64::from(*paused).into(),
        (*next_ms).into(),
        seal.into(),
    ]
}

/// Stops one that was changed in the data file; it keeps the seal that does not match.
pub fn stop(tenant: &str, id: &str) -> Statement {
    Statement::new(
        "UPDATE wf_schedules SET paused = 1 WHERE tenant = ?1 AND id = ?2",
        vec![tenant.into(), id.into()],
    )
}

/// Lets it start things or not. Changes one row, or it is another one meanwhile.
pub fn switch(schedule: &Schedule, seal: Option<String>) -> Statement {
    Statement::new(
        "UPDATE wf_schedules SET paused = ?4, next_ms = ?5, seal = ?6 WHERE tenant = ?1 AND id = ?2 AND spec = ?3",
        cells(schedule, seal),
    )
}

/// The columns of `COLUMNS`.
pub fn find(tenant: &str, id: &str) -> Statement {
    Statement {
        sql: format!("SELECT {COLUMNS} FROM wf_schedules WHERE tenant = ?1 AND id = ?2").into(),
        cells: vec![tenant.into(), id.into()],
    }
}

/// The columns of `COLUMNS`.
pub fn page(tenant: &str, after: &str, limit: i64) -> Statement {
    Statement {
        sql: format!("SELECT {COLUMNS} FROM wf_schedules WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3")
            .into(),
        cells: vec![tenant.into(), after.into(), limit.into()],
    }
}

/// What is due, whatever the tenant. The columns of `COLUMNS`.
pub fn due(now_ms: i64, limit: i64) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_schedules WHERE paused = 0 AND next_ms IS NOT NULL AND next_ms <= ?1
             ORDER BY next_ms LIMIT ?2"
        )
        .into(),
        cells: vec![now_ms.into(), limit.into()],
    }
}

/// Column: when the next one is due, or null.
pub fn next_due() -> Statement {
    Statement::new(
        "SELECT MIN(next_ms) FROM wf_schedules WHERE paused = 0 AND next_ms IS NOT NULL",
        Vec::new(),
    )
}

/// Moves on to the next time. Changes one row, or somebody else has done it, or has paused it.
pub fn advance(
    tenant: &str,
    id: &str,
    seen_ms: i64,
    next_ms: Option<i64>,
    last_ms: i64,
    execution: Option<&str>,
) -> Statement {
    Statement::new(
        "UPDATE wf_schedules SET next_ms = ?4, last_ms = ?5, last_execution = COALESCE(?6, last_execution)
         WHERE tenant = ?1 AND id = ?2 AND next_ms = ?3 AND paused = 0",
        vec![tenant.into(), id.into(), seen_ms.into(), next_ms.into(), last_ms.into(), execution.into()],
    )
}

pub fn delete(tenant: &str, id: &str) -> Statement {
    Statement::new("DELETE FROM wf_schedules WHERE tenant = ?1 AND id = ?2", vec![tenant.into(), id.into()])
}
