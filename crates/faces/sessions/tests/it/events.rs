//! Several clients: who hears what, and how one that was away catches up.

use std::sync::Arc;

use orchestr8_contract::{Event, Priority};
use serde_json::{Value, json};

use crate::world::{BOTH, Client, Over, World};

/// The numbers of the next events, which must come one after the other.
async fn seqs(client: &mut Client, count: usize) -> Vec<u64> {
    let mut seqs = Vec::new();
    while seqs.len() < count {
        let heard = client.hear().await;
        if heard["type"] == "event" {
            seqs.push(heard["seq"].as_u64().unwrap());
        }
    }
    seqs
}

async fn say(client: &mut Client, count: usize) {
    let said = json!({"type": "prompt", "sessionId": "s1", "message": format!("say {count}")});
    assert_eq!(client.ask(said).await["success"], true);
}

#[tokio::test(start_paused = true)]
async fn everybody_hears_of_commands_and_only_followers_of_events() {
    let world = World::new();
    let (mut one, mut two, mut three) = (
        world.client(Over::WebSocket).await,
        world.client(Over::Stdio).await,
        world.client(Over::WebSocket).await,
    );
    one.create("s1").await;
    two.hear_of("session_created").await;
    three.hear_of("session_created").await;
    two.ask(json!({"type": "switch_session", "sessionId": "s1"})).await;
    say(&mut one, 3).await;
    assert_eq!(seqs(&mut two, 3).await, [1, 2, 3]);
    let heard = three.rest().await;
    let count =
        |kind: &str| heard.iter().filter(|text| text.contains(&format!("\"type\":\"{kind}\""))).count();
    assert_eq!((count("command_accepted"), count("command_started"), count("command_finished")), (2, 2, 2));
    assert_eq!((count("event"), count("response")), (0, 0), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_is_caught_up_with_while_more_happens() {
    for over in BOTH {
        let world = World::new();
        let mut talker = world.client(Over::WebSocket).await;
        talker.create("s1").await;
        // More than one page of the record.
        say(&mut talker, 450).await;
        let mut away = world.client(over).await;
        away.tell(json!({"type": "switch_session", "id": "w", "sessionId": "s1", "afterSeq": 7})).await;
        let speaking = tokio::spawn(async move {
            for _ in 0..20 {
                say(&mut talker, 25).await;
            }
            talker
        });
        assert_eq!(away.response().await["success"], true);
        let expected: Vec<u64> = (8..=950).collect();
        assert_eq!(seqs(&mut away, expected.len()).await, expected, "{over:?}: no gap and no double");
        let _talker = speaking.await.unwrap();
        assert!(away.rest().await.iter().all(|text| !text.contains("\"seq\"")), "{over:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_up_events_does_not_wait_for_what_is_under_way() {
    let world = World::new();
    let mut client = world.client(Over::WebSocket).await;
    client.create("s1").await;
    client.tell(json!({"type": "prompt", "id": "p", "sessionId": "s1", "message": "wait 60000"})).await;
    let mut other = world.client(Over::Stdio).await;
    other.tell(json!({"type": "switch_session", "id": "late", "sessionId": "s1"})).await;
    other.tell(json!({"type": "switch_session", "id": "at-once", "sessionId": "s1", "afterSeq": 0})).await;
    assert_eq!(other.response().await["id"], "at-once");
    assert_eq!(other.response().await["id"], "late");
}

#[tokio::test(start_paused = true)]
async fn events_lost_on_the_way_are_read_from_the_record() {
    let world = World::new();
    let mut client = world.client(Over::WebSocket).await;
    client.create("s1").await;
    client.ask(json!({"type": "switch_session", "sessionId": "s1"})).await;
    say(&mut client, 1).await;
    // More at once than the bus holds for a listener: the oldest are dropped there.
    client.tell(json!({"type": "prompt", "sessionId": "s1", "message": "say 1500"})).await;
    let expected: Vec<u64> = (2..=1501).collect();
    assert_eq!(seqs(&mut client, 1500).await, expected);
}

#[tokio::test(start_paused = true)]
async fn events_come_before_the_answer_to_what_caused_them() {
    let world = World::new();
    let mut client = world.client(Over::WebSocket).await;
    client.create("s1").await;
    client.ask(json!({"type": "switch_session", "sessionId": "s1"})).await;
    client.tell(json!({"type": "prompt", "sessionId": "s1", "message": "say 5"})).await;
    assert_eq!(seqs(&mut client, 5).await, [1, 2, 3, 4, 5]);
    assert_eq!(client.hear().await["type"], "command_finished");
    assert_eq!(client.hear().await["type"], "response");
}

#[tokio::test(start_paused = true)]
async fn one_connection_follows_several_sessions() {
    let world = World::new();
    let mut client = world.client(Over::Stdio).await;
    for session in ["s1", "s2"] {
        client.create(session).await;
        client.ask(json!({"type": "switch_session", "sessionId": session})).await;
    }
    for session in ["s1", "s2"] {
        client.tell(json!({"type": "prompt", "sessionId": session, "message": "say 1"})).await;
        assert_eq!(client.hear_of("event").await["sessionId"], session);
        client.response().await;
    }
}

fn publish(world: &World, name: &'static str, subject: &str, data: Value) {
    let event =
        Event { name, subject: subject.into(), priority: Priority::Critical, at_ms: 0, data: Arc::new(data) };
    world.kernel.bus().publish(event);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_come_and_go_by_other_ways_are_told_of() {
    let world = World::new();
    let mut client = world.client(Over::WebSocket).await;
    client.create("s1").await;
    client.ask(json!({"type": "switch_session", "sessionId": "s1"})).await;
    publish(&world, "session.created", "local", json!({"sessionId": "x", "sessionInfo": {"sessionId": "x"}}));
    let told =
        json!({"type": "session_created", "data": {"sessionId": "x", "sessionInfo": {"sessionId": "x"}}});
    assert_eq!(client.hear().await, told);
    publish(&world, "session.created", "another", json!({"sessionId": "y"}));
    publish(&world, "session.deleted", "local", json!({"sessionId": "s1"}));
    assert_eq!(client.hear().await, json!({"type": "session_deleted", "data": {"sessionId": "s1"}}));
    world.sessions.tell(&world.kernel, "s1", json!({"type": "agent_end"}));
    assert_eq!(client.rest().await, [""; 0], "nobody follows what is gone");
}

#[tokio::test(start_paused = true)]
async fn nobody_hears_of_another_tenants_session() {
    let world = World::new();
    let mut client = world.client(Over::WebSocket).await;
    client.create("s1").await;
    client.ask(json!({"type": "switch_session", "sessionId": "s1"})).await;
    let data = json!({"tenant": "another", "sessionId": "s1", "seq": 1, "event": {"type": "agent_start"}});
    publish(&world, "session.event", "s1", data);
    assert_eq!(client.rest().await, [""; 0]);
}
