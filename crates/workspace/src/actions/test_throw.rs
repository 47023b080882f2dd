//! `test_throw`, only with `--conformance`: fails in every way a tool can fail, so that transcripts can show each.

use orchestr8_contract::envelope::Thrown;
use serde_json::json;

use crate::desk::{BOTH, Call, Done, Tool};
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "test_throw",
    about: "Throws an error, a text or an object, breaks an invariant, panics, or never ends.",
    roles: BOTH,
    input: || json!({"type": "object", "properties": {"what": {"enum": ["error", "text", "object", "invariant", "panic", "nothing"]}}, "required": ["what"]}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

#[allow(clippy::panic, reason = "a panic is what it shows")]
async fn work(call: Call) -> Result<Done, Refusal> {
    match call.fields.required("what")? {
        "error" => Err(Refusal::unknown(Thrown::error("TypeError", Some("E_TEST"), "thrown as an error"))),
        "text" => Err(Refusal::unknown(Thrown::Text(String::from("thrown as a text")))),
        "object" => {
            Err(Refusal::unknown(Thrown::Value(json!({"message": "thrown as an object", "more": {"n": 1}}))))
        }
        "invariant" => Err(Refusal::invariant("MANDATORY_DIAGNOSTICS", "an invariant was broken on purpose")),
        "panic" => panic!("on purpose"),
        _ => Ok(Done::with(json!({"thrown": false}))),
    }
}
