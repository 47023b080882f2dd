//! Where a trail ends, as the server knows it: a signed row of its store, with the hash of every entry. The file of a trail is
//! believed as far as it leads to this end and no further.
//!
//! A group of entries is in the store before it is in the file, so that a crash between the two loses none: its lines are
//! kept in the row until they are written.

use std::collections::VecDeque;
use std::sync::Arc;

use orchestr8_contract::chain::{GENESIS, line, seal};
use orchestr8_kernel::ports::store::{self, Batch, Row, Statement, Store};
use serde_json::{Value, json};

use super::{Error, Lines};
use crate::blocking::wait;
use crate::limits;
use crate::root::Root;
use crate::signing::{ServerSigningKey, StatementKind};
use crate::tables;

/// The end of a trail in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailHead {
    num: i64,
    pub seq: i64,
    pub hash: String,
    /// Lines of the newest entries that may not be in the file yet.
    pub pending: String,
}

/// The ends of one workspace's trail. Its functions block.
#[derive(Clone)]
pub struct TrailHeads {
    store: Arc<dyn Store>,
    key: ServerSigningKey,
    /// The real path of the workspace.
    path: String,
}

/// What is wrong with an entry that is not in the file.
const MISSING: &str = "is missing";

/// How often a trail is compared that is written meanwhile.
const COMPARISONS: usize = 100;

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Io(error.to_string())
}

impl TrailHeads {
    pub fn new(store: Arc<dyn Store>, key: ServerSigningKey, root: &Root) -> Self {
        Self { store, key, path: root.path().to_string_lossy().into_owned() }
    }

    /// The end that the server knows; none if it has no record of the trail.
    pub fn load(&self) -> Result<Option<TrailHead>, Error> {
        let rows = self.query(tables::trail_find(&self.path))?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (head, signature) = read(row).map_err(failed)?;
        let statement = self.statement(head.seq, &head.hash);
        let is_own = self.key.verify(StatementKind::TrailHead, &statement, &signature);
        match is_own.map_err(|refusal| Error::Io(refusal.message))? {
            true => Ok(Some(head)),
            false => {
                let what = String::from("is recorded in the store without this server's signature");
                Err(Error::Tampered { seq: head.seq, what })
            }
        }
    }

    /// The end of a trail that has no entries.
    pub fn create(&self) -> Result<TrailHead, Error> {
        let mut batch = Batch::new();
        batch.then(tables::trail_insert(&self.path, GENESIS, &self.sign(0, GENESIS)?));
        wait(self.store.commit(batch)).map_err(failed)?;
        self.load()?.ok_or_else(|| Error::Io(String::from("the end of the trail is not in the store")))
    }

