//! One piece of work under way: where it stands, and what is known of its attempts.

use std::sync::Arc;

/// One piece of work under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub phase: Phase,
    pub attempts: u32,
    /// What ended attempts and the waits after them have used of the step's time budget.
    pub spent_ms: u64,
    /// When the attempt that runs began.
    pub began_ms: i64,
    /// An attempt of it may have had its effect, although it failed: it timed out.
    pub may_have_happened: bool,
}

impl Work {
    pub fn new(phase: Phase, attempts: u32) -> Self {
        Self { phase, attempts, spent_ms: 0, began_ms: 0, may_have_happened: false }
    }

    /// Whether it waits for an event with this name.
    pub fn waits_for(&self, name: &str) -> bool {
        matches!(&self.phase, Phase::Waiting { event: Some(event), .. } if *event == name)
    }

    /// An attempt of it may have happened, and its end is not known: the process died while it ran, or it timed out and another
    /// one is to come. What failed otherwise is known to have failed.
    pub fn is_in_doubt(&self) -> bool {
        match self.phase {
            Phase::Unknown => true,
            Phase::Ready | Phase::Retrying { .. } => self.may_have_happened,
            Phase::Running
            | Phase::Beginning
            | Phase::Child { .. }
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Resting { .. } => false,
        }
    }

    /// An attempt of it was made, and another one is to come.
    pub fn is_between_attempts(&self) -> bool {
        self.attempts > 0 && matches!(self.phase, Phase::Ready | Phase::Unknown | Phase::Retrying { .. })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// It waits for a slot.
    Ready,
    Running,
    /// In backoff: its last attempt failed, and the next one is due then.
    Retrying {
        at_ms: i64,
    },
    /// Another execution does it; none yet.
    Beginning,
    Child {
        execution: Arc<str>,
        /// It was told to stop.
        stopping: bool,
    },
    Waiting {
        due_ms: Option<i64>,
        event: Option<String>,
    },
    Asking {
        due_ms: Option<i64>,
    },
    /// Between two rounds.
    Resting {
        due_ms: i64,
    },
    /// How its attempt ended is not known, and a person must say.
    Unknown,
}

impl Phase {
    /// Something is going on outside, which must end or be stopped before the execution can end.
    pub fn is_active(&self) -> bool {
        match self {
            Phase::Running | Phase::Child { .. } => true,
            Phase::Ready
            | Phase::Retrying { .. }
            | Phase::Beginning
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Resting { .. }
            | Phase::Unknown => false,
        }
    }

    /// Tells it to stop. False when that has been said before.
    pub fn stop(&mut self) -> bool {
        match self {
            Phase::Child { stopping, .. } => !std::mem::replace(stopping, true),
            Phase::Ready
            | Phase::Running
            | Phase::Retrying { .. }
            | Phase::Beginning
            | Phase::Waiting { .. }
            | Phase::Asking { .. }
            | Phase::Resting { .. }
            | Phase::Unknown => true,
        }
    }

    /// It has a timer.
    pub fn due_ms(&self) -> Option<i64> {
        match self {
            Phase::Waiting { due_ms, .. } | Phase::Asking { due_ms } => *due_ms,
            Phase::Resting { due_ms } | Phase::Retrying { at_ms: due_ms } => Some(*due_ms),
            Phase::Ready | Phase::Running | Phase::Beginning | Phase::Child { .. } | Phase::Unknown => None,
        }
    }
}
