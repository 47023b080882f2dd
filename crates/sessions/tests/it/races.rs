//! What happens at the same time as something else: each test stops one side where it matters.

use orchestr8_kernel::Settled;
use orchestr8_testing::{settled, submission, until, within};
use serde_json::{Value, json};

use crate::world::{Heard, World};

/// Reads the tree of a session.
const TREE: &str = "FROM session_entry";

/// Reads the events of a session.
const EVENTS: &str = "SELECT seq, record FROM session_event";

/// Is in a commit that adds to the tree.
const ADDS: &str = "INSERT INTO session_entry";

/// Is in the commit with the last words of a turn.
const LAST_WORDS: &str = "DELETE FROM session_event";

/// Is in the commit of a message that waits.
const QUEUES: &str = "INSERT INTO session_queue";

/// Looks at a session, and lets a whole turn happen between the reading of its tree and the answer.
async fn looked_at(action: &str, args: Value) -> (World, Settled) {
    let (world, holding) = World::holding().await;
    world.session().await;
    world.prompt("one").await;
    let held = holding.after(TREE);
    let (kernel, wish) = (world.kernel.clone(), submission(action, args));
    let looking = tokio::spawn(async move { kernel.submit(wish).await });
    held.reached().await;
    world.prompt("two").await;
    held.release();
    (world, within(looking).await.unwrap())
}

#[tokio::test]
async fn a_look_at_a_session_in_the_middle_of_a_turn_shows_what_was_there_before() {
    let (world, looked) = looked_at("get_session", json!({"sessionId": "s"})).await;
    let state = settled::value(looked);
    assert_eq!((&state["messageCount"], &state["lastText"]), (&json!(2), &json!("one")), "{state}");
    let wish = submission("get_session", json!({"sessionId": "s"}));
    assert_eq!(settled::value(world.kernel.submit(wish).await)["messageCount"], 4);
}