    /// Moves the end behind these entries, whose lines are about to be written. None: another writer has moved it.
    pub fn advance(
        &self,
        from: &TrailHead,
        hashes: &[String],
        lines: &str,
    ) -> Result<Option<TrailHead>, Error> {
        let seq = from.seq + i64::try_from(hashes.len()).unwrap_or(i64::MAX);
        let hash = hashes.last().unwrap_or(&from.hash).clone();
        let to = TrailHead { num: from.num, seq, hash, pending: lines.to_owned() };
        let mut batch = Batch::new();
        batch.then_one(self.moved(from, &to)?);
        batch.then(tables::entries_insert(from.num, from.seq, json!(hashes).to_string()));
        match wait(self.store.commit(batch)) {
            Ok(()) => Ok(Some(to)),
            Err(store::Error::Conflict { .. }) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Takes back entries that could not be written.
    pub fn retract(&self, from: &TrailHead, to: &TrailHead) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.then_one(self.moved(from, to)?).then(tables::entries_delete(to.num, to.seq));
        wait(self.store.commit(batch)).map_err(failed)
    }

    /// The entries of this end are in the file.
    pub fn confirm(&self, head: &TrailHead) {
        let mut batch = Batch::new();
        batch.then(tables::trail_written(head.num, head.seq));
        // If it is not confirmed, the lines are compared with the file when the trail is opened next.
        let _ = wait(self.store.commit(batch));
    }

    /// Takes a trail as it is in the file: its end, and the hashes of all entries. For the owner of the server.
    pub fn adopt(&self, hashes: &[String]) -> Result<TrailHead, Error> {
        let known = self.load_unchecked()?;
        let from = match known {
            Some(head) => head,
            None => self.create()?,
        };
        let seq = i64::try_from(hashes.len()).unwrap_or(i64::MAX);
        let hash = hashes.last().map_or(GENESIS, String::as_str).to_owned();
        let to = TrailHead { num: from.num, seq, hash, pending: String::new() };
        let mut batch = Batch::new();
        batch.then_one(self.moved(&from, &to)?).then(tables::entries_delete(from.num, 0));
        for (at, page) in hashes.chunks(limits::ENTRY_HASHES).enumerate() {
            let after = i64::try_from(at * limits::ENTRY_HASHES).unwrap_or(i64::MAX);
            batch.then(tables::entries_insert(from.num, after, json!(page).to_string()));
        }
        wait(self.store.commit(batch)).map_err(failed)?;
        Ok(to)
    }

    /// Compares the whole file with what the store knows, without a key: for a store that another process writes. None: it has no
    /// record of the trail.
    pub fn compare(&self, root: &Root) -> Result<Option<TrailHead>, Error> {
        let Some(mut head) = self.load_unchecked()? else { return Ok(None) };
        for _ in 0..COMPARISONS {
            let found = self.find_difference(root, &head)?;
            let pending = i64::try_from(head.pending.lines().count()).unwrap_or(i64::MAX);
            let Some((seq, what)) = found else { return Ok(Some(head)) };
            let now = self.load_unchecked()?.ok_or_else(|| failed("the trail's record is gone"))?;
            if now == head {
                // Lines that the server is about to write.
                let is_on_its_way = what == MISSING && seq > head.seq.saturating_sub(pending);
                return match is_on_its_way {
                    true => Ok(Some(head)),
                    false => Err(Error::Tampered { seq, what: what.to_owned() }),
                };
            }
            head = now;
        }
        Err(Error::Locked)
    }

    /// The first entry of the file that is not the one the server wrote.
    pub fn first_difference(&self, root: &Root, head: &TrailHead) -> Error {
        match self.find_difference(root, head) {
            Ok(Some((seq, what))) => Error::Tampered { seq, what: what.to_owned() },
            Ok(None) => {
                Error::Tampered { seq: head.seq, what: String::from("was not where the server left it") }
            }
            Err(error) => error,
        }
    }

    fn find_difference(&self, root: &Root, head: &TrailHead) -> Result<Option<(i64, &'static str)>, Error> {
        let mut lines = Lines::of(root)?;
        let (mut text, mut body, mut page) = (Vec::new(), Vec::new(), VecDeque::new());
        for seq in 1..=head.seq {
            if page.is_empty() {
                page = self.hashes_after(head.num, seq - 1)?;
            }
            let known: Option<String> = page.pop_front();
            if !lines.next(&mut text)? {
                return Ok(Some((seq, MISSING)));
            }
            let text = text.strip_suffix(b"\n").unwrap_or(&text);
            let Some(entry) = line::read(text, &mut body) else {
                return Ok(Some((seq, "is no entry")));
            };
            if entry.seq > seq {
                return Ok(Some((seq, MISSING)));
            }
            let prev = String::from_utf8_lossy(entry.prev_hash);
            let hash = seal(&prev, entry.seq, entry.at_ms, entry.body);
            if entry.seq != seq || hash.as_bytes() != entry.entry_hash || known.as_deref() != Some(&hash) {
                return Ok(Some((seq, "is not the one that this server wrote")));
            }
        }
        Ok(lines.next(&mut text)?.then_some((head.seq + 1, "was not written by this server")))
    }

    fn hashes_after(&self, num: i64, after: i64) -> Result<VecDeque<String>, Error> {
        let limit = i64::try_from(limits::ENTRY_HASHES).unwrap_or(i64::MAX);
        let rows = self.query(tables::entries_page(num, after, limit))?;
        rows.iter().map(|row| row.text(0).map(str::to_owned).map_err(failed)).collect()
    }

    fn load_unchecked(&self) -> Result<Option<TrailHead>, Error> {
        let rows = self.query(tables::trail_find(&self.path))?;
        Ok(rows.first().map(read).transpose().map_err(failed)?.map(|(head, _)| head))
    }

    fn query(&self, statement: Statement) -> Result<Vec<Row>, Error> {
        wait(self.store.query(statement)).map_err(failed)
    }

    fn moved(&self, from: &TrailHead, to: &TrailHead) -> Result<Statement, Error> {
        let signature = self.sign(to.seq, &to.hash)?;
        let (before, after) = ((from.seq, from.hash.as_str()), (to.seq, to.hash.as_str()));
        Ok(tables::trail_move(from.num, before, after, &to.pending, &signature))
    }

    fn sign(&self, seq: i64, hash: &str) -> Result<String, Error> {
        let signed = self.key.sign(StatementKind::TrailHead, &self.statement(seq, hash));
        signed.map_err(|refusal| Error::Io(refusal.message))
    }

    fn statement(&self, seq: i64, hash: &str) -> Value {
        json!({"workspace": self.path, "entries": seq, "head": hash})
    }
}

fn read(row: &Row) -> Result<(TrailHead, String), store::Error> {
    let head = TrailHead {
        num: row.int(0)?,
        seq: row.int(1)?,
        hash: row.text(2)?.to_owned(),
        pending: row.text(3)?.to_owned(),
    };
    Ok((head, row.text(4)?.to_owned()))
}
