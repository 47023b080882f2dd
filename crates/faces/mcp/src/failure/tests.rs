//! What a failed call looks like.

use std::sync::Arc;

use orchestr8_kernel::ports::clock;
use orchestr8_testing::Parts;
use serde_json::json;

use super::*;
use crate::face::Settings;
use crate::tables;

const LEGACY: Era = Era::Legacy(Revision::V2025_06_18);

fn face(debug_stack: bool) -> Face {
    let clock = Arc::new(clock::Simulated::new());
    let kernel = Parts { clock, ..Parts::in_memory(&[tables::MIGRATIONS]) }.kernel();
    Face::new(kernel, Settings { debug_stack, ..Settings::new("s", "1", [0; 32]) })
}

fn call(correlation: &CorrelationId, era: Era) -> Failed<'_> {
    let run = "00000000-0000-4000-8000-000000000001".parse().unwrap();
    Failed { tool: "repair", run: RunId(run), correlation, era }
}

fn result(body: Body) -> Value {
    serde_json::from_str(&body.finish(LEGACY, "{}")).unwrap()
}

/// MCP-ERR-2, ERR-1: one object that satisfies both.
#[tokio::test]
async fn a_failed_call_is_text_for_models_and_the_same_data_for_programs() {
    let correlation = CorrelationId::parse("c-1").unwrap();
    let fault = Fault::new(Code::CircuitOpen, "closed \"for\" repair").with("retryAtMs", 5);
    let result = result(face(false).failed(&call(&correlation, LEGACY), &fault));
    let payload = json!({
        "code": "INTERNAL", "message": "closed \"for\" repair",
        "details": {"code": "CIRCUIT_OPEN", "retryAtMs": 5},
        "runId": "00000000-0000-4000-8000-000000000001", "correlationId": "c-1",
        "error_code": "UNKNOWN_TOOL_FAILURE", "human_message": "closed \"for\" repair",
        "role": null, "session_id": null, "workspace_root": null, "tool_name": "repair", "invariant_id": null,
        "phase_id": null, "plan_hash": null,
        "cause": {"message": "closed \"for\" repair", "code": "CIRCUIT_OPEN", "name": "Fault"},
        "timestamp": "2026-01-01T00:00:00.000Z",
    });
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"], payload);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), payload);
}

#[tokio::test]
async fn a_failure_of_the_tools_own_is_wrapped_and_still_told() {
    let correlation = CorrelationId::parse("c-1").unwrap();
    let blocks = vec![Content::text("it broke")];
    let body =
        face(false).failed_by_itself(&call(&correlation, LEGACY), blocks, Some(json!({"why": 7})), None);
    let result = result(body);
    assert_eq!(result["content"][1]["text"], "it broke");
    let payload = &result["structuredContent"];
    assert_eq!(
        (&payload["error_code"], &payload["message"]),
        (&json!("UNKNOWN_TOOL_FAILURE"), &json!("it broke"))
    );
    assert_eq!(payload["cause"], json!({"why": 7}));
}

/// ERR-9: a stack only where it is asked for; null is not absent.
#[tokio::test]
async fn a_stack_is_told_only_to_who_debugs() {
    let correlation = CorrelationId::parse("c-1").unwrap();
    let fault = Fault::invalid("no");
    let plain = result(face(false).failed(&call(&correlation, LEGACY), &fault));
    assert!(plain["structuredContent"].get("stack_trace").is_none());
    let traced = result(face(true).failed(&call(&correlation, LEGACY), &fault));
    assert!(traced["structuredContent"]["stack_trace"].as_str().is_some_and(|stack| !stack.is_empty()));
}
