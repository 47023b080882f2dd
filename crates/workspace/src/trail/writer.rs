//! The one who writes: takes the lock, looks whether others wrote, writes a group of entries, flushes, answers.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::chain::{Entry, GENESIS, line, seal};
use rustix::fs::{FlockOperation, OFlags, flock, fsync, renameat};
use rustix::io::Errno;

use super::head::{TrailHead, TrailHeads};
use super::read::{Last, bytes, last_of};
use super::segments::{self, LOCK, NAME};
use super::{Error, Sealed, Wish};
use crate::limits;
use crate::root::Root;

/// How a trail is kept.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub segment_bytes: u64,
    pub lock_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: limits::SEGMENT_BYTES, lock_ms: limits::LOCK_MS }
    }
}

/// Between two looks whether the lock is free.
const LOOK_MS: u64 = 2;

/// How often a group is put at the end again after another process has moved the end.
const MOVES: usize = 100;

pub(super) struct Writer {
    root: Arc<Root>,
    heads: TrailHeads,
    /// Where the trail ends as the server knows it.
    end: TrailHead,
    /// Whether the store knows that the newest entries are in the file.
    confirmed: bool,
    options: Options,
    lock: File,
    file: File,
    inode: u64,
    /// The number of the first entry of the current file.
    first: i64,
    /// The newest entry there is.
    seq: i64,
    head: String,
    /// The length of the current file, as far as it is known.
    bytes: u64,
    /// After a flush that failed, nobody knows what is on the disk.
    broken: bool,
}

fn io(error: impl Into<std::io::Error>) -> Error {
    Error::Io(error.into().to_string())
}

impl Writer {
    pub fn open(root: &Arc<Root>, heads: TrailHeads, options: Options) -> Result<Self, Error> {
        let lock = segments::open(root, LOCK, OFlags::RDWR | OFlags::CREATE).map_err(io)?;
        let held = Held::take(&lock, options.lock_ms)?;
        let file = current(root)?;
        let end = match heads.load()? {
            Some(end) => end,
            None if bytes(root)? > 0 => return Err(unknown_trail()),
            None => heads.create()?,
        };
        let mut writer = Self {
            root: root.clone(),
            heads,
            end,
            confirmed: false,
            options,
            lock: held.0.try_clone().map_err(io)?,
            inode: file.metadata().map_err(io)?.ino(),
            file,
            first: 1,
            seq: 0,
            head: GENESIS.to_owned(),
            bytes: 0,
            broken: false,
        };
        writer.reconcile()?;
        drop(held);
        Ok(writer)
    }

    /// Compares the end of the file with the end that the server knows.
    pub fn check(&mut self) -> Result<Sealed, Error> {
        let lock = self.lock.try_clone().map_err(io)?;
        let _held = Held::take(&lock, self.options.lock_ms)?;
        self.reopen()?;
        self.reconcile()?;
        Ok(Sealed { seq: self.seq, hash: self.head.clone() })
    }

    /// Lets the store know that the newest entries are in the file.
    pub fn confirm(&mut self) {
        if !self.confirmed {
            self.heads.confirm(&self.end);
            self.confirmed = true;
        }
    }

    /// Writes a group of entries and answers each. One that nobody waits for any more is left out.
    pub fn write(&mut self, group: Vec<Wish>) {
        let written = self.try_write(&group);
        match written {
            Ok(sealed) => {
                for (wish, sealed) in group.into_iter().zip(sealed) {
                    if let Some(sealed) = sealed {
                        let _ = wish.answer.send(Ok(sealed));
                    }
                }
            }
            Err(error) => {
                for wish in group {
                    let _ = wish.answer.send(Err(error.clone()));
                }
            }
        }
    }

    fn try_write(&mut self, group: &[Wish]) -> Result<Vec<Option<Sealed>>, Error> {
        if self.broken {
            return Err(Error::Io(String::from("an earlier flush failed; start anew")));
        }
        let lock = self.lock.try_clone().map_err(io)?;
        let _held = Held::take(&lock, self.options.lock_ms)?;
        self.catch_up()?;
        if self.bytes >= self.options.segment_bytes {
            self.rotate()?;
        }
        for _ in 0..MOVES {
            let Chained { text, hashes, sealed } = self.chain(group);
            if hashes.is_empty() {
                return Ok(sealed);
            }
            let text = String::from_utf8(text).map_err(|_| Error::Io(String::from("an entry is no text")))?;
            match self.heads.advance(&self.end, &hashes, &text)? {
                Some(end) => {
                    self.put_or_retract(&text, &end)?;
                    (self.seq, self.head, self.end, self.confirmed) = (end.seq, end.hash.clone(), end, false);
                    return Ok(sealed);
                }
                None => self.reconcile()?,
            }
        }
        Err(Error::Locked)
    }

