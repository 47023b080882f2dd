//! MCP-PROP-10: per agent, messages are worked on one after the other, and its state stays consistent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use orchestr8_contract::Fault;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{acting, coordinator, id, message};
use crate::{Agent, Message, Surroundings};

const AGENTS: usize = 3;
const SENDERS: usize = 4;

/// Reads, waits, and writes back: two at once would lose an update.
fn counting() -> Arc<dyn Agent> {
    let busy = Arc::new(AtomicBool::new(false));
    acting(move |message, around| count(busy.clone(), message, around))
}

fn count<'a>(
    busy: Arc<AtomicBool>,
    message: Message,
    around: Surroundings<'a>,
) -> BoxFuture<'a, Result<Value, Fault>> {
    async move {
        if busy.swap(true, Ordering::SeqCst) {
            return Err(Fault::internal("two messages at once"));
        }
        let count = around.state.get("count").and_then(Value::as_u64).unwrap_or(0);
        let mut seen = around.state.get("seen").and_then(Value::as_array).cloned().unwrap_or_default();
        for _ in 0..message.payload["yields"].as_u64().unwrap_or(0) {
            tokio::task::yield_now().await;
        }
        seen.push(json!([message.payload["sender"], message.payload["number"]]));
        around.state.set("count", count + 1)?;
        around.state.set("seen", seen)?;
        busy.store(false, Ordering::SeqCst);
        Ok(json!(count + 1))
    }
    .boxed()
}

async fn serialism(plan: Vec<(usize, usize, u64)>) -> Result<(), TestCaseError> {
    let coordinator = coordinator();
    let ids: Vec<_> = (0..AGENTS).map(|n| id(&format!("agent-{n}"))).collect();
    for agent in &ids {
        coordinator.register(agent.clone(), counting()).unwrap();
    }
    let senders = (0..SENDERS).map(|sender| {
        let (coordinator, ids, plan) = (coordinator.clone(), ids.clone(), plan.clone());
        tokio::spawn(async move {
            let own = plan.iter().enumerate().filter(|(_, (_, from, _))| *from == sender);
            let sends = own.map(|(number, (agent, _, yields))| {
                let payload = json!({"sender": sender, "number": number, "yields": yields});
                coordinator.send(&ids[*agent], message("add", payload))
            });
            join_all(sends).await
        })
    });
    let answers: Vec<_> = join_all(senders).await.into_iter().flat_map(Result::unwrap).collect();
    prop_assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    for (number, agent) in ids.iter().enumerate() {
        let expected = plan.iter().filter(|(to, _, _)| *to == number).count();
        let state = coordinator.state(agent).unwrap();
        prop_assert_eq!(state.get("count").and_then(Value::as_u64).unwrap_or(0), expected as u64);
        let seen = state.get("seen").and_then(Value::as_array).cloned().unwrap_or_default();
        for sender in 0..SENDERS {
            let order: Vec<u64> =
                seen.iter().filter(|pair| pair[0] == sender).filter_map(|pair| pair[1].as_u64()).collect();
            prop_assert!(order.is_sorted(), "a sender's messages arrive in its order: {order:?}");
        }
    }
    Ok(())
}

#[test]
fn prop_10_agent_serialism() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1000));
    let plans = prop::collection::vec((0..AGENTS, 0..SENDERS, 0u64..4), 0..40);
    runner
        .run(&plans, |plan| runtime.block_on(async { tokio::spawn(serialism(plan)).await.unwrap() }))
        .unwrap();
}
