//! Steps that run several times, wait, ask, or are workflows themselves.

use std::sync::Arc;

use orchestr8_workflows::limits;
use serde_json::{Value, json};

use crate::world::{Desk, World, flow, step, with};

#[tokio::test]
async fn for_each_runs_once_for_each_item_and_keeps_their_order() {
    let world = World::new().await;
    let end = world
        .run(json!([
            step("list", &[], json!({"value": [3, 1, 2]})),
            with(
                step("each", &["list"], json!({"value": {"item": "${item}", "index": "${index}"}})),
                json!({"forEach": {"items": "${steps.list.output}", "concurrency": 2}})
            ),
        ]))
        .await;
    assert_eq!(end["status"], "completed", "{end:#}");
    let results = &end["outputs"]["each"]["results"];
    assert_eq!(*results, json!([{"item": 3, "index": 0}, {"item": 1, "index": 1}, {"item": 2, "index": 2}]));
    let keys: Vec<String> = world.desk.calls.lock().iter().map(|(_, key)| key.clone()).collect();
    assert!(keys[1].ends_with(":each:0") && keys[3].ends_with(":each:2"), "{keys:?}");
}

#[tokio::test]
async fn failed_items_fail_the_step_or_are_listed_as_it_says() {
    let world = World::new().await;
    let steps = |policy: Value| {
        json!([with(
            step("each", &[], json!({"fail": "${item}"})),
            json!({"forEach": {"items": ["AGENT_FAILED", null, null, null], "concurrency": 1, "onItemError": policy}})
        )])
    };
    let end = world.run(steps(json!("fail"))).await;
    assert_eq!((end["status"].as_str(), world.desk.count("each")), (Some("failed"), 1));
    let end = world.run(steps(json!("continue"))).await;
    assert_eq!(end["outputs"]["each"]["succeeded"], 3);
    assert_eq!(end["outputs"]["each"]["failed"][0]["index"], 0);
    let end = world.run(steps(json!({"tolerate": 0.2}))).await;
    assert_eq!(end["status"], "failed", "a quarter is more than a fifth");
    let end = world.run(steps(json!({"tolerate": 0.3}))).await;
    assert_eq!(end["status"], "completed");
}

#[tokio::test]
async fn while_goes_round_until_its_condition_ends_it() {
    let world = World::new().await;
    let round = |max: u32| {
        json!([with(
            step("loop", &[], json!({"value": {"n": "${iteration}"}})),
            json!({"while": {"condition": "${last.n ?? 0} < 3", "maxIterations": max}})
        )])
    };
    let end = world.run(round(10)).await;
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(end["outputs"]["loop"], json!({"iterations": 4, "last": {"n": 3}}));
    let end = world.run(round(2)).await;
    assert_eq!(end["status"], "failed");
    assert_eq!(end["steps"]["loop"]["error"]["code"], "LIMIT_EXCEEDED");
}

#[tokio::test]
async fn a_wait_is_a_durable_timer_or_an_event() {
    let world = World::new().await;
    let id = world
        .start(json!([
            {"id": "pause", "type": "wait", "wait": {"durationMs": 30}},
            {"id": "news", "type": "wait", "dependsOn": ["pause"], "wait": {"event": "go"}},
            step("after", &["news"], json!({"value": "${steps.news.output.payload.x}"})),
        ]))
        .await;
    world.until_true(&id, |now| now["steps"]["news"]["status"] == "waiting").await;
    world.ask("executions.signal", json!({"executionId": id, "name": "other"})).await;
    world.ask("executions.signal", json!({"executionId": id, "name": "go", "payload": {"x": 5}})).await;
    assert_eq!(world.end(&id).await["outputs"]["after"], 5);
}

#[tokio::test]
async fn an_event_that_comes_early_is_kept_and_one_that_never_comes_times_out() {
    let world = World::new().await;
    let steps = json!([
        step("first", &[], json!({"hold": true})),
        {"id": "news", "type": "wait", "dependsOn": ["first"], "wait": {"event": "go", "timeoutMs": 50}},
    ]);
    let id = world.start(steps.clone()).await;
    world.desk.called("first", 1).await;
    world.ask("executions.signal", json!({"executionId": id, "name": "go", "payload": 1})).await;
    world.desk.gate("first").notify_one();
    assert_eq!(world.end(&id).await["outputs"]["news"]["payload"], 1);
    let id = world.start(steps).await;
    world.desk.called("first", 2).await;
    world.desk.gate("first").notify_one();
    let end = world.end(&id).await;
    assert_eq!(end["steps"]["news"]["error"]["code"], "TIMEOUT", "{end:#}");
}

