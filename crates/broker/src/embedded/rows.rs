//! Rows of the store as messages, replies and dead letters.

use bytes::Bytes;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ports::store::{Cell, Error, Row};

use crate::port::{DeadLetter, Delivery, Message, Receipt, Reply};
use crate::subject::Subject;

/// Where the columns of a message begin in `due` and in `dead`.
const MESSAGE: usize = 4;

pub fn count(row: &Row) -> Result<(Tenant, usize, usize), Error> {
    Ok((tenant(row, 0)?, size(row, 1)?, size(row, 2)?))
}

pub fn tenant_count(row: &Row) -> Result<(Tenant, usize), Error> {
    Ok((tenant(row, 0)?, size(row, 1)?))
}

/// A message that is about to be leased.
pub fn delivery(row: &Row) -> Result<Delivery, Error> {
    let message = message(row)?;
    let receipt = Receipt {
        tenant: message.tenant.clone(),
        seq: row.int(0)?,
        attempt: small(row, 1)?.saturating_add(1),
    };
    Ok(Delivery { receipt, message, round: small(row, 2)?, published_ms: row.int(3)? })
}

pub fn reply(row: &Row) -> Result<Reply, Error> {
    Ok(Reply { seq: row.int(0)?, at_ms: row.int(1)?, body: Bytes::copy_from_slice(row.blob(2)?) })
}

pub fn dead_letter(row: &Row) -> Result<DeadLetter, Error> {
    Ok(DeadLetter {
        seq: row.int(0)?,
        attempts: small(row, 1)?,
        redrives: small(row, 2)?,
        published_ms: row.int(3)?,
        message: message(row)?,
        why: row.text(12)?.to_owned(),
        dead_ms: row.int(13)?,
    })
}

/// None for null.
pub fn optional_int(row: &Row, column: usize) -> Result<Option<i64>, Error> {
    match row.0.get(column) {
        Some(Cell::Null) | None => Ok(None),
        Some(_) => row.int(column).map(Some),
    }
}

fn message(row: &Row) -> Result<Message, Error> {
    let text = |column: usize| row.text(MESSAGE + column).map(str::to_owned);
    Ok(Message {
        tenant: tenant(row, MESSAGE)?,
        subject: Subject::stored(&text(1)?),
        id: text(2)?,
        principal: text(3)?,
        sender: text(4)?,
        reply_to: row.optional_text(MESSAGE + 5)?.map(Subject::stored),
        lane: row.optional_text(MESSAGE + 6)?.map(str::to_owned),
        body: Bytes::copy_from_slice(row.blob(MESSAGE + 7)?),
    })
}

fn tenant(row: &Row, column: usize) -> Result<Tenant, Error> {
    Tenant::parse(row.text(column)?).map_err(|error| Error::Corrupt(error.to_string()))
}

fn size(row: &Row, column: usize) -> Result<usize, Error> {
    usize::try_from(row.int(column)?).map_err(|_| Error::Corrupt("a count is negative".to_owned()))
}

fn small(row: &Row, column: usize) -> Result<u32, Error> {
    u32::try_from(row.int(column)?).map_err(|_| Error::Corrupt("a number of attempts is none".to_owned()))
}