    /// The group as it stands behind the newest entry.
    fn chain(&self, group: &[Wish]) -> Chained {
        let (mut seq, mut head) = (self.seq, self.head.clone());
        let mut chained = Chained { text: Vec::new(), hashes: Vec::new(), sealed: Vec::new() };
        for wish in group {
            if wish.answer.is_closed() {
                chained.sealed.push(None);
                continue;
            }
            let hash = seal(&head, seq + 1, wish.at_ms, wish.body.as_bytes());
            let entry = Entry {
                seq: seq + 1,
                at_ms: wish.at_ms,
                body: wish.body.as_bytes(),
                prev_hash: head.as_bytes(),
                entry_hash: hash.as_bytes(),
            };
            chained.text.extend(line::write(&entry));
            chained.text.push(b'\n');
            chained.hashes.push(hash.clone());
            (seq, head) = (seq + 1, hash);
            chained.sealed.push(Some(Sealed { seq, hash: head.clone() }));
        }
        chained
    }

    /// Entries that could not be written are not recorded in the store either.
    fn put_or_retract(&mut self, text: &str, end: &TrailHead) -> Result<(), Error> {
        let Err(error) = self.put(text.as_bytes()) else { return Ok(()) };
        if !self.broken && self.heads.retract(end, &self.end).is_err() {
            self.broken = true;
        }
        Err(error)
    }

