//! Event triggers: workflows that start when something happens in another execution of the tenant, to a document, or when a message
//! comes for an agent. They follow feeds that are durable, so that no event is lost: the place that a trigger has read up to moves in
//! the commit of the start.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{pending, select_all};
use orchestr8_contract::{Code, Fault, Kind};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::mapping::{self, TriggerScope, TriggerSource};
use super::spec::{EventOrigin, EventSpec};
use super::{Trigger, deliver, event_feeds, look_up, stop, tables};
use crate::authors::Authors;
use crate::expression::Fuel;
use crate::limits;
use crate::notifications::{self, NotifySpec};
use crate::runtime::{Hub, fault, load};

/// A place that moved this far without a start is written, so that little is read again after a restart.
const WRITE_EVERY: i64 = 1000;

/// How long to wait after a limit was reached, and after a failure of the store.
const AGAIN: Duration = Duration::from_secs(1);

/// Without a sign of change the feeds are looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Where each trigger has read up to, by tenant, id and feed; what is stored may be behind.
type Places = HashMap<(String, String, EventOrigin), Place>;

/// A place in a feed.
#[derive(Clone, Copy)]
struct Place {
    read: i64,
    written: i64,
    acknowledged: i64,
}

/// A trigger that follows a feed.
struct Follower {
    trigger: Trigger,
    news: watch::Receiver<u64>,
    /// It has not been looked at, or something waits.
    is_behind: bool,
    /// Why it could not be followed.
    failure: Option<String>,
}

impl Follower {
    fn key(&self) -> (String, String, EventOrigin) {
        (self.trigger.tenant.clone(), self.trigger.id.clone(), self.trigger.spec.origin())
    }

    /// Shows with the trigger why it cannot follow its feed, and that it can again.
    async fn note(&mut self, hub: &Hub, failure: Option<String>) {
        if self.failure == failure {
            return;
        }
        let mut batch = Batch::new();
        batch.then(tables::following_failed(&self.trigger, failure.as_deref()));
        // What was not written is written with the next look.
        if hub.ports().store.commit(batch).await.is_ok() {
            self.failure = failure;
        }
    }
}

/// Follows the feeds for as long as the process runs.
pub async fn run(hub: Hub) {
    let (mut places, mut followers, mut known) = (Places::new(), Vec::<Follower>::new(), None);
    loop {
        let changed = hub.trigger_locks().changed();
        let generation = hub.trigger_locks().generation();
        let mut wait = LOOK_EVERY;
        if known != Some(generation) {
            match following(&hub).await {
                Ok(found) => {
                    (followers, known) = (found, Some(generation));
                    places.retain(|key, _| followers.iter().any(|follower| follower.key() == *key));
                }
                Err(cause) => wait = failed(&hub, &cause),
            }
        }
        for follower in &mut followers {
            let has_news = follower.news.has_changed().unwrap_or(false);
            if has_news || follower.is_behind {
                follower.news.mark_unchanged();
                if !look(&hub, follower, &mut places).await {
                    wait = AGAIN;
                }
            }
        }
        tokio::select! {
            () = hub.closing() => return,
            () = changed => {}
            () = news(&mut followers) => {}
            () = hub.ports().clock.sleep(wait) => {
                let is_idle = wait == LOOK_EVERY;
                followers.iter_mut().for_each(|follower| follower.is_behind |= is_idle);
            }
        }
    }
}

/// Wakes when one of the feeds has something new.
async fn news(followers: &mut [Follower]) {
    if followers.is_empty() {
        return pending().await;
    }
    select_all(followers.iter_mut().map(|follower| {
        Box::pin(async {
            if follower.news.changed().await.is_err() {
                pending::<()>().await;
            }
            // It is looked at in the next round.
            follower.is_behind = true;
        })
    }))
    .await;
}

fn failed(hub: &Hub, cause: &Fault) -> Duration {
    hub.ports().log.error("event triggers could not be looked at", json!({"error": log::error(cause)}));
    AGAIN
}

