//! Asks the person at the client of a planner whether a plan is approved.

use orchestr8_kernel::Context;
use orchestr8_kernel::action::Halt;
use orchestr8_kernel::peer::{About, Ask};
use serde_json::json;

use super::PlanRecord;

/// Names the question within a call.
const KEY: &str = "approve_plan";

/// A longer plan is not asked about: a person approves what was shown whole.
const SHOWN_CHARACTERS: usize = 8000;

/// Whether the person at the client can be shown the plan and asked.
pub fn can_ask(plan: &PlanRecord, context: &Context) -> bool {
    plan.content.chars().count() <= SHOWN_CHARACTERS && context.can_ask(About::Elicit)
}

/// Whether the person approves; anything but a clear yes is a no.
pub async fn ask_person(plan: &PlanRecord, context: &Context) -> Result<bool, Halt> {
    let params = json!({
        "mode": "form",
        "message": format!("Approve plan {} for {}?\n\n{}", plan.hash, plan.path, plan.content.trim()),
        "requestedSchema": {
            "type": "object",
            "properties": {"approve": {"type": "boolean", "title": "Approve", "description": "Let the executor write files within this plan.", "default": false}},
            "required": ["approve"],
        },
    });
    let answer = context.ask(Ask { key: String::from(KEY), about: About::Elicit, params }).await?;
    Ok(answer["action"] == "accept" && answer["content"]["approve"] == true)
}
