//! The newest entry of each hash chain, remembered so that appending costs the same at any length.

use std::collections::HashMap;

use orchestr8_kernel::ports::store::Link;
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::Failure;
use super::limits;
use crate::chain::{GENESIS, seal};

/// What is remembered may run ahead of what is committed; whoever undoes a batch forgets its chains.
#[derive(Default)]
pub(super) struct Heads(HashMap<String, Head>);

pub(super) struct Head {
    pub seq: i64,
    pub hash: String,
}

impl Heads {
    /// Gives the entry that was appended.
    pub fn append(&mut self, connection: &Connection, link: &Link) -> Result<&Head, Failure> {
        self.try_append(connection, link).map_err(|error| Failure::of(&error))
    }

    pub fn forget(&mut self, links: &[Link]) {
        for link in links {
            self.0.remove(link.chain.as_ref());
        }
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn try_append(&mut self, connection: &Connection, link: &Link) -> rusqlite::Result<&Head> {
        if self.0.len() >= limits::HEADS_MAX {
            self.0.clear();
        }
        if !self.0.contains_key(&*link.chain) {
            self.0.insert(link.chain.clone().into_owned(), load(connection, &link.chain)?);
        }
        let head = self.0.get_mut(&*link.chain).ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let seq = head.seq + 1;
        let hash = seal(&head.hash, seq, link.at_ms, link.body.as_bytes());
        connection
            .prepare_cached(
                "INSERT INTO chain (name, seq, at_ms, body, prev_hash, entry_hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![link.chain, seq, link.at_ms, link.body, head.hash, hash])?;
        *head = Head { seq, hash };
        Ok(head)
    }
}

fn load(connection: &Connection, chain: &str) -> rusqlite::Result<Head> {
    let newest = connection
        .prepare_cached("SELECT seq, entry_hash FROM chain WHERE name = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row([chain], |row| Ok(Head { seq: row.get(0)?, hash: row.get(1)? }))
        .optional()?;
    Ok(newest.unwrap_or_else(|| Head { seq: 0, hash: GENESIS.to_owned() }))
}
