//! The tables of messages and every statement over them. The only SQL of this crate.

use orchestr8_kernel::ports::store::{Cell, Statement};

use crate::limits::{DEAD_KEPT_MS, REPLY_KEPT_MS};
use crate::port::{Message, Receipt};

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "broker-1",
    "CREATE TABLE broker_message (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, subject TEXT NOT NULL, id TEXT NOT NULL,
        principal TEXT NOT NULL, sender TEXT NOT NULL, reply_to TEXT, lane TEXT, body BLOB NOT NULL,
        published_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, leased INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0, rounds INTEGER NOT NULL DEFAULT 0, redrives INTEGER NOT NULL DEFAULT 0) STRICT;
     CREATE INDEX broker_message_due ON broker_message (tenant, due_ms, seq);
     CREATE INDEX broker_message_lane ON broker_message (tenant, lane, seq) WHERE lane IS NOT NULL;
     CREATE INDEX broker_message_leased ON broker_message (seq) WHERE leased = 1;
     CREATE TABLE broker_dead (
        seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, subject TEXT NOT NULL, id TEXT NOT NULL, principal TEXT NOT NULL,
        sender TEXT NOT NULL, reply_to TEXT, lane TEXT, body BLOB NOT NULL, published_ms INTEGER NOT NULL,
        attempts INTEGER NOT NULL, rounds INTEGER NOT NULL, redrives INTEGER NOT NULL, why TEXT NOT NULL,
        dead_ms INTEGER NOT NULL) STRICT;
     CREATE INDEX broker_dead_tenant ON broker_dead (tenant, seq);
     CREATE INDEX broker_dead_time ON broker_dead (dead_ms);
     CREATE TABLE broker_reply (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, inbox TEXT NOT NULL, principal TEXT NOT NULL,
        body BLOB NOT NULL, at_ms INTEGER NOT NULL) STRICT;
     CREATE INDEX broker_reply_inbox ON broker_reply (tenant, inbox, seq);
     CREATE INDEX broker_reply_time ON broker_reply (at_ms);",
)];

/// A message behind another of its lane is due when that one is gone.
const BEHIND_MS: i64 = i64::MAX;

pub fn publish(message: &Message, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO broker_message (tenant, subject, id, principal, sender, reply_to, lane, body, published_ms, due_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
            CASE WHEN EXISTS (SELECT 1 FROM broker_message WHERE tenant = ?1 AND lane = ?7) THEN ?10 ELSE ?9 END)",
        vec![
            message.tenant.as_str().into(),
            message.subject.as_str().into(),
            message.id.as_str().into(),
            message.principal.as_str().into(),
            message.sender.as_str().into(),
            message.reply_to.as_ref().map(|to| to.as_str().to_owned()).into(),
            message.lane.clone().into(),
            message.body.to_vec().into(),
            now_ms.into(),
            BEHIND_MS.into(),
        ],
    )
}

/// Columns: tenant, how many, bytes.
pub fn counts() -> Statement {
    Statement::new("SELECT tenant, COUNT(*), SUM(LENGTH(body)) FROM broker_message GROUP BY tenant", vec![])
}

/// One row if anything is leased. Most starts find nothing, and need not write.
pub fn leased() -> Statement {
    Statement::new("SELECT seq FROM broker_message WHERE leased = 1 LIMIT 1", vec![])
}

/// Whoever had them is gone with the process.
pub fn free_all(now_ms: i64) -> Statement {
    Statement::new("UPDATE broker_message SET leased = 0, due_ms = ?1 WHERE leased = 1", vec![now_ms.into()])
}

/// What of a tenant is due. Columns: seq, attempts, rounds, published_ms, then those of a message.
pub fn due(tenant: &str, now_ms: i64, most: i64) -> Statement {
    Statement::new(
        "SELECT seq, attempts, rounds, published_ms, tenant, subject, id, principal, sender, reply_to, lane, body
         FROM broker_message WHERE tenant = ?1 AND due_ms <= ?2 ORDER BY due_ms, seq LIMIT ?3",
        vec![tenant.into(), now_ms.into(), most.into()],
    )
}

/// Column: when the next of a tenant is due; null: none.
pub fn next_due(tenant: &str) -> Statement {
    Statement::new("SELECT MIN(due_ms) FROM broker_message WHERE tenant = ?1", vec![tenant.into()])
}

