//! Which files the VFS opens, and with which codec. A file that is not attached cannot be opened with it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use crate::codec::{BlockAddress, PageCodec};
use crate::key::EncryptionKey;
use crate::layout::PAGE_BYTES;
use crate::log_scan::{LogDamage, check_log};
use crate::prologue::{self, DataKey};

/// Files that may be attached at one time. A server has one, and one more for each backup under way.
const ATTACHED_MAX: usize = 1024;

static ATTACHED: LazyLock<Mutex<HashMap<Vec<u8>, Weak<Entry>>>> = LazyLock::new(Mutex::default);

/// Why a file cannot be opened as a sealed one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error("{0} is not encrypted")]
    NotEncrypted(PathBuf),
    #[error("{0} is neither a database nor an encrypted one")]
    Unknown(PathBuf),
    #[error("the key does not open {0}")]
    WrongKey(PathBuf),
    #[error("this machine gives no random numbers")]
    NoRandomness,
    #[error("too many encrypted files are open")]
    TooMany,
}

impl Error {
    fn of(path: &Path) -> impl Fn(prologue::Error) -> Self {
        let path = path.to_owned();
        move |error| match error {
            prologue::Error::Io(cause) => Self::Io { path: path.clone(), cause },
            prologue::Error::Plain => Self::NotEncrypted(path.clone()),
            prologue::Error::Unknown => Self::Unknown(path.clone()),
            prologue::Error::WrongKey => Self::WrongKey(path.clone()),
            prologue::Error::NoRandomness => Self::NoRandomness,
        }
    }
}

/// A file that the VFS may open, as long as this lives. It must live as long as every connection to the file.
#[derive(Clone)]
pub struct Attachment(Arc<Entry>);

pub(crate) struct Entry {
    path: PathBuf,
    key: EncryptionKey,
    pub codec: Arc<dyn PageCodec>,
    /// The file is being made: a rollback journal is held in memory, because a crash throws the file away.
    pub is_unfinished: bool,
}

impl Attachment {
    /// Attaches a sealed file. The path must be the real one, without links.
    pub fn open(path: &Path, key: &EncryptionKey) -> Result<Self, Error> {
        // Opening and closing the file again would release the locks that connections of this process hold on it.
        if let Some(entry) = find(path.as_os_str().as_bytes()) {
            return match entry.key == *key {
                true => Ok(Self(entry)),
                false => Err(Error::WrongKey(path.to_owned())),
            };
        }
        let file = File::open(path).map_err(|cause| Error::Io { path: path.to_owned(), cause })?;
        let data = DataKey::read(&file, key).map_err(Error::of(path))?;
        Self::enter(path, key, &data, false)
    }

    /// Makes a new file a sealed one without pages, with a data key of its own, and attaches it.
    pub fn begin(path: &Path, file: &File, key: &EncryptionKey) -> Result<Self, Error> {
        let data = DataKey::generate().map_err(Error::of(path))?;
        let prologue = data.prologue(key).map_err(Error::of(path))?;
        file.write_all_at(&prologue, 0).map_err(|cause| Error::Io { path: path.to_owned(), cause })?;
        Self::enter(path, key, &data, true)
    }

    /// The bytes of a sealed file with the pages of a database that was serialized.
    pub fn seal_image(image: &[u8], key: &EncryptionKey) -> Result<Vec<u8>, Error> {
        let at = Path::new("a new data file");
        let data = DataKey::generate().map_err(Error::of(at))?;
        let codec = data.codec().map_err(Error::of(at))?;
        let mut sealed = data.prologue(key).map_err(Error::of(at))?;
        for (number, plain) in (0..).zip(image.chunks(PAGE_BYTES)) {
            let mut page: [u8; PAGE_BYTES] = plain.try_into().map_err(|_| Error::Unknown(at.to_owned()))?;
            codec.seal_page(BlockAddress::Page(number), &mut page).map_err(|_| Error::NoRandomness)?;
            sealed.extend_from_slice(&page);
        }
        Ok(sealed)
    }

    /// Wraps the data key of a file with another key. No connection may have the file open.
    pub fn rekey(path: &Path, old: &EncryptionKey, new: &EncryptionKey) -> Result<(), Error> {
        let io = |cause| Error::Io { path: path.to_owned(), cause };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
        DataKey::rewrap(&file, old, new).map_err(Error::of(path))
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    pub fn key(&self) -> &EncryptionKey {
        &self.0.key
    }

    /// Whether the log beside the file was changed after it was written.
    pub fn check_log(&self, commits_are_flushed: bool) -> Result<(), LogDamage> {
        let mut log: OsString = self.0.path.as_os_str().to_owned();
        log.push("-wal");
        check_log(Path::new(&log), &*self.0.codec, commits_are_flushed)
    }

    fn enter(path: &Path, key: &EncryptionKey, data: &DataKey, is_unfinished: bool) -> Result<Self, Error> {
        let codec = Arc::new(data.codec().map_err(Error::of(path))?);
        let entry = Arc::new(Entry { path: path.to_owned(), key: key.clone(), codec, is_unfinished });
        let mut attached = ATTACHED.lock();
        attached.retain(|_, entry| entry.strong_count() > 0);
        if attached.len() >= ATTACHED_MAX {
            return Err(Error::TooMany);
        }
        attached.insert(path.as_os_str().as_bytes().to_vec(), Arc::downgrade(&entry));
        Ok(Self(entry))
    }
}

/// The attached file with this path.
pub(crate) fn find(path: &[u8]) -> Option<Arc<Entry>> {
    ATTACHED.lock().get(path).and_then(Weak::upgrade)
}
