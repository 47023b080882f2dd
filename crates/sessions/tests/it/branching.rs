//! The tree: fork, navigate, begin again; models and levels of thinking.

use orchestr8_contract::Code;
use orchestr8_testing::settled;
use serde_json::{Value, json};

use crate::world::World;

async fn entries(world: &World) -> Vec<(String, String)> {
    let tree = world.ask("get_tree", json!({"sessionId": "s"})).await;
    let nodes = tree["nodes"].as_array().unwrap();
    let id = |node: &Value| {
        (node["entryId"].as_str().unwrap().to_owned(), node["text"].as_str().unwrap().to_owned())
    };
    nodes.iter().map(id).collect()
}

#[tokio::test]
async fn a_fork_is_a_session_of_its_own_up_to_what_was_said() {
    let world = World::new().await;
    world.session().await;
    world.prompt("one").await;
    world.prompt("two").await;
    let messages = world.ask("get_fork_messages", json!({"sessionId": "s"})).await;
    let second = messages["messages"][1]["entryId"].clone();
    let fork = world.ask("fork", json!({"sessionId": "s", "entryId": second})).await;
    assert_eq!((&fork["text"], &fork["cancelled"]), (&json!("two"), &json!(false)));
    let id = fork["sessionId"].as_str().unwrap();
    let forked = world.settle("get_state", json!({"sessionId": id})).await;
    assert_eq!(forked.version, Some(0));
    assert_eq!(settled::value(forked)["messageCount"], 2);
    world.ask("prompt", json!({"sessionId": id, "message": "other"})).await;
    assert_eq!(world.texts().await.len(), 4, "the first goes its own way");
    let wrong = world.settle("fork", json!({"sessionId": "s", "entryId": "ffffffff"})).await;
    assert_eq!(wrong.code(), Some(Code::InvalidArgument));
}

#[tokio::test]
async fn one_can_go_back_say_it_otherwise_and_return() {
    let world = World::new().await;
    world.session().await;
    world.prompt("one").await;
    world.prompt("two").await;
    let all = entries(&world).await;
    let back = world
        .ask("navigate_tree", json!({"sessionId": "s", "targetId": all[2].0, "options": {"label": "here"}}))
        .await;
    assert_eq!((&back["editorText"], &back["cancelled"]), (&json!("two"), &json!(false)));
    world.prompt("otherwise").await;
    assert_eq!(
        world.texts().await,
        ["user: one", "assistant: one", "user: otherwise", "assistant: otherwise"]
    );
    world.ask("navigate_tree", json!({"sessionId": "s", "targetId": all[3].0})).await;
    assert_eq!(world.texts().await[2..], ["user: two", "assistant: two"]);
    let tree = world.ask("get_tree", json!({"sessionId": "s"})).await;
    assert_eq!(tree["nodes"][2]["label"], "here");
    assert_eq!(tree["currentLeafId"], json!(all[3].0));
}

#[tokio::test]
async fn what_is_left_behind_can_be_summed_up() {
    let world = World::new().await;
    world.session().await;
    world.prompt("one").await;
    world.prompt("two").await;
    let all = entries(&world).await;
    let options = json!({"summarize": true, "customInstructions": "/json tried two"});
    world.ask("navigate_tree", json!({"sessionId": "s", "targetId": all[1].0, "options": options})).await;
    let last = entries(&world).await.pop().unwrap();
    assert_eq!(last.1, "tried two");
    assert_eq!(world.texts().await, ["user: one", "assistant: one"]);
}

#[tokio::test]
async fn a_new_beginning_leaves_the_old_one_in_the_tree() {
    let world = World::new().await;
    world.session().await;
    world.prompt("one").await;
    assert_eq!(world.ask("new_session", json!({"sessionId": "s"})).await, json!({"cancelled": false}));
    assert_eq!(world.texts().await, Vec::<String>::new());
    world.prompt("fresh").await;
    assert_eq!(world.texts().await, ["user: fresh", "assistant: fresh"]);
    assert_eq!(entries(&world).await.len(), 4);
}

#[tokio::test]
async fn models_and_levels_are_set_and_gone_through() {
    let world = World::new().await;
    world.session().await;
    let missing = world.settle("set_model", json!({"sessionId": "s", "provider": "p", "modelId": "m"})).await;
    assert_eq!(settled::fault(missing).message, "Model not found: p/m");
    let set =
        world.ask("set_model", json!({"sessionId": "s", "provider": "offline", "modelId": "echo"})).await;
    assert_eq!(set["model"]["id"], "echo");
    assert_eq!(world.ask("cycle_model", json!({"sessionId": "s"})).await, Value::Null, "there is only one");
    world.ask("set_thinking_level", json!({"sessionId": "s", "level": "none"})).await;
    assert_eq!(
        world.ask("cycle_thinking_level", json!({"sessionId": "s"})).await,
        json!({"level": "minimal"})
    );
    assert_eq!(world.ask("get_state", json!({"sessionId": "s"})).await["thinkingLevel"], "minimal");
    let models = world.ask("get_available_models", json!({"sessionId": "s"})).await;
    assert_eq!(models["models"].as_array().unwrap().len(), 1);
    let tools = world.ask("get_tools", json!({"sessionId": "s"})).await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 2);
}