async fn following(hub: &Hub) -> Result<Vec<Follower>, Fault> {
    let store = &hub.ports().store;
    let rows = store.query(tables::following()).await.map_err(fault)?;
    let follower = |row| {
        let trigger = Trigger::read(row)?;
        let topic = event_feeds::topic_of(&trigger.tenant()?, &trigger.spec.origin());
        Ok(Follower { news: store.watch(&topic), trigger, is_behind: true, failure: None })
    };
    rows.iter().map(follower).collect()
}

/// Looks at what is new for a trigger. False: something waits, and it is looked at again soon.
async fn look(hub: &Hub, follower: &mut Follower, places: &mut Places) -> bool {
    let trigger = &follower.trigger;
    let stored = Place { read: trigger.cursor, written: trigger.cursor, acknowledged: 0 };
    let place = places.entry(follower.key()).or_insert(stored);
    // It may have been stored again, or resumed, from a later place on.
    place.read = place.read.max(trigger.cursor);
    match follow(hub, trigger, place).await {
        Ok(is_done) => {
            follower.is_behind = !is_done;
            follower.note(hub, None).await;
            is_done
        }
        Err(cause) => {
            // What another domain refuses is refused again until something changes.
            let is_refused =
                !matches!(cause.code.kind(), Kind::Exhausted | Kind::Unavailable | Kind::Internal);
            follower.is_behind = !is_refused;
            if follower.failure.is_none() {
                failed(hub, &cause);
            }
            follower.note(hub, Some(cause.message.into_owned())).await;
            is_refused
        }
    }
}

async fn follow(hub: &Hub, trigger: &Trigger, place: &mut Place) -> Result<bool, Fault> {
    loop {
        let page = event_feeds::read(hub, trigger, place.read).await?;
        for (number, event) in &page.events {
            let taken = match (&trigger.spec.event, &trigger.spec.notify) {
                (Some(spec), _) if spec.is_of_type(event) => take(hub, trigger, spec, event, *number).await?,
                (None, Some(spec)) => tell(hub, trigger, spec, event, *number).await?,
                (Some(_) | None, _) => true,
            };
            if !taken {
                acknowledge(hub, trigger, place).await?;
                return Ok(false);
            }
            place.read = *number;
        }
        if !page.is_full {
            place.read = place.read.max(page.end);
        }
        if place.read - place.written >= WRITE_EVERY {
            let mut batch = Batch::new();
            batch.then(tables::read_up_to(trigger, place.read));
            hub.ports().store.commit(batch).await.map_err(fault)?;
            place.written = place.read;
        }
        acknowledge(hub, trigger, place).await?;
        if !page.is_full {
            return Ok(true);
        }
    }
}

/// Once after the start of the process it acknowledges what was taken before: it may have ended in between.
async fn acknowledge(hub: &Hub, trigger: &Trigger, place: &mut Place) -> Result<(), Fault> {
    if place.acknowledged < place.read {
        event_feeds::acknowledge(hub, trigger, place.read).await?;
        place.acknowledged = place.read;
    }
    Ok(())
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
    let depth = depth_of_cause(hub, trigger, incoming.value).await? + 1;
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

/// How many triggers started each other before an event: those of the execution it is of, or that made the change or sent the message.
async fn depth_of_cause(hub: &Hub, trigger: &Trigger, event: &Value) -> Result<u32, Fault> {
    let tenant = trigger.tenant.as_str();
    match (event["executionId"].as_str(), event["correlationId"].as_str()) {
        (Some(execution), _) => {
            let row = load::find(hub, tenant, execution).await?;
            Ok(row.map_or(0, |row| row.given.authors.trigger_depth))
        }
        (None, Some(correlation)) => load::trigger_depth_of(hub, tenant, correlation).await,
        (None, None) => Ok(0),
    }
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