#[tokio::test]
async fn an_approval_waits_for_somebody_and_is_decided_once() {
    let world = World::new().await;
    let form =
        json!({"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}}});
    let id = world
        .start(json!([
            {"id": "ask", "type": "approval", "approval": {"message": "Pay?", "form": form}},
            with(step("pay", &["ask"], json!({"value": "${steps.ask.output.data.amount}"})),
                 json!({"if": "${steps.ask.output.decision} == \"approved\""})),
        ]))
        .await;
    let open = world.until_true(&id, |now| now["steps"]["ask"]["status"] == "waiting").await;
    assert_eq!(open["status"], "waiting", "nothing of it runs");
    let listed = world.ask("executions.list", json!({"status": "waiting"})).await;
    assert_eq!(listed["executions"][0]["executionId"], id.as_str(), "{listed:#}");
    let open = world.ask("executions.approvals", json!({"executionId": id})).await;
    let token = open["approvals"][0]["token"].as_str().unwrap().to_owned();
    let wrong = json!({"token": token, "decision": "approve", "data": {"amount": "many"}});
    assert_eq!(world.refused("executions.approve", wrong).await.code.as_str(), "INVALID_ARGUMENT");
    let right = json!({"token": token, "decision": "approve", "onBehalfOf": "ada", "data": {"amount": 12}});
    world.ask("executions.approve", right.clone()).await;
    assert_eq!(world.refused("executions.approve", right).await.code.as_str(), "NOT_FOUND");
    let end = world.end(&id).await;
    assert_eq!((&end["outputs"]["pay"], &end["outputs"]["ask"]["onBehalfOf"]), (&json!(12), &json!("ada")));
}

#[tokio::test]
async fn an_approval_that_nobody_gives_ends_as_it_says() {
    let world = World::new().await;
    for (policy, status, approved) in [
        ("reject", "completed", json!(false)),
        ("approve", "completed", json!(true)),
        ("fail", "failed", Value::Null),
    ] {
        let steps = json!([{"id": "ask", "type": "approval",
            "approval": {"message": "?", "timeoutMs": 20, "onTimeout": policy}}]);
        let end = world.run(steps).await;
        assert_eq!(end["status"], status, "{policy}");
        assert_eq!(end["outputs"]["ask"]["approved"], approved, "{policy}");
        let by = if policy == "fail" { Value::Null } else { json!("timeout") };
        assert_eq!(end["outputs"]["ask"]["by"], by, "{policy}");
    }
}

#[tokio::test]
async fn a_child_workflow_gives_its_outputs_to_its_parent() {
    let world = World::new().await;
    let child = json!({"id": "child", "version": "1.0.0", "name": "Child", "variables": {"n": 0},
        "steps": [step("inner", &[], json!({"value": "${variables.n}"}))]});
    world.ask("workflows.apply", json!({"workflow": child})).await;
    let end = world
        .run(json!([
            {"id": "stored", "type": "workflow", "workflow": {"id": "child"}, "inputs": {"n": 4}},
            {"id": "inline", "type": "workflow", "workflow": child, "inputs": {"n": 5}},
            step("sum", &["stored", "inline"], json!({"value": "${steps.stored.output.inner}-${steps.inline.output.inner}"})),
        ]))
        .await;
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(end["outputs"]["sum"], "4-5");
}

#[tokio::test]
async fn a_failed_child_fails_its_step_and_many_children_run_beside_each_other() {
    let world = World::new().await;
    let child = json!({"id": "child", "version": "1.0.0", "name": "Child", "variables": {"fail": null},
        "steps": [step("inner", &[], json!({"fail": "${variables.fail}", "value": "ok"}))]});
    let end = world
        .run(
            json!([{"id": "one", "type": "workflow", "workflow": child, "inputs": {"fail": "AGENT_FAILED"}}]),
        )
        .await;
    assert_eq!(end["status"], "failed", "{end:#}");
    assert_eq!(end["steps"]["one"]["error"]["code"], "AGENT_FAILED");
    let end = world
        .run(json!([{"id": "many", "type": "workflow", "workflow": child,
                     "forEach": {"items": [1, 2, 3], "concurrency": 3}, "inputs": {"fail": null}}]))
        .await;
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(end["outputs"]["many"]["results"][2]["inner"], "ok");
}

#[tokio::test]
async fn pure_steps_share_a_commit_and_still_show_in_the_journal() {
    let world = World::new().await;
    let echo = |id: &str, after: &[&str], input: Value| json!({"id": id, "type": "agent", "agentId": "@orchestr8/echo", "dependsOn": after, "input": input});
    let workflow = flow(json!([
        echo("a", &[], json!({"n": 1})),
        echo("b", &["a"], json!({"n": "${steps.a.output.n}"}))
    ]));
    let id = world.start_whole(workflow, json!({})).await;
    let end = world.end(&id).await;
    assert_eq!(end["outputs"]["b"]["n"], 1);
    assert_eq!(world.kinds(&id).await.len(), 6);
}

/// A step without effects outside, which shares commits with others.
fn pure(id: &str, after: &[&str], input: Value) -> Value {
    json!({"id": id, "agentId": "@orchestr8/echo", "dependsOn": after, "input": input})
}

#[tokio::test]
async fn loops_without_effects_run_up_to_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Arc::new(Desk::default());
    let world = World::at(folder.path(), desk.clone()).await;
    let items: Vec<usize> = (0..limits::ITEMS).collect();
    let each = json!({"forEach": {"items": items, "concurrency": 1000}});
    let each = |after: &[&str]| with(pure("each", after, json!({"n": "${item}"})), each.clone());
    let most = limits::ITERATIONS;
    let rounds = json!({"while": {"condition": format!("${{iteration}} < {most}"), "maxIterations": most}});
    let rounds = |after: &[&str]| with(pure("rounds", after, json!({"n": "${iteration}"})), rounds.clone());
    let mut ended = Vec::new();
    let effect = || step("effect", &[], json!({"value": 1}));
    for steps in [
        json!([each(&[])]),
        json!([effect(), each(&["effect"])]),
        json!([rounds(&[])]),
        json!([effect(), rounds(&["effect"])]),
    ] {
        let id = world.start(steps).await;
        let end = world.end(&id).await;
        assert_eq!(end["status"], "completed", "{}", end["errors"]);
        ended.push((id, end["outputs"].clone()));
    }
    assert_eq!(desk.count("effect"), 2);
    world.die().await;
    let world = World::at(folder.path(), desk.clone()).await;
    for (id, outputs) in ended {
        assert_eq!(world.end(&id).await["outputs"], outputs, "the journal folds to the same");
    }
}

#[tokio::test]
async fn a_loop_whose_outputs_are_too_large_together_fails_at_the_item_that_exceeds_the_limit() {
    let world = World::new().await;
    let item = "x".repeat(100 * 1024);
    for on_item_error in ["fail", "continue"] {
        let each = json!({"items": "${variables.items}", "concurrency": 1, "onItemError": on_item_error});
        let mut workflow =
            flow(json!([with(step("a", &[], json!({"value": item})), json!({"forEach": each}))]));
        workflow["variables"] = json!({"items": (0..50).collect::<Vec<_>>()});
        let before = world.desk.count("a");
        let id = world.start_whole(workflow, json!({})).await;
        let end = world.end(&id).await;
        let error = &end["steps"]["a"]["error"];
        assert_eq!(
            (&end["status"], &error["code"]),
            (&json!("failed"), &json!("PAYLOAD_TOO_LARGE")),
            "{error}"
        );
        assert_eq!(error["details"]["index"], 5, "{error}");
        assert_eq!(world.desk.count("a") - before, 6, "no item runs after the one that exceeds it");
    }
}

#[tokio::test]
async fn a_loop_whose_output_is_exactly_as_large_as_allowed_completes() {
    let world = World::new().await;
    let frame = r#"{"failed":[],"results":[{"text":""},{"text":""}],"succeeded":2}"#.len();
    let text = 512 * 1024 - frame;
    for (over, status) in [(0, "completed"), (1, "failed")] {
        let items = [text / 2, text - text / 2 + over].map(|length| json!({"text": "x".repeat(length)}));
        let each = json!({"items": "${variables.items}", "concurrency": 1});
        let mut workflow =
            flow(json!([with(step("a", &[], json!({"value": "${item}"})), json!({"forEach": each}))]));
        workflow["variables"] = json!({"items": items});
        let id = world.start_whole(workflow, json!({})).await;
        assert_eq!(world.end(&id).await["status"], status, "{over} bytes over");
    }
}
