//! Which configurations of working directories this user trusts: by path and content, in a file outside of all projects.
//!
//! A changed file is another file: it has to be trusted again, as with direnv.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use orchestr8_contract::Code;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use serde_json::{Value, json};

use super::environment::Environment;
use crate::failure::Failure;

/// The name of the file in the state directory of the user.
const NAME: &str = "trusted.json";

/// A larger file is not ours.
const FILE_BYTES: u64 = 4 * 1024 * 1024;

/// More configurations than a person has reviewed.
const ENTRIES: usize = 10_000;

/// A configuration that was reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedFile {
    /// In full, its folder without links.
    pub path: PathBuf,
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
    pub trusted_at: String,
}

/// The list of trusted configurations of this user.
#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
}

impl TrustStore {
    /// None where there is no home directory: then nothing is trusted.
    pub fn of(environment: &Environment) -> Option<Self> {
        environment.state_home().map(|folder| Self { folder })
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    pub fn list(&self) -> Result<Vec<TrustedFile>, Failure> {
        let path = self.path();
        let opened = rustix::fs::open(
            &path,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK,
            Mode::empty(),
        );
        let file = match opened {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(&path, &error.to_string())),
        };
        let metadata = file.metadata().map_err(|error| unreadable(&path, &error.to_string()))?;
        check_private(&path, &metadata)?;
        let mut text = String::new();
        file.take(FILE_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| unreadable(&path, &error.to_string()))?;
        parse(&text).ok_or_else(|| unreadable(&path, "it is not a list of trusted files"))
    }

    /// Whether exactly this content was trusted at exactly this place.
    pub fn is_trusted(&self, path: &Path, sha256: &str) -> Result<bool, Failure> {
        Ok(self.list()?.iter().any(|trusted| trusted.path == path && trusted.sha256 == sha256))
    }

    /// Trusts this content at this place, instead of what was trusted there before.
    pub fn record(&self, trusted: TrustedFile) -> Result<(), Failure> {
        self.change(|entries| {
            entries.retain(|entry| entry.path != trusted.path);
            entries.push(trusted);
            if entries.len() > ENTRIES {
                entries.remove(0);
            }
        })
    }

    /// Trusts nothing at this place any more; true if something was.
    pub fn revoke(&self, path: &Path) -> Result<bool, Failure> {
        let mut found = false;
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| entry.path != path);
            found = entries.len() < before;
        })?;
        Ok(found)
    }

    /// One change at a time, each whole or not at all.
    fn change(&self, change: impl FnOnce(&mut Vec<TrustedFile>)) -> Result<(), Failure> {
        let path = self.path();
        let failed = |error: io::Error| {
            Failure::new(Code::StoreFailed, format!("{}: {error}", path.display()))
                .hinting("check that the folder can be written; nothing was changed")
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let folder = File::open(&self.folder).map_err(failed)?;
        check_private_folder(&self.folder, &folder.metadata().map_err(failed)?)?;
        flock(&folder, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let mut entries = self.list()?;
        change(&mut entries);
        let fresh = self.folder.join(format!(".{NAME}.{}", std::process::id()));
        let _ = fs::remove_file(&fresh);
        let written =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).and_then(|mut file| {
                file.write_all(format!("{:#}\n", document(&entries)).as_bytes())?;
                file.sync_all()?;
                fs::rename(&fresh, &path)?;
                folder.sync_all()
            });
        written.map_err(|error| {
            let _ = fs::remove_file(&fresh);
            failed(error)
        })
    }
}

fn document(entries: &[TrustedFile]) -> Value {
    let entry = |entry: &TrustedFile| json!({"path": entry.path, "sha256": entry.sha256, "trustedAt": entry.trusted_at});
    json!({"version": 1, "files": entries.iter().map(entry).collect::<Vec<_>>()})
}

