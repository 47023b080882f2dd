//! What a step needs in an execution whose tools are limited: the limit of a session or of a filtered client holds for the
//! workflows it starts, whatever agent their steps call (ADR 38).

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::tool_limit::ToolLimit;
use serde_json::Value;

use super::Agent;

/// How a limit names an agent of another program, whose id could be the name of a tool.
const OWN_AGENT: &str = "agent:";

/// What a limit must name for a call of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capability {
    /// Nothing: the agent only computes.
    Nothing,
    /// The agent, or one of these tools and actions that do the same.
    Agent { same_as: Vec<&'static str> },
    /// This tool, and nothing that stands for it.
    Tool(String),
}

/// The name of an agent in a limit.
fn name_in_limit(id: &str) -> String {
    if id.starts_with('@') { id.to_owned() } else { format!("{OWN_AGENT}{id}") }
}

/// Whether a limit allows a call of the agent that is known by this id.
pub fn check(
    limit: &ToolLimit,
    agent: &dyn Agent,
    id: &str,
    input: &Value,
    config: &Value,
) -> Result<(), Fault> {
    let needed = match agent.capability(input, config) {
        Capability::Nothing => return Ok(()),
        Capability::Tool(tool) => vec![tool],
        Capability::Agent { same_as } => {
            std::iter::once(name_in_limit(id)).chain(same_as.into_iter().map(str::to_owned)).collect()
        }
    };
    if needed.iter().any(|name| limit.allows(name)) {
        return Ok(());
    }
    let named = needed.iter().map(|name| format!("'{}'", name.chars().take(128).collect::<String>()));
    let named = named.collect::<Vec<_>>().join(" or ");
    Err(Fault::new(
        Code::Unauthorized,
        format!("this execution may use the tools of its starter only, and {named} is not among them"),
    )
    .with("reason", "tool_limit")
    .with("needed", needed))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agents::tests::World;

    fn allows(patterns: &[&str], agent: &str, input: Value) -> bool {
        let world = World::new();
        let limit = ToolLimit::new(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>());
        check(&limit, &*world.agent(agent), agent, &input, &Value::Null).is_ok()
    }

    #[tokio::test]
    async fn an_agent_is_allowed_by_its_own_name_or_by_the_tool_that_does_the_same() {
        let query = || json!({"operation": "query", "query": "x"});
        let knowledge = "@orchestr8/knowledge";
        for pattern in
            [knowledge, "@orchestr8/*", "search_knowledge", "knowledge.query_knowledge", "knowledge.*"]
        {
            assert!(allows(&[pattern], knowledge, query()), "{pattern}");
        }
        for pattern in ["list_documents", "run_workflow", "knowledge.list", "@orchestr8/tool"] {
            assert!(!allows(&[pattern], knowledge, query()), "{pattern}");
        }
        assert!(!allows(&["search_knowledge"], knowledge, json!({"operation": "create"})));
        assert!(!allows(&["search_knowledge"], knowledge, json!({"operation": "burn"})));
        assert!(allows(&["aacp.send"], "@orchestr8/send", json!({})));
        assert!(!allows(&["run_workflow"], "@orchestr8/http", json!({"url": "https://example.org"})));
        assert!(allows(&["@worker/pay"], "@worker/pay", json!({})));
        assert!(!allows(&["@worker/pay"], "@worker/steal", json!({})));
    }

    #[tokio::test]
    async fn a_tool_step_needs_the_tool_itself() {
        let list = || json!({"tool": "list_documents"});
        assert!(allows(&["list_documents"], "@orchestr8/tool", list()));
        for pattern in ["@orchestr8/tool", "search_knowledge", "run_workflow"] {
            assert!(!allows(&[pattern], "@orchestr8/tool", list()), "{pattern}");
        }
        assert!(allows(&[], "@orchestr8/echo", json!({})) && allows(&[], "@orchestr8/transform", json!({})));
    }
}
