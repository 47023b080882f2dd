//! Between records and rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::{AgentId, MessageId, RequestId, Tenant};
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::{Batch, Cell, Error, Row, Statement};
use serde_json::Value;

use super::audit::{self, AuditRecord};
use super::desk::{HeldMessage, Inbox, PairState, Waiting};
use super::envelope::Kind;
use super::ledger::{Entry, Status};
use super::record::{Address, Held, Known, Pair, Write};
use crate::limits;
use crate::tables;

type Shared = Arc<dyn Store>;

/// A change as statements. A new message or request must really be new.
pub fn put(batch: &mut Batch, write: Write) {
    match write {
        Write::Message(row) => batch.then_one(tables::message_insert(&row)),
        Write::Release { tenant, message, position } => {
            batch.then(tables::message_release(tenant.as_str(), message.as_str(), position))
        }
        Write::Repost { tenant, message, position, sent_as } => {
            batch.then(tables::message_repost(tenant.as_str(), message.as_str(), position, sent_as.as_str()))
        }
        Write::Ended { tenant, message, status, error } => {
            let error = error.and_then(|error| serde_json::to_string(&error).ok());
            batch.then(tables::message_end(tenant.as_str(), message.as_str(), status.as_str(), error))
        }
        Write::Request { tenant, entry, is_new: true } => {
            let mut cells = changing(&tenant, &entry);
            cells.extend([
                entry.source.as_str().into(),
                entry.target.as_str().into(),
                entry.message.as_str().into(),
                int(entry.seq).into(),
                entry.timeout_ms.into(),
                entry.asked_ms.into(),
                entry.expires_ms.into(),
            ]);
            batch.then_one(tables::request_insert(cells))
        }
        Write::Request { tenant, entry, is_new: false } => {
            batch.then(tables::request_update(changing(&tenant, &entry)))
        }
        Write::Pair { pair, received, acked } => batch.then(tables::pair_put(&pair, received, acked)),
        Write::Inbox { address, last, floor } => batch.then(tables::inbox_put(&address, last, floor)),
        // Many become one entry of the chain: see `put_audit`.
        Write::Audit(_) => batch,
    };
}

/// The audit records among some changes, as entries of the chain.
pub fn put_audit<'a>(batch: &mut Batch, writes: impl Iterator<Item = &'a Write>, now_ms: i64) {
    let record = |write: &Write| match write {
        Write::Audit(record) => Some((**record).clone()),
        Write::Message(_)
        | Write::Release { .. }
        | Write::Repost { .. }
        | Write::Ended { .. }
        | Write::Request { .. }
        | Write::Pair { .. }
        | Write::Inbox { .. } => None,
    };
    let records: Vec<AuditRecord> = writes.filter_map(record).collect();
    batch.links.extend(audit::links(&records, now_ms));
}

/// The columns of a request that change, after the two that name it.
fn changing(tenant: &Tenant, entry: &Entry) -> Vec<Cell> {
    vec![
        tenant.as_str().into(),
        entry.request.as_str().into(),
        entry.status.as_str().into(),
        i64::from(entry.attempts).into(),
        entry.due_ms.into(),
        entry.ended_ms.into(),
        i64::from(entry.late).into(),
        entry.answer.as_ref().and_then(|answer| serde_json::to_string(answer).ok()).into(),
        i64::from(entry.is_handed_over).into(),
    ]
}

pub async fn pair(store: &Shared, pair: &Pair) -> Result<PairState, Error> {
    let rows = store.query(tables::pair_find(pair)).await?;
    let (received, acked) = match rows.first() {
        Some(row) => (number(row, 0)?, number(row, 1)?),
        None => (0, 0),
    };
    let mut held = BTreeMap::new();
    for row in store.query(tables::pair_held(pair, received)).await? {
        let kind = if row.int(2)? == Held::ToPlace.as_int() { Held::ToPlace } else { Held::ToCount };
        let waits = HeldMessage {
            message: message(row.text(1)?)?,
            request: request_id(row.optional_text(3)?)?,
            held: kind,
            expires_ms: row.int(4)?,
        };
        held.insert(number(&row, 0)?, waits);
    }
    Ok(PairState::restore(received, acked, held))
}

pub async fn inbox(store: &Shared, address: &Address) -> Result<Inbox, Error> {
    let (last, floor) = bounds(store, address).await?;
    let mut waiting = BTreeMap::new();
    let mut after = floor;
    loop {
        let rows = store.query(tables::inbox_waiting(address, after, 0, limits::PAGE)).await?;
        for row in &rows {
            after = number(row, 0)?;
            waiting.insert(
                after,
                Waiting {
                    source: agent(row.text(1)?)?,
                    seq: number(row, 2)?,
                    message: message(row.text(3)?)?,
                    request: match kind(row.text(7)?)? {
                        Kind::Request => request_id(row.optional_text(8)?)?,
                        Kind::Response | Kind::Event => None,
                    },
                    reposted: row.int(4)? > 0,
                    expires_ms: row.int(9)?,
                },
            );
        }
        if rows.len() < usize::try_from(limits::PAGE).unwrap_or(usize::MAX) {
            return Ok(Inbox::restore(last, waiting));
        }
    }
}

