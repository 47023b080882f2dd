//! What programs of the sandbox must not change in a workspace: each of these starts programs or decides what is allowed.

use orchestr8_process::sandbox::{MissingPath, SealedPath};

use crate::actions::ATTESTATIONS;
use crate::root::Root;
use crate::{Refusal, plan, trail};

/// The repository: its hooks, its index and its configuration start programs whenever Git is used.
const REPOSITORY: &str = ".git";

/// Configurations of this program and of the folder it keeps beside them.
const CONFIGURATION: [&str; 3] = ["orchestr8.json", "orchestr8.toml", ".orchestr8"];

/// Plans, and statements about what was done by them.
const GOVERNING: [&str; 4] = [plan::FOLDER, ATTESTATIONS, trail::NAME, trail::LOCK];

/// For programs in any folder that may be a workspace.
pub fn in_folder() -> Vec<SealedPath> {
    let paths = [REPOSITORY].into_iter().chain(CONFIGURATION).chain(GOVERNING);
    paths.map(|path| SealedPath::new(path, MissingPath::Creatable)).collect()
}

/// For commands of plans. A repository that is missing is not made by them either.
pub fn in_workspace(root: &Root) -> Result<Vec<SealedPath>, Refusal> {
    let trail = root.names()?.into_iter().filter(|name| trail::is_of_trail(name));
    let mut sealed = in_folder();
    sealed.retain(|sealed| sealed.path.as_os_str() != REPOSITORY);
    sealed.push(SealedPath::new(REPOSITORY, MissingPath::EmptyFolder));
    sealed.extend(trail.map(|name| SealedPath::new(name, MissingPath::Creatable)));
    sealed.sort_by(|one, other| one.path.cmp(&other.path));
    sealed.dedup_by(|one, other| one.path == other.path);
    Ok(sealed)
}
