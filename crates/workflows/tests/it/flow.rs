//! Dependencies, outcomes, skips, fallbacks and compensation.

use serde_json::json;

use crate::world::{World, flow, step, with};

#[tokio::test]
async fn steps_run_in_order_and_see_what_came_before() {
    let world = World::new().await;
    let end = world
        .run(json!([
            step("a", &[], json!({"value": {"n": 7, "list": [1, 2]}})),
            step("b", &["a"], json!({"value": "${steps.a.output.n}"})),
            step("c", &["b"], json!({"value": "n is ${steps.a.output.n} and ${steps.b.output}"})),
        ]))
        .await;
    assert_eq!(end["status"], "completed");
    assert_eq!(end["outputs"]["b"], 7, "one expression keeps its type");
    assert_eq!(end["outputs"]["c"], "n is 7 and 7");
    let id = end["executionId"].as_str().unwrap();
    let kinds = world.kinds(id).await;
    let expected = [
        "execution-start",
        "step-start",
        "step-complete",
        "step-start",
        "step-complete",
        "step-start",
        "step-complete",
        "execution-complete",
    ];
    assert_eq!(kinds, expected);
    let keys: Vec<String> = world.desk.calls.lock().iter().map(|(_, key)| key.clone()).collect();
    assert_eq!(keys, [format!("{id}:a"), format!("{id}:b"), format!("{id}:c")]);
}

#[tokio::test]
async fn a_failed_step_fails_the_rest_and_says_why() {
    let world = World::new().await;
    let end = world
        .run(json!([
            step("a", &[], json!({"fail": "AGENT_FAILED"})),
            step("b", &["a"], json!({})),
            step("c", &["b"], json!({})),
        ]))
        .await;
    assert_eq!(end["status"], "failed");
    assert_eq!(end["steps"]["b"]["skipReason"], "Dependency 'a' failed");
    assert_eq!(end["steps"]["c"]["skipReason"], "Dependency 'b' failed");
    assert_eq!(end["errors"][0]["stepId"], "a");
    assert_eq!(world.desk.count("a"), 1, "a failure of its own is not retried");
}

#[tokio::test]
async fn wf_19_1_what_may_help_is_retried_and_the_rest_is_not() {
    let world = World::new().await;
    let end = world.run(json!([step("a", &[], json!({"failTimes": 2}))])).await;
    assert_eq!(
        (end["status"].as_str(), end["steps"]["a"]["attempts"].as_u64()),
        (Some("completed"), Some(3))
    );
    let kinds = world.kinds(end["executionId"].as_str().unwrap()).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "step-retry").count(), 2, "{kinds:?}");
    let end = world.run(json!([step("b", &[], json!({"failTimes": 3}))])).await;
    assert_eq!(end["status"], "failed", "three attempts are all there are");
    let end = world.run(json!([step("c", &[], json!({"fail": "INVALID_ARGUMENT"}))])).await;
    assert_eq!(end["steps"]["c"]["attempts"], 1);
}

