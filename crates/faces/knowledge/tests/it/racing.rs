//! What happens between two steps of looking at a call, of cancelling it and of running it: none of them undoes another.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use futures::future::{Either, join, select};
use orchestr8_knowledge_face::Settings;
use orchestr8_testing::within;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::artifacts::{hash, with_artifact};
use crate::long_calls::{acked, impatient, until};
use crate::pubsub::{flaky, publish, published, reply, state};
use crate::world::{World, create, envelope};

/// The statement that reads where a call has come to, the one that acknowledges it, and the ones that change it.
const READ: &str = "queued FROM a2a_request";
const ACK: &str = "INSERT INTO a2a_request";
const CHANGE: &str = "UPDATE a2a_request";

const CALL: &str = "/mcp/requests/10000000-0000-4000-8000-000000000001?tenant_id=acme";

async fn cancel(world: &World) -> Value {
    world.post(&CALL.replace('?', "/cancel?"), &json!({})).await.data()
}

/// Lets everybody else go on for a while. What is wrong shows after a part of it.
async fn a_while(world: &World) {
    for _ in 0..100 {
        world.get("/admin/queues").await;
    }
}

/// A plain read: nothing but its row says how it ended.
fn slow_read() -> Value {
    envelope(1, "test.slow_read", json!({}))
}

#[tokio::test]
async fn a_call_that_ends_while_it_is_looked_at_keeps_its_answer() {
    let world = impatient();
    acked(&world, &slow_read()).await;
    until(&world, CALL, "RUNNING").await;
    let read = world.holding.after(READ);
    let ends = async {
        read.reached().await;
        world.domain.release.notify_one();
        until(&world, CALL, "SUCCEEDED").await;
        a_while(&world).await;
        read.release();
    };
    let (seen, ()) = join(world.get(CALL), ends).await;
    for seen in [seen.data(), world.get(CALL).await.data()] {
        assert_eq!((&seen["state"], &seen["answer"]["data"]), (&json!("SUCCEEDED"), &json!({"done": true})));
    }
}

#[tokio::test]
async fn a_call_is_seen_running_from_the_moment_it_is_acknowledged() {
    let world = impatient();
    let (ack, wish) = (world.holding.after(ACK), slow_read());
    let looks = async {
        ack.reached().await;
        assert_eq!(world.get(CALL).await.data()["state"], "RUNNING");
        ack.release();
    };
    join(acked(&world, &wish), looks).await;
    world.domain.release.notify_one();
    until(&world, CALL, "SUCCEEDED").await;
}

#[tokio::test]
async fn a_call_whose_client_leaves_while_it_is_acknowledged_is_followed_to_its_end() {
    let world = impatient();
    let (ack, wish) = (world.holding.after(ACK), slow_read());
    match select(Box::pin(world.send(&wish)), Box::pin(ack.reached())).await {
        Either::Left((answer, _)) => panic!("{} {}", answer.status, answer.text),
        Either::Right(((), sent)) => drop(sent),
    }
    ack.release();
    assert_eq!(world.get(CALL).await.data()["state"], "RUNNING");
    world.domain.release.notify_one();
    until(&world, CALL, "SUCCEEDED").await;
}

#[tokio::test]
async fn a_call_is_seen_running_when_an_earlier_one_under_its_id_ends() {
    let world = impatient();
    acked(&world, &slow_read()).await;
    let end = world.holding.after(CHANGE);
    world.domain.release.notify_one();
    end.reached().await;
    acked(&world, &slow_read()).await;
    end.release();
    a_while(&world).await;
    assert_eq!(world.get(CALL).await.data()["state"], "RUNNING");
    world.domain.release.notify_one();
    until(&world, CALL, "SUCCEEDED").await;
}

