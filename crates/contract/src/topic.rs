//! Topics of the store that wake those who follow another domain: the writer of a commit names one, a follower watches it.

use crate::id::{AgentId, Tenant};

/// Documents of knowledge have changed.
pub const DOCUMENTS: &str = "knowledge.changes";

/// Something has come for an agent.
pub fn inbox(tenant: &Tenant, agent: &AgentId) -> String {
    format!("aacp:{tenant}:{agent}")
}
