//! A temporary directory that is gone after its use, also if programs made it hard to remove, or if the server was killed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::Error;

const PREFIX: &str = "orchestr8-view-";
const LOCK_SUFFIX: &str = ".lock";

/// Names that are tried, if those before are taken by another server.
const NAMES: u64 = 1_000;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A directory for one use. A file beside it is locked as long, so that the next server knows what is abandoned.
#[derive(Debug)]
pub struct ScratchDirectory {
    path: PathBuf,
    lock_path: PathBuf,
    lock: Option<File>,
}

impl ScratchDirectory {
    /// Creates one in the host's folder for temporary files.
    pub fn create() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        for _ in 0..NAMES {
            let name = format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let (path, lock_path) = (parent.join(&name), parent.join(format!("{name}{LOCK_SUFFIX}")));
            let at = |error: io::Error| Error::At(lock_path.clone(), error);
            let lock = match lock_options().create_new(true).open(&lock_path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(at(error)),
            };
            // A server that is starting may take it for abandoned in this moment.
            if lock.try_lock().is_err() || !is_at(&lock, &lock_path) {
                continue;
            }
            let created = DirBuilder::new().mode(0o700).create(&path);
            if let Err(error) = created {
                let _ = fs::remove_file(&lock_path);
                return Err(Error::At(path, error));
            }
            return Ok(Self { path, lock_path, lock: Some(lock) });
        }
        Err(Error::At(parent, io::ErrorKind::AlreadyExists.into()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what servers that were killed left behind.
    pub fn remove_abandoned() {
        for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_lock =
                name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(LOCK_SUFFIX));
            let is_own = entry.metadata().is_ok_and(|found| found.uid() == geteuid().as_raw());
            if !is_lock || !is_own {
                continue;
            }
            let lock_path = entry.path();
            let Ok(lock) = lock_options().open(&lock_path) else { continue };
            if lock.try_lock().is_ok() && is_at(&lock, &lock_path) {
                remove(&lock_path.with_extension(""));
                let _ = fs::remove_file(&lock_path);
            }
        }
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let (path, lock_path, lock) =
            (std::mem::take(&mut self.path), std::mem::take(&mut self.lock_path), self.lock.take());
        let work = move || {
            remove(&path);
            // It stays if something of the directory does: the next server tries again.
            if fs::symlink_metadata(&path).is_err() {
                let _ = fs::remove_file(&lock_path);
            }
            drop(lock);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(work)),
            Err(_) => work(),
        }
    }
}

/// A link in its place is not followed.
fn lock_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    options.read(true).write(true).mode(0o600).custom_flags(no_link);
    options
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let (opened, named) = (file.metadata().map(identity), fs::symlink_metadata(path).map(identity));
    matches!((opened, named), (Ok(opened), Ok(named)) if opened == named)
}

/// Removes a directory of this user with all that is in it. Folders are moved to its top before they are emptied, so that neither
/// their depth nor their permissions matter.
fn remove(path: &Path) {
    let is_own_folder =
        fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
    if !is_own_folder {
        return;
    }
    // What cannot be removed stays, and is tried again by the next server.
    let _ = empty(path).and_then(|()| fs::remove_dir(path));
}

fn empty(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = openat(CWD, path, flags, Mode::empty())?;
    let open = |name: &str| -> io::Result<OwnedFd> {
        chmodat(&top, name, Mode::from_raw_mode(0o700), AtFlags::empty())?;
        Ok(openat(&top, name, flags, Mode::empty())?)
    };
    // A name that programs cannot have taken: they do not see the top.
    let attic = "removed";
    match mkdirat(&top, attic, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let attic_handle = open(attic)?;
    let mut next = 0_u64;
    let mut stack = move_up(&top, &attic_handle, &mut next, Some(attic))?;
    while let Some(name) = stack.pop() {
        chmodat(&attic_handle, name.as_str(), Mode::from_raw_mode(0o700), AtFlags::empty())?;
        let folder = openat(&attic_handle, name.as_str(), flags, Mode::empty())?;
        stack.extend(move_up(&folder, &attic_handle, &mut next, None)?);
        unlinkat(&attic_handle, name.as_str(), AtFlags::REMOVEDIR)?;
    }
    // An attempt before this one may have left something.
    for name in move_up(&attic_handle, &attic_handle, &mut next, None)? {
        unlinkat(&attic_handle, name.as_str(), AtFlags::REMOVEDIR)?;
    }
    Ok(unlinkat(&top, attic, AtFlags::REMOVEDIR)?)
}

/// Unlinks the files of a folder and moves its folders into the attic; gives back their names there.
fn move_up(folder: &OwnedFd, attic: &OwnedFd, next: &mut u64, but: Option<&str>) -> io::Result<Vec<String>> {
    let entries: Vec<_> = Dir::read_from(folder)?.collect::<Result<_, Errno>>()?;
    let mut moved = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || but.is_some_and(|but| but.as_bytes() == name.to_bytes())
        {
            continue;
        }
        let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            unlinkat(folder, name, AtFlags::empty())?;
            continue;
        }
        // A folder can be moved only by those who may write to it.
        chmodat(folder, name, Mode::from_raw_mode(0o700), AtFlags::empty())?;
        let new = format!("{next}");
        *next += 1;
        renameat(folder, name, attic, new.as_str())?;
        moved.push(new);
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn deep_and_closed_folders_are_removed_and_abandoned_ones_too() {
        let scratch = ScratchDirectory::create().unwrap();
        let (path, lock_path) = (scratch.path().to_owned(), scratch.lock_path.clone());
        let mut at = openat(CWD, &path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..1_100 {
            mkdirat(&at, "deeper", Mode::from_raw_mode(0o700)).unwrap();
            at = openat(&at, "deeper", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        fs::create_dir_all(path.join("closed/inner")).unwrap();
        fs::write(path.join("closed/inner/file"), "x").unwrap();
        std::os::unix::fs::symlink("/", path.join("link")).unwrap();
        for folder in ["closed/inner", "closed"] {
            fs::set_permissions(path.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        drop(scratch);
        assert!(!path.exists() && !lock_path.exists());

        let used = ScratchDirectory::create().unwrap();
        // As a killed server leaves it: the files are there, the lock is not held.
        let left = std::env::temp_dir().join(format!("{PREFIX}0-{}", std::process::id()));
        fs::create_dir_all(left.join("a")).unwrap();
        fs::write(left.with_extension("lock"), "").unwrap();
        ScratchDirectory::remove_abandoned();
        assert!(!left.exists() && !left.with_extension("lock").exists());
        assert!(used.path().exists(), "one that is used stays");
    }
}
