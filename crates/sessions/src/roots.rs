//! The folders sessions may work in. Paths are resolved before they are compared, and opened without following a link that was
//! put there meanwhile.

use std::fmt;
use std::path::{Path, PathBuf};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::folder_sharing::FolderSharing;
use orchestr8_process::sandbox::WorkingDirectory;
use orchestr8_process::tenant_folder;

use crate::limits;

/// Where sessions may work, and where they never may.
#[derive(Clone, Default)]
pub struct SessionRoots {
    /// With all that is beneath them. None: sessions have no folder.
    pub open: Vec<PathBuf>,
    /// Open as well as long as the store has no API token: then the person at this machine is the only caller.
    pub personal: Vec<PathBuf>,
    /// Which tenants may use a folder that has no tenant.
    pub sharing: FolderSharing,
    /// What belongs to the server, whatever lies around it: its data, its state, its configuration and its keys.
    pub closed: Vec<PathBuf>,
    /// Homes: sessions work beneath them, never in them nor in what contains them.
    pub homes: Vec<PathBuf>,
}

impl fmt::Debug for SessionRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRoots")
            .field("open", &self.open)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl SessionRoots {
    /// Those of one tenant. A folder with `{tenant}` in its path is created if it is missing; one without it is left out where tenants
    /// do not share it.
    pub fn of_tenant(&self, tenant: &Tenant) -> Self {
        let own = |root: &PathBuf| match tenant_folder::of_tenant(root, tenant.as_str()) {
            Some(own) => {
                // One that cannot be created is found missing where it is used, and refused there.
                let _ = tenant_folder::create(&own);
                Some(own)
            }
            None => self.sharing.admits(tenant).then(|| root.clone()),
        };
        Self { open: self.open.iter().filter_map(own).collect(), ..self.clone() }
    }

    /// The real path of a folder a client names.
    pub fn resolve(&self, text: &str) -> Result<PathBuf, Fault> {
        let path = Path::new(text);
        if text.len() > limits::PATH_BYTES || text.contains('\0') || !path.is_absolute() {
            return Err(wrong("must be an absolute path"));
        }
        // Before it is looked for, so that nothing can be learned about folders elsewhere.
        self.check_any()?;
        let real = path.canonicalize();
        match real {
            Ok(real) if !self.is_rooted(&real) => Err(self.refusal()),
            Ok(real) if self.is_home(&real) => Err(home()),
            Ok(real) if real.is_dir() => Ok(real),
            Ok(_) => Err(wrong("is not a directory")),
            Err(_) if self.allows_unresolved(path) => Err(wrong("does not exist")),
            Err(_) => Err(self.refusal()),
        }
    }

    /// Opens the folder of a session for its programs.
    pub fn open(&self, path: &Path) -> Result<WorkingDirectory, Fault> {
        self.check_any()?;
        let opened = WorkingDirectory::open(path).map_err(|error| {
            let text = format!("the session's folder cannot be opened: {}", error.kind());
            Fault::new(Code::Unavailable, text).because(error)
        })?;
        match self.is_rooted(opened.path()) {
            true if self.is_home(opened.path()) => Err(home()),
            true => Ok(opened),
            false => Err(self.refusal()),
        }
    }

    /// Whether sessions may work at a real path, read from it and write to it.
    pub fn allows(&self, real: &Path) -> bool {
        self.is_rooted(real) && !self.is_home(real)
    }

    /// Whether a real path is beneath a root and not beneath what is closed.
    fn is_rooted(&self, real: &Path) -> bool {
        self.in_force().any(|root| is_beneath(real, root)) && !self.is_closed(real)
    }

    fn in_force(&self) -> impl Iterator<Item = &PathBuf> {
        let has_tokens = self.sharing.tokens.as_ref().is_some_and(|tokens| !tokens.is_empty());
        let personal = self.personal.iter().filter(move |_| !has_tokens);
        self.open.iter().chain(personal)
    }

    fn is_home(&self, real: &Path) -> bool {
        self.homes.iter().any(|home| home.canonicalize().is_ok_and(|home| home.starts_with(real)))
    }

    pub fn is_closed(&self, real: &Path) -> bool {
        self.closed.iter().any(|closed| is_beneath(real, closed))
    }

    /// A path that leads nowhere: only one that would be allowed is told so.
    fn allows_unresolved(&self, path: &Path) -> bool {
        let parent = path.ancestors().find_map(|parent| parent.canonicalize().ok());
        parent.is_some_and(|parent| self.is_rooted(&parent))
    }

    fn check_any(&self) -> Result<(), Fault> {
        match self.in_force().next().is_none() {
            true => Err(Fault::new(
                Code::Unauthorized,
                "sessions have no folder here: name those they may work in with `sessions.roots`, with {tenant} in the path \
                 where there are several tenants",
            )
            .with("setting", "sessions.roots")),
            false => Ok(()),
        }
    }

    fn refusal(&self) -> Fault {
        Fault::new(Code::Unauthorized, "cwd: is not beneath a folder that `sessions.roots` names")
            .with("path", "/cwd")
            .with("setting", "sessions.roots")
    }
}

fn is_beneath(real: &Path, root: &Path) -> bool {
    root.canonicalize().is_ok_and(|root| real.starts_with(root))
}

fn home() -> Fault {
    let text = "cwd: is a home or contains one, where files start programs; name a folder beneath it, and list it in `sessions.roots` if need be";
    Fault::new(Code::Unauthorized, text).with("path", "/cwd").with("setting", "sessions.roots")
}

fn wrong(why: &str) -> Fault {
    Fault::invalid(format!("cwd: {why}")).with("path", "/cwd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_compared_after_links_are_followed() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().canonicalize().unwrap().join(name);
        for folder in ["root/project", "root/data/sessions", "rooted", "other"] {
            std::fs::create_dir_all(path(folder)).unwrap();
        }
        std::os::unix::fs::symlink(path("other"), path("root/link")).unwrap();
        std::os::unix::fs::symlink(path("root/project"), path("inside")).unwrap();
        let roots = SessionRoots {
            open: vec![path("root")],
            closed: vec![path("root/data")],
            homes: vec![path("root")],
            ..SessionRoots::default()
        };
        let resolve = |name: &str| roots.resolve(path(name).to_str().unwrap()).map_err(|fault| fault.code);
        assert_eq!(resolve("root/project"), Ok(path("root/project")));
        assert_eq!(resolve("inside"), Ok(path("root/project")), "a link to an allowed folder is that folder");
        for refused in [
            "rooted",
            "root",
            "other",
            "root/link",
            "root/data",
            "root/data/sessions",
            "root/project/../..",
            "none",
        ] {
            assert_eq!(resolve(refused), Err(Code::Unauthorized), "{refused}");
            assert!(roots.open(&path(refused)).is_err(), "{refused}");
        }
        assert_eq!(resolve("root/none"), Err(Code::InvalidArgument));
        let nowhere = SessionRoots::default();
        let fault = nowhere.resolve("/").unwrap_err();
        assert_eq!(
            (fault.code, fault.details.unwrap()["setting"].as_str()),
            (Code::Unauthorized, Some("sessions.roots"))
        );
    }
}
