//! What outlives the process, and what a client that was away can catch up on.

use orchestr8_contract::Code;
use orchestr8_kernel::End;
use orchestr8_testing::{settled, within};
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let world = World::new().await;
    world.session().await;
    world.ask("set_session_name", json!({"sessionId": "s", "name": "mine"})).await;
    world.prompt("hello").await;
    let before = world.ask("get_state", json!({"sessionId": "s"})).await;
    let messages = world.texts().await;
    let restarted = World::on(world.store.clone()).await;
    assert_eq!(restarted.ask("get_state", json!({"sessionId": "s"})).await, before);
    assert_eq!(restarted.texts().await, messages);
    let read = restarted.settle("get_state", json!({"sessionId": "s"})).await;
    assert_eq!(read.version, Some(2));
}

#[tokio::test]
async fn a_prompt_cut_off_in_the_middle_is_settled_by_the_next_start_and_reported() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let wish = |world: &World| {
        world.named("p1", "prompt", json!({"sessionId": "s", "message": "/slow 60000\nnever"}))
    };
    let kernel = world.kernel.clone();
    let first = wish(&world);
    tokio::spawn(async move { kernel.submit(first).await });
    heard.until("message_end").await;
    world.ask("steer", json!({"sessionId": "s", "message": "do not lose me"})).await;

    let restarted = World::on(world.store.clone()).await;
    let told = restarted.ask("get_startup_recovery", json!({})).await;
    assert_eq!(
        (&told["recoveredInFlightFailures"], &told["recoveredQueuedMessages"]),
        (&json!(1), &json!(1))
    );
    let cut_off = &told["recoveredInFlight"][0];
    assert_eq!((&cut_off["commandType"], &cut_off["laneKey"]), (&json!("prompt"), &json!("session:s")));
    let history = restarted.ask("get_command_history", json!({"commandId": "p1"})).await;
    assert_eq!(history["entries"][1]["recoveryReason"], "restart_inflight_marked_failed");
    let repeated = restarted.kernel.submit(wish(&restarted)).await;
    assert!(repeated.replayed);
    let fault = settled::fault(repeated);
    assert_eq!(fault.code, Code::OutcomeUnknown);
    assert_eq!(
        fault.message,
        "Command did not finish before previous shutdown and was marked failed during recovery"
    );
    restarted.prompt("go on").await;
    let texts = restarted.texts().await;
    assert!(texts.contains(&"user: do not lose me".to_owned()), "{texts:?}");
}

#[tokio::test]
async fn what_was_missed_can_be_asked_for_also_after_a_restart() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    world.prompt("one").await;
    let mut last = 0;
    let mut kept = Vec::new();
    loop {
        let event = heard.next().await;
        last = event.data["seq"].as_u64().unwrap().max(last);
        if event.data["event"]["type"] != "message_update" {
            kept.push(json!({"seq": event.data["seq"], "event": event.data["event"]}));
        }
        if event.data["event"]["type"] == "agent_end" {
            break;
        }
    }
    let restarted = World::on(world.store.clone()).await;
    let mut missed = restarted.ask("events", json!({"sessionId": "s", "afterSeq": 0})).await;
    let Value::Array(events) = missed["events"].take() else { panic!("no events") };
    // The beginning of an answer was told before there was anything of it; told again it is whole.
    let types = |events: &[Value]| {
        events.iter().map(|event| (event["seq"].clone(), event["event"]["type"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(types(&events), types(&kept));
    assert_eq!(events.last(), kept.last());
    restarted.prompt("two").await;
    let more = restarted.ask("events", json!({"sessionId": "s", "afterSeq": last})).await;
    assert!(more["events"].as_array().unwrap().iter().all(|event| event["seq"].as_u64() > Some(last)));
    assert_eq!(more["complete"], true);
}

#[tokio::test]
async fn sessions_are_created_once_limited_listed_and_deleted() {
    let world = World::new().await;
    let created = world.settle("create_session", json!({"sessionId": "s"})).await;
    assert_eq!(created.version, Some(0));
    world.prompt("keep me").await;
    let again = settled::fault(world.settle("create_session", json!({"sessionId": "s"})).await);
    assert_eq!((again.code, again.message.as_ref()), (Code::StateConflict, "Session s already exists"));
    assert_eq!(world.texts().await.len(), 2, "a duplicate touches nothing");
    for number in 1..100 {
        world.ask("create_session", json!({"sessionId": format!("n{number}")})).await;
    }
    let full = settled::fault(world.settle("create_session", json!({"sessionId": "one-more"})).await);
    assert_eq!(full.message, "Session limit reached (100 sessions)");
    assert_eq!(world.ask("list_sessions", json!({})).await["sessions"].as_array().unwrap().len(), 100);
    let deleted = world.settle("delete_session", json!({"sessionId": "s"})).await;
    assert_eq!((deleted.end, deleted.version), (End::Success, None));
    let gone = settled::fault(world.settle("get_state", json!({"sessionId": "s"})).await);
    assert_eq!((gone.code, gone.message.as_ref()), (Code::NotFound, "Session s not found"));
    world.ask("create_session", json!({"sessionId": "s"})).await;
    assert_eq!(world.texts().await, Vec::<String>::new(), "nothing of the old one is left");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_refused() {
    let world = World::new().await;
    for cwd in ["relative", "/does/not/exist", "/etc/passwd"] {
        let refused = world.settle("create_session", json!({"sessionId": "x", "cwd": cwd})).await;
        assert_eq!(refused.code(), Some(Code::InvalidArgument), "{cwd}");
    }
}

#[tokio::test]
async fn the_history_tells_of_commands_in_the_words_of_the_protocol() {
    let world = World::new().await;
    world.session().await;
    world.kernel.submit(world.named("n", "set_session_name", json!({"sessionId": "s", "name": "x"}))).await;
    within(world.kernel.submit(world.named("p", "prompt", json!({"sessionId": "s", "message": "hi"})))).await;
    let history = world.ask("get_command_history", json!({"sessionIdFilter": "s"})).await;
    let lines: Vec<_> = history["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {} {}", entry["commandType"], entry["phase"], entry["sessionVersion"]))
        .collect();
    assert_eq!(
        lines,
        [
            "\"create_session\" \"command_finished\" 0",
            "\"set_session_name\" \"command_finished\" 1",
            "\"prompt\" \"command_accepted\" null",
            "\"prompt\" \"command_finished\" 2"
        ]
    );
    let one = world.ask("get_command_history", json!({"commandId": "n", "limit": 1})).await;
    assert_eq!((&one["returned"], &one["entries"][0]["commandId"]), (&json!(1), &json!("n")));
}
