//! Where the owner of a data file listens, written down beside it for its own user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The longest path of a socket that every system takes.
const SOCKET_PATH_BYTES: usize = 100;

/// A record is shorter.
const RECORD_BYTES: u64 = 4096;

/// Hexadecimal digits of a secret.
const SECRET_DIGITS: usize = 64;

/// Rights of others.
const OTHERS: u32 = 0o077;

/// Where sockets are whose data folder has too long a path; each user has a folder of its own there.
const SHORT_FOLDER: &str = "/tmp";

/// What an owner has written down.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct AttachRecord {
    pub socket: PathBuf,
    pub secret: String,
    pub pid: u32,
}

/// The record and the socket of this process; both are removed when it ends in order.
pub(super) struct PublishedRecord {
    path: PathBuf,
    pub record: AttachRecord,
}

impl AttachRecord {
    /// What the owner of a data file has written down; whether it still runs is not known.
    pub fn of(data: &Path) -> Option<Self> {
        read(&path_of(data))
    }
}

impl PublishedRecord {
    /// Writes down where this process, which owns the data file, listens.
    pub fn publish(data: &Path, socket: PathBuf, secret: String) -> io::Result<Self> {
        let path = path_of(data);
        let record = AttachRecord { socket, secret, pid: std::process::id() };
        let text = json!({"socket": record.socket, "secret": record.secret, "pid": record.pid}).to_string();
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        remove(&unfinished)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&unfinished, &path)?;
        Ok(Self { path, record })
    }
}

impl Drop for PublishedRecord {
    fn drop(&mut self) {
        // Another process may have taken the data file over in the meantime.
        if read(&self.path).is_some_and(|there| there == self.record) {
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_file(&self.record.socket);
        }
    }
}

/// The place of the socket of a data file, free to be bound: only the owner of the data file asks.
pub(super) fn socket_place(data: &Path) -> io::Result<PathBuf> {
    let folder = data.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let full = folder.canonicalize()?.join(data.file_name().unwrap_or_default());
    let mut beside = full.as_os_str().to_owned();
    beside.push(".sock");
    let place = match beside.len() <= SOCKET_PATH_BYTES {
        true => PathBuf::from(beside),
        false => short_place(Path::new(SHORT_FOLDER), &full)?,
    };
    remove(&place)?;
    Ok(place)
}

/// A short path for the socket of a data file, in a folder that is this user's alone.
fn short_place(under: &Path, full: &Path) -> io::Result<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let folder = under.join(format!("orchestr8-{own}"));
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != own || found.mode() & OTHERS != 0 {
        let text = format!("{} is not a folder of this user alone", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let digest = Sha256::digest(full.as_os_str().as_bytes());
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Ok(folder.join(format!("{name}.sock")))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn path_of(data: &Path) -> PathBuf {
    let mut name = data.as_os_str().to_owned();
    name.push(".attach");
    PathBuf::from(name)
}

/// Only what this user wrote and others cannot even read.
fn read(path: &Path) -> Option<AttachRecord> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_file() || !is_own || metadata.mode() & OTHERS != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(RECORD_BYTES).read_to_string(&mut text).ok()?;
    let record: Value = serde_json::from_str(&text).ok()?;
    let secret = record["secret"].as_str().filter(|secret| secret.len() == SECRET_DIGITS)?.to_owned();
    let pid = u32::try_from(record["pid"].as_u64()?).ok()?;
    Some(AttachRecord { socket: record["socket"].as_str()?.into(), secret, pid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn secret() -> String {
        "5".repeat(SECRET_DIGITS)
    }

    #[test]
    fn a_record_is_there_as_long_as_its_process_and_only_if_no_other_user_could_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let socket = socket_place(&data).unwrap();
        assert_eq!(socket, folder.path().canonicalize().unwrap().join("data.sock"));
        let published = PublishedRecord::publish(&data, socket, secret()).unwrap();
        assert!(AttachRecord::of(&data).is_some_and(|found| found == published.record));
        fs::set_permissions(path_of(&data), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(AttachRecord::of(&data).is_none(), "others could have read the secret");
        fs::set_permissions(path_of(&data), fs::Permissions::from_mode(0o600)).unwrap();
        let link = folder.path().join("linked");
        std::os::unix::fs::symlink(path_of(&data), path_of(&link)).unwrap();
        assert!(AttachRecord::of(&link).is_none());
        drop(published);
        assert!(AttachRecord::of(&data).is_none());
    }

    #[test]
    fn a_long_path_gets_a_short_socket_in_a_folder_of_its_user() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(120)).join("data");
        let place = short_place(folder.path(), &long).unwrap();
        assert!(place.as_os_str().len() < SOCKET_PATH_BYTES);
        assert_ne!(place, short_place(folder.path(), &long.join("other")).unwrap());
        let own = place.parent().unwrap();
        assert_eq!(fs::metadata(own).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(own, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(short_place(folder.path(), &long).is_err(), "others could put a socket there");
    }
}