fn parse(text: &str) -> Option<Vec<TrustedFile>> {
    let document: Value = serde_json::from_str(text).ok()?;
    let text = |entry: &Value, name: &str| Some(entry[name].as_str()?.to_owned());
    let entry = |entry: &Value| {
        Some(TrustedFile {
            path: text(entry, "path")?.into(),
            sha256: text(entry, "sha256")?,
            trusted_at: text(entry, "trustedAt")?,
        })
    };
    document["files"].as_array()?.iter().map(entry).collect()
}

/// Another user who can write the list would decide what this one trusts.
fn check_private(path: &Path, metadata: &fs::Metadata) -> Result<(), Failure> {
    if !metadata.is_file() {
        return Err(unreadable(path, "it is not a plain file"));
    }
    check_private_folder(path, metadata)
}

fn check_private_folder(path: &Path, metadata: &fs::Metadata) -> Result<(), Failure> {
    const OTHERS_WRITE: u32 = 0o022;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() == own && metadata.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let message = format!("{} can be changed by other users, so nothing in it is trusted", path.display());
    let mend = format!("check what is in it, then run `chown {own} {0} && chmod go-w {0}`", path.display());
    Err(Failure::new(Code::UntrustedConfiguration, message).hinting(mend))
}

fn unreadable(path: &Path, what: &str) -> Failure {
    Failure::new(Code::Configuration, format!("{}: {what}", path.display()))
        .hinting("mend or delete the file; what was trusted has to be trusted again then")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> (tempfile::TempDir, TrustStore) {
        let home = tempfile::tempdir().unwrap();
        let store =
            TrustStore::of(&Environment::of(&[("XDG_STATE_HOME", home.path().to_str().unwrap())])).unwrap();
        (home, store)
    }

    fn trusted(path: &str, sha256: &str) -> TrustedFile {
        TrustedFile { path: path.into(), sha256: sha256.into(), trusted_at: "2026-01-01T00:00:00Z".into() }
    }

    #[test]
    fn exactly_this_content_at_exactly_this_place_is_trusted() {
        let (_home, store) = store();
        assert_eq!(store.list().unwrap(), []);
        store.record(trusted("/a/orchestr8.json", "one")).unwrap();
        store.record(trusted("/b/orchestr8.json", "two")).unwrap();
        assert!(store.is_trusted(Path::new("/a/orchestr8.json"), "one").unwrap());
        assert!(!store.is_trusted(Path::new("/a/orchestr8.json"), "two").unwrap(), "another content");
        assert!(!store.is_trusted(Path::new("/b/orchestr8.json"), "one").unwrap(), "another place");
        store.record(trusted("/a/orchestr8.json", "three")).unwrap();
        assert!(!store.is_trusted(Path::new("/a/orchestr8.json"), "one").unwrap(), "the old content");
        assert!(store.revoke(Path::new("/a/orchestr8.json")).unwrap());
        assert!(!store.revoke(Path::new("/a/orchestr8.json")).unwrap());
        assert_eq!(store.list().unwrap(), [trusted("/b/orchestr8.json", "two")]);
    }

    #[test]
    fn the_list_is_for_its_owner_alone() {
        let (home, store) = store();
        store.record(trusted("/a/orchestr8.json", "one")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&store.path()), mode(&home.path().join("orchestr8"))), (0o600, 0o700));
        fs::set_permissions(store.path(), fs::Permissions::from_mode(0o666)).unwrap();
        let failure = store.list().unwrap_err();
        assert!(
            failure.code == Code::UntrustedConfiguration && failure.hint().contains("chmod go-w"),
            "{failure:?}"
        );
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let (home, store) = store();
        let planted = home.path().join("planted.json");
        fs::write(&planted, document(&[trusted("/a/orchestr8.json", "one")]).to_string()).unwrap();
        fs::create_dir(home.path().join("orchestr8")).unwrap();
        std::os::unix::fs::symlink(&planted, store.path()).unwrap();
        assert_eq!(store.list().unwrap_err().code, Code::Configuration);
    }
}
