//! A lease: for how long a task is whose, and the token that proves it.

use orchestr8_contract::{Code, Fault};
use serde_json::Value;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::super::members::Members;
use crate::limits::{LEASE_MAX_MS, LEASE_MIN_MS, LEASE_MS};

pub struct Lease {
    token: String,
    /// On the clock of this process.
    pub ends_us: u64,
}

impl Lease {
    pub fn new(token: String, now_us: u64, lease_ms: u64) -> Self {
        Self { token, ends_us: ends_us(now_us, lease_ms) }
    }

    /// Compared in constant time, so that nobody can feel their way to a token.
    pub fn is_for(&self, token: &str) -> bool {
        is_same(&self.token, token)
    }

    pub fn has_lapsed(&self, now_us: u64) -> bool {
        self.ends_us <= now_us
    }

    pub fn into_token(self) -> String {
        self.token
    }
}

pub fn ends_us(now_us: u64, lease_ms: u64) -> u64 {
    now_us.saturating_add(lease_ms.saturating_mul(1000))
}

pub fn is_same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// How long a worker may be silent: `leaseMs` of the step's config, or the usual time.
pub fn length_ms(config: &Value) -> Result<u64, Fault> {
    let members = Members::peek(&Value::Null, config);
    Ok(members.number("leaseMs", LEASE_MIN_MS, LEASE_MAX_MS)?.unwrap_or(LEASE_MS))
}

/// For whoever comes too late: nothing was changed by it.
pub fn lost(task: Uuid) -> Fault {
    Fault::new(
        Code::NotFound,
        "the lease has lapsed or the token is not the one of this task; the task went back to its queue, and this \
         answer changed nothing",
    )
    .with("taskId", task.to_string())
    .with("reason", "lease_lost")
}

pub fn unknown(task: Uuid) -> Fault {
    Fault::new(
        Code::NotFound,
        "there is no such task: it was ended, cancelled or timed out, or the server was started anew and hands it out \
         again; this answer changed nothing",
    )
    .with("taskId", task.to_string())
    .with("reason", "task_unknown")
}
