//! What an execution and the server's log say of what happened.

use std::sync::Arc;

use orchestr8_contract::{Event, Priority};
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::registry::RESOURCE_UPDATED;
use orchestr8_workflows::limits;
use serde_json::{Value, json};

use crate::world::{World, flow, step, with};

/// A step that fails twice and waits between its attempts.
fn retried(delay_ms: u64) -> Value {
    let resilience =
        json!({"maxAttempts": 3, "baseDelayMs": delay_ms, "maxDelayMs": delay_ms, "jitter": "equal"});
    with(step("a", &[], json!({"failTimes": 2, "value": 1})), json!({"resilience": resilience}))
}

fn ms(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[tokio::test]
async fn times_and_durations_belong_to_their_attempt() {
    let world = World::new().await;
    let id = world.start(json!([retried(400)])).await;
    let end = world.end(&id).await;
    let own = &end["steps"]["a"];
    let times = own["attemptTimes"].as_array().unwrap();
    assert_eq!(times.iter().map(|one| one["attempt"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    let codes: Vec<&Value> = times.iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, [&json!("UNAVAILABLE"), &json!("UNAVAILABLE"), &json!(null)]);
    assert_eq!(
        (ms(&times[0]["startTime"]), ms(&times[2]["endTime"])),
        (ms(&own["startTime"]), ms(&own["endTime"]))
    );
    let waited: i64 = times.windows(2).map(|pair| ms(&pair[1]["startTime"]) - ms(&pair[0]["endTime"])).sum();
    let ran: i64 = times.iter().map(|one| one["duration"].as_i64().unwrap()).sum();
    assert_eq!(ran + waited, ms(&own["endTime"]) - ms(&own["startTime"]));
    assert!(waited > 0, "{own:#}");
    let entries = world.journal(&id).await;
    let of = |kind: &'static str| {
        entries.iter().filter(move |entry| entry["type"] == kind).map(|entry| &entry["data"])
    };
    let told: Vec<i64> =
        of("step-retry").chain(of("step-complete")).map(|data| data["duration"].as_i64().unwrap()).collect();
    let expected: Vec<i64> = times.iter().map(|one| one["duration"].as_i64().unwrap()).collect();
    assert_eq!(told, expected, "{entries:#?}");
}

#[tokio::test]
async fn the_times_of_a_step_that_is_retried_later_are_those_of_its_last_run() {
    let world = World::new().await;
    let id = world
        .start(json!([with(
            step("a", &[], json!({"failTimes": 1, "value": 1})),
            json!({"resilience": {"maxAttempts": 1}})
        )]))
        .await;
    let failed = world.end(&id).await;
    let again = world.ask("executions.retry", json!({"executionId": id})).await;
    assert_eq!(again["executionId"], id);
    let end = world.until(&id, "completed").await;
    let (before, after) = (&failed["steps"]["a"], &end["steps"]["a"]);
    assert!(ms(&after["startTime"]) >= ms(&before["endTime"]), "{before:#} {after:#}");
    assert_eq!(after["attempts"], 1);
}

#[tokio::test]
async fn every_error_says_how_often_it_was_attempted() {
    let world = World::new().await;
    let mut once = step("a", &[], json!({"fail": "INVALID_ARGUMENT"}));
    once["onError"] = json!("continue");
    let mut thrice = step("b", &[], json!({"fail": "UNAVAILABLE"}));
    thrice["onError"] = json!("continue");
    let never = step("c", &[], json!({"value": "${variables.given.missing}"}));
    let each = with(
        step("d", &[], json!({"fail": "UNAVAILABLE"})),
        json!({"forEach": {"items": [1], "onItemError": "continue"}}),
    );
    let mut workflow = flow(json!([
        once,
        thrice,
        with(never, json!({"if": "${variables.given.missing}", "onError": "continue"})),
        each
    ]));
    workflow["variables"] = json!({"given": {}});
    let id = world.start_whole(workflow, json!({})).await;
    let end = world.end(&id).await;
    let of = |step: &str| end["steps"][step]["error"]["attempts"].clone();
    assert_eq!((of("a"), of("b"), of("c")), (json!(1), json!(3), json!(0)), "{end:#}");
    assert_eq!(end["outputs"]["d"]["failed"][0]["error"]["attempts"], 3, "{end:#}");
    for error in end["errors"].as_array().unwrap() {
        assert_eq!(error["attempts"], of(error["stepId"].as_str().unwrap()));
    }
    let entries = world.journal(&id).await;
    let told = entries.iter().filter(|entry| entry["type"] == "step-failed" && entry["stepId"] == "b");
    assert_eq!(told.map(|entry| entry["data"]["error"]["attempts"].clone()).collect::<Vec<_>>(), [json!(3)]);
}

#[tokio::test]
async fn the_journal_says_why_and_hides_values() {
    let world = World::new().await;
    let mut workflow = flow(json!([
        {"id": "call", "type": "agent", "agentId": "@nobody/${variables.who}", "input": {}, "onError": "continue"},
        {"id": "pick", "agentId": "@orchestr8/transform", "input": {"value": 1, "operations": [{"filter": "x"}]}},
    ]));
    workflow["steps"][0]["agentId"] = json!("@nobody/here");
    workflow["steps"][0]["idempotencyKey"] = json!("${variables.who}");
    workflow["variables"] = json!({"who": ""});
    let id = world.start_whole(workflow, json!({"who": "ada@example.org"})).await;
    world.end(&id).await;
    let entries = world.journal(&id).await;
    let errors: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "step-failed")
        .map(|entry| &entry["data"]["error"])
        .collect();
    assert_eq!(errors[0]["message"], "there is no agent named '@nobody/here'", "{errors:#?}");
    assert!(errors[1]["message"].as_str().is_some_and(|text| text.contains("list")), "{errors:#?}");

    let mut workflow =
        flow(json!([{"id": "child", "workflow": {"id": "child-of-mine"}, "inputs": "${variables.who}"}]));
    workflow["variables"] = json!({"who": ""});
    let id = world.start_whole(workflow, json!({"who": "ada@example.org"})).await;
    world.end(&id).await;
    let text = Value::from(world.journal(&id).await).to_string();
    assert!(!text.contains("ada@example.org"), "{text}");
}

#[tokio::test]
async fn the_journal_shows_fields_that_are_allowed_by_name_inside_outputs() {
    let world = World::new().await;
    let output = json!({"orderId": "o-1", "customer": {"orderId": "o-2", "name": "Ada"}});
    let mut workflow = flow(json!([step("a", &[], json!({"value": output}))]));
    workflow["policies"] = json!({"journal": {"allow": ["orderId"]}});
    let id = world.start_whole(workflow, json!({})).await;
    world.end(&id).await;
    let entries = world.journal(&id).await;
    let entry = entries.iter().find(|entry| entry["type"] == "step-complete").unwrap();
    let shown = json!({"orderId": "o-1", "customer": {"orderId": "o-2", "name": "[REDACTED]"}});
    assert_eq!(entry["data"]["output"], shown);
}

#[tokio::test]
async fn failures_retries_and_circuits_are_logged_with_the_ids_of_the_execution() {
    let world = World::new().await;
    let failing = with(
        step("a", &[], json!({"fail": "UNAVAILABLE"})),
        json!({"resilience": {"maxAttempts": 3, "baseDelayMs": 0, "circuitBreaker": {"failureThreshold": 3}}}),
    );
    let id = world.start(json!([failing])).await;
    world.end(&id).await;
    let lines = world.log.entries();
    let said = |message: &str| -> Vec<&Value> {
        lines.iter().filter(|line| line["message"] == message || line["msg"] == message).collect()
    };
    for (message, count, level) in [
        ("a step failed and is tried again", 2, "info"),
        ("a step failed", 1, "warn"),
        ("a circuit opened", 1, "warn"),
        ("an execution failed", 1, "warn"),
    ] {
        let found = said(message);
        assert_eq!(found.len(), count, "{message}: {lines:#?}");
        for line in found {
            assert_eq!(line["level"], level);
            assert!(
                line.to_string().contains(&id) && line.to_string().contains("\"correlationId\":\"test\""),
                "{line}"
            );
        }
    }
    assert!(said("a step failed")[0].to_string().contains("told to fail"), "the reason is there");
}

#[tokio::test]
async fn executions_are_found_by_the_beginning_of_their_id_and_by_last() {
    let world = World::new().await;
    let first = world.start(json!([step("a", &[], json!({}))])).await;
    let second = world.start(json!([step("a", &[], json!({}))])).await;
    let ids = async |id: &str| -> Vec<String> {
        let list = world.ask("executions.list", json!({"id": id})).await;
        let list = list["executions"].as_array().unwrap().clone();
        list.iter().map(|one| one["executionId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&first).await, [first.as_str()]);
    assert_eq!(ids("last").await, [second.as_str()]);
    assert_eq!(ids(&second[..second.len() - 1]).await, [second.as_str()]);
    assert_eq!(ids(second.strip_prefix("exec-").unwrap()).await, [second.as_str()]);
    assert!(ids("exec-00000000").await.is_empty());
    for wrong in ["exec-1234567", "1234567", "", "%", "last1"] {
        let refused = world.refused("executions.list", json!({"id": wrong})).await;
        assert_eq!(refused.code.as_str(), "INVALID_ARGUMENT", "{wrong}");
    }
    assert_eq!(limits::ID_PREFIX_CHARACTERS, 8);
}

#[tokio::test]
async fn wf_19_6_events_that_are_dropped_are_in_the_journal_and_the_journal_does_not_feed_itself() {
    let world = World::new().await;
    let bus = world.kernel.bus();
    // It never reads what it hears.
    let deaf = bus.subscribe(&Filter::names([RESOURCE_UPDATED])).unwrap();
    let id = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
    world.desk.called("a", 1).await;
    let subject: Arc<str> = format!("execution://{id}").into();
    for _ in 0..1100 {
        bus.publish(Event {
            name: RESOURCE_UPDATED,
            subject: subject.clone(),
            priority: Priority::Normal,
            at_ms: 1,
            data: Arc::new(json!({"tenant": "local"})),
        });
    }
    let kinds = |entries: &[Value]| entries.iter().filter(|one| one["type"] == "event-dropped").count();
    let mut entries = world.journal(&id).await;
    for _ in 0..200 {
        if kinds(&entries) > 0 {
            break;
        }
        let after = entries.len();
        world
            .ask(
                "executions.get",
                json!({"executionId": id, "waitMs": 100, "until": "change", "after": after}),
            )
            .await;
        entries = world.journal(&id).await;
    }
    let entry = entries.iter().find(|one| one["type"] == "event-dropped").expect("it is in the journal");
    assert_eq!(entry["level"], "warn");
    let data = &entry["data"];
    assert_eq!(
        (&data["eventType"], &data["priority"]),
        (&json!(RESOURCE_UPDATED), &json!("normal")),
        "{data}"
    );
    assert_eq!((&data["dropPolicy"], &data["queueSize"]), (&json!("drop-oldest"), &json!(1000)), "{data}");
    assert!(data["dropRate"].is_number() && data["dropped"].is_number(), "{data}");
    world.desk.gate("a").notify_one();
    world.end(&id).await;
    assert_eq!(kinds(&world.journal(&id).await), 1, "once in a while");
    drop(deaf);
}