#[tokio::test]
async fn what_is_cancelled_while_its_turn_comes_is_not_run() {
    let world = World::with_bus(Settings::default()).await;
    publish(&world, &published(create(1, 1, "x"))).await;
    let read = world.holding.after(READ);
    world.consume();
    read.reached().await;
    assert_eq!(cancel(&world).await["state"], "ACKED", "it is asked to stop, and has not stopped yet");
    read.release();
    let (_, reply) = reply(&world, 0).await;
    assert_eq!(
        (&reply["payload"]["status"], world.domain.runs("knowledge.create_document")),
        (&json!(409), 0)
    );
    assert_eq!(state(&world, 1).await["state"], "CANCELLED");
}

#[tokio::test]
async fn what_is_cancelled_while_its_artifact_is_fetched_is_not_run() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (asked, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = get({
        let (asked, answer) = (asked.clone(), answer.clone());
        async move || {
            asked.notify_one();
            answer.notified().await;
            ([("content-type", "text/plain")], "hello")
        }
    });
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/slow", slow)).await });
    let world =
        World::with_bus(Settings { artifact_hosts: vec!["127.0.0.1".into()], ..Settings::default() }).await;
    publish(&world, &published(with_artifact(1, 1, &format!("{base}/slow"), &hash("hello")))).await;
    world.consume();
    within(asked.notified()).await;
    cancel(&world).await;
    answer.notify_one();
    let (_, reply) = reply(&world, 0).await;
    assert_eq!(
        (&reply["payload"]["status"], world.domain.runs("knowledge.create_document")),
        (&json!(409), 0)
    );
    assert_eq!(state(&world, 1).await["state"], "CANCELLED");
}

#[tokio::test]
async fn what_is_taken_back_is_not_begun_before_that_is_on_record() {
    let world = World::with_bus(Settings::default()).await;
    publish(&world, &published(create(1, 1, "x"))).await;
    let change = world.holding.before(CHANGE);
    let begins = async {
        change.reached().await;
        world.consume();
        a_while(&world).await;
        change.release();
    };
    let (cancelled, ()) = join(cancel(&world), begins).await;
    assert_eq!(cancelled["state"], "CANCELLED");
    let (_, reply) = reply(&world, 0).await;
    assert_eq!(
        (&reply["payload"]["status"], world.domain.runs("knowledge.create_document")),
        (&json!(409), 0)
    );
}

#[tokio::test]
async fn what_succeeds_while_it_is_being_cancelled_keeps_its_answer() {
    let world = World::with_bus(Settings::default()).await;
    publish(&world, &published(create(1, 1, "x"))).await;
    let read = world.holding.after(READ);
    let ends = async {
        read.reached().await;
        world.consume();
        let (_, reply) = reply(&world, 0).await;
        read.release();
        reply
    };
    let (cancelled, reply) = join(cancel(&world), ends).await;
    assert_eq!(reply["payload"]["status"], 200);
    for seen in [cancelled, state(&world, 1).await] {
        assert_eq!((&seen["state"], &seen["answer"]), (&json!("SUCCEEDED"), &reply["payload"]["response"]));
    }
}

#[tokio::test]
async fn what_fails_while_it_is_being_cancelled_is_not_tried_again() {
    let world = World::with_bus(Settings::default()).await;
    publish(&world, &flaky(1, "once", 1)).await;
    let outcome = world.holding.before("INSERT INTO journal");
    world.consume();
    outcome.reached().await;
    assert_eq!(cancel(&world).await["state"], "RUNNING");
    outcome.release();
    let (_, reply) = reply(&world, 0).await;
    assert_eq!((&reply["payload"]["status"], world.domain.runs("once")), (&json!(503), 1));
    assert_eq!(state(&world, 1).await["state"], "FAILED");
}

#[tokio::test]
async fn what_has_succeeded_and_is_not_on_record_yet_is_not_taken_back() {
    let world = World::with_bus(Settings::default()).await;
    publish(&world, &published(create(1, 1, "x"))).await;
    let end = world.holding.before(CHANGE);
    world.consume();
    end.reached().await;
    assert_eq!(cancel(&world).await["state"], "RUNNING", "it is asked to stop, too late");
    end.release();
    let (_, reply) = reply(&world, 0).await;
    assert_eq!(reply["payload"]["status"], 200);
    assert_eq!(state(&world, 1).await["state"], "SUCCEEDED");
}
