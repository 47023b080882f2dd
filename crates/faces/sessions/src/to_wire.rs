//! From outcomes to frames: responses, and the events this face tells by itself.

use std::borrow::Cow;

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::{End, Halt, Settled};
use serde_json::{Value, json};

use crate::from_wire::Label;
use crate::settings::Settings;
use crate::wire::{self, Event, Frame, Response};
use crate::wording::{self, Asked, Failure};

/// Commands whose answer may be that there is nothing; all others then have no answer beyond success.
const MAY_BE_NULL: [&str; 3] = ["cycle_model", "cycle_thinking_level", "get_context_usage"];

/// What a command stands as when its type cannot be read.
const UNKNOWN: &str = "unknown";

/// How a command ended, in the words of the wire.
pub struct Outcome<'a> {
    pub result: Result<Option<Cow<'a, Value>>, Failure>,
    pub version: Option<u64>,
    pub replayed: bool,
    pub timed_out: bool,
}

impl<'a> Outcome<'a> {
    pub fn of(settled: &'a Settled, asked: &Asked<'_>) -> Self {
        let (replayed, timed_out) = (settled.replayed, settled.end == End::Timeout);
        let result = match &settled.result {
            Ok(output) => Ok(data(output, asked.command).map(Cow::Borrowed)),
            Err(Halt::Fault(fault)) => Err(wording::of(fault, asked)),
            Err(Halt::Asks(_)) => {
                let fault = Fault::new(Code::CapabilityMissing, "it asks a question nobody here can answer");
                Err(wording::of(&fault, asked))
            }
        };
        let version = settled.version.filter(|_| result.is_ok());
        Self { result, version, replayed, timed_out }
    }

    pub fn lost(asked: &Asked<'_>) -> Self {
        let failure = wording::of(&Fault::internal("the command was lost"), asked);
        Self { result: Err(failure), version: None, replayed: false, timed_out: false }
    }

    pub fn finish(&self) -> wire::Finish<'_> {
        wire::Finish {
            success: self.result.is_ok(),
            error: self.result.as_ref().err().map(|failure| &*failure.text),
            session_version: self.version,
            replayed: self.replayed,
        }
    }

    /// The response carries the id of this request and no other (SES-5.1).
    pub fn response(&self, id: Option<&str>, command: &str) -> Frame {
        let mut response = Response {
            session_version: self.version,
            replayed: self.replayed,
            timed_out: self.timed_out,
            ..Response::new(id, command)
        };
        match &self.result {
            Ok(data) => response.data = data.as_deref(),
            Err(failure) => {
                response.success = false;
                response.error = Some(&failure.text);
                response.error_code = Some(failure.code.as_str());
            }
        }
        wire::frame(&response)
    }
}

fn data<'a>(output: &'a Output, command: &str) -> Option<&'a Value> {
    match output {
        Output::Json { value } => {
            Some(value).filter(|value| !value.is_null() || MAY_BE_NULL.contains(&command))
        }
        Output::Blocks { structured, .. } => structured.as_ref(),
        Output::Resource { .. } | Output::Prompt { .. } => None,
    }
}

/// The answer to a command that nothing else is told of.
pub fn refusal(label: &Label, text: &str, code: Code) -> Frame {
    let command = label.command.as_deref().filter(|command| !command.is_empty()).unwrap_or(UNKNOWN);
    wire::frame(&Response {
        success: false,
        error: Some(text),
        error_code: Some(code.as_str()),
        ..Response::new(label.id.as_deref(), command)
    })
}

pub fn ready(settings: &Settings) -> Frame {
    let data = wire::Ready {
        server_version: &settings.server_version,
        protocol_version: wire::PROTOCOL_VERSION,
        transports: &settings.transports,
    };
    wire::frame(&Event { kind: "server_ready", data })
}

pub fn shutdown(reason: &str, timeout_ms: u64) -> Frame {
    wire::frame(&Event { kind: "server_shutdown", data: wire::Shutdown { reason, timeout_ms } })
}

pub fn session_created(session_id: &str, session_info: Option<&Value>) -> Frame {
    wire::frame(&Event { kind: "session_created", data: wire::SessionCreated { session_id, session_info } })
}

pub fn session_deleted(session_id: &str) -> Frame {
    wire::frame(&Event { kind: "session_deleted", data: wire::SessionDeleted { session_id } })
}

/// What every client is told of the last start: figures, and neither paths nor ids unless the installation wants it.
pub fn recovery(mut data: Value, with_details: bool) -> Frame {
    if !with_details && let Value::Object(members) = &mut data {
        let is_over_zero = |value: Option<&Value>| value.and_then(Value::as_u64).is_some_and(|n| n > 0);
        for (list, truncated, figure) in [
            ("recoveredOutcomeIds", "recoveredOutcomeIdsTruncated", "recoveredOutcomes"),
            ("recoveredInFlight", "recoveredInFlightTruncated", "recoveredInFlightFailures"),
        ] {
            let was_cut = members.get(truncated) == Some(&Value::Bool(true));
            let some_are_left_out = was_cut || is_over_zero(members.get(figure));
            if members.contains_key(list) {
                members.insert(list.into(), json!([]));
                members.insert(truncated.into(), some_are_left_out.into());
            }
        }
        let redacted = "[redacted]";
        for (name, value) in members.iter_mut() {
            if name.ends_with("Path") && value.is_string() {
                *value = redacted.into();
            }
        }
        if members.get("initializationError").is_some_and(Value::is_string) {
            let text =
                "Initialization failed (details redacted; call get_startup_recovery for full diagnostics)";
            members.insert("initializationError".into(), text.into());
        }
    }
    wire::frame(&Event { kind: "startup_recovery_summary", data })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frame: &Frame) -> Value {
        serde_json::from_str(frame).unwrap()
    }

    #[test]
    fn the_summary_of_the_start_names_no_paths_and_no_ids() {
        let data = json!({
            "enabled": true, "journalPath": "/home/me/data", "recoveredOutcomes": 2, "recoveredOutcomeIds": ["a", "b"],
            "recoveredOutcomeIdsTruncated": false, "recoveredInFlightFailures": 0, "recoveredInFlight": [],
            "recoveredInFlightTruncated": false, "initializationError": "no /home/me/data",
        });
        assert_eq!(read(&recovery(data.clone(), true))["data"], data);
        let told = recovery(data, false);
        assert!(!told.contains("/home"), "{told}");
        let told = &read(&told)["data"];
        assert_eq!((&told["recoveredOutcomeIds"], &told["recoveredOutcomes"]), (&json!([]), &json!(2)));
        assert_eq!(told["recoveredOutcomeIdsTruncated"], true);
        assert_eq!(told["recoveredInFlightTruncated"], false);
    }

    #[test]
    fn a_refusal_says_what_is_known_of_the_command() {
        let label = Label { id: Some("a".into()), command: None };
        let expected = json!({"id": "a", "type": "response", "command": "unknown", "success": false,
                              "error": "no", "errorCode": "INVALID_ARGUMENT"});
        assert_eq!(read(&refusal(&label, "no", Code::InvalidArgument)), expected);
    }

    #[test]
    fn nothing_is_an_answer_only_where_clients_expect_it() {
        let nothing = Output::json(Value::Null);
        assert_eq!(data(&nothing, "get_context_usage"), Some(&Value::Null));
        assert_eq!(data(&nothing, "prompt"), None);
        assert_eq!(data(&Output::json(json!({})), "prompt"), Some(&json!({})));
    }
}
