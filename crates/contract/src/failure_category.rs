//! The failure categories of the workflow contract: what sort of failure an error is, in eight words that programs branch on.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Kind};

/// What sort of failure it is. A code says what happened; the category says whose turn it is, and whether a circuit breaker counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureCategory {
    /// It took longer than its time limit.
    Timeout,
    /// The connection could not be made, or broke.
    Network,
    /// What was called failed: 5xx, a failure that may pass, or a defect of ours.
    Server,
    /// The end of the work is not known: the process or the worker was lost.
    Lost,
    /// What was asked is wrong, does not exist, is not allowed or exceeds a fixed limit.
    Validation,
    /// It was understood and refused: an agent's own "no", an exit code, a state that does not allow it.
    Business,
    /// It was stopped on request.
    Cancelled,
    /// Refused until later: asked too often, an open circuit, a quota, a server that is stopping.
    Throttled,
}

impl FailureCategory {
    pub const ALL: [FailureCategory; 8] = [
        FailureCategory::Timeout,
        FailureCategory::Network,
        FailureCategory::Server,
        FailureCategory::Lost,
        FailureCategory::Validation,
        FailureCategory::Business,
        FailureCategory::Cancelled,
        FailureCategory::Throttled,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureCategory::Timeout => "timeout",
            FailureCategory::Network => "network",
            FailureCategory::Server => "server",
            FailureCategory::Lost => "lost",
            FailureCategory::Validation => "validation",
            FailureCategory::Business => "business",
            FailureCategory::Cancelled => "cancelled",
            FailureCategory::Throttled => "throttled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == text)
    }

    /// Whether a circuit breaker counts it: only what says that the callee is not well.
    pub fn counts_for_breaker(self) -> bool {
        match self {
            FailureCategory::Timeout
            | FailureCategory::Network
            | FailureCategory::Server
            | FailureCategory::Lost => true,
            FailureCategory::Validation
            | FailureCategory::Business
            | FailureCategory::Cancelled
            | FailureCategory::Throttled => false,
        }
    }
}

/// Codes whose category is not that of their kind.
const EXCEPTIONS: [(Code, FailureCategory); 8] = [
    // Sending less helps, and sending later does not.
    (Code::PayloadTooLarge, FailureCategory::Validation),
    (Code::LimitExceeded, FailureCategory::Validation),
    (Code::ExprTooCostly, FailureCategory::Validation),
    // The definition refers to an output that is not there.
    (Code::ExprStepNotCompleted, FailureCategory::Validation),
    // The callee was not even asked.
    (Code::CircuitOpen, FailureCategory::Throttled),
    (Code::ShuttingDown, FailureCategory::Throttled),
    // The key of the secrets is a setting of this server; the callee is not to blame.
    (Code::SecretsUnavailable, FailureCategory::Validation),
    // A tool's own failure, for which it has no code.
    (Code::UnknownToolFailure, FailureCategory::Business),
];

impl Code {
    /// The category of a failure with this code, unless the fault says a narrower one (`Fault::in_category`).
    pub fn category(self) -> FailureCategory {
        let exception = EXCEPTIONS.iter().find(|(code, _)| *code == self);
        exception.map_or_else(|| self.kind().category(), |(_, category)| *category)
    }
}

impl Kind {
    fn category(self) -> FailureCategory {
        match self {
            Kind::Timeout => FailureCategory::Timeout,
            Kind::Unavailable | Kind::Internal => FailureCategory::Server,
            Kind::Unknown => FailureCategory::Lost,
            Kind::Invalid | Kind::NotFound | Kind::Unauthenticated | Kind::Forbidden => {
                FailureCategory::Validation
            }
            Kind::Conflict | Kind::Dependency | Kind::State => FailureCategory::Business,
            Kind::Cancelled => FailureCategory::Cancelled,
            Kind::Exhausted => FailureCategory::Throttled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fault;
    use crate::error::StoredFault;

    #[test]
    fn the_words_are_those_of_the_contract() {
        let words =
            ["timeout", "network", "server", "lost", "validation", "business", "cancelled", "throttled"];
        assert_eq!(FailureCategory::ALL.map(FailureCategory::as_str), words);
        for category in FailureCategory::ALL {
            assert_eq!(serde_json::to_value(category).unwrap(), category.as_str());
            assert_eq!(FailureCategory::parse(category.as_str()), Some(category));
        }
        assert_eq!(FailureCategory::parse("internal"), None);
    }

    #[test]
    fn a_breaker_counts_timeouts_network_and_server_errors_and_lost_calls_and_nothing_else() {
        let counted: Vec<&str> = FailureCategory::ALL
            .into_iter()
            .filter(|one| one.counts_for_breaker())
            .map(|one| one.as_str())
            .collect();
        assert_eq!(counted, ["timeout", "network", "server", "lost"]);
    }

    #[test]
    fn a_fault_may_be_narrower_than_its_code_and_stays_so_when_it_is_stored() {
        let fault = Fault::new(Code::Unavailable, "x");
        assert_eq!(fault.category(), FailureCategory::Server);
        let network = fault.in_category(FailureCategory::Network);
        let text = serde_json::to_string(&StoredFault::from(&network)).unwrap();
        let stored: StoredFault = serde_json::from_str(&text).unwrap();
        assert_eq!(stored.category(), FailureCategory::Network);
        assert_eq!(Fault::from(stored).category(), FailureCategory::Network);
        let before: StoredFault = serde_json::from_str(r#"{"code":"AGENT_FAILED","message":"m"}"#).unwrap();
        assert_eq!(before.category(), FailureCategory::Business, "stored by an earlier version");
    }
}
