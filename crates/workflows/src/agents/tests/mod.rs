//! Agents as a step calls them: through the list of built-in ones, against real servers and programs.

mod examples;
mod exec;
mod http;
mod remote;
mod secrets;
mod server;
mod tool;
mod workers;
mod world;

use serde_json::{Value, json};

use super::*;
pub(super) use world::World;

#[tokio::test]
async fn echo_and_transform_are_pure_and_answer() {
    let world = World::new();
    let echo = world.agent("@orchestr8/echo");
    assert!(echo.is_pure() && world.agent("@orchestr8/transform").is_pure());
    let input = json!({"a": [1, null, "x"]});
    assert_eq!(echo.call(world.call("@orchestr8/echo", input.clone())).await.unwrap(), Answer::from(input));
    let input = json!({"value": [3, 1, 2], "operations": [{"sort": true}]});
    assert_eq!(world.output("@orchestr8/transform", input).await.unwrap(), json!([1, 2, 3]));
    assert!(world.agents.find("@orchestr8/nothing").is_none() && world.agents.find("x").is_none());
}

#[tokio::test]
async fn every_agent_says_what_it_is() {
    for agent in World::new().agents.all() {
        assert!(agent.about().ends_with('.') && !agent.id().is_empty());
    }
}

#[tokio::test]
async fn work_is_dropped_when_the_token_fires() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let never = std::future::pending::<Result<Value, Fault>>();
    assert_eq!(until_cancelled(&cancel, never).await.unwrap_err().code, Code::Cancelled);
}
