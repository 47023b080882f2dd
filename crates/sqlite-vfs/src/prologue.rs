//! The first page of a sealed file: whose it is, and its data key, wrapped by the key of the installation.
//!
//! There are two slots. A change of keys writes the free one, flushes it, and then erases the other: a process that dies in
//! between leaves a file that both keys open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use zeroize::Zeroizing;

use crate::cipher::{AeadCodec, FileId, TAG_BYTES};
use crate::key::{EncryptionKey, KEY_BYTES};
use crate::layout::{PAGE_BYTES, PROLOGUE_BYTES};

const MAGIC: &[u8; 16] = b"orchestr8 sealed";
const PLAIN_MAGIC: &[u8; 16] = b"SQLite format 3\0";
const FORMAT: u8 = 1;

/// Each slot lies in sectors of its own, so that writing one cannot tear the other.
const SLOT_BYTES: usize = PROLOGUE_BYTES / 2;

/// What a slot holds: magic, format, three zero bytes, page size, file id; nonce, wrapped key, tag.
const HEAD_BYTES: usize = 40;
const SEALED_AT: usize = HEAD_BYTES + NONCE_LEN;
const SLOT_USED: usize = SEALED_AT + KEY_BYTES + TAG_BYTES;

/// What kind of data file this is, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// It is not there, or it has no content.
    Empty,
    /// A SQLite database that is not encrypted.
    Plain,
    /// A sealed database.
    Sealed,
    Unknown,
}

/// Reads the first bytes of a file. Closing a file releases the POSIX locks of this process on it, so no connection of this
/// process may have it open.
pub fn file_format(path: &Path) -> io::Result<FileFormat> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileFormat::Empty),
        other => other?,
    };
    let mut page = [0; PROLOGUE_BYTES];
    let length = read_start(&file, &mut page)?;
    Ok(match length {
        0 => FileFormat::Empty,
        _ if page.starts_with(PLAIN_MAGIC) => FileFormat::Plain,
        _ if page.starts_with(MAGIC) || page[SLOT_BYTES..].starts_with(MAGIC) => FileFormat::Sealed,
        _ => FileFormat::Unknown,
    })
}

/// The data key of one file, with the name of the file.
pub(crate) struct DataKey {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    file_id: FileId,
}

/// Why a prologue gives no data key.
#[derive(Debug)]
pub(crate) enum Error {
    Io(io::Error),
    Plain,
    /// Neither of the two formats.
    Unknown,
    WrongKey,
    NoRandomness,
}

impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}

impl DataKey {
    pub fn generate() -> Result<Self, Error> {
        let mut key = Self { bytes: Zeroizing::new([0; KEY_BYTES]), file_id: [0; 16] };
        aws_lc_rs::rand::fill(&mut *key.bytes).map_err(|_| Error::NoRandomness)?;
        aws_lc_rs::rand::fill(&mut key.file_id).map_err(|_| Error::NoRandomness)?;
        Ok(key)
    }

    pub fn codec(&self) -> Result<AeadCodec, Error> {
        AeadCodec::new(&*self.bytes, self.file_id).map_err(|_| Error::NoRandomness)
    }

    /// The page that a new file begins with.
    pub fn prologue(&self, key: &EncryptionKey) -> Result<Vec<u8>, Error> {
        let mut page = self.wrap(key)?;
        page.resize(PROLOGUE_BYTES, 0);
        Ok(page)
    }

    /// Unwraps the data key of a file.
    pub fn read(file: &File, key: &EncryptionKey) -> Result<Self, Error> {
        Self::find(file, key).map(|(found, _)| found)
    }

    /// Wraps the data key of a file with another key. It is durable when it returns, and the old key opens nothing any more.
    pub fn rewrap(file: &File, old: &EncryptionKey, new: &EncryptionKey) -> Result<(), Error> {
        let (found, used) = match Self::find(file, new) {
            // An earlier change was cut off before the old slot was erased.
            Ok(found) => found,
            Err(_) => {
                let (found, used) = Self::find(file, old)?;
                let free = 1 - used;
                let mut slot = found.wrap(new)?;
                slot.resize(SLOT_BYTES, 0);
                file.write_all_at(&slot, slot_offset(free))?;
                file.sync_all()?;
                (found, free)
            }
        };
        drop(found);
        file.write_all_at(&[0; SLOT_BYTES], slot_offset(1 - used))?;
        Ok(file.sync_all()?)
    }

    /// The data key, and the slot that this key opens.
    fn find(file: &File, key: &EncryptionKey) -> Result<(Self, usize), Error> {
        let mut page = [0; PROLOGUE_BYTES];
        let length = read_start(file, &mut page)?;
        if page.starts_with(PLAIN_MAGIC) {
            return Err(Error::Plain);
        }
        let slots = [&page[..SLOT_BYTES], &page[SLOT_BYTES..]];
        if length < PROLOGUE_BYTES || !slots.iter().any(|slot| slot.starts_with(MAGIC)) {
            return Err(Error::Unknown);
        }
        let opened =
            slots.iter().enumerate().find_map(|(at, slot)| Some((Self::unwrap_slot(slot, key)?, at)));
        opened.ok_or(Error::WrongKey)
    }

