//! The file of an editor that is to be changed: a plain file, and no link to another.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use orchestr8_contract::Code;
use rustix::fs::{Mode, OFlags};

use super::unwritable;
use crate::failure::Failure;

/// Editors keep much in such a file; more than this is something else.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// What is there; an empty text if nothing is. A link may lead to a file that should not be changed, and a pipe has no end:
/// neither is opened for more than a look.
pub fn read(path: &Path) -> Result<String, Failure> {
    let failed = |cause: io::Error| unwritable(path, &cause);
    if let Some(link) = link(path) {
        return Err(refused(link, "is a symbolic link, and what it leads to would be changed"));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(String::new()),
        Err(error) => return Err(failed(error.into())),
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(refused(path, "is not a plain file"));
    }
    if metadata.len() > FILE_BYTES {
        return Err(refused(path, "is too large to be the file of an editor"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// The link on the way: the file itself, or in a project a folder, which came with the project.
fn link(path: &Path) -> Option<&Path> {
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink());
    let ways = path.ancestors().take(if path.is_relative() { usize::MAX } else { 1 });
    ways.filter(|way| !way.as_os_str().is_empty()).find(|way| is_link(way))
}

fn refused(path: &Path, what: &str) -> Failure {
    Failure::new(Code::InvalidArgument, format!("{} {what}", path.display()))
        .hinting("nothing was changed; put a plain file in its place, or write the entry by hand")
}
