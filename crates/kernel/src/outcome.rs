//! How a submission ended. The first outcome is final.

use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::{CorrelationId, RunId};
use orchestr8_contract::{Code, Fault, Output};
use serde::{Deserialize, Serialize};

use crate::action::Halt;

/// The word for an end, as seed 000 has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Success,
    ToolError,
    /// The deadline passed; the work goes on until it returns.
    Timeout,
    /// The work returned after its deadline.
    LateCompleted,
    /// The client asked for it to stop, or was gone and the work stopped for that.
    Aborted,
    /// The client was gone; the work went to its end all the same.
    DisconnectedCompleted,
    /// Refused before it was accepted; nothing ran, nothing is remembered.
    Refused,
    /// It waits for answers of the client.
    InputRequired,
}

impl End {
    pub fn as_str(self) -> &'static str {
        match self {
            End::Success => "success",
            End::ToolError => "tool_error",
            End::Timeout => "timeout",
            End::LateCompleted => "late_completed",
            End::Aborted => "aborted",
            End::DisconnectedCompleted => "disconnected_completed",
            End::Refused => "refused",
            End::InputRequired => "input_required",
        }
    }
}

/// What the submitter is told.
#[derive(Debug, Clone)]
pub struct Settled {
    pub run: RunId,
    pub correlation: CorrelationId,
    pub end: End,
    pub result: Result<Output, Halt>,
    /// The answer of an earlier submission with the same key.
    pub replayed: bool,
    /// The version after the run, where one is counted.
    pub version: Option<u64>,
    pub elapsed_us: u64,
}

impl Settled {
    /// Why it failed, for those who depend on it; none when it succeeded.
    pub fn failure(&self) -> Result<(), std::sync::Arc<str>> {
        match (self.end, &self.result) {
            (End::Success, _) => Ok(()),
            (_, Err(Halt::Fault(fault))) => Err(fault.message.as_ref().into()),
            (end, Err(Halt::Asks(_)) | Ok(_)) => Err(end.as_str().into()),
        }
    }

    /// The code of its fault, if it has one.
    pub fn code(&self) -> Option<Code> {
        match &self.result {
            Err(Halt::Fault(fault)) => Some(fault.code),
            Err(Halt::Asks(_)) | Ok(_) => None,
        }
    }
}

/// An outcome as the ledger keeps it.
#[derive(Serialize, Deserialize)]
pub struct Stored {
    pub run: RunId,
    pub end: End,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<StoredFault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

impl Stored {
    /// The outcome, and the fault itself: an outcome keeps less of it. The output is moved, since most outcomes are only
    /// recorded and then answered with.
    pub fn of(
        run: RunId,
        end: End,
        result: Result<Output, Fault>,
        version: Option<u64>,
    ) -> (Self, Option<Fault>) {
        match result {
            Ok(output) => (Self { run, end, output: Some(output), fault: None, version }, None),
            Err(fault) => {
                let kept = Some(StoredFault::from(&fault));
                (Self { run, end, output: None, fault: kept, version }, Some(fault))
            }
        }
    }

    pub fn succeeded(&self) -> bool {
        self.end == End::Success
    }

    /// The answer for a repeat of the same key.
    pub fn replay(&self, correlation: CorrelationId) -> Settled {
        let result = match (&self.output, &self.fault) {
            (Some(output), _) => Ok(output.clone()),
            (None, Some(fault)) => Err(Halt::Fault(fault.clone().into())),
            (None, None) => Err(Halt::Fault(Fault::internal("the stored outcome is empty"))),
        };
        Settled {
            run: self.run,
            correlation,
            end: self.end,
            result,
            replayed: true,
            version: self.version,
            elapsed_us: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::End;

    /// Log, journal and store use the words of the contract.
    #[test]
    fn ends_have_the_words_of_the_contract() {
        for (end, word) in [
            (End::Success, "success"),
            (End::ToolError, "tool_error"),
            (End::Timeout, "timeout"),
            (End::LateCompleted, "late_completed"),
            (End::Aborted, "aborted"),
            (End::DisconnectedCompleted, "disconnected_completed"),
            (End::Refused, "refused"),
            (End::InputRequired, "input_required"),
        ] {
            assert_eq!(end.as_str(), word);
            assert_eq!(serde_json::to_value(end).unwrap(), word);
        }
    }
}
