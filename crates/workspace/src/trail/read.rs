//! Reading a trail: its end, its lines, and the proof that it is whole.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;

use orchestr8_contract::chain::{self, Entry, Prover, Verified, line, seal};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Error;
use super::segments::{self, NAME};
use crate::limits;
use crate::root::Root;

/// Longer than the longest line, so that the last one is in it.
const END_BYTES: u64 = limits::ENTRY_BYTES as u64 * 2;

/// A piece of a file that is read at once.
const PIECE_BYTES: usize = 1 << 18;

/// What the end of a file says: numbers are those of its first and its last entry.
pub(super) enum Last {
    Nothing,
    Entry {
        first: i64,
        seq: i64,
        hash: String,
    },
    /// What comes after `keep` bytes was never written whole.
    Torn {
        keep: u64,
        before: Option<(i64, i64, String)>,
    },
}

fn io(error: impl Into<std::io::Error>) -> Error {
    Error::Io(error.into().to_string())
}

/// Looks at the first and the last line only.
pub(super) fn last_of(file: &File) -> Result<Last, Error> {
    let length = file.metadata().map_err(io)?.len();
    if length == 0 {
        return Ok(Last::Nothing);
    }
    let start = length.saturating_sub(END_BYTES);
    let mut end = vec![0; usize::try_from(length - start).unwrap_or(0)];
    file.read_exact_at(&mut end, start).map_err(io)?;
    let whole = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (whole, rest) = end.split_at(whole);
    let before = if whole.is_empty() { None } else { Some(newest(file, whole)?) };
    match (before, rest.is_empty()) {
        (Some((first, seq, hash)), true) => Ok(Last::Entry { first, seq, hash }),
        (before, _) => {
            let seq = before.as_ref().map_or(1, |(_, seq, _)| seq + 1);
            // A write that was cut off leaves the beginning of a line, or zeros. Anything else was changed by somebody.
            let is_beginning =
                rest.starts_with(b"{\"args_hash\":") && !rest.contains(&0) && !rest.ends_with(b"}");
            let is_short = b"{\"args_hash\":".starts_with(rest);
            match is_beginning || is_short || rest.iter().all(|byte| *byte == 0) {
                true => Ok(Last::Torn { keep: start + whole.len() as u64, before }),
                false => Err(Error::Broken { seq, what: String::from("it does not end as an entry ends") }),
            }
        }
    }
}

/// The numbers of the first and the last entry, and the hash of the last, which must hold by itself.
fn newest(file: &File, whole: &[u8]) -> Result<(i64, i64, String), Error> {
    let broken = |seq, what: &str| Error::Broken { seq, what: what.to_owned() };
    let mut body = Vec::new();
    let line = whole.strip_suffix(b"\n").unwrap_or(whole);
    let line = line.rsplit(|byte| *byte == b'\n').next().unwrap_or(line);
    let entry = line::read(line, &mut body).ok_or_else(|| broken(0, "the newest entry is no entry"))?;
    let prev = String::from_utf8_lossy(entry.prev_hash);
    let hash = seal(&prev, entry.seq, entry.at_ms, entry.body);
    if hash.as_bytes() != entry.entry_hash {
        return Err(broken(entry.seq, "entry_hash does not match its content"));
    }
    let seq = entry.seq;
    let mut head = vec![0; limits::ENTRY_BYTES + 1024];
    let read = file.read_at(&mut head, 0).map_err(io)?;
    let end = head[..read].iter().position(|byte| *byte == b'\n').unwrap_or(read);
    let first = line::read(&head[..end], &mut body)
        .ok_or_else(|| broken(0, "the first entry of a file is no entry"))?;
    Ok((first.seq, seq, hash))
}

/// The lines of a whole trail, the oldest first.
pub struct Lines {
    files: std::vec::IntoIter<File>,
    reader: Option<BufReader<File>>,
}

