//! A session: one connection at work in one workspace. It begins once.

use std::sync::Arc;

use orchestr8_contract::envelope::Role;
use tokio::sync::Semaphore;

use crate::root::{Inside, Root};
use crate::trail::Trail;

/// Where reports of failures are written.
pub const REPORTS: &str = "docs/reports";

pub struct Session {
    pub id: String,
    pub role: Role,
    pub root: Arc<Root>,
    pub trail: Arc<Trail>,
    /// One write at a time in a workspace, its commands included.
    pub turn: Arc<Semaphore>,
    /// The real path of the workspace, under which the store keeps its records.
    place: String,
}

impl Session {
    pub fn new(id: String, role: Role, root: Arc<Root>, trail: Arc<Trail>, turn: Arc<Semaphore>) -> Self {
        let place = root.path().to_string_lossy().into_owned();
        Self { id, role, root, trail, turn, place }
    }

    pub fn place(&self) -> &str {
        &self.place
    }
}

/// Whether a path is that of a report.
pub fn is_report(path: &Inside) -> bool {
    let (folder, name) = path.split();
    folder == Some(REPORTS) && name.ends_with(".md")
}
