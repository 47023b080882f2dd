//! The states of an execution, and their words.

use serde::{Deserialize, Serialize};

/// Where an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Queued,
    Running,
    /// Nothing of it runs: all it has begun waits for a worker, a timer, an event, a person, another execution or the next attempt.
    /// The engine does not tell it from `Running`; it is what rows and resources show.
    Waiting,
    Paused,
    Cancelling,
    /// What it did is being undone.
    Compensating,
    Completed,
    Failed,
    Cancelled,
    /// It failed or was cancelled, and its rollback has ended.
    Compensated,
}

impl Status {
    pub const ALL: [Status; 10] = [
        Status::Queued,
        Status::Running,
        Status::Waiting,
        Status::Paused,
        Status::Cancelling,
        Status::Compensating,
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
        Status::Compensated,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Paused => "paused",
            Status::Cancelling => "cancelling",
            Status::Compensating => "compensating",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Compensated => "compensated",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub fn is_final(self) -> bool {
        match self {
            Status::Completed | Status::Failed | Status::Cancelled | Status::Compensated => true,
            Status::Queued
            | Status::Running
            | Status::Waiting
            | Status::Paused
            | Status::Cancelling
            | Status::Compensating => false,
        }
    }

    /// It did not complete and has an error or a reason.
    pub fn is_unsuccessful(self) -> bool {
        match self {
            Status::Failed | Status::Cancelled | Status::Compensating | Status::Compensated => true,
            Status::Queued
            | Status::Running
            | Status::Waiting
            | Status::Paused
            | Status::Cancelling
            | Status::Completed => false,
        }
    }
}
