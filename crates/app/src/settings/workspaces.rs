//! What the settings of governed workspaces mean: which folders they are, and who may approve plans.

use std::sync::Arc;

use orchestr8_edge::Auth;
use orchestr8_workspace::roots::WorkspaceRoots;

use super::{Place, private_places, programs};
use crate::config::{self, Environment, Loaded, Problem};
use crate::failure::Failure;

/// What governed sessions may open, who may approve plans, and what the first plan is signed with.
#[derive(Clone)]
pub struct GovernedWorkspaces {
    pub roots: WorkspaceRoots,
    pub self_approval: bool,
    pub bootstrap_secret: Option<Arc<str>>,
}

impl GovernedWorkspaces {
    pub fn new(
        loaded: &Loaded,
        auth: &Auth,
        place: &Place,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let own = &loaded.config.workspace;
        let secret = environment.get(&own.bootstrap_secret_env_var).filter(|secret| !secret.is_empty());
        let places = private_places::private_places(&loaded.config, place, environment);
        let data = programs::data_paths(&loaded.config, place);
        let start = Some(environment.working_directory.clone()).filter(|start| start.parent().is_some());
        let roots = WorkspaceRoots {
            named: own.roots.clone(),
            working_directory: start,
            closed: places.protected.into_iter().chain(data).collect(),
            sharing: programs::folder_sharing(auth, false),
        };
        if let Some(what) = roots.problem() {
            let key = String::from("workspace.roots");
            let origin = loaded.origin(&key);
            return Err(config::failure(&[Problem { key, what, origin }]));
        }
        Ok(Self { roots, self_approval: own.self_approval, bootstrap_secret: secret.map(Into::into) })
    }
}