/// Changes one row, or somebody else was faster.
pub fn lease(receipt: &Receipt, until_ms: i64) -> Statement {
    Statement::new(
        "UPDATE broker_message SET leased = 1, attempts = attempts + 1, due_ms = ?3
         WHERE seq = ?1 AND tenant = ?4 AND attempts = ?2 - 1",
        vec![
            receipt.seq.into(),
            i64::from(receipt.attempt).into(),
            until_ms.into(),
            receipt.tenant.as_str().into(),
        ],
    )
}

/// What names the holder of a lease: seq, attempt, tenant.
fn holder(receipt: &Receipt) -> Vec<Cell> {
    vec![receipt.seq.into(), i64::from(receipt.attempt).into(), receipt.tenant.as_str().into()]
}

fn held(sql: &'static str, receipt: &Receipt, more: impl IntoIterator<Item = Cell>) -> Statement {
    Statement::new(sql, holder(receipt).into_iter().chain(more).collect())
}

/// Changes one row, or the lease was over; so do the three below.
pub fn remove(receipt: &Receipt) -> Statement {
    held("DELETE FROM broker_message WHERE seq = ?1 AND attempts = ?2 AND tenant = ?3", receipt, [])
}

pub fn again(receipt: &Receipt, due_ms: i64) -> Statement {
    held(
        "UPDATE broker_message SET leased = 0, rounds = rounds + 1, due_ms = ?4
         WHERE seq = ?1 AND attempts = ?2 AND tenant = ?3 AND leased = 1",
        receipt,
        [due_ms.into()],
    )
}

pub fn give_back(receipt: &Receipt, now_ms: i64) -> Statement {
    held(
        "UPDATE broker_message SET leased = 0, attempts = attempts - 1, due_ms = ?4
         WHERE seq = ?1 AND attempts = ?2 AND tenant = ?3 AND leased = 1",
        receipt,
        [now_ms.into()],
    )
}

pub fn extend(receipt: &Receipt, until_ms: i64) -> Statement {
    held(
        "UPDATE broker_message SET due_ms = ?4 WHERE seq = ?1 AND attempts = ?2 AND tenant = ?3 AND leased = 1",
        receipt,
        [until_ms.into()],
    )
}

/// The copy of a message among the dead letters; `remove` is its other half.
pub fn bury(receipt: &Receipt, why: &str, now_ms: i64) -> Statement {
    held(
        "INSERT INTO broker_dead (seq, tenant, subject, id, principal, sender, reply_to, lane, body, published_ms, attempts,
            rounds, redrives, why, dead_ms)
         SELECT seq, tenant, subject, id, principal, sender, reply_to, lane, body, published_ms, attempts, rounds, redrives,
            ?4, ?5 FROM broker_message WHERE seq = ?1 AND attempts = ?2 AND tenant = ?3",
        receipt,
        [why.into(), now_ms.into()],
    )
}

/// The next of a lane, now that the one before it is gone.
pub fn move_up(tenant: &str, lane: &str, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE broker_message SET due_ms = ?3 WHERE due_ms = ?4 AND seq =
            (SELECT MIN(seq) FROM broker_message WHERE tenant = ?1 AND lane = ?2)",
        vec![tenant.into(), lane.into(), now_ms.into(), BEHIND_MS.into()],
    )
}

pub fn reply(tenant: &str, inbox: &str, principal: &str, body: Vec<u8>, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO broker_reply (tenant, inbox, principal, body, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        vec![tenant.into(), inbox.into(), principal.into(), body.into(), now_ms.into()],
    )
}

/// Columns: seq, at_ms, body. No principal: everybody's.
pub fn replies(tenant: &str, inbox: &str, principal: Option<String>, after: i64, most: i64) -> Statement {
    Statement::new(
        "SELECT seq, at_ms, body FROM broker_reply
         WHERE tenant = ?1 AND inbox = ?2 AND seq > ?4 AND (?3 IS NULL OR principal = ?3) ORDER BY seq LIMIT ?5",
        vec![tenant.into(), inbox.into(), principal.into(), after.into(), most.into()],
    )
}