    /// Writes at the end and flushes. What could not be written whole is cut off again.
    fn put(&mut self, text: &[u8]) -> Result<(), Error> {
        if let Err(error) = (&self.file).write_all(text) {
            self.broken = self.file.set_len(self.bytes).is_err();
            return Err(io(error));
        }
        if let Err(error) = self.file.sync_data() {
            self.broken = true;
            return Err(io(error));
        }
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Takes in what other processes wrote since, as far as the server knows of it.
    fn catch_up(&mut self) -> Result<(), Error> {
        let is_same = !self.reopen()? && self.file.metadata().map_err(io)?.len() == self.bytes;
        match is_same && self.ends_as_known() {
            true => Ok(()),
            false => self.reconcile(),
        }
    }

    /// Whether the newest line of the file is the newest entry that the server knows, or the file has just begun.
    fn ends_as_known(&self) -> bool {
        let known = (self.end.seq, &self.end.hash);
        let is_newest = match last_of(&self.file) {
            Ok(Last::Entry { seq, hash, .. }) => (seq, &hash) == known,
            Ok(Last::Nothing) => true,
            Ok(Last::Torn { .. }) | Err(_) => false,
        };
        is_newest && (self.seq, &self.head) == known
    }

    /// Opens the current file again if another one is in its place; true if there was.
    fn reopen(&mut self) -> Result<bool, Error> {
        let now = match segments::open(&self.root, NAME, OFlags::PATH) {
            Ok(file) => file.metadata().map_err(io)?.ino(),
            Err(Errno::NOENT) => 0,
            Err(error) => return Err(io(error)),
        };
        if now == self.inode {
            return Ok(false);
        }
        self.file = current(&self.root)?;
        self.inode = self.file.metadata().map_err(io)?.ino();
        Ok(true)
    }

    /// The file must end where the server knows that it ends. Lines that a crash kept from the file are written now.
    fn reconcile(&mut self) -> Result<(), Error> {
        self.end = self.heads.load()?.ok_or_else(unknown_trail)?;
        match self.find_end() {
            Ok(()) => {}
            Err(Error::Broken { .. }) => return Err(self.difference()),
            Err(error @ (Error::Locked | Error::Io(_) | Error::Tampered { .. } | Error::Closed)) => {
                return Err(error);
            }
        }
        if (self.seq, &self.head) != (self.end.seq, &self.end.hash) {
            self.write_pending()?;
        }
        Ok(())
    }

    fn write_pending(&mut self) -> Result<(), Error> {
        let pending = self.end.pending.clone();
        let (mut body, mut start) = (Vec::new(), 0);
        let rest = pending.split_inclusive('\n').find_map(|text| {
            let entry = line::read(text.strip_suffix('\n')?.as_bytes(), &mut body)?;
            let follows = entry.seq == self.seq + 1 && entry.prev_hash == self.head.as_bytes();
            let rest = follows.then_some(start);
            start += text.len();
            rest
        });
        let rest = rest.ok_or_else(|| self.difference())?;
        self.put(&pending.as_bytes()[rest..])?;
        self.find_end()?;
        match (self.seq, &self.head) == (self.end.seq, &self.end.hash) {
            true => Ok(()),
            false => Err(self.difference()),
        }
    }

    fn difference(&self) -> Error {
        self.heads.first_difference(&self.root, &self.end)
    }

    /// Finds the newest entry. A line that a crash cut off was never acknowledged and is taken away.
    fn find_end(&mut self) -> Result<(), Error> {
        self.bytes = self.file.metadata().map_err(io)?.len();
        let last = match last_of(&self.file)? {
            Last::Entry { first, seq, hash } => Some((first, seq, hash)),
            Last::Torn { keep, before } => {
                self.file.set_len(keep).map_err(io)?;
                self.file.sync_all().map_err(io)?;
                self.bytes = keep;
                before
            }
            Last::Nothing => None,
        };
        if let Some((first, seq, hash)) = last {
            (self.first, self.seq, self.head) = (first, seq, hash);
            return Ok(());
        }
        (self.first, self.seq, self.head) = match segments::full(&self.root)?.last() {
            None => (1, 0, GENESIS.to_owned()),
            Some(name) => {
                let file = segments::open(&self.root, name, OFlags::RDONLY).map_err(io)?;
                match last_of(&file)? {
                    Last::Entry { seq, hash, .. } => (seq + 1, seq, hash),
                    Last::Torn { .. } | Last::Nothing => {
                        return Err(Error::Broken { seq: 0, what: format!("{name} has no end") });
                    }
                }
            }
        };
        Ok(())
    }

    fn rotate(&mut self) -> Result<(), Error> {
        let name = segments::full_name(self.first);
        renameat(self.root.handle(), NAME, self.root.handle(), name.as_str()).map_err(io)?;
        self.file = current(&self.root)?;
        self.inode = self.file.metadata().map_err(io)?.ino();
        (self.first, self.bytes) = (self.seq + 1, 0);
        Ok(())
    }
}

/// A group of entries, chained.
struct Chained {
    text: Vec<u8>,
    hashes: Vec<String>,
    /// None: it is not waited for any more.
    sealed: Vec<Option<Sealed>>,
}

/// Keeps everyone else from writing the trail until it is dropped, which closes the file.
pub(super) struct TrailHold(#[allow(dead_code, reason = "it is held, not read")] File);

/// Waits until no one else writes the trail.
pub(super) fn hold(root: &Root, options: Options) -> Result<TrailHold, Error> {
    let lock = segments::open(root, LOCK, OFlags::RDWR | OFlags::CREATE).map_err(io)?;
    wait_for(&lock, options.lock_ms)?;
    Ok(TrailHold(lock))
}

fn unknown_trail() -> Error {
    Error::Tampered { seq: 1, what: String::from("is of a trail that this server has no record of") }
}

/// The current file, made and named on stable storage if there is none.
fn current(root: &Root) -> Result<File, Error> {
    let flags = OFlags::RDWR | OFlags::APPEND;
    match segments::open(root, NAME, flags) {
        Ok(file) => Ok(file),
        Err(Errno::NOENT) => {
            let file = segments::open(root, NAME, flags | OFlags::CREATE).map_err(io)?;
            fsync(root.handle()).map_err(io)?;
            Ok(file)
        }
        Err(error) => Err(io(error)),
    }
}

/// The lock, given back when dropped.
struct Held<'a>(&'a File);

impl<'a> Held<'a> {
    fn take(lock: &'a File, limit_ms: u64) -> Result<Self, Error> {
        wait_for(lock, limit_ms).map(|()| Self(lock))
    }
}

fn wait_for(lock: &File, limit_ms: u64) -> Result<(), Error> {
    for _ in 0..=limit_ms / LOOK_MS {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::park_timeout(Duration::from_millis(LOOK_MS)),
            Err(error) => return Err(io(error)),
        }
    }
    Err(Error::Locked)
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}
