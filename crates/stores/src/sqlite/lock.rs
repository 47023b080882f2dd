//! One process owns a data file: a lock the operating system takes back when the process ends, however it ends.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::permissions::{self, Exposure};

/// Held as long as it lives. The file itself stays: removing it would let two processes lock two files of one name.
#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code, reason = "it is held, not used")] File);

#[derive(Debug)]
pub(super) enum Error {
    /// Somebody else holds it; its process id, unless it has not written it yet.
    Held(Option<u32>),
    Io(io::Error),
    /// Something else stands in its place. Nothing was written.
    Exposed(Exposure),
}

/// A process id and a line feed fit in this; anything longer is not ours.
const PID_BYTES_MAX: u64 = 16;

pub(super) fn path_of(data: &Path) -> PathBuf {
    let mut name = data.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// The process that has the data file, or had it last: who that is is written down, not whether it still lives.
pub fn holder(data: &Path) -> Option<u32> {
    read_pid(&mut open(&path_of(data), OFlags::RDONLY).ok()?)
}

/// Whether a process has the data file now.
pub(super) fn is_held(data: &Path) -> bool {
    let Ok(file) = open(&path_of(data), OFlags::RDONLY) else { return false };
    matches!(flock(&file, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
}

pub(super) fn take(data: &Path) -> Result<Lock, Error> {
    let mut file = open(&path_of(data), OFlags::RDWR | OFlags::CREATE)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(Error::Held(read_pid(&mut file))),
        Err(error) => return Err(Error::Io(error.into())),
    }
    write_pid(&mut file).map_err(Error::Io)?;
    Ok(Lock(file))
}

/// Opens the lock file itself and nothing that a link names: another user may have put one there.
fn open(path: &Path, flags: OFlags) -> Result<File, Error> {
    let safely = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags | safely, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(Error::Exposed(permissions::link(path))),
        Err(error) => return Err(Error::Io(error.into())),
    };
    let metadata = file.metadata().map_err(Error::Io)?;
    permissions::check_file(path, &metadata).map_err(Error::Exposed)?;
    Ok(file)
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_it_and_gets_it_after_release() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data.sqlite3");
        let held = take(&data).unwrap();
        assert!(matches!(take(&data), Err(Error::Held(Some(pid))) if pid == std::process::id()));
        assert_eq!(holder(&data), Some(std::process::id()));
        assert!(is_held(&data));
        assert_eq!(holder(Path::new("no/such/file")), None);
        drop(held);
        assert!(!is_held(&data));
        take(&data).unwrap();
    }

    #[test]
    fn nothing_is_written_through_what_stands_in_the_place_of_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (data, victim) = (folder.path().join("data.sqlite3"), folder.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        let exposed = |what: &str| match take(&data) {
            Err(Error::Exposed(exposure)) => assert!(exposure.what.contains(what), "{exposure}"),
            other => panic!("{what}: {other:?}"),
        };
        std::os::unix::fs::symlink(&victim, path_of(&data)).unwrap();
        exposed("symbolic link");
        assert_eq!(holder(&data), None);
        std::fs::remove_file(path_of(&data)).unwrap();
        std::fs::hard_link(&victim, path_of(&data)).unwrap();
        exposed("hard link");
        std::fs::remove_file(path_of(&data)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path_of(&data), Mode::RUSR | Mode::WUSR).unwrap();
        exposed("not a plain file");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_lock_file_with_nonsense_names_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data.sqlite3");
        let held = take(&data).unwrap();
        std::fs::write(path_of(&data), "not a number").unwrap();
        assert!(matches!(take(&data), Err(Error::Held(None))));
        drop(held);
    }
}
