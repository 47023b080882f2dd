//! What programs of the sandbox must not change in a workspace: each of these starts programs or decides what is allowed.

use orchestr8_process::sandbox::{MissingPath, SealedPath};

use crate::actions::ATTESTATIONS;
use crate::{plan, trail};

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
