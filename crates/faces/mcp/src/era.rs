//! The revisions of the protocol, and the two eras they fall into.

use serde::{Deserialize, Serialize};

/// The current revision, and the only one of its era: every request stands for itself.
pub const MODERN: &str = "2026-07-28";

/// Keys of `_meta` that the modern era defines.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
pub const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
/// The key by which the legacy era ties messages to a task.
pub const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";
/// The extension by which the modern era has tasks.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A revision with an `initialize` handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Revision {
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
}

impl Revision {
    pub const ALL: [Revision; 4] =
        [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];
    pub const FIRST: Revision = Revision::V2024_11_05;
    pub const NEWEST: Revision = Revision::V2025_11_25;

    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
        }
    }

    /// The one that was asked for, or our newest: the client decides whether it can live with that.
    pub fn negotiate(wanted: &str) -> Revision {
        Self::ALL.into_iter().find(|revision| revision.as_str() == wanted).unwrap_or(Self::NEWEST)
    }

    /// Only one revision lets several messages travel together.
    pub fn has_batches(self) -> bool {
        self == Revision::V2025_03_26
    }
}

/// How a request is to be read and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy(Revision),
    Modern,
}

impl Era {
    pub fn is_modern(self) -> bool {
        self == Era::Modern
    }

    /// Whether it has what came with a revision. The modern era has everything that it did not take away.
    pub fn since(self, revision: Revision) -> bool {
        match self {
            Era::Legacy(own) => own >= revision,
            Era::Modern => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_negotiated_or_ours_is_offered() {
        assert_eq!(Revision::negotiate("2025-03-26"), Revision::V2025_03_26);
        assert_eq!(Revision::negotiate("2026-07-28"), Revision::NEWEST, "the modern era has no handshake");
        assert_eq!(Revision::negotiate("1.0"), Revision::V2025_11_25);
    }

    #[test]
    fn names_in_records_are_the_names_on_the_wire() {
        for revision in Revision::ALL {
            assert_eq!(serde_json::to_value(revision).unwrap(), revision.as_str());
        }
    }
}
