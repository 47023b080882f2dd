//! Steps that language models work for: what they give, what they cost, how they fail, stop and come back.

use orchestr8_kernel::bus::Filter;
use orchestr8_sessions::news;
use serde_json::{Value, json};

use crate::world::{World, flow, with};

fn llm(id: &str, after: &[&str], input: Value) -> Value {
    json!({"id": id, "type": "agent", "agentId": "@orchestr8/llm", "dependsOn": after, "input": input,
           "resilience": {"maxAttempts": 3, "baseDelayMs": 0}})
}

fn session(id: &str, after: &[&str], input: Value) -> Value {
    with(llm(id, after, input), json!({"agentId": "@orchestr8/session"}))
}

fn number() -> Value {
    json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}})
}

#[tokio::test]
async fn a_model_answers_and_its_answer_is_data_for_the_next_step() {
    let world = World::new().await;
    let end = world
        .run(json!([
            with(
                llm("ask", &[], json!({"prompt": "/json {\"n\": 7}"})),
                json!({"config": {"model": "offline/echo", "schema": number()}})
            ),
            llm("say", &["ask"], json!({"prompt": "it is ${steps.ask.output.json.n}", "system": "be kind"})),
            llm("whole", &["ask"], json!({"prompt": "${steps.ask.output.json}", "model": "dear/echo"})),
        ]))
        .await;
    assert_eq!(end["status"], "completed", "{end:#}");
    let ask = &end["outputs"]["ask"];
    assert_eq!(
        (&ask["json"], &ask["model"], &ask["attempts"]),
        (&json!({"n": 7}), &json!("offline/echo"), &json!(1))
    );
    assert_eq!(end["outputs"]["say"]["text"], "it is 7");
    assert_eq!(end["outputs"]["whole"]["text"], "{\"n\":7}");
    let sum: u64 =
        ["ask", "say", "whole"].iter().map(|id| end["outputs"][id]["usage"]["total"].as_u64().unwrap()).sum();
    assert_eq!(end["usage"]["tokens"], sum);
    assert_eq!(end["usage"]["cost"], end["outputs"]["whole"]["usage"]["cost"]);
    assert!(end["usage"]["cost"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn an_answer_that_does_not_match_is_mended_or_fails_the_step_at_its_price() {
    let world = World::new().await;
    let prompt = "/json nonsense\n/json {\"n\": 2}";
    let end = world.run(json!([llm("a", &[], json!({"prompt": prompt, "schema": number()}))])).await;
    assert_eq!(
        (&end["outputs"]["a"]["json"], &end["outputs"]["a"]["attempts"]),
        (&json!({"n": 2}), &json!(2))
    );
    let end =
        world.run(json!([llm("a", &[], json!({"prompt": prompt, "schema": number(), "repairs": 0}))])).await;
    assert_eq!(end["status"], "failed");
    let error = &end["errors"][0];
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("AGENT_FAILED"), &json!("schema_mismatch"))
    );
    assert_eq!(
        (&end["steps"]["a"]["attempts"], &error["details"]["attempts"]),
        (&json!(1), &json!(1)),
        "it is not tried again"
    );
    assert!(
        end["usage"]["tokens"].as_u64().unwrap() > 0,
        "what failed has been paid for: {:#}",
        end["usage"]
    );
    assert_eq!(end["usage"]["tokens"], error["details"]["usage"]["tokens"]);
}

#[tokio::test]
async fn failures_are_tried_again_by_their_code() {
    let world = World::new().await;
    for agent in [llm, session] {
        let member =
            if agent("a", &[], json!({}))["agentId"] == "@orchestr8/llm" { "prompt" } else { "message" };
        let end = world.run(json!([agent("a", &[], json!({member: "/fail UNAVAILABLE 2\nback"}))])).await;
        assert_eq!(end["status"], "completed", "{end:#}");
        assert_eq!(
            (&end["steps"]["a"]["attempts"], &end["outputs"]["a"]["text"]),
            (&json!(3), &json!("back"))
        );
        let end = world.run(json!([agent("a", &[], json!({member: "/fail UNAUTHORIZED"}))])).await;
        assert_eq!((&end["status"], &end["steps"]["a"]["attempts"]), (&json!("failed"), &json!(1)));
        assert_eq!(end["errors"][0]["code"], "UNAUTHORIZED");
    }
}

#[tokio::test]
async fn what_is_misspelt_or_missing_is_refused() {
    let world = World::new().await;
    for (step, said) in [
        (llm("a", &[], json!({"promt": "x"})), "has no member `promt`"),
        (llm("a", &[], json!({})), "`prompt` is missing"),
        (llm("a", &[], json!({"prompt": "x", "model": "echo"})), "`model` must be `provider/id`"),
        (llm("a", &[], json!({"prompt": "x", "model": "offline/nobody"})), "Model not found"),
        (llm("a", &[], json!({"prompt": "x", "temperature": "hot"})), "/temperature"),
        (session("a", &[], json!({"sessionId": "x"})), "`message` is missing"),
        (session("a", &[], json!({"message": "x", "sessionID": "x"})), "has no member `sessionID`"),
        (session("a", &[], json!({"message": "x", "sessionId": "no spaces"})), "/sessionId"),
    ] {
        let end = world.run(json!([step])).await;
        let message = end["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
    }
}

#[tokio::test]
async fn a_budget_of_tokens_or_of_money_pauses_the_execution() {
    let world = World::new().await;
    for (budget, more, reason) in [
        (json!({"tokens": 20}), json!({"tokens": 10_000}), "tokens used"),
        (json!({"cost": 0.000_02}), json!({"cost": 1.0}), "budget: cost"),
    ] {
        let input = json!({"prompt": "/long 20", "model": "dear/echo"});
        let mut workflow = flow(json!([llm("a", &[], input.clone()), llm("b", &["a"], input)]));
        workflow["policies"] = json!({"budget": budget});
        let id = world.start_whole(workflow, json!({})).await;
        let paused = world.until(&id, "paused").await;
        assert!(paused["pauseReason"].as_str().unwrap().contains(reason), "{}", paused["pauseReason"]);
        assert_eq!(paused["steps"]["b"]["status"], "pending");
        world.ask("executions.resume", json!({"executionId": id, "budget": more})).await;
        assert_eq!(world.end(&id).await["status"], "completed");
    }
}

#[tokio::test]
async fn a_session_is_made_spoken_to_again_and_deleted() {
    let world = World::new().await;
    let end = world
        .run(json!([
            session("first", &[], json!({"message": "hello", "name": "mine", "tools": ["nothing"]})),
            session(
                "second",
                &["first"],
                json!({"message": "again", "sessionId": "${steps.first.output.sessionId}"})
            ),
            session("third", &["second"], json!({"message": "gone", "keep": false})),
        ]))
        .await;
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(end["outputs"]["second"]["text"], "again");
    let id = &end["outputs"]["first"]["sessionId"];
    let state = world.ask("get_session", json!({"sessionId": id})).await;
    assert_eq!((&state["messageCount"], &state["name"]), (&json!(4), &json!("mine")));
    let sum: u64 = ["first", "second", "third"]
        .iter()
        .map(|id| end["outputs"][id]["usage"]["total"].as_u64().unwrap())
        .sum();
    assert_eq!(end["usage"]["tokens"], sum);
    let gone = world.refused("get_session", json!({"sessionId": end["outputs"]["third"]["sessionId"]})).await;
    assert_eq!(gone.code.as_str(), "NOT_FOUND");
}

#[tokio::test]
async fn cancelling_stops_the_model_and_the_session() {
    let world = World::new().await;
    let mut heard = world.kernel.bus().subscribe(&Filter::names([news::EVENT])).unwrap();
    let id = world
        .start(json!([
            llm("a", &[], json!({"prompt": "/slow 60000\nnever"})),
            session("b", &[], json!({"message": "/slow 60000\nnever"})),
        ]))
        .await;
    let mut until = async |kind: &str| loop {
        if heard.next().await.unwrap().data["event"]["type"] == kind {
            return;
        }
    };
    until("message_end").await;
    world.ask("executions.cancel", json!({"executionId": id})).await;
    assert_eq!(world.end(&id).await["status"], "cancelled");
    until("agent_end").await;
}

#[tokio::test]
async fn a_sign_of_life_comes_from_a_model_that_answers() {
    let world = World::new().await;
    for step in [
        llm("a", &[], json!({"prompt": "/slow 120\na b c d e f g h i j"})),
        session("a", &[], json!({"message": "/slow 120\na b c d e f g h i j"})),
    ] {
        let end = world.run(json!([with(step, json!({"heartbeatTimeoutMs": 1000}))])).await;
        assert_eq!((&end["status"], &end["steps"]["a"]["attempts"]), (&json!("completed"), &json!(1)));
    }
}

#[tokio::test]
async fn after_a_crash_in_the_middle_of_a_turn_the_message_stands_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(folder.path(), std::sync::Arc::default()).await;
    let mut heard = world.kernel.bus().subscribe(&Filter::names([news::EVENT])).unwrap();
    let id = world
        .start(json!([session("a", &[], json!({"message": "/slow 100\nwell", "sessionId": "s"}))]))
        .await;
    while heard.next().await.unwrap().data["event"]["type"] != "message_end" {}
    drop(heard);
    world.die().await;
    let world = World::at(folder.path(), std::sync::Arc::default()).await;
    let end = world.end(&id).await;
    assert_eq!(
        (&end["status"], &end["outputs"]["a"]["text"]),
        (&json!("completed"), &json!("well")),
        "{end:#}"
    );
    let state = world.ask("get_session", json!({"sessionId": "s"})).await;
    assert_eq!(state["messageCount"], 2, "the message stands once: {state:#}");
}

#[tokio::test]
async fn the_example_runs_offline() {
    let world = World::new().await;
    let text = include_str!("../../../../examples/llm-summary.json");
    let id = world.start_whole(serde_json::from_str(text).unwrap(), json!({})).await;
    let end = world.end(&id).await;
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(end["outputs"]["summary"]["attempts"], 2, "the first answer had to be mended");
    assert!(end["outputs"]["report"]["text"].as_str().unwrap().contains("Backups"), "{end:#}");
}
