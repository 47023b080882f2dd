//! Event triggers: workflows that start when something happens in another execution of the tenant. They follow the journals, so
//! that no event is lost: the place that a trigger has read up to moves in the commit of the start.

use std::collections::HashMap;
use std::time::Duration;

use orchestr8_contract::{Code, Fault, Kind};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Value, json};

use super::mapping::{self, TriggerScope, TriggerSource};
use super::spec::EventSpec;
use super::{Trigger, deliver, look_up, stop, tables};
use crate::actions::feed;
use crate::authors::Authors;
use crate::expression::Fuel;
use crate::limits;
use crate::notifications::{self, NotifySpec};
use crate::runtime::{FEED, Hub, fault, load};

/// Entries read at once.
const PAGE: i64 = 200;

/// A place that moved this far without a start is written, so that little is read again after a restart.
const WRITE_EVERY: i64 = 1000;

/// How long to wait after a limit was reached, and after a failure of the store.
const AGAIN: Duration = Duration::from_secs(1);

/// Without a sign of change the journals are looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Where each trigger has read up to, by tenant and id; what is stored may be behind.
type Places = HashMap<(String, String), Place>;

/// A place in the journals.
#[derive(Clone, Copy)]
struct Place {
    read: i64,
    written: i64,
}

/// Follows the journals for as long as the process runs.
pub async fn run(hub: Hub) {
    let mut watch = hub.ports().store.watch(FEED);
    let (mut places, mut triggers, mut known) = (Places::new(), Vec::new(), None);
    loop {
        watch.borrow_and_update();
        let changed = hub.trigger_locks().changed();
        let generation = hub.trigger_locks().generation();
        let mut wait = LOOK_EVERY;
        if known != Some(generation) {
            match following(&hub).await {
                Ok(found) => (triggers, known) = (found, Some(generation)),
                Err(cause) => wait = failed(&hub, &cause),
            }
        }
        if !triggers.is_empty() {
            match scan(&hub, &triggers, &mut places).await {
                Ok(true) => {}
                Ok(false) => wait = AGAIN,
                Err(cause) => wait = failed(&hub, &cause),
            }
        }
        tokio::select! {
            () = hub.closing() => return,
            () = changed => {}
            Ok(()) = watch.changed(), if !triggers.is_empty() => {}
            () = hub.ports().clock.sleep(wait) => {}
        }
    }
}

fn failed(hub: &Hub, cause: &Fault) -> Duration {
    hub.ports().log.error("event triggers could not be looked at", json!({"error": log::error(cause)}));
    AGAIN
}

async fn following(hub: &Hub) -> Result<Vec<Trigger>, Fault> {
    let rows = hub.ports().store.query(tables::following()).await.map_err(fault)?;
    rows.iter().map(Trigger::read).collect()
}

/// Looks at what is new for every trigger. False: a limit was reached, and something waits.
async fn scan(hub: &Hub, triggers: &[Trigger], places: &mut Places) -> Result<bool, Fault> {
    let mut all = true;
    for trigger in triggers {
        let stored = Place { read: trigger.cursor, written: trigger.cursor };
        let place = places.entry((trigger.tenant.clone(), trigger.id.clone())).or_insert(stored);
        // It may have been stored again, or resumed, from a later place on.
        place.read = place.read.max(trigger.cursor);
        all &= follow(hub, trigger, place).await?;
    }
    Ok(all)
}

async fn follow(hub: &Hub, trigger: &Trigger, place: &mut Place) -> Result<bool, Fault> {
    let store = &hub.ports().store;
    loop {
        let end = store.query(crate::runtime::tables::feed_end()).await.map_err(fault)?;
        let end = end.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)?;
        let rows = store.query(tables::events(&trigger.tenant, place.read, PAGE)).await.map_err(fault)?;
        let full = i64::try_from(rows.len()).unwrap_or(PAGE) >= PAGE;
        for row in &rows {
            let number = row.int(0).map_err(fault)?;
            let event = feed::event(row)?;
            let taken = match (&trigger.spec.event, &trigger.spec.notify) {
                (Some(spec), _) if spec.is_of_type(&event) => {
                    take(hub, trigger, spec, &event, number).await?
                }
                (None, Some(spec)) => tell(hub, trigger, spec, &event, number).await?,
                (Some(_) | None, _) => true,
            };
            if !taken {
                return Ok(false);
            }
            place.read = number;
        }
        if !full {
            place.read = place.read.max(end);
        }
        if place.read - place.written >= WRITE_EVERY {
            let mut batch = Batch::new();
            batch.then(tables::read_up_to(trigger, place.read));
            store.commit(batch).await.map_err(fault)?;
            place.written = place.read;
        }
        if !full {
            return Ok(true);
        }
    }
}

