//! The coordinator alone.

use std::sync::Arc;

use futures::FutureExt;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::{Cancel, Log, Why};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::world::{Waiting, acting, bus, coordinator, id, message};
use crate::{Coordinator, Echo, STATE_CHANGED};

#[tokio::test]
async fn an_agent_answers_and_remembers() {
    let coordinator = coordinator();
    coordinator.register(id("echo"), Arc::new(Echo)).unwrap();
    let answer = coordinator.send(&id("echo"), message("hi", json!([1]))).await.unwrap();
    assert_eq!(answer, json!({"type": "hi", "payload": [1], "count": 1}));
    let state = coordinator.state(&id("echo")).unwrap();
    assert_eq!(Value::Object((*state).clone()), json!({"count": 1, "lastType": "hi"}));
}

#[tokio::test]
async fn an_unknown_agent_is_not_found() {
    let fault = coordinator().send(&id("nobody"), message("hi", Value::Null)).await.unwrap_err();
    assert_eq!((fault.code, &fault.details.unwrap()["agentId"]), (Code::NotFound, &json!("nobody")));
    assert!(coordinator().state(&id("nobody")).is_none());
    assert!(!coordinator().unregister(&id("nobody")));
}

#[tokio::test]
async fn different_agents_work_at_the_same_time() {
    let coordinator = coordinator();
    let both = Arc::new(Barrier::new(2));
    for name in ["a", "b"] {
        let both = both.clone();
        let meet = acting(move |_, _| {
            let both = both.clone();
            async move {
                both.wait().await;
                Ok(Value::Null)
            }
            .boxed()
        });
        coordinator.register(id(name), meet).unwrap();
    }
    let (to_a, to_b) = (id("a"), id("b"));
    let sends = futures::future::join(
        coordinator.send(&to_a, message("meet", Value::Null)),
        coordinator.send(&to_b, message("meet", Value::Null)),
    );
    assert!(matches!(sends.await, (Ok(_), Ok(_))), "neither ends unless both have begun");
}

#[tokio::test]
async fn a_panic_is_internal_and_the_mailbox_lives() {
    let coordinator = coordinator();
    let moody = acting(|message, around| {
        async move {
            around.state.set(message.kind.clone(), true)?;
            match message.kind.as_str() {
                "panic" => panic!("a bug"),
                "fail" => Err(Fault::invalid("no good")),
                _ => Ok(Value::Null),
            }
        }
        .boxed()
    });
    coordinator.register(id("moody"), moody).unwrap();
    let send = |kind: &str| {
        let (coordinator, message) = (coordinator.clone(), message(kind, Value::Null));
        async move { coordinator.send(&id("moody"), message).await }
    };
    let fault = send("panic").await.unwrap_err();
    assert_eq!((fault.code, &fault.details.unwrap()["reason"]), (Code::Internal, &json!("panic")));
    assert_eq!(send("fail").await.unwrap_err().code, Code::InvalidArgument);
    assert!(send("well").await.is_ok());
    let state = coordinator.state(&id("moody")).unwrap();
    assert_eq!(Value::Object((*state).clone()), json!({"well": true}), "what failed left nothing behind");
}

#[tokio::test]
async fn a_full_mailbox_refuses() {
    let coordinator = Coordinator::with_mailboxes_of(1, bus(), Arc::new(clock::Simulated::new()), Log::off());
    let agent = Waiting::new();
    let (begun, gate) = (agent.begun.clone(), agent.gate.clone());
    coordinator.register(id("slow"), Arc::new(agent)).unwrap();
    let spawn = |kind: &'static str| {
        let coordinator = coordinator.clone();
        tokio::spawn(async move { coordinator.send(&id("slow"), message(kind, Value::Null)).await })
    };
    let working = spawn("one");
    Waiting::has_begun(&begun).await;
    let waiting = spawn("two");
    tokio::task::yield_now().await;
    let fault = coordinator.send(&id("slow"), message("three", Value::Null)).await.unwrap_err();
    assert_eq!(
        (fault.code, &fault.details.unwrap()["reason"]),
        (Code::ResourceExhausted, &json!("mailbox_full"))
    );
    gate.add_permits(2);
    assert_eq!(
        (working.await.unwrap().unwrap(), waiting.await.unwrap().unwrap()),
        (json!("one"), json!("two"))
    );
}

