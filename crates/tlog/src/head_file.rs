//! The head file: signed heads in an append-only file outside the data directory, one line per moment, and the fingerprints of the
//! leaves beside it.
//!
//! A line is `{"heads":["<note>", …]}` with the heads of all logs. The file `<name>.<log>.leaves` has eight bytes per leaf.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use orchestr8_stores::merkle::{Fingerprint, LogState};
use serde::{Deserialize, Serialize};

use crate::head::{HeadEvent, TreeHead};
use crate::key::{self, LogPublicKey};
use crate::limits;

/// Where the heads of one data file are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadFile(PathBuf);

/// The heads of all logs at one moment, as they stand in a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeadLine {
    pub heads: Vec<String>,
}

/// Why the heads of a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error("{path}: a head in it is not accepted: {cause}")]
    Note { path: PathBuf, cause: key::Error },
}

impl HeadFile {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The newest heads, the oldest of them first, as far back as a person last accepted the log as it was. Every one must be signed
    /// with the key. A line that a crash cut off was never relied on.
    pub fn heads(&self, key: &LogPublicKey) -> Result<Vec<TreeHead>, Error> {
        let io = |cause| Error::Io { path: self.0.clone(), cause };
        let mut heads: Vec<TreeHead> = Vec::new();
        let mut foreign = None;
        for line in self.tail(limits::TAIL_BYTES).map_err(io)? {
            let Ok(line) = serde_json::from_str::<HeadLine>(&line) else { continue };
            for note in &line.heads {
                match TreeHead::open(note, key) {
                    Ok(head) => {
                        if head.event == HeadEvent::Accepted {
                            foreign = None;
                            heads.retain(|other| {
                                other.at_ms == head.at_ms && other.event == HeadEvent::Accepted
                            });
                        }
                        heads.push(head);
                    }
                    Err(cause) => foreign = Some(cause),
                }
            }
        }
        match foreign {
            Some(cause) => Err(Error::Note { path: self.0.clone(), cause }),
            None => Ok(heads),
        }
    }

    /// The heads of the newest line: all that a start needs, and cheap however long the file is.
    pub fn newest(&self, key: &LogPublicKey) -> Result<Vec<TreeHead>, Error> {
        let tail =
            self.tail(limits::NEWEST_BYTES).map_err(|cause| Error::Io { path: self.0.clone(), cause })?;
        let newest = tail.iter().rev().find_map(|line| serde_json::from_str::<HeadLine>(line).ok());
        let open = |note: &String| TreeHead::open(note, key);
        let heads: Result<Vec<_>, key::Error> =
            newest.iter().flat_map(|line| &line.heads).map(open).collect();
        heads.map_err(|cause| Error::Note { path: self.0.clone(), cause })
    }

    /// Appends the heads of one moment, durably.
    pub fn append(&self, notes: Vec<String>) -> io::Result<()> {
        if let Some(folder) = self.0.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.0)?;
        let length = file.metadata()?.len();
        if length >= limits::HEAD_FILE_BYTES {
            fs::rename(&self.0, self.0.with_extension(format!("heads.{length}-{}", crc(&notes))))?;
            file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.0)?;
        }
        let mut line = serde_json::to_vec(&HeadLine { heads: notes })?;
        line.push(b'\n');
        if ends_within_a_line(&file)? {
            line.insert(0, b'\n');
        }
        file.write_all(&line)?;
        file.sync_data()
    }

    /// Writes down the fingerprints of new leaves, each at its place.
    pub fn append_fingerprints(&self, state: &LogState) -> io::Result<()> {
        let (from, fingerprints) = &state.fingerprints;
        if fingerprints.is_empty() {
            return Ok(());
        }
        let path = self.leaves(state.log);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        file.write_all_at(&fingerprints.concat(), from * FINGERPRINT_BYTES)?;
        file.sync_data()
    }

    /// Looks fingerprints up. A place that was never written is not known.
    pub fn fingerprints(&self, log: &str) -> impl Fn(u64) -> Option<Fingerprint> + Send + use<> {
        let file = File::open(self.leaves(log)).ok();
        move |index| {
            let mut found = Fingerprint::default();
            file.as_ref()?.read_exact_at(&mut found, index.checked_mul(FINGERPRINT_BYTES)?).ok()?;
            (found != Fingerprint::default()).then_some(found)
        }
    }

    /// Forgets the fingerprints of a log that is restarted.
    pub fn clear_fingerprints(&self, log: &str) -> io::Result<()> {
        match fs::remove_file(self.leaves(log)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Where the state of the anchors is told to `doctor`.
    pub fn status_path(&self) -> PathBuf {
        self.0.with_extension("status.json")
    }

    fn leaves(&self, log: &str) -> PathBuf {
        self.0.with_extension(format!("{log}.leaves"))
    }

    /// The last lines of the file.
    fn tail(&self, bytes: u64) -> io::Result<Vec<String>> {
        let mut file = match File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        let skipped = length.saturating_sub(bytes);
        file.seek(SeekFrom::Start(skipped))?;
        let lines = BufReader::new(file.take(bytes)).lines();
        lines.skip(usize::from(skipped > 0)).collect()
    }
}

const FINGERPRINT_BYTES: u64 = 8;

/// Tells two rotated files of the same length apart.
fn crc(notes: &[String]) -> String {
    use sha2::{Digest, Sha256};
    orchestr8_contract::canonical::hex(&Sha256::digest(notes.concat().as_bytes()))[..8].to_owned()
}

fn ends_within_a_line(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::LogKey;

    fn head(size: u64, event: HeadEvent) -> TreeHead {
        TreeHead { origin: String::from("o/audit"), size, root: [1; 32], at_ms: size.cast_signed(), event }
    }

    #[test]
    fn heads_read_back_and_a_torn_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeadFile::new(folder.path().join("state/a.heads"));
        let (key, other) = (LogKey::of_seed(&[1; 32]), LogKey::of_seed(&[2; 32]));
        assert!(file.heads(key.public()).unwrap().is_empty());
        file.append(vec![head(1, HeadEvent::Start).sign(&key)]).unwrap();
        let mut raw = OpenOptions::new().append(true).open(file.path()).unwrap();
        raw.write_all(b"{\"heads\":[\"o/au").unwrap();
        file.append(vec![head(2, HeadEvent::Interval).sign(&key)]).unwrap();
        let sizes = |key: &LogKey| -> Vec<u64> {
            file.heads(key.public()).unwrap().iter().map(|head| head.size).collect()
        };
        assert_eq!(sizes(&key), [1, 2]);
        assert_eq!(file.newest(key.public()).unwrap(), [head(2, HeadEvent::Interval)]);
        assert!(matches!(file.heads(other.public()), Err(Error::Note { .. })));
        file.append(vec![head(1, HeadEvent::Accepted).sign(&other)]).unwrap();
        file.append(vec![head(5, HeadEvent::Start).sign(&other)]).unwrap();
        assert_eq!(sizes(&other), [1, 5], "what was before a person accepted the log no longer counts");
    }

    #[test]
    fn fingerprints_are_found_at_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeadFile::new(folder.path().join("a.heads"));
        let state =
            LogState { log: "audit", size: 4, root: [0; 32], fingerprints: (2, vec![[1; 8], [2; 8]]) };
        file.append_fingerprints(&state).unwrap();
        let known = file.fingerprints("audit");
        assert_eq!([0, 2, 3, 4].map(known), [None, Some([1; 8]), Some([2; 8]), None]);
    }
}
