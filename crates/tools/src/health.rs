//! `health`: how busy the server is, and whether that is still well (seed 000, "Health Tool").

use orchestr8_contract::Output;
use orchestr8_kernel::action::Slotting;
use orchestr8_kernel::health::memory_usage_bytes;
use orchestr8_kernel::{Action, Context, Policy, schema};
use serde_json::{Value, json};

use crate::Settings;

/// The seed's canonical schema of the tool type `health`.
pub fn input() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

pub fn action(name: &str, settings: &Settings) -> Result<Action, schema::Error> {
    let server = json!({"name": settings.server_name, "version": settings.server_version});
    let state_bytes = settings.state_bytes;
    // It must answer when all slots are taken: that is when people ask.
    let policy = Policy { slotting: Slotting::Free, ..Policy::quick_read() };
    let about = "Shows the limits of the server, what it uses of them, and whether it is healthy.";
    Ok(Action::tool(name, about, input(), policy, move |_, context: Context| {
        std::future::ready(Ok(Output::json(report(&server, state_bytes, &context)).into()))
    })?
    .titled("Health"))
}

fn report(server: &Value, state_bytes: usize, context: &Context) -> Value {
    let (kernel, limits) = (&context.kernel, context.kernel.limits());
    let telemetry = kernel.health().telemetry(memory_usage_bytes(), kernel.running(), limits.concurrent_runs);
    json!({
        "server": server,
        "config": {
            "toolTimeoutMs": limits.timeout_ms,
            "maxConcurrentExecutions": limits.concurrent_runs,
            "maxPayloadBytes": limits.payload_bytes,
            "maxStateBytes": state_bytes,
        },
        "resources": telemetry,
        "status": kernel.health().status(&telemetry),
    })
}
