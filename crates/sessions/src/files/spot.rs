//! Where files of sessions may lie, and how they are opened and written there without following a link out of it.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, canonical};
use orchestr8_kernel::Principal;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::jsonl;
use crate::hub::Settings;
use crate::limits;
use crate::roots::SessionRoots;

/// Session files of a project lie here, seen from its folder.
const OF_PROJECT: &str = ".orchestr8/sessions";

/// The folders of tenants other than the machine's own, within the folder of session files.
const OF_TENANTS: &str = "tenants";

/// The folders of principals other than the person at this machine.
const OF_PRINCIPALS: &str = "principals";

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What files of a session may lie beneath.
pub struct Roots {
    open: Vec<PathBuf>,
    /// Folders of other tenants and principals.
    closed: Vec<PathBuf>,
    /// The principal's own folder, which may lie in the data directory.
    home: Option<PathBuf>,
    sessions: SessionRoots,
}

/// A file beneath a root. Neither root nor way have links in them; if one is put there later, the file is not found.
#[derive(Debug)]
pub struct Spot {
    root: PathBuf,
    way: Vec<OsString>,
    name: OsString,
}

/// The folder of a principal's files. Neither tenants nor the principals of one see each other's. The person at this machine has the
/// folder itself.
pub fn home(settings: &Settings, principal: &Principal) -> PathBuf {
    let tenant = &principal.tenant;
    let is_local = *tenant == Tenant::local();
    if is_local && *principal.name == *Principal::local().name {
        return settings.folder.clone();
    }
    let of_tenant = match is_local {
        true => settings.folder.clone(),
        false => settings.folder.join(OF_TENANTS).join(format!("tenant-{tenant}")),
    };
    of_tenant.join(OF_PRINCIPALS).join(folder_name(&principal.name))
}

/// A name for a folder that no other principal has: what can be read of the name, and its hash.
fn folder_name(principal: &str) -> String {
    const READABLE: usize = 32;
    let readable: String =
        principal.chars().filter(|one| one.is_ascii_alphanumeric() || *one == '-').take(READABLE).collect();
    let hash = canonical::hex(&Sha256::digest(principal.as_bytes()));
    format!("{readable}-{}", &hash[..16])
}

impl Roots {
    /// For session files.
    pub fn of_sessions(settings: &Settings, principal: &Principal, cwd: &Path) -> Self {
        Self::of(settings, principal, cwd.join(OF_PROJECT))
    }

    /// For what people are to look at: also where the session works.
    pub fn of_pages(settings: &Settings, principal: &Principal, cwd: &Path) -> Self {
        Self::of(settings, principal, cwd.to_owned())
    }

    fn of(settings: &Settings, principal: &Principal, own: PathBuf) -> Self {
        let home = home(settings, principal).canonicalize().ok();
        // Where a session may not work, it may not read and write either.
        let sessions = settings.roots.of_tenant(&principal.tenant);
        let own = own.canonicalize().ok().filter(|own| sessions.allows(own));
        let others = [OF_TENANTS, OF_PRINCIPALS].map(|folder| settings.folder.join(folder));
        let closed = others.into_iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        let open = home.clone().into_iter().chain(own).collect();
        Self { open, closed, home, sessions }
    }

    pub fn folders(&self) -> &[PathBuf] {
        &self.open
    }

    /// The spot of a path without links.
    pub fn spot(&self, path: &Path) -> Option<Spot> {
        let is_own = self.home.as_ref().is_some_and(|home| path.starts_with(home));
        // The folder of the person at this machine holds those of all others.
        let is_within = |closed: &PathBuf| self.home.as_ref().is_some_and(|home| home.starts_with(closed));
        if self.closed.iter().any(|closed| path.starts_with(closed) && !(is_own && is_within(closed))) {
            return None;
        }
        if !is_own && self.sessions.is_closed(path) {
            return None;
        }
        let (root, inside) = self.open.iter().find_map(|root| Some((root, path.strip_prefix(root).ok()?)))?;
        let mut way = Vec::new();
        for component in inside.components() {
            match component {
                Component::Normal(name) => way.push(name.to_owned()),
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
                    return None;
                }
            }
        }
        let name = way.pop()?;
        Some(Spot { root: root.clone(), way, name })
    }

    /// The session file a client names.
    pub fn session_file(&self, text: &str) -> Result<Spot, Fault> {
        let refuse = |why| wrong("sessionPath", why);
        let path = checked("sessionPath", text)?;
        let ending =
            |path: &Path| path.extension().is_some_and(|ending| ending == "jsonl" || ending == "json");
        let found = path
            .canonicalize()
            .ok()
            .or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)));
        let found = found.unwrap_or_else(|| path.to_owned());
        // A link must not lead from an allowed ending to another one.
        if !ending(path) || !ending(&found) {
            return Err(refuse("must point to a .jsonl or .json session file"));
        }
        self.spot(&found).ok_or_else(|| {
            refuse("must be under an allowed session directory for this server (e.g. its session folder or this project's .orchestr8/sessions/)")
        })
    }

    /// The file a client wants to have written, with one of these endings.
    pub fn output(&self, text: &str, endings: &[&str]) -> Result<Spot, Fault> {
        let refuse = |why: &str| wrong("outputPath", why);
        let path = checked("outputPath", text)?;
        if !path.extension().is_some_and(|ending| endings.iter().any(|allowed| ending == *allowed)) {
            return Err(refuse(&format!("must end with .{}", endings.join(" or ."))));
        }
        self.target(path)
    }

    /// The file at a path whose folder is there. If it is a link, then that link and not what it leads to.
    pub fn target(&self, path: &Path) -> Result<Spot, Fault> {
        let refuse = |why: &str| wrong("outputPath", why);
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(refuse("must name a file"));
        };
        let folder = folder.canonicalize().map_err(|_| refuse("must be in a folder that exists"))?;
        self.spot(&folder.join(name)).ok_or_else(|| {
            refuse("must be under a folder this session may write to (its own, or the session folder of this server)")
        })
    }
}

