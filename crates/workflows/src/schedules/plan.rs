//! Which moments of a schedule are started, and when: pure, from what is stored and the time.

use orchestr8_contract::Fault;

use super::spec::{Backfill, Moments, Overlap, Spec};
use crate::limits;

/// A moment that is found so long after it came was missed, although the server ran: the machine slept, for example.
pub const LATE_MS: i64 = 60_000;

/// When a schedule is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub now_ms: i64,
    /// Since when this server has looked at schedules.
    pub since_ms: i64,
}

impl Look {
    /// Moments before this one were missed.
    fn present_ms(self) -> i64 {
        self.since_ms.max(self.now_ms.saturating_sub(LATE_MS))
    }
}

/// Where a schedule stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The next moment that was not looked at yet.
    pub next_ms: Option<i64>,
    /// Moments that are to be started, the earliest first.
    pub pending: Vec<i64>,
}

/// What follows from a look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub progress: Progress,
    /// The execution before gives way.
    pub cancels: bool,
    /// Moments that found no room among those that wait.
    pub left_out: usize,
}

/// Takes up the moments that have come, as `backfill` and `overlap` say. `is_busy`: the execution before has not ended.
pub fn plan(spec: &Spec, before: &Progress, look: Look, is_busy: bool) -> Result<Plan, Fault> {
    let Some(next_ms) = before.next_ms.filter(|next_ms| *next_ms <= look.now_ms) else {
        return Ok(Plan { progress: before.clone(), ..Plan::default() });
    };
    let moments = spec.moments()?;
    let missed = missed(spec.backfill, &moments, next_ms, look);
    let present_ms = look.present_ms();
    let first = if next_ms >= present_ms { Some(next_ms) } else { moments.next_after(present_ms - 1) };
    let timely = moments.between(first, look.now_ms.saturating_add(1), limits::SCHEDULE_BACKLOG);
    let mut plan = Plan {
        progress: Progress { next_ms: moments.next_after(look.now_ms), pending: before.pending.clone() },
        ..Plan::default()
    };
    let pending = &mut plan.progress.pending;
    pending.extend(missed);
    match spec.overlap {
        Overlap::Allow | Overlap::Queue => pending.extend(timely),
        Overlap::Skip if pending.is_empty() && !is_busy => pending.extend(timely.first()),
        Overlap::Skip => {}
        Overlap::Cancel => {
            if let Some(newest) = timely.last() {
                plan.cancels = is_busy;
                *pending = vec![*newest];
            }
        }
    }
    plan.left_out = pending.len().saturating_sub(limits::SCHEDULE_BACKLOG);
    pending.truncate(limits::SCHEDULE_BACKLOG);
    Ok(plan)
}

/// The moments that are made up for.
fn missed(backfill: Backfill, moments: &Moments, next_ms: i64, look: Look) -> Vec<i64> {
    let count = match backfill {
        Backfill::None => 0,
        Backfill::One => 1,
        Backfill::All => limits::SCHEDULE_BACKLOG,
    };
    moments.newest(next_ms, look.present_ms(), count)
}

/// Whether the first moment that waits may start now.
pub fn may_start(overlap: Overlap, cancels: bool, is_busy: bool) -> bool {
    match overlap {
        Overlap::Allow => true,
        Overlap::Skip | Overlap::Queue => !is_busy,
        Overlap::Cancel => !is_busy || cancels,
    }
}
