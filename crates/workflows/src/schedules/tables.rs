//! Statements over schedules.

use orchestr8_kernel::ports::store::{Cell, Statement};

use super::Schedule;
use super::plan::Progress;

/// Moments that are to be started, each after the execution before.
pub const MIGRATION: (&str, &str) = (
    "workflows-schedule-moments",
    "ALTER TABLE wf_schedules ADD COLUMN pending TEXT;
     CREATE INDEX wf_schedules_pending ON wf_schedules (tenant, id) WHERE paused = 0 AND pending IS NOT NULL;",
);

const COLUMNS: &str = "id, spec, paused, next_ms, last_ms, last_execution, tenant, seal, pending";

pub fn put(schedule: &Schedule, seal: Option<String>) -> Statement {
    Statement::new(
        "INSERT INTO wf_schedules (tenant, id, spec, paused, next_ms, seal) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (tenant, id) DO UPDATE SET spec = excluded.spec, paused = excluded.paused, next_ms = excluded.next_ms,
            seal = excluded.seal, pending = NULL",
        cells(schedule, seal),
    )
}

fn cells(schedule: &Schedule, seal: Option<String>) -> Vec<Cell> {
    let Schedule { tenant, id, source, paused, progress, .. } = schedule;
    vec![
        tenant.as_str().into(),
        id.as_str().into(),
        source.as_str().into(),
        i64::from(*paused).into(),
        progress.next_ms.into(),
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

/// What has moments that wait, whatever the tenant, after this one. The columns of `COLUMNS`.
pub fn waiting((tenant, id): (&str, &str), limit: i64) -> Statement {
    Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM wf_schedules WHERE paused = 0 AND pending IS NOT NULL AND (tenant, id) > (?1, ?2)
             ORDER BY tenant, id LIMIT ?3"
        )
        .into(),
        cells: vec![tenant.into(), id.into(), limit.into()],
    }
}

/// Column: when the next one is due, or null.
pub fn next_due() -> Statement {
    Statement::new(
        "SELECT MIN(next_ms) FROM wf_schedules WHERE paused = 0 AND next_ms IS NOT NULL",
        Vec::new(),
    )
}

/// Moves on from where the schedule was seen, to the moments that wait now; with the moment of the last start, if there was one.
/// Changes one row, or the schedule was moved on or paused meanwhile.
pub fn advance(schedule: &Schedule, to: &Progress, start: Option<(i64, &str)>) -> Statement {
    let seen = &schedule.progress;
    Statement::new(
        "UPDATE wf_schedules SET next_ms = ?5, pending = ?6, last_ms = COALESCE(?7, last_ms),
            last_execution = COALESCE(?8, last_execution)
         WHERE tenant = ?1 AND id = ?2 AND COALESCE(next_ms, -1) = ?3 AND COALESCE(pending, '') = ?4 AND paused = 0",
        vec![
            schedule.tenant.as_str().into(),
            schedule.id.as_str().into(),
            seen.next_ms.unwrap_or(-1).into(),
            text(&seen.pending).unwrap_or_default().into(),
            to.next_ms.into(),
            text(&to.pending).into(),
            start.map(|(at_ms, _)| at_ms).into(),
            start.map(|(_, execution)| execution).into(),
        ],
    )
}

/// Moments that wait, as they are stored; none is null.
fn text(pending: &[i64]) -> Option<String> {
    let words: Vec<String> = pending.iter().map(ToString::to_string).collect();
    (!words.is_empty()).then(|| words.join(","))
}

pub fn read_pending(text: Option<&str>) -> Option<Vec<i64>> {
    text.map_or_else(|| Some(Vec::new()), |text| text.split(',').map(|word| word.parse().ok()).collect())
}

pub fn delete(tenant: &str, id: &str) -> Statement {
    Statement::new("DELETE FROM wf_schedules WHERE tenant = ?1 AND id = ?2", vec![tenant.into(), id.into()])
}