    fn wrap(&self, key: &EncryptionKey) -> Result<Vec<u8>, Error> {
        let broken = |_| Error::NoRandomness;
        let mut slot = Vec::with_capacity(SLOT_BYTES);
        slot.extend_from_slice(MAGIC);
        slot.extend_from_slice(&[FORMAT, 0, 0, 0]);
        slot.extend_from_slice(&(PAGE_BYTES as u32).to_be_bytes());
        slot.extend_from_slice(&self.file_id);
        let mut wrapped = Zeroizing::new(self.bytes.to_vec());
        let cipher = RandomizedNonceKey::new(&AES_256_GCM_SIV, key.bytes()).map_err(broken)?;
        let (nonce, tag) =
            cipher.seal_in_place_separate_tag(Aad::from(slot.as_slice()), &mut wrapped).map_err(broken)?;
        slot.extend_from_slice(nonce.as_ref());
        slot.extend_from_slice(&wrapped);
        slot.extend_from_slice(tag.as_ref());
        Ok(slot)
    }

    fn unwrap_slot(slot: &[u8], key: &EncryptionKey) -> Option<Self> {
        let (head, sealed) = (slot.get(..HEAD_BYTES)?, slot.get(SEALED_AT..SLOT_USED)?);
        let expected = [MAGIC.as_slice(), &[FORMAT, 0, 0, 0], &(PAGE_BYTES as u32).to_be_bytes()].concat();
        if !head.starts_with(&expected) {
            return None;
        }
        let nonce = Nonce::try_assume_unique_for_key(slot.get(HEAD_BYTES..SEALED_AT)?).ok()?;
        let cipher = RandomizedNonceKey::new(&AES_256_GCM_SIV, key.bytes()).ok()?;
        let mut sealed = Zeroizing::new(sealed.to_vec());
        let opened = cipher.open_in_place(nonce, Aad::from(head), &mut sealed).ok()?;
        let bytes = Zeroizing::new(<[u8; KEY_BYTES]>::try_from(&*opened).ok()?);
        let file_id = head.get(HEAD_BYTES - 16..)?.try_into().ok()?;
        Some(Self { bytes, file_id })
    }
}

fn slot_offset(slot: usize) -> u64 {
    (slot * SLOT_BYTES) as u64
}

/// Fills the buffer from the start of the file, and tells how much there was.
fn read_start(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn key() -> EncryptionKey {
        EncryptionKey::generate().unwrap()
    }

    fn sealed(key: &EncryptionKey) -> (File, DataKey) {
        let data = DataKey::generate().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&data.prologue(key).unwrap()).unwrap();
        (file, data)
    }

    #[test]
    fn another_key_or_a_changed_byte_opens_nothing() {
        let own = key();
        let (file, data) = sealed(&own);
        assert_eq!(*DataKey::read(&file, &own).unwrap().bytes, *data.bytes);
        assert!(matches!(DataKey::read(&file, &key()), Err(Error::WrongKey)));
        for at in 0..SLOT_USED as u64 {
            let mut byte = [0];
            file.read_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            assert!(DataKey::read(&file, &own).is_err(), "byte {at}");
            file.write_all_at(&byte, at).unwrap();
        }
        DataKey::read(&file, &own).unwrap();
    }

    #[test]
    fn a_change_of_keys_that_is_cut_off_anywhere_leaves_a_file_that_opens() {
        let (old, new) = (key(), key());
        let (file, data) = sealed(&old);
        let mut free = DataKey::read(&file, &old).unwrap().wrap(&new).unwrap();
        free.resize(SLOT_BYTES, 0);
        for cut in [0, 20, 60, SLOT_USED - 1] {
            file.write_all_at(&free[..cut], SLOT_BYTES as u64).unwrap();
            DataKey::read(&file, &old).unwrap();
            assert!(DataKey::read(&file, &new).is_err());
        }
        file.write_all_at(&free, SLOT_BYTES as u64).unwrap();
        DataKey::read(&file, &old).unwrap();
        DataKey::read(&file, &new).unwrap();
        DataKey::rewrap(&file, &old, &new).unwrap();
        assert!(matches!(DataKey::read(&file, &old), Err(Error::WrongKey)));
        assert_eq!(*DataKey::read(&file, &new).unwrap().bytes, *data.bytes);
        DataKey::rewrap(&file, &new, &old).unwrap();
        assert!(matches!(DataKey::read(&file, &new), Err(Error::WrongKey)));
        assert!(matches!(DataKey::rewrap(&file, &new, &key()), Err(Error::WrongKey)));
        DataKey::read(&file, &old).unwrap();
    }

    #[test]
    fn formats_are_told_by_the_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        assert_eq!(file_format(&path).unwrap(), FileFormat::Empty);
        for (content, format) in [
            (b"".to_vec(), FileFormat::Empty),
            (b"SQLite format 3\0...".to_vec(), FileFormat::Plain),
            (b"anything else".to_vec(), FileFormat::Unknown),
            (DataKey::generate().unwrap().prologue(&key()).unwrap(), FileFormat::Sealed),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(file_format(&path).unwrap(), format);
        }
    }
}