/// The last place of an inbox, and the one up to which everything was acknowledged.
pub async fn bounds(store: &Shared, address: &Address) -> Result<(u64, u64), Error> {
    let rows = store.query(tables::inbox_find(address)).await?;
    rows.first().map_or(Ok((0, 0)), |row| Ok((number(row, 0)?, number(row, 1)?)))
}

pub async fn request(store: &Shared, tenant: &Tenant, id: &RequestId) -> Result<Option<Entry>, Error> {
    let rows = store.query(tables::request_find(tenant.as_str(), id.as_str())).await?;
    rows.first().map(entry).transpose()
}

pub fn entry(row: &Row) -> Result<Entry, Error> {
    let optional = |at: usize| match row.0.get(at) {
        Some(Cell::Null) => Ok(None),
        _ => row.int(at).map(Some),
    };
    let answer = row.optional_text(13)?;
    Ok(Entry {
        request: RequestId::parse(row.text(0)?).map_err(damaged)?,
        source: agent(row.text(1)?)?,
        target: agent(row.text(2)?)?,
        message: message(row.text(3)?)?,
        seq: number(row, 4)?,
        status: Status::parse(row.text(5)?).ok_or_else(|| damaged("a status"))?,
        attempts: u32::try_from(row.int(6)?).map_err(damaged)?,
        timeout_ms: row.int(7)?,
        due_ms: optional(8)?,
        asked_ms: row.int(9)?,
        ended_ms: optional(10)?,
        expires_ms: row.int(11)?,
        late: row.int(12)? != 0,
        answer: answer.map(serde_json::from_str).transpose().map_err(damaged)?,
        is_handed_over: row.int(15)? != 0,
    })
}

pub async fn known(store: &Shared, statement: Statement) -> Result<Option<Known>, Error> {
    let rows = store.query(statement).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut body: Value = serde_json::from_str(row.text(6)?).map_err(damaged)?;
    Ok(Some(Known {
        message: message(row.text(0)?)?,
        source: agent(row.text(1)?)?,
        target: row.text(2)?.to_owned(),
        seq: number(row, 3)?,
        kind: kind(row.text(4)?)?,
        request: request_id(row.optional_text(5)?)?,
        payload: Arc::new(body.get_mut("payload").map(Value::take).unwrap_or_default()),
    }))
}

/// A message in an inbox.
pub struct Item {
    pub position: u64,
    pub source: AgentId,
    pub seq: u64,
    pub kind: Kind,
    pub request: Option<RequestId>,
    pub expires_ms: i64,
    /// How many transmissions there were before this one.
    pub retries: u64,
    /// A request of which no attempt is counted for this transmission.
    pub is_unread: bool,
    /// The envelope as it is handed on: with the id of this transmission, and how many there were before it.
    pub envelope: Value,
}

pub fn item(row: &Row) -> Result<Item, Error> {
    let mut envelope: Value = serde_json::from_str(row.text(5)?).map_err(damaged)?;
    if let (Some(sent_as), Some(map)) = (row.optional_text(6)?, envelope.as_object_mut()) {
        map.insert(String::from("messageId"), sent_as.into());
        map.insert(String::from("retryCount"), row.int(4)?.into());
    }
    Ok(Item {
        position: number(row, 0)?,
        source: agent(row.text(1)?)?,
        seq: number(row, 2)?,
        kind: kind(row.text(7)?)?,
        request: request_id(row.optional_text(8)?)?,
        expires_ms: row.int(9)?,
        retries: number(row, 4)?,
        is_unread: row.int(10)? != 0,
        envelope,
    })
}

pub fn fault(text: Option<&str>) -> Result<Option<StoredFault>, Error> {
    text.map(serde_json::from_str).transpose().map_err(damaged)
}

fn kind(text: &str) -> Result<Kind, Error> {
    Kind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| damaged("a kind of message"))
}

fn request_id(text: Option<&str>) -> Result<Option<RequestId>, Error> {
    text.map(RequestId::parse).transpose().map_err(damaged)
}

fn agent(text: &str) -> Result<AgentId, Error> {
    AgentId::parse(text).map_err(damaged)
}

fn message(text: &str) -> Result<MessageId, Error> {
    MessageId::parse(text).map_err(damaged)
}

pub fn number(row: &Row, at: usize) -> Result<u64, Error> {
    u64::try_from(row.int(at)?).map_err(damaged)
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn damaged(what: impl ToString) -> Error {
    Error::Corrupt(what.to_string())
}