/// Columns: seq, attempts, redrives, published_ms, those of a message, why, dead_ms. No tenant: for whoever runs the server.
pub fn dead(tenant: Option<String>, after: i64, most: i64) -> Statement {
    Statement::new(
        "SELECT seq, attempts, redrives, published_ms, tenant, subject, id, principal, sender, reply_to, lane, body, why, dead_ms
         FROM broker_dead WHERE seq > ?2 AND (?1 IS NULL OR tenant = ?1) ORDER BY seq LIMIT ?3",
        vec![tenant.into(), after.into(), most.into()],
    )
}

/// Columns: tenant, how many dead letters it has.
pub fn dead_counts() -> Statement {
    Statement::new("SELECT tenant, COUNT(*) FROM broker_dead GROUP BY tenant", vec![])
}

/// The copy of a dead letter in the queue, with all attempts before it; `discard` is its other half.
pub fn redrive(tenant: &str, seq: i64, now_ms: i64) -> Statement {
    Statement::new(
        "INSERT INTO broker_message (tenant, subject, id, principal, sender, reply_to, lane, body, published_ms, due_ms,
            rounds, redrives)
         SELECT tenant, subject, id, principal, sender, reply_to, lane, body, published_ms,
            CASE WHEN EXISTS (SELECT 1 FROM broker_message AS other
                WHERE other.tenant = dead.tenant AND other.lane = dead.lane) THEN ?4 ELSE ?3 END,
            rounds + 1, redrives + 1 FROM broker_dead AS dead WHERE tenant = ?1 AND seq = ?2",
        vec![tenant.into(), seq.into(), now_ms.into(), BEHIND_MS.into()],
    )
}

pub fn discard(tenant: &str, seq: i64) -> Statement {
    Statement::new("DELETE FROM broker_dead WHERE tenant = ?1 AND seq = ?2", vec![tenant.into(), seq.into()])
}

/// What is too old goes, the oldest first. Both statements take the moment before which it is old and how many rows may go.
pub struct Sweep {
    pub kept_ms: i64,
    count: &'static str,
    delete: &'static str,
}

pub const SWEEPS: [Sweep; 2] = [
    Sweep {
        kept_ms: REPLY_KEPT_MS,
        count: "SELECT COUNT(*) FROM (SELECT 1 FROM broker_reply WHERE at_ms <= ?1 LIMIT ?2)",
        delete: "DELETE FROM broker_reply WHERE seq IN
            (SELECT seq FROM broker_reply WHERE at_ms <= ?1 ORDER BY at_ms LIMIT ?2)",
    },
    Sweep {
        kept_ms: DEAD_KEPT_MS,
        count: "SELECT COUNT(*) FROM (SELECT 1 FROM broker_dead WHERE dead_ms <= ?1 LIMIT ?2)",
        delete: "DELETE FROM broker_dead WHERE seq IN
            (SELECT seq FROM broker_dead WHERE dead_ms <= ?1 ORDER BY dead_ms LIMIT ?2)",
    },
];

impl Sweep {
    /// Column: how many rows are due, up to this many.
    pub fn due(&self, until_ms: i64, rows: i64) -> Statement {
        Statement::new(self.count, vec![until_ms.into(), rows.into()])
    }

    pub fn delete(&self, until_ms: i64, rows: i64) -> Statement {
        Statement::new(self.delete, vec![until_ms.into(), rows.into()])
    }
}

/// Columns: tenant, how many replies it has.
pub fn reply_counts() -> Statement {
    Statement::new("SELECT tenant, COUNT(*) FROM broker_reply GROUP BY tenant", vec![])
}

/// The oldest replies of a tenant.
pub fn forget_replies(tenant: &str, rows: i64) -> Statement {
    Statement::new(
        "DELETE FROM broker_reply WHERE seq IN
            (SELECT seq FROM broker_reply WHERE tenant = ?1 ORDER BY seq LIMIT ?2)",
        vec![tenant.into(), rows.into()],
    )
}

/// The oldest dead letters of a tenant.
pub fn forget_dead(tenant: &str, rows: i64) -> Statement {
    Statement::new(
        "DELETE FROM broker_dead WHERE seq IN
            (SELECT seq FROM broker_dead WHERE tenant = ?1 ORDER BY seq LIMIT ?2)",
        vec![tenant.into(), rows.into()],
    )
}
