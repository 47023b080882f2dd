//! The one who writes: takes the lock, looks whether others wrote, writes a group of entries, flushes, answers.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::chain::{Entry, GENESIS, Verifier, line, seal};
use rustix::fs::{FlockOperation, OFlags, flock, fsync, renameat};
use rustix::io::Errno;

use super::read::{Last, last_of};
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

pub(super) struct Writer {
    root: Arc<Root>,
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
    pub fn open(root: &Arc<Root>, options: Options) -> Result<Self, Error> {
        let lock = segments::open(root, LOCK, OFlags::RDWR | OFlags::CREATE).map_err(io)?;
        let held = Held::take(&lock, options.lock_ms)?;
        let file = current(root)?;
        let mut writer = Self {
            root: root.clone(),
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
        writer.find_end()?;
        drop(held);
        Ok(writer)
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
        let (mut seq, mut head, mut text) = (self.seq, self.head.clone(), Vec::new());
        let mut sealed = Vec::with_capacity(group.len());
        for wish in group {
            if wish.answer.is_closed() {
                sealed.push(None);
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
            text.extend(line::write(&entry));
            text.push(b'\n');
            (seq, head) = (seq + 1, hash);
            sealed.push(Some(Sealed { seq, hash: head.clone() }));
        }
        self.put(&text)?;
        (self.seq, self.head) = (seq, head);
        Ok(sealed)
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

    /// Takes in what other processes wrote since, which must go on with the chain.
    fn catch_up(&mut self) -> Result<(), Error> {
        let now = match segments::open(&self.root, NAME, OFlags::PATH) {
            Ok(file) => file.metadata().map_err(io)?.ino(),
            Err(Errno::NOENT) => 0,
            Err(error) => return Err(io(error)),
        };
        if now != self.inode {
            self.file = current(&self.root)?;
            self.inode = self.file.metadata().map_err(io)?.ino();
            return self.find_end();
        }
        let length = self.file.metadata().map_err(io)?.len();
        if length == self.bytes {
            return Ok(());
        }
        let cut = || Error::Broken { seq: self.seq, what: String::from("entries were cut off") };
        let more = usize::try_from(length.checked_sub(self.bytes).ok_or_else(cut)?).map_err(|_| cut())?;
        let mut text = vec![0; more];
        self.file.read_exact_at(&mut text, self.bytes).map_err(io)?;
        let (mut verifier, mut body) = (Verifier::after(self.seq, self.head.clone()), Vec::new());
        for written in text.split_inclusive(|byte| *byte == b'\n') {
            let broken = |what: &str| Error::Broken { seq: verifier.seq() + 1, what: what.to_owned() };
            let written = written.strip_suffix(b"\n").ok_or_else(|| broken("it is cut off"))?;
            let entry = line::read(written, &mut body).ok_or_else(|| broken("it is no entry"))?;
            verifier
                .take(entry)
                .map_err(|wrong| Error::Broken { seq: wrong.seq, what: wrong.what.to_owned() })?;
        }
        (self.seq, self.bytes) = (verifier.seq(), length);
        self.head = verifier.finish().head;
        Ok(())
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
        for _ in 0..=limit_ms / LOOK_MS {
            match flock(lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(lock)),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    std::thread::park_timeout(Duration::from_millis(LOOK_MS))
                }
                Err(error) => return Err(io(error)),
            }
        }
        Err(Error::Locked)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}