impl Lines {
    pub fn of(root: &Root) -> Result<Self, Error> {
        let mut names = segments::full(root)?;
        names.push(NAME.to_owned());
        Self::of_files(root, names)
    }

    fn of_files(root: &Root, names: Vec<String>) -> Result<Self, Error> {
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            match segments::open(root, &name, OFlags::RDONLY) {
                Ok(file) => files.push(file),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(io(error)),
            }
        }
        Ok(Self { files: files.into_iter(), reader: None })
    }

    /// One file of lines, wherever it lies: an export.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(io)?;
        Ok(Self { files: vec![file].into_iter(), reader: None })
    }

    /// Reads the next line into the buffer, with its end. False: there is none.
    pub fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        loop {
            if self.reader.is_none() {
                let Some(file) = self.files.next() else { return Ok(false) };
                self.reader = Some(BufReader::with_capacity(PIECE_BYTES, file));
            }
            let Some(reader) = &mut self.reader else { return Ok(false) };
            line.clear();
            if read_line(reader, line)? {
                return Ok(true);
            }
            self.reader = None;
        }
    }
}

/// As `read_until`, but a line without an end is not read without an end.
fn read_line(reader: &mut BufReader<File>, line: &mut Vec<u8>) -> Result<bool, Error> {
    loop {
        let piece = reader.fill_buf().map_err(io)?;
        if piece.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = piece.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(piece.len());
        line.extend_from_slice(&piece[..taken]);
        reader.consume(taken);
        if end.is_some() || line.len() > limits::ENTRY_BYTES * 2 {
            return Ok(true);
        }
    }
}

/// A trail that is whole, or the first entry that does not hold.
pub type Proof = Result<Verified, Error>;

/// Proves a trail whole, reading it once and keeping one line of it. Hands out each entry on the way.
pub fn prove(lines: &mut Lines, mut each: impl FnMut(&Entry<'_>)) -> Proof {
    let (mut prover, mut text, mut body) = (Prover::new(), Vec::new(), Vec::new());
    while lines.next(&mut text)? {
        let broken = |what: &str| Error::Broken { seq: prover.seq() + 1, what: what.to_owned() };
        let text = text.strip_suffix(b"\n").ok_or_else(|| broken("its line is cut off"))?;
        let entry = line::read(text, &mut body).ok_or_else(|| broken("its line is no entry"))?;
        prover.take(entry).map_err(told)?;
        each(&entry);
    }
    prover.finish().map_err(told)
}

fn told(wrong: chain::Broken) -> Error {
    Error::Broken { seq: wrong.seq, what: wrong.what.to_owned() }
}

/// The newest lines of the trail, the oldest of them first, without their ends.
pub fn tail(root: &Root, count: usize) -> Result<Vec<String>, Error> {
    let mut names = segments::full(root)?;
    names.push(NAME.to_owned());
    let mut kept: std::collections::VecDeque<String> = std::collections::VecDeque::new();
    // From the newest file back, until there are enough.
    for name in names.into_iter().rev() {
        let mut lines = Lines::of_files(root, vec![name])?;
        let (mut text, mut of_file) = (Vec::new(), std::collections::VecDeque::new());
        while lines.next(&mut text)? {
            of_file.push_back(String::from_utf8_lossy(&text).trim_end().to_owned());
            if of_file.len() + kept.len() > count {
                of_file.pop_front();
            }
        }
        while let Some(line) = of_file.pop_back() {
            kept.push_front(line);
        }
        if kept.len() >= count {
            break;
        }
    }
    Ok(kept.into())
}

/// How long all files of the trail are together.
pub fn bytes(root: &Root) -> Result<u64, Error> {
    let mut names = segments::full(root)?;
    names.push(NAME.to_owned());
    let mut bytes = 0;
    for name in names {
        match segments::open(root, &name, OFlags::PATH) {
            Ok(file) => bytes += file.metadata().map_err(io)?.len(),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(io(error)),
        }
    }
    Ok(bytes)
}
