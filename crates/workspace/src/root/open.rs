//! Opening what is inside, and nothing that is not.

use std::os::fd::OwnedFd;

use orchestr8_contract::Code;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::{Inside, Root};
use crate::limits;
use crate::refusal::Refusal;

/// Which links are followed on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Those that stay inside.
    Inside,
    /// None.
    None,
}

impl Root {
    pub(crate) fn open_at(&self, path: &Inside, flags: OFlags, links: Links) -> Result<OwnedFd, Refusal> {
        match self.resolve(path.as_str(), flags, links) {
            Ok(handle) => Ok(handle),
            Err(error) => Err(self.explain(path, links, error)),
        }
    }

    /// The handle of what the path leads to, or what the machine says about it.
    pub(super) fn resolve(&self, path: &str, flags: OFlags, links: Links) -> Result<OwnedFd, Errno> {
        let resolve = match links {
            Links::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Links::None => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS,
        };
        for _ in 0..limits::LOOKUPS {
            match openat2(&self.handle, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // Something was renamed meanwhile, and the machine cannot be sure: it is asked again.
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS) => return self.walk(path, flags),
                answer => return answer,
            }
        }
        Err(Errno::AGAIN)
    }

    /// For machines without `openat2`: name by name, following no link at all.
    fn walk(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at: Option<OwnedFd> = None;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let flags =
                if names.peek().is_some() { folder } else { flags | OFlags::NOFOLLOW | OFlags::CLOEXEC };
            let from = at.as_ref().unwrap_or(&self.handle);
            at = Some(openat(from, name, flags, Mode::empty())?);
        }
        at.ok_or(Errno::NOENT)
    }

    /// What the machine's answer means here.
    fn explain(&self, path: &Inside, links: Links, error: Errno) -> Refusal {
        let (code, message) = match error {
            Errno::NOENT => match self.has_folder_of(path, links) {
                true => (Code::FileNotFound, format!("there is no file '{path}'")),
                false => (Code::PathNotFound, format!("there is no folder for '{path}'")),
            },
            Errno::NOTDIR => (Code::PathNotFound, format!("a part of '{path}' is no folder")),
            Errno::XDEV => (Code::OutsideWorkspace, format!("'{path}' leads out of the workspace")),
            Errno::LOOP => match links {
                Links::Inside => (Code::InvalidPath, format!("'{path}' goes through links without an end")),
                Links::None => self.explain_link(path),
            },
            Errno::NAMETOOLONG => (Code::InvalidPath, format!("'{path}' is too long")),
            Errno::ACCESS | Errno::PERM => {
                (Code::InsufficientPermissions, format!("the server may not open '{path}'"))
            }
            _ => (Code::FileReadFailed, format!("'{path}' cannot be opened")),
        };
        Refusal::new(code, message).because_of(error)
    }

    /// A link stands in the way of a write; where it leads decides what it is called.
    fn explain_link(&self, path: &Inside) -> (Code, String) {
        let led = self.resolve(path.as_str(), OFlags::PATH, Links::Inside);
        let parent = path.split().0.map(|folder| self.resolve(folder, OFlags::PATH, Links::Inside));
        match matches!(led, Err(Errno::XDEV)) || matches!(parent, Some(Err(Errno::XDEV))) {
            true => (Code::OutsideWorkspace, format!("'{path}' leads out of the workspace")),
            false => (Code::InvalidPath, format!("'{path}' goes through a link; name the file itself")),
        }
    }

    fn has_folder_of(&self, path: &Inside, links: Links) -> bool {
        match path.split().0 {
            None => true,
            Some(folder) => self.resolve(folder, OFlags::PATH | OFlags::DIRECTORY, links).is_ok(),
        }
    }
}
