//! The feeds that event triggers follow: journals of executions, changes of documents, inboxes of agents. What other domains have is
//! read through their actions, with the rights that the author of the trigger has now.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault, Output, topic};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Args, Halt, Principal, Submission};
use serde_json::{Map, Value, json};

use super::spec::{EventOrigin, MESSAGE_RECEIVED};
use super::{Trigger, tables};
use crate::actions::feed;
use crate::runtime::{FEED, Hub, fault, tables as runtime_tables};

/// Events read at once.
const PAGE: i64 = 100;

/// The actions of other domains that give their events.
const CHANGES: &str = "knowledge.changes";
const INBOX: &str = "aacp.inbox";
const ACKNOWLEDGE: &str = "aacp.ack";

/// What comes next in a feed.
pub struct FeedPage {
    /// Each with its place.
    pub events: Vec<(i64, Value)>,
    /// There may be more.
    pub is_full: bool,
    /// If it is not full, everything up to this place was looked at.
    pub end: i64,
}

/// The topic of the store that wakes those who follow.
pub fn topic_of(tenant: &Tenant, origin: &EventOrigin) -> String {
    match origin {
        EventOrigin::Journals => FEED.to_owned(),
        EventOrigin::Documents => topic::DOCUMENTS.to_owned(),
        EventOrigin::Inbox(agent) => topic::inbox(tenant, agent),
    }
}

/// Where a trigger that is stored now begins: at the end of a feed; with an inbox at what was not acknowledged. Fails if its author
/// may not read it.
pub async fn beginning(hub: &Hub, principal: &Arc<Principal>, origin: &EventOrigin) -> Result<i64, Fault> {
    match origin {
        EventOrigin::Journals => {
            let rows = hub.ports().store.query(runtime_tables::feed_end()).await.map_err(fault)?;
            rows.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)
        }
        EventOrigin::Documents => {
            let end = ask(hub, principal, CHANGES, json!({})).await?;
            Ok(end["last"].as_i64().unwrap_or(0))
        }
        EventOrigin::Inbox(agent) => {
            ask(hub, principal, INBOX, json!({"agentId": agent, "limit": 1})).await?;
            Ok(0)
        }
    }
}

pub async fn read(hub: &Hub, trigger: &Trigger, after: i64) -> Result<FeedPage, Fault> {
    match trigger.spec.origin() {
        EventOrigin::Journals => journals(hub, trigger, after).await,
        EventOrigin::Documents => {
            let args = json!({"after": after, "limit": PAGE});
            let page = ask(hub, &reader(hub, trigger)?, CHANGES, args).await?;
            Ok(page_of(page["changes"].as_array(), after, document_event))
        }
        EventOrigin::Inbox(agent) => {
            let mut args = json!({"agentId": agent, "limit": PAGE});
            // At the beginning it takes what was not acknowledged.
            if after > 0 {
                args["afterSeq"] = after.into();
            }
            let page = ask(hub, &reader(hub, trigger)?, INBOX, args).await?;
            Ok(page_of(page["messages"].as_array(), after, message_event))
        }
    }
}

/// Tells the domain of a feed that everything up to a place was taken, where it wants to know.
pub async fn acknowledge(hub: &Hub, trigger: &Trigger, place: i64) -> Result<(), Fault> {
    let wants = trigger.spec.event.as_ref().is_some_and(super::spec::EventSpec::acknowledges);
    let EventOrigin::Inbox(agent) = trigger.spec.origin() else { return Ok(()) };
    if wants && place > 0 {
        let args = json!({"agentId": agent, "inboxSeq": place});
        ask(hub, &reader(hub, trigger)?, ACKNOWLEDGE, args).await?;
    }
    Ok(())
}

async fn journals(hub: &Hub, trigger: &Trigger, after: i64) -> Result<FeedPage, Fault> {
    let store = &hub.ports().store;
    let end = store.query(runtime_tables::feed_end()).await.map_err(fault)?;
    let end = end.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)?;
    let rows = store.query(tables::events(&trigger.tenant, after, PAGE)).await.map_err(fault)?;
    let event =
        |row| Ok((orchestr8_kernel::ports::store::Row::int(row, 0).map_err(fault)?, feed::event(row)?));
    let events = rows.iter().map(event).collect::<Result<Vec<_>, Fault>>()?;
    Ok(FeedPage { is_full: is_full(events.len()), events, end })
}

fn page_of(items: Option<&Vec<Value>>, after: i64, event: fn(&Value) -> (i64, Value)) -> FeedPage {
    let events: Vec<(i64, Value)> = items.into_iter().flatten().map(event).collect();
    let end = events.last().map_or(after, |(place, _)| *place);
    FeedPage { is_full: is_full(events.len()), events, end }
}

fn is_full(count: usize) -> bool {
    i64::try_from(count).unwrap_or(PAGE) >= PAGE
}

fn document_event(change: &Value) -> (i64, Value) {
    let data = json!({"documentId": change["document_id"], "revision": change["revision"], "title": change["title"],
                      "parentId": change["parent_id"], "op": change["op"], "by": change["by"]});
    let event = json!({"id": change["position"], "type": change["event"], "timestamp": change["at"],
                       "correlationId": change["correlation_id"], "data": data});
    (change["position"].as_i64().unwrap_or_default(), event)
}

fn message_event(message: &Value) -> (i64, Value) {
    let envelope = &message["envelope"];
    let event = json!({"id": message["inboxSeq"], "type": MESSAGE_RECEIVED, "timestamp": envelope["timestamp"],
                       "correlationId": envelope["correlationId"], "data": envelope});
    (message["inboxSeq"].as_i64().unwrap_or_default(), event)
}

/// The author with the rights that it had and still has.
fn reader(hub: &Hub, trigger: &Trigger) -> Result<Arc<Principal>, Fault> {
    let tenant = trigger.tenant()?;
    let principal = trigger.spec.author.principal(tenant.clone());
    let standing = hub.standing(&tenant, &principal.name);
    Ok(Arc::new(standing.reduce_principal(Principal::clone(&principal))))
}

async fn ask(
    hub: &Hub,
    principal: &Arc<Principal>,
    action: &'static str,
    args: Value,
) -> Result<Value, Fault> {
    if hub.kernel().registry().find(action).is_none() {
        return Err(Fault::new(Code::Configuration, format!("{action} is not a part of this server")));
    }
    let args: Map<String, Value> = args.as_object().cloned().unwrap_or_default();
    let correlation = CorrelationId::from_uuid(hub.ports().ids.fresh(For::Correlation));
    let submission = Submission::new(action, Args::new(args), principal.clone(), correlation);
    match hub.kernel().submit(submission).await.result {
        Ok(Output::Json { value }) => Ok(value),
        Err(Halt::Fault(cause)) => Err(cause),
        Ok(Output::Blocks { .. } | Output::Resource { .. } | Output::Prompt { .. }) | Err(Halt::Asks(_)) => {
            Err(Fault::internal(format!("{action} gave what it never gives")))
        }
    }
}