#[tokio::test]
async fn continue_lets_those_go_on_who_can() {
    let world = World::new().await;
    let end = world
        .run(json!([
            with(step("a", &[], json!({"fail": "AGENT_FAILED"})), json!({"onError": "continue"})),
            step("needs", &["a"], json!({"value": "${steps.a.output.x}"})),
            step("defaults", &["a"], json!({"value": "${steps.a.output.x ?? \"none\"}"})),
            step("plain", &["a"], json!({"value": 1})),
        ]))
        .await;
    assert_eq!(end["status"], "completed");
    assert_eq!(end["steps"]["needs"]["status"], "skipped");
    assert_eq!(end["steps"]["needs"]["skipReason"], "Needs the output of 'a', which has none");
    assert_eq!(end["outputs"]["defaults"], "none");
    assert_eq!(end["outputs"]["plain"], 1);
    assert_eq!(end["errors"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_fallback_stands_in_for_what_failed_and_only_then() {
    let world = World::new().await;
    let steps = |fails: bool| {
        let input = if fails { json!({"fail": "AGENT_FAILED"}) } else { json!({"value": "own"}) };
        json!([
            with(step("a", &[], input), json!({"onError": "fallback", "fallbackStepId": "plan-b"})),
            step("plan-b", &[], json!({"value": "fallback"})),
            step("after", &["a"], json!({"value": "${steps.a.output}"})),
        ])
    };
    let end = world.run(steps(true)).await;
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(end["steps"]["plan-b"]["aliasFor"], "a");
    assert_eq!(end["outputs"]["after"], "fallback");
    let end = world.run(steps(false)).await;
    assert_eq!(end["outputs"]["after"], "own");
    assert_eq!(end["steps"]["plan-b"]["status"], "skipped");
}

#[tokio::test]
async fn conditions_and_switches_choose_what_runs() {
    let world = World::new().await;
    let end = world
        .run(json!([
            step("a", &[], json!({"value": {"kind": "big", "n": 3}})),
            with(step("yes", &["a"], json!({"value": 1})), json!({"if": "${steps.a.output.n} > 2"})),
            with(step("no", &["a"], json!({"value": 1})), json!({"unless": "${steps.a.output.kind} == \"big\""})),
            {"id": "choose", "type": "switch", "dependsOn": ["a"],
             "switch": {"on": "${steps.a.output.kind}", "cases": [{"value": "big", "steps": ["big"]},
                                                                  {"value": "small", "steps": ["small"]}]}},
            step("big", &[], json!({"value": "B"})),
            step("small", &[], json!({"value": "S"})),
            step("join", &["big", "small"], json!({"value": "${steps.big.output ?? \"\"}${steps.small.output ?? \"\"}"})),
        ]))
        .await;
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(end["steps"]["yes"]["status"], "completed");
    assert_eq!(end["steps"]["no"]["skipReason"], "Condition 'unless' is true");
    assert_eq!(end["steps"]["small"]["skipReason"], "Not chosen by 'choose'");
    assert_eq!(end["outputs"]["join"], "B");
    assert_eq!(end["outputs"]["choose"]["chosen"], "big");
}

#[tokio::test]
async fn what_was_done_is_undone_in_reverse_when_it_fails_later() {
    let world = World::new().await;
    let undo = |id: &str| json!({"compensate": {"agentId": "@test/agent", "input": {"value": id, "was": "${output}"}}});
    let end = world
        .run(json!([
            with(step("a", &[], json!({"value": 1})), undo("a")),
            with(step("b", &["a"], json!({"value": 2})), undo("b")),
            step("c", &["b"], json!({"value": 3})),
            step("d", &["c"], json!({"fail": "AGENT_FAILED"})),
        ]))
        .await;
    assert_eq!(end["status"], "compensated");
    assert_eq!(
        (&end["steps"]["a"]["compensated"], &end["steps"]["b"]["compensated"]),
        (&json!(true), &json!(true))
    );
    let calls: Vec<String> = world.desk.calls.lock().iter().map(|(step, _)| step.clone()).collect();
    assert_eq!(calls, ["a", "b", "c", "d", "b", "a"]);
    let keys = world.desk.calls.lock()[4].1.clone();
    assert!(keys.ends_with(":b:compensate"), "{keys}");
}

#[tokio::test]
async fn an_output_that_is_too_large_is_refused_clearly() {
    let world = World::new().await;
    let end = world.run(json!([step("a", &[], json!({"value": "x".repeat(600_000)}))])).await;
    assert_eq!(end["status"], "failed");
    assert_eq!(end["steps"]["a"]["error"]["code"], "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn a_wrong_definition_is_refused_with_everything_that_is_wrong() {
    let world = World::new().await;
    let workflow = flow(json!([step("a", &["nobody"], json!({"value": "${steps.ghost.output.x}"}))]));
    let fault = world.refused("workflows.execute", json!({"workflow": workflow})).await;
    assert_eq!(fault.code.as_str(), "INVALID_WORKFLOW");
    let problems = fault.details.unwrap()["problems"].as_array().unwrap().len();
    assert!(problems >= 2, "{problems}");
}

/// `lastSequence` is what clients wait behind and send as a tag: one that is ahead of the state would hide a change from them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_state_has_the_number_of_its_own_last_entry() {
    let world = World::new().await;
    let names: Vec<String> = (0..100).map(|at| format!("s{at}")).collect();
    let before = |at: usize| at.checked_sub(1).map(|before| names[before].as_str());
    let steps = names.iter().enumerate().map(|(at, id)| step(id, before(at).as_slice(), json!({})));
    let steps: serde_json::Value = steps.collect();
    let mut looks_while_it_ran = 0;
    while looks_while_it_ran < 50 {
        let id = world.start(steps.clone()).await;
        loop {
            let seen = world.ask("executions.get", json!({"executionId": id, "until": "change"})).await;
            let then = json!({"executionId": id, "at": seen["lastSequence"]});
            let then = world.ask("executions.get", then).await;
            assert!(seen["status"] == then["status"] && seen["steps"] == then["steps"], "{seen} {then}");
            if seen["status"] == "completed" {
                break;
            }
            looks_while_it_ran += 1;
        }
    }
}
