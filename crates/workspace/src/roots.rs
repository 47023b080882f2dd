//! The folders that governed sessions may open: exactly those that are named, none inside another, and never one that holds
//! the server's own data.

use std::path::{Path, PathBuf};

use orchestr8_contract::id::Tenant;
use orchestr8_kernel::Transport;
use orchestr8_kernel::folder_sharing::FolderSharing;
use orchestr8_process::tenant_folder;

/// Which folders are workspaces.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceRoots {
    /// Those of the settings. `{tenant}` in a path stands for the tenant.
    pub named: Vec<PathBuf>,
    /// The only workspace of stdio where the settings name none: the folder that the program was started in.
    pub working_directory: Option<PathBuf>,
    /// Folders and files of the server: its data, its state and its configuration.
    pub closed: Vec<PathBuf>,
    /// Which tenants may use a folder that has no tenant.
    pub sharing: FolderSharing,
}

impl WorkspaceRoots {
    /// Whether a folder, by its real path, is a workspace for this tenant.
    pub fn admits(&self, real: &Path, transport: Transport, tenant: &Tenant) -> bool {
        self.roots(transport, tenant).iter().any(|root| root == real) && !self.is_closed(real)
    }

    /// The workspace of a call that names none: the one that the settings name, if they name one alone.
    pub fn only(&self, tenant: &Tenant) -> Option<PathBuf> {
        let mut roots = self.of_tenant(tenant);
        let only = roots.pop().filter(|_| roots.is_empty())?;
        (!self.is_closed(&only)).then_some(only)
    }

    /// What is wrong with the folders of the settings, for people.
    pub fn problem(&self) -> Option<String> {
        let real: Vec<(&PathBuf, PathBuf)> = self.named.iter().map(|root| (root, real(root))).collect();
        for (at, (root, one)) in real.iter().enumerate() {
            if !root.is_absolute() {
                return Some(format!("names {}, which is no absolute path", root.display()));
            }
            if let Some(closed) = self.closed_by(one) {
                let (root, closed) = (root.display(), closed.display());
                return Some(format!(
                    "names {root}, which holds or lies in {closed}, a place of the server itself"
                ));
            }
            if let Some((other, _)) = real[..at].iter().find(|(_, other)| overlap(one, other)) {
                let (root, other) = (root.display(), other.display());
                return Some(format!("names {root} and {other}; a workspace must not lie in another"));
            }
        }
        None
    }

    fn roots(&self, transport: Transport, tenant: &Tenant) -> Vec<PathBuf> {
        let is_near = match transport {
            Transport::Stdio | Transport::Internal => true,
            Transport::Http | Transport::WebSocket => false,
        };
        match self.named.is_empty() && is_near {
            true => self.working_directory.iter().map(|folder| real(folder)).collect(),
            false => self.of_tenant(tenant),
        }
    }

    fn of_tenant(&self, tenant: &Tenant) -> Vec<PathBuf> {
        let own = |root: &PathBuf| match tenant_folder::of_tenant(root, tenant.as_str()) {
            Some(own) => {
                // One that cannot be created is found missing where it is opened.
                let _ = tenant_folder::create(&own);
                Some(real(&own))
            }
            None => self.sharing.admits(tenant).then(|| real(root)),
        };
        self.named.iter().filter_map(own).collect()
    }

    fn is_closed(&self, path: &Path) -> bool {
        self.closed_by(path).is_some()
    }

    fn closed_by(&self, path: &Path) -> Option<&PathBuf> {
        self.closed.iter().find(|closed| overlap(path, &real(closed)))
    }
}

/// Whether one of the paths is in the other, or is it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for parent in path.ancestors() {
        if let Ok(found) = std::fs::canonicalize(parent) {
            return missing.iter().rev().fold(found, |path, name| path.join(name));
        }
        missing.extend(parent.file_name());
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        folder: tempfile::TempDir,
    }

    impl World {
        fn new(folders: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            folders.iter().for_each(|name| std::fs::create_dir_all(folder.path().join(name)).unwrap());
            Self { folder }
        }

        fn at(&self, name: &str) -> PathBuf {
            std::fs::canonicalize(self.folder.path()).unwrap().join(name)
        }

        fn roots(&self, named: &[&str], closed: &[&str]) -> WorkspaceRoots {
            WorkspaceRoots {
                named: named.iter().map(|name| self.at(name)).collect(),
                closed: closed.iter().map(|name| self.at(name)).collect(),
                working_directory: Some(self.at("cwd")),
                ..WorkspaceRoots::default()
            }
        }
    }

    #[test]
    fn a_workspace_is_exactly_a_folder_that_is_named() {
        let world = World::new(&["w/src", "w2", "cwd"]);
        std::os::unix::fs::symlink(world.at("w"), world.at("link")).unwrap();
        let roots = world.roots(&["link", "w2"], &[]);
        let admits = |name: &str, transport| roots.admits(&world.at(name), transport, &Tenant::local());
        assert!(admits("w", Transport::Http) && admits("w2", Transport::Stdio));
        for name in ["w/src", "", "cwd", "w3"] {
            assert!(!admits(name, Transport::Http) && !admits(name, Transport::Stdio), "{name}");
        }
        assert_eq!(roots.only(&Tenant::local()), None);
        assert_eq!(world.roots(&["w"], &[]).only(&Tenant::local()), Some(world.at("w")));
    }

    #[test]
    fn without_names_only_the_working_directory_is_one_and_only_over_stdio() {
        let world = World::new(&["cwd/data", "cwd/in"]);
        let roots = world.roots(&[], &[]);
        let local = Tenant::local();
        assert!(roots.admits(&world.at("cwd"), Transport::Stdio, &local));
        assert!(!roots.admits(&world.at("cwd"), Transport::Http, &local));
        assert!(!roots.admits(&world.at("cwd/in"), Transport::Stdio, &local));
        assert!(!roots.admits(&world.at(""), Transport::Stdio, &local));
        let above = world.roots(&[], &["cwd/data"]);
        assert!(!above.admits(&world.at("cwd"), Transport::Stdio, &local), "it holds the data");
    }

    #[test]
    fn folders_that_overlap_or_hold_the_data_are_found() {
        let world = World::new(&["w/src", "data"]);
        std::os::unix::fs::symlink(world.at("w/src"), world.at("link")).unwrap();
        assert_eq!(world.roots(&["w"], &["data"]).problem(), None);
        for (named, closed) in [
            (&["w", "w/src"][..], &[][..]),
            (&["w/src", "w"], &[]),
            (&["w", "w"], &[]),
            (&["w", "link"], &[]),
            (&["w", "w/not/there"], &[]),
            (&["w"], &["w/data"]),
            (&["data/in"], &["data"]),
            (&[""], &["data"]),
        ] {
            assert!(world.roots(named, closed).problem().is_some(), "{named:?} {closed:?}");
        }
        let relative = WorkspaceRoots { named: vec!["w".into()], ..WorkspaceRoots::default() };
        assert!(relative.problem().is_some());
    }
}
