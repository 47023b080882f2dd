//! `aacp.inbox` and `aacp.ack`: what has come for an agent, and what it says it has.

use std::time::Duration;

use orchestr8_contract::id::AgentId;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::{Action, Args, Context, Halt, Reply, schema};
use serde_json::{Value, json};

use super::{agent_id, agent_schema, answer, number, object, reading, recording, wait_schema, working};
use crate::aacp::audit::Actor;
use crate::aacp::desk::Ack;
use crate::aacp::record::Address;
use crate::aacp::{Hub, rows, topic};
use crate::limits;
use crate::tables;

pub fn read(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "agentId": agent_schema(),
            "afterSeq": {"type": "integer", "minimum": 0, "description": "The last inboxSeq seen; without it, what was not acknowledged."},
            "limit": {"type": "integer", "minimum": 1, "maximum": limits::INBOX_PAGE},
            "waitMs": wait_schema()
        }),
        &["agentId"],
    );
    let about = "Reads the messages that have come for an agent, in order. What was read stays until it is acknowledged.";
    let action = working(("aacp.inbox", about), input, reading(), hub, |hub, args, context| async move {
        follow(&hub, &args, &context).await
    })?;
    Ok(action.titled("Read an inbox"))
}

async fn follow(hub: &Hub, args: &Args, context: &Context) -> Result<Reply, Halt> {
    let address = own(hub, args, context).await?;
    let limit =
        args.get("limit").and_then(Value::as_i64).unwrap_or(limits::INBOX_PAGE).clamp(1, limits::INBOX_PAGE);
    let wait_ms = number(args, "waitMs").unwrap_or(0).min(limits::WAIT_MS);
    let store = &context.kernel.ports().store;
    let mut watch = store.watch(&topic(&address));
    let over = context.kernel.ports().clock.sleep(Duration::from_millis(wait_ms));
    tokio::pin!(over);
    loop {
        watch.borrow_and_update();
        let page = match number(args, "afterSeq") {
            Some(after) => tables::inbox_after(&address, after, hub.now_ms(), limit),
            None => {
                let (_, floor) = hub.bounds(&address).await?;
                tables::inbox_waiting(&address, floor, hub.now_ms(), limit)
            }
        };
        let page = hub.query(page).await?;
        if !page.is_empty() || wait_ms == 0 {
            let found = page.iter().map(rows::item).collect::<Result<Vec<_>, _>>().map_err(store_fault)?;
            // On record before it is answered: an attempt that was read is an attempt.
            hub.count_read(&address, &found).await?;
            return told(args, found);
        }
        tokio::select! {
            changed = watch.changed() => {
                if changed.is_err() {
                    return told(args, Vec::new());
                }
            }
            () = &mut over => return told(args, Vec::new()),
            () = context.cancel.fired() => return told(args, Vec::new()),
        }
    }
}

fn told(args: &Args, items: Vec<rows::Item>) -> Result<Reply, Halt> {
    let last = items.last().map_or(number(args, "afterSeq").unwrap_or(0), |item| item.position);
    let messages: Vec<Value> =
        items.into_iter().map(|item| json!({"inboxSeq": item.position, "envelope": item.envelope})).collect();
    answer(json!({"messages": messages, "lastSeq": last}))
}

pub fn acknowledge(hub: &Hub) -> Result<Action, schema::Error> {
    let input = object(
        json!({
            "agentId": agent_schema(), "sourceAgentId": agent_schema(),
            "seq": {"type": "integer", "minimum": 0, "description": "With sourceAgentId: everything of that agent up to this number."},
            "inboxSeq": {"type": "integer", "minimum": 0, "description": "Instead: everything in the inbox up to this place."}
        }),
        &["agentId"],
    );
    let about = "Says that an agent has its messages up to a number; they are not sent to it again.";
    let action = working(("aacp.ack", about), input, recording(), hub, |hub, args, context| async move {
        let address = own(&hub, &args, &context).await?;
        let what = match (args.get("sourceAgentId"), number(&args, "seq"), number(&args, "inboxSeq")) {
            (Some(_), Some(seq), None) => Ack::Of { source: agent_id(&args, "sourceAgentId")?, seq },
            (None, None, Some(position)) => Ack::UpTo(position),
            (_, _, _) => {
                return Err(Fault::invalid("/inboxSeq: give sourceAgentId and seq, or inboxSeq")
                    .with("path", "/inboxSeq")
                    .into());
            }
        };
        let waiting = hub.acknowledge(&address, Actor::of(&context), what).await?;
        answer(json!({"agentId": address.agent, "waiting": waiting}))
    })?;
    Ok(action.titled("Acknowledge messages"))
}

/// The agent an argument names, if this caller may act for it. That somebody does is a sign of its life.
pub(super) async fn own(hub: &Hub, args: &Args, context: &Context) -> Result<Address, Fault> {
    let agent: AgentId = agent_id(args, "agentId")?;
    hub.ready().await?;
    let address = Address { tenant: context.principal.tenant.clone(), agent };
    let Some(registered) = hub.agents().get(&address) else {
        return Err(Fault::new(Code::NotFound, format!("no agent '{}' has registered", address.agent))
            .with("agentId", address.agent.as_str()));
    };
    registered.check(&address.agent, &context.principal)?;
    hub.agents().saw(&address, None, hub.now_ms());
    Ok(address)
}
