//! Events are told in the order of their numbers, whatever is being made durable meanwhile.

use std::sync::Arc;

use orchestr8_contract::Priority;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::Kernel;
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_models::Thinking;
use orchestr8_testing::{Parts, memory, within};
use serde_json::json;

use super::Draft;
use crate::news::{EVENT, News};
use crate::record::{self, Header, Stats};
use crate::session::Session;
use crate::tables;

async fn session() -> (Kernel, Arc<Session>) {
    let kernel = Parts::on(Arc::new(memory(&[tables::MIGRATIONS]))).kernel();
    let header = Header {
        owner: None,
        shared: Default::default(),
        name: None,
        cwd: "/".into(),
        provider: "offline".into(),
        model: "echo".into(),
        thinking: Thinking::Off,
        auto_compaction: true,
        auto_retry: true,
        system: None,
        tools: None,
        parent: None,
        file: None,
        leaf: None,
        next: 0,
        messages: 0,
        stats: Stats::default(),
    };
    let session = Arc::new(Session::new(Tenant::local(), "s".into(), 0, 0, header));
    let mut batch = Batch::new();
    batch.then(tables::session_insert(session.whose(), 0, record::text(&session.header())));
    kernel.ports().store.commit(batch).await.unwrap();
    session.reserve(&kernel).await.unwrap();
    (kernel, session)
}

#[tokio::test]
async fn what_is_told_while_something_becomes_durable_is_heard_after_it() {
    let (kernel, session) = session().await;
    let mut heard = kernel.bus().subscribe(&Filter::names([EVENT])).unwrap();
    let mut draft = Draft::new(&session, 0);
    draft.tell(News::TurnStart);
    let (batch, numbers) = draft.finish(&kernel);
    session.whisper(&kernel, json!({"type": "tool_execution_update"}), Priority::Normal);
    kernel.ports().store.commit(batch).await.unwrap();
    draft.made(&kernel, numbers);
    let mut told = Vec::new();
    for _ in 0..2 {
        let event = within(heard.next()).await.unwrap();
        told.push((
            event.data["seq"].as_u64().unwrap(),
            event.data["event"]["type"].as_str().unwrap().to_owned(),
        ));
    }
    assert_eq!(told, [(1, "turn_start".to_owned()), (2, "tool_execution_update".to_owned())]);
}

#[tokio::test]
async fn a_change_that_is_given_up_lets_others_speak_again() {
    let (kernel, session) = session().await;
    let mut draft = Draft::new(&session, 0);
    draft.tell(News::TurnStart);
    let reply = draft.into_reply(json!({}), &kernel);
    assert_eq!(session.whisper(&kernel, json!({"type": "x"}), Priority::Normal), None);
    drop(reply);
    assert!(session.whisper(&kernel, json!({"type": "y"}), Priority::Normal).is_some());
}

#[tokio::test]
async fn of_the_updates_of_a_message_the_last_is_kept_in_memory() {
    let (kernel, session) = session().await;
    for kind in ["message_start", "message_update", "message_update", "message_update", "message_end"] {
        session.whisper(&kernel, json!({"type": kind}), Priority::Normal);
    }
    let kept: Vec<u64> = session.recent_after(0).1.into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(kept, [1, 4, 5]);
}