#[tokio::test]
async fn a_conversation_that_grows_while_it_is_read_is_not_shown_empty() {
    let (_world, looked) = looked_at("session", json!({"uri": "session://s", "id": "s"})).await;
    let told = settled::wire(looked);
    let text = told["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("## User\n\none") && !text.contains("two"), "{text}");
}

#[tokio::test]
async fn every_view_of_the_tree_has_its_leaf() {
    for view in ["get_messages", "get_tree", "get_fork_messages", "get_last_assistant_text"] {
        let args = json!({"sessionId": "s"});
        // Without its lane: nothing but the order in which it reads keeps it right.
        let (_world, looked) = looked_at(&format!("session.{view}"), args).await;
        let told = settled::value(looked).to_string();
        assert!(told.contains("one"), "{view}: {told}");
    }
}

/// The numbers and types of what is told up to an event, without what is not kept.
async fn kept_until(heard: &mut Heard, kind: &str) -> Vec<(u64, String)> {
    let mut kept = Vec::new();
    loop {
        let event = heard.next().await;
        let found = event.data["event"]["type"].as_str().unwrap().to_owned();
        let is_last = found == kind;
        if found != "message_update" {
            kept.push((event.data["seq"].as_u64().unwrap(), found));
        }
        if is_last {
            return kept;
        }
    }
}

/// That a page has all that was told up to its end, in order and once, whether its end is the last event or `lastSeq`.
fn assert_whole(page: &Value, told: &[(u64, String)]) {
    let events: Vec<(u64, String)> = page["events"].as_array().unwrap().iter().map(numbered).collect();
    assert!(events.is_sorted_by(|a, b| a.0 < b.0), "{events:?}");
    let last = page["lastSeq"].as_u64().unwrap();
    let end = events.last().map_or(last, |(seq, _)| last.max(*seq));
    let expected: Vec<_> = told.iter().filter(|(seq, _)| *seq <= end).cloned().collect();
    let kept: Vec<_> = events.into_iter().filter(|(_, kind)| kind != "message_update").collect();
    assert_eq!(kept, expected, "up to {end}");
}

fn numbered(event: &Value) -> (u64, String) {
    (event["seq"].as_u64().unwrap(), event["event"]["type"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn what_is_only_in_memory_is_not_lost_when_the_turn_ends_while_events_are_read() {
    let (world, holding) = World::holding().await;
    world.session().await;
    let mut heard = world.listen();
    world.prompt("one").await;
    let mut told = kept_until(&mut heard, "agent_end").await;
    let answered = holding.before(ADDS);
    let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "two"}));
    answered.reached().await;
    let kept = holding.before(ADDS);
    answered.release();
    // The beginning of the answer has been told, and its row is not written.
    kept.reached().await;
    let held = holding.after(TREE);
    let page = world.spawn("events", json!({"sessionId": "s", "afterSeq": 0}));
    held.reached().await;
    kept.release();
    within(prompt).await.unwrap();
    told.extend(kept_until(&mut heard, "agent_end").await);
    held.release();
    let page = settled::value(within(page).await.unwrap());
    assert_eq!(page["complete"], true);
    assert_whole(&page, &told);
    let types: Vec<_> = page["events"].as_array().unwrap().iter().map(|event| numbered(event).1).collect();
    assert_eq!(types.iter().filter(|kind| *kind == "message_start").count(), 4, "{types:?}");
}

#[tokio::test]
async fn events_that_become_durable_before_earlier_ones_make_no_gap() {
    let (world, holding) = World::holding().await;
    world.session().await;
    let mut heard = world.listen();
    world.prompt("one").await;
    let mut told = kept_until(&mut heard, "agent_end").await;
    let held = holding.before(EVENTS);
    let page = world.spawn("events", json!({"sessionId": "s", "afterSeq": 0}));
    held.reached().await;
    let said = holding.before(ADDS);
    let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "/fail UNAVAILABLE 1\ntwo"}));
    said.reached().await;
    let kept = holding.before(ADDS);
    said.release();
    // The end of the attempts is on record; the beginning of the answer, which was told before it, is not.
    kept.reached().await;
    held.release();
    let page = settled::value(within(page).await.unwrap());
    kept.release();
    within(prompt).await.unwrap();
    told.extend(kept_until(&mut heard, "agent_end").await);
    assert!(told.iter().any(|(_, kind)| kind == "auto_retry_end"), "{told:?}");
    assert_whole(&page, &told);
}

#[tokio::test]
async fn what_is_not_durable_yet_does_not_count_as_told() {
    let (world, holding) = World::holding().await;
    world.session().await;
    let mut heard = world.listen();
    let said = holding.before(ADDS);
    let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "one"}));
    said.reached().await;
    let page = world.ask("events", json!({"sessionId": "s", "afterSeq": 0})).await;
    said.release();
    within(prompt).await.unwrap();
    let told = kept_until(&mut heard, "agent_end").await;
    assert_whole(&page, &told);
}

#[tokio::test]
async fn pages_of_events_have_what_is_in_memory_between_them() {
    let (world, holding) = World::holding().await;
    world.session().await;
    let mut heard = world.listen();
    let said = holding.before(ADDS);
    let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "/fail UNAVAILABLE 1\none"}));
    said.reached().await;
    let kept = holding.before(ADDS);
    said.release();
    kept.reached().await;
    let mut pages = json!({"events": [], "lastSeq": 0});
    let mut after = 0;
    loop {
        let mut page = world.ask("events", json!({"sessionId": "s", "afterSeq": after, "limit": 1})).await;
        let Value::Array(events) = page["events"].take() else { panic!("no events") };
        after = events.last().map_or(after, |event| numbered(event).0);
        pages["events"].as_array_mut().unwrap().extend(events);
        if page["complete"] == true {
            pages["lastSeq"] = page["lastSeq"].clone();
            break;
        }
    }
    kept.release();
    within(prompt).await.unwrap();
    assert_whole(&pages, &kept_until(&mut heard, "agent_end").await);
}