fn wrong(member: &str, why: &str) -> Fault {
    Fault::invalid(format!("{member} {why}")).with("path", format!("/{member}"))
}

fn checked<'p>(member: &str, text: &'p str) -> Result<&'p Path, Fault> {
    if text.contains("..") || text.contains('\0') || text.starts_with('~') {
        return Err(wrong(member, "contains potentially dangerous path components"));
    }
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err(wrong(member, "must be an absolute path"));
    }
    Ok(path)
}

impl Spot {
    pub fn path(&self) -> PathBuf {
        self.way.iter().chain([&self.name]).fold(self.root.clone(), |path, name| path.join(name))
    }

    fn folder(&self) -> io::Result<OwnedFd> {
        let root = match openat2(CWD, &self.root, FOLDER, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS) => rustix::fs::open(&self.root, FOLDER | OFlags::NOFOLLOW, Mode::empty()),
            opened => opened,
        }?;
        let step = |at: OwnedFd, name: &OsString| {
            rustix::fs::openat(&at, name.as_os_str(), FOLDER | OFlags::NOFOLLOW, Mode::empty())
        };
        Ok(self.way.iter().try_fold(root, step)?)
    }

    /// Opens a plain file; anything else, a pipe for instance, is not waited for.
    pub fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file =
            File::from(rustix::fs::openat(self.folder()?, self.name.as_os_str(), flags, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }

    /// The text of a session file.
    pub fn read(&self) -> Result<String, Fault> {
        let missing =
            |error: io::Error| wrong("sessionPath", "must point to an existing session file").because(error);
        let mut bytes = Vec::new();
        self.open()
            .map_err(missing)?
            .take(limits::FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(missing)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::FILE_BYTES {
            return Err(jsonl::too_large());
        }
        String::from_utf8(bytes).map_err(|error| {
            let line =
                error.as_bytes()[..error.utf8_error().valid_up_to()].split(|byte| *byte == b'\n').count();
            wrong("sessionPath", &format!("must point to a text; line {line} is none")).with("line", line)
        })
    }

    /// Puts a file there, whole or not at all, in place of one that may be there. `scratch` is a name nobody else uses.
    pub fn replace(&self, bytes: &[u8], scratch: &str) -> Result<(), Fault> {
        let folder = self.folder().map_err(unwritten)?;
        let name = self.name.as_os_str();
        match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {}
            Ok(_) => return Err(wrong("outputPath", "must not point to something other than a plain file")),
            Err(error) => return Err(unwritten(error.into())),
        }
        let written = put(&folder, bytes, scratch)
            .and_then(|()| Ok(rustix::fs::renameat(&folder, scratch, &folder, name)?));
        if let Err(error) = written {
            // It may never have come into being.
            let _ = rustix::fs::unlinkat(&folder, scratch, AtFlags::empty());
            return Err(unwritten(error));
        }
        rustix::fs::fsync(&folder).map_err(|error| unwritten(error.into()))
    }
}

fn put(folder: &OwnedFd, bytes: &[u8], scratch: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A conversation is private.
    let mut file = File::from(rustix::fs::openat(folder, scratch, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a folder of ours, with those above it, for nobody else to look into.
pub fn make(folder: &Path) -> Result<(), Fault> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritten)
}

fn unwritten(error: io::Error) -> Fault {
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::Unauthorized,
        _ => Code::Unavailable,
    };
    Fault::new(code, format!("the file could not be written: {}", error.kind())).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{RenameFlags, renameat_with};

    #[test]
    fn a_link_put_in_the_way_while_reading_leads_nowhere() {
        let temp = tempfile::tempdir().unwrap();
        let [folder, outside] = ["folder", "outside"].map(|name| temp.path().join(name));
        for (place, text) in [(folder.join("sub"), "ours"), (outside.clone(), "secret")] {
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("a.jsonl"), text).unwrap();
        }
        let (sub, link) = (folder.join("sub"), temp.path().join("link"));
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let settings = Settings::new("/nowhere".into(), folder.clone());
        let roots = Roots::of_sessions(&settings, &Principal::local(), Path::new("/nowhere"));
        let done = AtomicBool::new(false);
        let (mut ours, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    renameat_with(CWD, &sub, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let path = sub.join("a.jsonl");
            for _ in 0..20_000 {
                match roots.session_file(path.to_str().unwrap()).and_then(|spot| spot.read()) {
                    Ok(text) => {
                        assert_eq!(text, "ours");
                        ours += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(ours > 0 && refused > 0, "the race was run: {ours} {refused}");
    }
}
