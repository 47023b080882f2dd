//! The files of a trail: the current one, and those before it.

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use std::fs::File;

use super::Error;
use crate::root::Root;

/// The current file.
pub const NAME: &str = "audit-log.jsonl";

/// Held while entries are written, so that several processes can share a trail.
pub const LOCK: &str = "audit-log.lock";

const PREFIX: &str = "audit-log.";
const SUFFIX: &str = ".jsonl";

/// Digits in the name of a file that is full; so the order of names is that of entries.
const DIGITS: usize = 12;

/// The name of a full file whose first entry has this number.
pub fn full_name(first: i64) -> String {
    format!("{PREFIX}{first:0DIGITS$}{SUFFIX}")
}

/// Whether a file in the root belongs to the trail.
pub fn is_of_trail(name: &str) -> bool {
    name == NAME || name == LOCK || is_full(name)
}

fn is_full(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    number.is_some_and(|number| number.len() == DIGITS && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The full files, the oldest first.
pub fn full(root: &Root) -> Result<Vec<String>, Error> {
    let names = root.names().map_err(|refusal| Error::Io(refusal.message))?;
    Ok(names.into_iter().filter(|name| is_full(name)).collect())
}

/// Opens a file of the trail in the root itself, following no link.
pub fn open(root: &Root, name: &str, flags: OFlags) -> Result<File, rustix::io::Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    // Whoever only looks does not open, and cannot be kept waiting.
    let patience = if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NONBLOCK };
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | patience;
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o600) } else { Mode::empty() };
    openat2(root.handle(), name, flags, mode, resolve).map(File::from)
}