/// Takes one event in. False: it must wait, since a limit was reached.
async fn take(
    hub: &Hub,
    trigger: &Trigger,
    spec: &EventSpec,
    event: &Value,
    number: i64,
) -> Result<bool, Fault> {
    let incoming = TriggerScope { source: TriggerSource::Event, value: event };
    let holds = match spec.condition()? {
        Some(condition) => condition.test(&incoming, &mut Fuel::inline()),
        None => Ok(true),
    };
    let (tenant, id) = (&trigger.tenant, &trigger.id);
    let _turn = hub.trigger_locks().lock(tenant, id).await;
    let Some(current) = look_up(hub, tenant, id).await? else { return Ok(true) };
    // Another process of the same trigger's life has taken it, or it is paused.
    if current.cursor >= number || current.paused.is_some() || stop::stop_unfit(hub, &current).await? {
        return Ok(true);
    }
    let result = match holds {
        Ok(false) => return Ok(true),
        Ok(true) => start(hub, &current, &incoming, number).await,
        Err(cause) => Err(cause),
    };
    match result {
        Ok(()) => Ok(true),
        Err(cause)
            if matches!(cause.code.kind(), Kind::Exhausted | Kind::Unavailable) && !is_loop(&cause) =>
        {
            Ok(false)
        }
        Err(cause) => skip(hub, &current, &cause, event, number).await.map(|()| true),
    }
}

/// Notifies of one event. False: it must wait, since a limit was reached.
async fn tell(
    hub: &Hub,
    trigger: &Trigger,
    spec: &NotifySpec,
    event: &Value,
    number: i64,
) -> Result<bool, Fault> {
    let (tenant, id) = (&trigger.tenant, &trigger.id);
    let _turn = hub.trigger_locks().lock(tenant, id).await;
    let Some(current) = look_up(hub, tenant, id).await? else { return Ok(true) };
    if current.cursor >= number || current.paused.is_some() || stop::stop_unfit(hub, &current).await? {
        return Ok(true);
    }
    notifications::enqueue(hub, &current, spec, event, number).await
}

async fn start(hub: &Hub, trigger: &Trigger, incoming: &TriggerScope<'_>, number: i64) -> Result<(), Fault> {
    let now_ms = hub.ports().clock.now_ms();
    let cause = incoming.value["executionId"].as_str().unwrap_or_default();
    let row = load::find(hub, &trigger.tenant, cause).await?;
    let depth = row.map_or(0, |row| row.given.authors.trigger_depth) + 1;
    if depth > limits::TRIGGER_DEPTH {
        return Err(too_deep(trigger));
    }
    let limit = trigger.spec.event.as_ref().and_then(|event| event.max_per_minute);
    let limit = limit.unwrap_or(limits::EVENTS_PER_MINUTE);
    if !hub.trigger_locks().count(&trigger.tenant, &trigger.id, limit, now_ms) {
        return Err(Fault::new(Code::ResourceExhausted, "the limit of the minute is reached"));
    }
    let template = mapping::inputs(trigger.spec.inputs.as_ref(), TriggerSource::Event)?;
    let request = trigger.request(hub, mapping::resolve(&template, incoming)?).await?;
    let authors = Authors { trigger_depth: depth, ..request.authors };
    let mut accepted = hub.accept(crate::runtime::Request { authors, ..request })?;
    let mut batch = std::mem::take(&mut accepted.batch);
    batch.link(deliver::started(trigger, &accepted.id, 1, now_ms));
    batch.then_one(tables::event_taken(trigger, number, now_ms, Ok(&accepted.id)));
    hub.ports().store.commit(batch).await.map_err(fault)?;
    hub.launch(accepted);
    Ok(())
}

const LOOP: &str = "trigger_depth";

fn too_deep(trigger: &Trigger) -> Fault {
    let most = limits::TRIGGER_DEPTH;
    let what = format!(
        "{most} triggers started each other, one after the other; '{}' starts nothing more, so that they do not go round",
        trigger.id
    );
    Fault::new(Code::ResourceExhausted, what).with("reason", LOOP).with("limit", most)
}

fn is_loop(cause: &Fault) -> bool {
    cause.details.as_ref().is_some_and(|details| details.get("reason").is_some_and(|reason| reason == LOOP))
}

/// An event that can never start an execution is left out, which is on record.
async fn skip(hub: &Hub, trigger: &Trigger, cause: &Fault, event: &Value, number: i64) -> Result<(), Fault> {
    let fields = json!({"triggerId": trigger.id, "tenant": trigger.tenant, "error": log::error(cause)});
    hub.ports().log.error("an event trigger could not start its workflow", fields);
    let now_ms = hub.ports().clock.now_ms();
    let change = StateChange {
        principal: &trigger.spec.author.name,
        code: Some(cause.code),
        detail: json!({"event": event["id"], "executionId": event["executionId"], "error": cause.message}),
        ..StateChange::by_server("triggers.skip", &trigger.tenant, Some(&trigger.id))
    };
    let mut batch = Batch::new();
    batch.link(change.link(now_ms));
    batch.then(tables::event_taken(trigger, number, now_ms, Err(&cause.message)));
    hub.ports().store.commit(batch).await.map_err(fault)
}
