//! The kinds of tools that can be registered at run time, each with its canonical schema.

use orchestr8_contract::access::FOREIGN_TOOLS;
use orchestr8_contract::canonical;
use orchestr8_kernel::action::Slotting;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use crate::{Settings, echo, health};

/// `toolType`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Echo,
    Health,
    AgentProxy,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Echo, Kind::Health, Kind::AgentProxy];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Echo => "echo",
            Kind::Health => "health",
            Kind::AgentProxy => "agentProxy",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The canonical schema, as the seed gives it.
    pub fn input(self) -> Value {
        match self {
            Kind::Echo => echo::input(),
            Kind::Health => health::input(),
            Kind::AgentProxy => json!({
                "type": "object",
                "properties": {"targetAgentId": {"type": "string"}, "message": {"type": "object"}},
                "required": ["targetAgentId", "message"]
            }),
        }
    }

    /// Whether a schema a client gave is the canonical one, byte for byte.
    ///
    /// A JSON object has no order once it is read, so the bytes compared are those of RFC 8785: white space and the order
    /// of members do not count, everything else does, the order of lists included.
    pub fn has_input(self, given: &Value) -> bool {
        canonical::text(given) == canonical::text(&self.input())
    }

    pub fn action(self, name: &str, settings: &Settings) -> Result<Action, schema::Error> {
        let action = match self {
            Kind::Echo => echo::action(name),
            Kind::Health => health::action(name, settings),
            Kind::AgentProxy => proxy(name, self.input()),
        };
        Ok(action?.allowed_to(FOREIGN_TOOLS))
    }
}

/// Brings a message to an agent by running `agent.sendMessage`.
fn proxy(name: &str, input: Value) -> Result<Action, schema::Error> {
    // The run of `agent.sendMessage` takes the slot and is audited; taking two slots for one message would halve them.
    let policy = Policy { slotting: Slotting::Free, idempotent: false, ..Policy::read() };
    Action::tool(name, "Sends a message to an agent and waits for its answer.", input, policy, forward)
}

async fn forward(args: Args, context: Context) -> Result<Reply, Halt> {
    context.submit("agent.sendMessage", args).await.result.map(Reply::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_members_does_not_count_and_everything_else_does() {
        let given = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let same =
            r#"{ "required": ["message"], "properties": {"message": {"type": "string"}}, "type": "object" }"#;
        assert!(Kind::Echo.has_input(&given(same)));
        for other in [
            r#"{"type":"object","properties":{"message":{"type":"string"}}}"#,
            r#"{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"title":""}"#,
            r#"{"type":"object","properties":{"message":{"type":["string"]}},"required":["message"]}"#,
            "{}",
        ] {
            assert!(!Kind::Echo.has_input(&given(other)), "{other}");
        }
        let swapped = json!({
            "type": "object",
            "properties": {"targetAgentId": {"type": "string"}, "message": {"type": "object"}},
            "required": ["message", "targetAgentId"]
        });
        assert!(!Kind::AgentProxy.has_input(&swapped));
    }
}
