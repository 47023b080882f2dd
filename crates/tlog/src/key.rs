//! The key that signs heads, in the forms of signed notes: `PRIVATE+KEY+name+id+key` and `name+id+key` (c2sp.org/signed-note).

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use orchestr8_contract::canonical::hex;
use sha2::{Digest, Sha256};

/// What stands before a key to say that it is Ed25519.
const ED25519: u8 = 1;

const PRIVATE: &str = "PRIVATE+KEY+";

/// Why a note is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("it is not a signed note")]
    Malformed,
    #[error("it is signed with another key: {0}")]
    ForeignKey(String),
    #[error("its signature does not match its text")]
    Signature,
}

/// A key that signs.
#[derive(Clone)]
pub struct LogKey {
    key: SigningKey,
    public: LogPublicKey,
}

/// A key that verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPublicKey {
    name: String,
    id: [u8; 4],
    key: VerifyingKey,
}

impl LogKey {
    /// The key of a seed, named after itself.
    pub fn of_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let public = key.verifying_key();
        let name = format!("orchestr8-log-{}", &hex(&Sha256::digest(public.as_bytes()))[..8]);
        Self { public: LogPublicKey::new(name, public), key }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().strip_prefix(PRIVATE)?.splitn(3, '+');
        let (name, id, key) = (parts.next()?, parts.next()?, parts.next()?);
        let bytes = STANDARD.decode(key).ok()?;
        let (kind, seed) = bytes.split_first()?;
        (*kind == ED25519).then_some(())?;
        let key = SigningKey::from_bytes(seed.try_into().ok()?);
        let public = LogPublicKey::new(name.to_owned(), key.verifying_key());
        (hex(&public.id) == id).then_some(Self { key, public })
    }

    /// Reads the key of a file, or makes one there of a fresh seed, for its owner only.
    pub fn load_or_create(path: &Path, fresh_seed: impl FnOnce() -> [u8; 32]) -> io::Result<Self> {
        let made = match fs::read_to_string(path) {
            Ok(text) => {
                // A key that others may read signs nothing worth believing.
                let mode = fs::metadata(path)?.permissions().mode();
                if mode & 0o077 != 0 {
                    return Err(io::Error::other("others may read it; make it private with chmod 600"));
                }
                return Self::parse(&text).ok_or_else(|| io::Error::other("it does not hold a key of a log"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::of_seed(&fresh_seed()),
            Err(error) => return Err(error),
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        // Written whole under another name first: two processes that start at once agree on the first key.
        let unfinished = path.with_extension(format!("new-{}", std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(made.secret_text().as_bytes())?;
        file.sync_all()?;
        let linked = fs::hard_link(&unfinished, path);
        fs::remove_file(&unfinished)?;
        match linked {
            Ok(()) => Ok(made),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::parse(&fs::read_to_string(path)?)
                    .ok_or_else(|| io::Error::other("it does not hold a key of a log"))
            }
            Err(error) => Err(error),
        }
    }

    pub fn public(&self) -> &LogPublicKey {
        &self.public
    }

    /// The note with this text, which ends with a line feed.
    pub fn sign(&self, text: &str) -> String {
        let signature = self.key.sign(text.as_bytes()).to_bytes();
        let signed = STANDARD.encode([self.public.id.as_slice(), &signature].concat());
        format!("{text}\n\u{2014} {} {signed}\n", self.public.name)
    }

    fn secret_text(&self) -> String {
        let key = STANDARD.encode([&[ED25519], self.key.as_bytes().as_slice()].concat());
        format!("{PRIVATE}{}+{}+{key}\n", self.public.name, hex(&self.public.id))
    }
}

impl LogPublicKey {
    fn new(name: String, key: VerifyingKey) -> Self {
        let mut hash = Sha256::new();
        hash.update(name.as_bytes());
        hash.update([b'\n', ED25519]);
        hash.update(key.as_bytes());
        let id = hash.finalize().first_chunk::<4>().copied().unwrap_or_default();
        Self { name, id, key }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(3, '+');
        let (name, id, key) = (parts.next()?, parts.next()?, parts.next()?);
        let bytes = STANDARD.decode(key).ok()?;
        let (kind, key) = bytes.split_first()?;
        (*kind == ED25519 && !name.is_empty()).then_some(())?;
        let public = Self::new(name.to_owned(), VerifyingKey::from_bytes(key.try_into().ok()?).ok()?);
        (hex(&public.id) == id && !public.key.is_weak()).then_some(public)
    }

    /// The text of a note that this key has signed.
    pub fn open<'a>(&self, note: &'a str) -> Result<&'a str, Error> {
        let split = note.rfind("\n\n").ok_or(Error::Malformed)?;
        let (text, signatures) = (&note[..=split], &note[split + 2..]);
        let mut others = Vec::new();
        for line in signatures.lines() {
            let (name, signed) = line
                .strip_prefix("\u{2014} ")
                .and_then(|line| line.split_once(' '))
                .ok_or(Error::Malformed)?;
            let bytes = STANDARD.decode(signed).map_err(|_| Error::Malformed)?;
            let (id, signature) = bytes.split_first_chunk::<4>().ok_or(Error::Malformed)?;
            if name != self.name || *id != self.id {
                others.push(name.to_owned());
                continue;
            }
            let signature: &[u8; 64] = signature.try_into().map_err(|_| Error::Malformed)?;
            let checked = self.key.verify_strict(text.as_bytes(), &Signature::from_bytes(signature));
            return checked.map(|()| text).map_err(|_| Error::Signature);
        }
        Err(Error::ForeignKey(others.join(", ")))
    }
}

impl fmt::Display for LogPublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = STANDARD.encode([&[ED25519], self.key.as_bytes().as_slice()].concat());
        write!(out, "{}+{}+{key}", self.name, hex(&self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_back_and_open_only_their_own_notes() {
        let (ours, other) = (LogKey::of_seed(&[1; 32]), LogKey::of_seed(&[2; 32]));
        assert_eq!(LogKey::parse(&ours.secret_text()).unwrap().public(), ours.public());
        assert_eq!(LogPublicKey::parse(&ours.public().to_string()).as_ref(), Some(ours.public()));
        let note = ours.sign("a\nb\n");
        assert_eq!(ours.public().open(&note), Ok("a\nb\n"));
        assert!(matches!(other.public().open(&note), Err(Error::ForeignKey(_))));
        assert_eq!(ours.public().open(&note.replace("b\n", "c\n")), Err(Error::Signature));
        assert_eq!(ours.public().open("nothing"), Err(Error::Malformed));
        let renamed = ours.public().to_string().replace("orchestr8-log", "someone-else");
        assert_eq!(LogPublicKey::parse(&renamed), None, "the id covers the name");
    }

    #[test]
    fn a_key_file_is_made_once_and_must_be_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/log.key");
        let made = LogKey::load_or_create(&path, || [3; 32]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = LogKey::load_or_create(&path, || unreachable!()).unwrap();
        assert_eq!(again.public(), made.public());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(LogKey::load_or_create(&path, || [4; 32]).is_err());
        assert_eq!(fs::read_dir(folder.path().join("state")).unwrap().count(), 1);
    }
}
