//! Who can change or read what lies in the data directory. Only the user that runs this process should.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Bits with which a group or everybody may write.
const OTHERS_WRITE: u32 = 0o022;
/// Bits with which a group or everybody may do anything.
const OTHERS: u32 = 0o077;
/// In such a folder only the owner of a file removes it; it is made to be shared.
const STICKY: u32 = 0o1000;

/// A file or folder that other users can get at, and the command that mends it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} {what}")]
pub struct Exposure {
    pub path: PathBuf,
    /// What is wrong, to stand after the path.
    pub what: String,
    /// What to do about it.
    pub mend: String,
}

/// Whether only this user can put files into the folder. Another user who can would replace the data file or its lock.
pub fn check_folder(folder: &Path) -> Result<(), Exposure> {
    // A folder that cannot be looked at cannot be used either, which is said elsewhere.
    let Ok(metadata) = fs::metadata(folder) else { return Ok(()) };
    let (uid, mode, path) = (geteuid().as_raw(), metadata.mode(), folder.to_owned());
    let shown = folder.display();
    if metadata.uid() != uid {
        let what = format!("belongs to the user {}, and this process runs as {uid}", metadata.uid());
        let mend = format!("run `chown {uid} {shown}`, or name a folder of your own with --data-dir DIR");
        return Err(Exposure { path, what, mend });
    }
    if mode & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let what = format!("can be written by other users (mode {:04o})", mode & 0o7777);
    let mend = match mode & STICKY {
        0 => format!("run `chmod go-w {shown}`, or name another folder with --data-dir DIR"),
        _ => format!(
            "it is a shared folder; name one inside it: --data-dir {}",
            folder.join("orchestr8").display()
        ),
    };
    Err(Exposure { path, what, mend })
}

/// The files of a data file that other users can read or write.
pub fn exposed_files(data: &Path) -> Vec<Exposure> {
    let beside = |ending: &str| {
        let mut name = data.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let exposed = |path: PathBuf| {
        let mode = fs::symlink_metadata(&path).ok().filter(Metadata::is_file)?.mode();
        let mend = format!("run `chmod 600 {}`", path.display());
        let what = format!("is open to other users (mode {:04o})", mode & 0o7777);
        (mode & OTHERS != 0).then_some(Exposure { path, what, mend })
    };
    ["", "-wal", "-shm", ".lock"].into_iter().filter_map(|ending| exposed(beside(ending))).collect()
}

/// Whether a file that was opened without following links is one of ours: a plain file of this user with one name.
pub(super) fn check_file(path: &Path, metadata: &Metadata) -> Result<(), Exposure> {
    let uid = geteuid().as_raw();
    let kind = metadata.file_type();
    let what = if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
        String::from("is not a plain file")
    } else if metadata.uid() != uid {
        format!("belongs to the user {}, and this process runs as {uid}", metadata.uid())
    } else if metadata.nlink() > 1 {
        String::from("has another name elsewhere (a hard link)")
    } else {
        return Ok(());
    };
    Err(Exposure { path: path.to_owned(), what, mend: removal(path) })
}

/// What is said of a link where a file of ours should be.
pub(super) fn link(path: &Path) -> Exposure {
    let what = String::from("is a symbolic link; nothing was written through it");
    Exposure { path: path.to_owned(), what, mend: removal(path) }
}

fn removal(path: &Path) -> String {
    format!("find out who put it there, then run `rm {}`", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn with_mode(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("data");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        (around, folder)
    }

    #[test]
    fn a_folder_that_others_can_write_is_named_with_what_mends_it() {
        for mode in [0o777, 0o770, 0o720, 0o702] {
            let (_around, folder) = with_mode(mode);
            let exposure = check_folder(&folder).unwrap_err();
            assert!(exposure.to_string().ends_with(&format!("(mode {mode:04o})")), "{exposure}");
            assert!(
                exposure.mend.starts_with(&format!("run `chmod go-w {}`", folder.display())),
                "{exposure:?}"
            );
        }
        for mode in [0o700, 0o750, 0o755] {
            let (_around, folder) = with_mode(mode);
            check_folder(&folder).unwrap();
        }
        let (_around, folder) = with_mode(0o1777);
        assert!(
            check_folder(&folder).unwrap_err().mend.contains("--data-dir"),
            "chmod is no advice for /tmp"
        );
    }

    #[test]
    fn files_that_others_can_read_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::write(&data, "").unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o640)).unwrap();
        let found = exposed_files(&data);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].mend, format!("run `chmod 600 {}`", data.display()));
        fs::set_permissions(&data, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(exposed_files(&data), []);
    }
}
