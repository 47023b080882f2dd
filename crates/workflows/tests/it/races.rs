//! What is written while somebody looks: every case here was an answer that was wrong, or a message that was lost.

use std::sync::Arc;

use orchestr8_stores::sqlite::Place;
use orchestr8_workflows::Settings;
use serde_json::{Value, json};

use crate::world::{Desk, World, flow, settings, step};

#[tokio::test]
async fn what_an_execution_in_the_queue_was_told_counts_when_its_turn_comes() {
    let folder = tempfile::tempdir().unwrap();
    let desk: Arc<Desk> = Arc::default();
    let at = |running_steps, words: &'static str| {
        let place = Place::File(folder.path().join("data.sqlite3"));
        let settings = Settings { running_steps, ..settings() };
        World::prepared(place, settings, desk.clone(), move |asked| asked.after(words))
    };
    // The process dies between the acknowledgement and the moment it is heard.
    let (world, held) = at(1, "FROM wf_inbox WHERE execution").await;
    world.start(json!([step("a", &[], json!({"hold": true}))])).await;
    desk.called("a", 1).await;
    let waiting = world.start(json!([step("b", &[], json!({}))])).await;
    world.until(&waiting, "queued").await;
    world.ask("executions.cancel", json!({"executionId": waiting})).await;
    world.die().await;
    held.release();
    // Its turn comes before anybody has looked for messages.
    let (world, held) = at(10, "SELECT DISTINCT execution FROM wf_inbox").await;
    let end = world.end(&waiting).await;
    held.release();
    assert_eq!((end["status"].as_str(), desk.count("b")), (Some("cancelled"), 0), "{end:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pause_and_its_end_are_heard_in_their_order() {
    let world = World::new().await;
    let id = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
    world.desk.called("a", 1).await;
    for _ in 0..300 {
        world.ask("executions.pause", json!({"executionId": id})).await;
        world.ask("executions.resume", json!({"executionId": id})).await;
        world.until(&id, "running").await;
    }
    world.desk.gate("a").notify_one();
    assert_eq!(world.end(&id).await["status"], "completed");
    assert!(!world.kinds(&id).await.contains(&"step-lost".to_owned()), "nothing was read anew");
}

/// An action whose read is held back until something else has been done.
async fn while_looking(
    world: &World,
    sql: &'static str,
    action: (&str, Value),
    meanwhile: (&str, Value),
) -> Outcome {
    let held = world.asked.after(sql);
    let slow = world.settle(action.0, action.1);
    let quick = async {
        held.reached().await;
        world.ask(meanwhile.0, meanwhile.1).await;
        held.release();
    };
    let (settled, ()) = tokio::join!(slow, quick);
    settled.result.map(drop).map_err(|halt| format!("{halt:?}"))
}

type Outcome = Result<(), String>;

#[tokio::test]
async fn pausing_a_schedule_undoes_no_change_of_it() {
    let world = World::new().await;
    world.ask("workflows.apply", json!({"workflow": flow(json!([step("a", &[], json!({}))]))})).await;
    let at = |hour: u8| json!({"id": "nightly", "workflowId": "flow", "cron": format!("0 {hour} * * *")});
    world.ask("schedules.apply", at(3)).await;
    let (name, sql) = (json!({"id": "nightly"}), "FROM wf_schedules");
    let refused =
        while_looking(&world, sql, ("schedules.pause", name.clone()), ("schedules.apply", at(4))).await;
    assert!(refused.unwrap_err().contains("VersionMismatch"));
    assert_eq!(world.ask("schedules.show", name.clone()).await["cron"], "0 4 * * *");
    let gone =
        while_looking(&world, sql, ("schedules.pause", name.clone()), ("schedules.delete", name.clone()));
    assert!(gone.await.is_err());
    assert_eq!(world.refused("schedules.show", name).await.code.as_str(), "NOT_FOUND");
}

#[tokio::test]
async fn two_who_apply_a_workflow_at_once_do_not_break_it() {
    let world = World::new().await;
    let with = |value: u64| {
        let mut workflow = flow(json!([step("a", &[], json!({"value": value}))]));
        workflow["version"] = format!("{value}.0.0").into();
        json!({"workflow": workflow})
    };
    let second = while_looking(
        &world,
        "SELECT MAX(revision)",
        ("workflows.apply", with(1)),
        ("workflows.apply", with(2)),
    );
    assert!(second.await.unwrap_err().contains("VersionMismatch"));
    world.ask("workflows.apply", with(1)).await;
}

/// A page says how many entries there are, whether more follow and whether that is all: of one moment.
#[tokio::test]
async fn a_page_of_a_journal_is_of_one_moment() {
    let world = World::new().await;
    let id = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
    world.desk.called("a", 1).await;
    let before = world.journal(&id).await.len();
    world.desk.gate("a").notify_one();
    world.end(&id).await;
    for sql in ["SELECT COALESCE(MAX(seq)", "SELECT seq, at_ms, kind", "FROM wf_executions"] {
        let calls = world.desk.count("a");
        let id = world.start(json!([step("a", &[], json!({"hold": true}))])).await;
        world.desk.called("a", calls + 1).await;
        let held = world.asked.after(sql);
        let page = world.ask("executions.journal", json!({"executionId": id, "limit": before}));
        let end = async {
            held.reached().await;
            world.desk.gate("a").notify_one();
            world.end(&id).await;
            held.release();
        };
        let (page, ()) = tokio::join!(page, end);
        let shown = page["entries"].as_array().unwrap().len();
        let total = page["summary"]["totalEntries"].as_u64().unwrap();
        let total = usize::try_from(total).unwrap();
        assert_eq!(page["pagination"]["hasMore"], shown < total, "{sql}: {page:#}");
        assert_eq!(page["final"], total > before, "{sql}: {page:#}");
    }
}

#[tokio::test]
async fn a_retry_goes_on_although_a_late_end_was_noted_while_it_was_read() {
    let world = World::new().await;
    let id = world.start(json!([step("a", &[], json!({"hold": true, "stubborn": true}))])).await;
    world.desk.called("a", 1).await;
    world.ask("executions.cancel", json!({"executionId": id, "graceful": false})).await;
    assert_eq!(world.end(&id).await["status"], "cancelled");
    let held = world.asked.after("SELECT COALESCE(MAX(seq)");
    world.ask("executions.retry", json!({"executionId": id})).await;
    held.reached().await;
    world.desk.gate("a").notify_one();
    while !world.journal(&id).await.iter().any(|entry| entry["data"]["status"] == "late") {
        tokio::task::yield_now().await;
    }
    held.release();
    world.desk.called("a", 2).await;
    world.desk.gate("a").notify_one();
    assert_eq!(world.end(&id).await["status"], "completed");
}