/// A prompt to be put between the answers of the turn under way.
fn steering(message: &str, behavior: &str) -> Value {
    json!({"sessionId": "s", "message": message, "streamingBehavior": behavior})
}

#[tokio::test]
async fn a_prompt_that_is_queued_while_the_turn_ends_is_answered() {
    for behavior in ["steer", "followUp"] {
        let (world, holding) = World::holding().await;
        world.session().await;
        let mut heard = world.listen();
        let last = holding.before(LAST_WORDS);
        let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "one"}));
        last.reached().await;
        assert_eq!(within(world.ask("prompt", steering("two", behavior))).await, json!({"queued": true}));
        last.release();
        assert_eq!(settled::value(within(prompt).await.unwrap())["text"], "two");
        let said = ["user: one", "assistant: one", "user: two", "assistant: two"];
        assert_eq!(world.texts().await, said, "{behavior}");
        heard.until("agent_end").await;
        assert_eq!(heard.next().await.data["event"]["type"], "agent_start");
        let end = heard.until("agent_end").await;
        assert_eq!(
            end["messages"].as_array().unwrap().len(),
            2,
            "each end tells of what came since its start"
        );
    }
}

#[tokio::test]
async fn a_prompt_that_is_being_queued_while_the_turn_ends_is_answered() {
    let (world, holding) = World::holding().await;
    world.session().await;
    let mut heard = world.listen();
    let last = holding.before(LAST_WORDS);
    let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "one"}));
    last.reached().await;
    let queueing = holding.before(QUEUES);
    let queued = world.spawn("prompt", steering("two", "followUp"));
    queueing.reached().await;
    last.release();
    heard.until("agent_end").await;
    queueing.release();
    assert_eq!(settled::value(within(queued).await.unwrap()), json!({"queued": true}));
    within(prompt).await.unwrap();
    assert_eq!(world.texts().await.last().unwrap(), "assistant: two");
}

#[tokio::test]
async fn a_prompt_that_comes_while_a_turn_that_failed_ends_takes_its_own_turn() {
    let (world, holding) = World::holding().await;
    world.session().await;
    let last = holding.before(LAST_WORDS);
    let failed = world.spawn("prompt", json!({"sessionId": "s", "message": "/fail INTERNAL"}));
    last.reached().await;
    let prompt = world.spawn("prompt", steering("two", "steer"));
    // The one that failed, this one, and this one in the lane.
    until("an answer or a place in the lane", || prompt.is_finished() || world.kernel.in_flight() == 3).await;
    last.release();
    assert_eq!(settled::value(within(prompt).await.unwrap())["text"], "two");
    assert_eq!(settled::value(within(failed).await.unwrap())["stopReason"], "error");
}

#[tokio::test]
async fn a_turn_that_was_stopped_does_not_wait_for_what_is_being_queued() {
    let (world, holding) = World::holding().await;
    world.session().await;
    let mut heard = world.listen();
    let prompt = world.spawn("prompt", json!({"sessionId": "s", "message": "/slow 60000\nnever"}));
    heard.until("message_end").await;
    let queueing = holding.before(QUEUES);
    let queued = world.spawn("prompt", steering("two", "steer"));
    queueing.reached().await;
    // Beside its lane, since the prompt that is being queued holds it.
    let abort = submission("session.abort", json!({"sessionId": "s"}));
    settled::value(within(world.kernel.submit(abort)).await);
    queueing.release();
    assert_eq!(settled::value(within(prompt).await.unwrap())["stopReason"], "aborted");
    assert_eq!(settled::value(within(queued).await.unwrap()), json!({"queued": true}));
    world.prompt("three").await;
    assert_eq!(world.texts().await.iter().filter(|text| text.ends_with("two")).count(), 1, "it is not lost");
}