#[tokio::test]
async fn a_cancel_withdraws_what_waits_and_outlasts_what_is_worked_on() {
    let coordinator = coordinator();
    let agent = Waiting::new();
    let (begun, gate) = (agent.begun.clone(), agent.gate.clone());
    coordinator.register(id("slow"), Arc::new(agent)).unwrap();
    let cancel = Cancel::new();
    let spawn = |kind: &'static str| {
        let (coordinator, cancel) = (coordinator.clone(), cancel.clone());
        let log = Log::off();
        tokio::spawn(async move {
            coordinator.send_until(&id("slow"), message(kind, Value::Null), cancel, &log).await
        })
    };
    let working = spawn("one");
    Waiting::has_begun(&begun).await;
    let waiting = spawn("two");
    tokio::task::yield_now().await;
    cancel.fire(Why::Client);
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::Cancelled);
    assert!(!working.is_finished(), "the agent still uses the machine");
    gate.add_permits(2);
    assert_eq!(working.await.unwrap().unwrap(), json!("one"));
    coordinator.send(&id("slow"), message("three", Value::Null)).await.unwrap();
    assert_eq!(
        coordinator.state(&id("slow")).unwrap()["last"],
        "three",
        "the withdrawn one was never worked on"
    );
    assert_eq!(gate.available_permits(), 0);
}

#[tokio::test]
async fn an_unregistered_agent_ends_its_last_message_and_frees_its_name() {
    let coordinator = coordinator();
    let agent = Waiting::new();
    let (begun, gate) = (agent.begun.clone(), agent.gate.clone());
    coordinator.register(id("slow"), Arc::new(agent)).unwrap();
    assert_eq!(coordinator.register(id("slow"), Arc::new(Echo)).unwrap_err().code, Code::InvalidArgument);
    let spawn = |kind: &'static str| {
        let coordinator = coordinator.clone();
        tokio::spawn(async move { coordinator.send(&id("slow"), message(kind, Value::Null)).await })
    };
    let working = spawn("one");
    Waiting::has_begun(&begun).await;
    let waiting = spawn("two");
    tokio::task::yield_now().await;
    assert!(coordinator.unregister(&id("slow")));
    assert!(!coordinator.unregister(&id("slow")));
    assert_eq!(coordinator.list(10), (vec![], false));
    assert_eq!(coordinator.register(id("slow"), Arc::new(Echo)).unwrap_err().code, Code::Unavailable);
    gate.add_permits(1);
    assert_eq!(working.await.unwrap().unwrap(), json!("one"));
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::NotFound);
    while coordinator.register(id("slow"), Arc::new(Echo)).is_err() {
        tokio::task::yield_now().await;
    }
    assert!(coordinator.state(&id("slow")).unwrap().is_empty(), "a new agent begins with nothing");
}

#[tokio::test]
async fn a_change_of_state_is_told_by_its_names() {
    let bus = bus();
    let coordinator = Coordinator::new(bus.clone(), Arc::new(clock::Simulated::new()), Log::off());
    coordinator.register(id("echo"), Arc::new(Echo)).unwrap();
    let still = acting(|_, _| async { Ok(Value::Null) }.boxed());
    coordinator.register(id("still"), still).unwrap();
    let mut news = bus.subscribe(&Filter::names([STATE_CHANGED])).unwrap();
    coordinator.send(&id("still"), message("hi", Value::Null)).await.unwrap();
    coordinator.send(&id("echo"), message("hi", Value::Null)).await.unwrap();
    let event = news.next().await.unwrap();
    assert_eq!(&*event.subject, "echo", "an agent that changed nothing is not told of");
    assert_eq!(*event.data, json!({"agentId": "echo", "changed": ["count", "lastType"]}));
}

#[tokio::test]
async fn the_list_is_sorted_and_cut() {
    let coordinator = coordinator();
    for name in ["c", "a", "b"] {
        coordinator.register(id(name), Arc::new(Echo)).unwrap();
    }
    assert_eq!(coordinator.list(2), (vec![id("a"), id("b")], true));
    assert_eq!(coordinator.list(3), (vec![id("a"), id("b"), id("c")], false));
}
