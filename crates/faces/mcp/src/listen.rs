//! Subscriptions: single resources in the legacy era, a stream of chosen news in the modern one.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use orchestr8_contract::Kind;
use orchestr8_kernel::Args;
use orchestr8_kernel::action::{Action, Halt};
use serde_json::{Map, Value};

use crate::audience::{Listener, Lists};
use crate::body::Body;
use crate::era::{Era, SUBSCRIPTION_KEY};
use crate::governed;
use crate::reads::{is_for, unknown_resource};
use crate::request::{Answer, Outcome, Request};
use crate::tables::Owner;
use crate::tasks::{self, Task};
use crate::to_wire::{self, tasks_undeclared};
use crate::upstream;
use crate::wire::{self, Error};

/// One stream may follow this many tasks.
const TASKS_FOLLOWED: usize = 100;

/// `resources/subscribe` (legacy). What cannot be read cannot be followed.
pub fn subscribe(request: &Request<'_>) -> Answer {
    let followed = request.params.required_text("uri").and_then(|uri| {
        if let Some(action) = upstream::action_for(request, upstream::FOLLOW, &uri) {
            return Ok(follow_upstream(request, &action, uri.into_owned()));
        }
        let action = readable(request, &uri).ok_or_else(|| unknown_resource(&uri, request.era))?;
        if let Some(refused) = request.refuse(&action) {
            return Ok(refused);
        }
        request.connection.with_listener(|listener| listener.follow(&uri))?;
        Ok(Ok(Body::empty()).into())
    });
    followed.unwrap_or_else(|error| Err(error).into())
}

/// Follows a resource of another server, if that tells of its changes.
fn follow_upstream(request: &Request<'_>, action: &Action, uri: String) -> Answer {
    let args = Map::from_iter([("uri".to_owned(), Value::from(uri.as_str()))]);
    let submission = request.submission(action.name.as_str().into(), Args::new(args));
    let (connection, era) = (request.connection.clone(), request.era);
    upstream::run(request, submission, move |settled| {
        let result = match settled.result {
            Ok(_) => connection.with_listener(|listener| listener.follow(&uri)).map(|()| Body::empty()),
            Err(Halt::Fault(fault)) if fault.kind() == Kind::NotFound => Err(unknown_resource(&uri, era)),
            Err(Halt::Fault(fault)) => Err(to_wire::protocol_error(&fault, settled.run)),
            Err(Halt::Asks(_)) => Err(Error::new(wire::INTERNAL, "following asks nothing")),
        };
        Outcome { result, correlation: Some(settled.correlation) }
    })
}

/// The action that reads an address, if there is one for this connection.
fn readable(request: &Request<'_>, uri: &str) -> Option<Arc<Action>> {
    let table = request.kernel().registry().table();
    table.resource(uri).map(|(action, _)| action.clone()).filter(|action| is_for(request, action))
}

/// `resources/unsubscribe` (legacy).
pub fn unsubscribe(request: &Request<'_>) -> Result<Body, Error> {
    let uri = request.params.required_text("uri")?;
    request.connection.with_listener(|listener| {
        listener.unfollow(&uri);
        Ok(())
    })?;
    Ok(Body::empty())
}

/// What a stream was asked to carry.
struct Wanted {
    lists: Lists,
    resources: Vec<String>,
    tasks: Vec<String>,
}

/// `subscriptions/listen` (modern): acknowledged first, then open until somebody ends it.
pub fn listen(request: &Request<'_>) -> Answer {
    let wanted = match wanted(request) {
        Ok(wanted) => wanted,
        Err(error) => return Err(error).into(),
    };
    let listener = Listener::new(
        request.related.clone(),
        wanted.lists,
        Some(request.id.clone()),
        request.who().tenant.clone(),
        request.kernel().interests().clone(),
    );
    let mut resources = Vec::new();
    for uri in wanted.resources {
        let action = readable(request, &uri);
        if let Some(refused) = action.as_ref().and_then(|action| request.refuse(action)) {
            return refused;
        }
        // A governed connection hears of nothing but what is governed.
        if action.is_none() && governed::role(request.who()).is_some() {
            continue;
        }
        match listener.follow(&uri) {
            Ok(()) => resources.push(uri),
            Err(error) => return Err(error).into(),
        }
    }
    let face = request.connection.face.clone();
    let owner = Owner::of(request.who());
    let tasks: Vec<Arc<Task>> =
        wanted.tasks.iter().filter_map(|id| face.tasks().running(&owner, id)).collect();
    listener
        .notify("notifications/subscriptions/acknowledged", acknowledgment(wanted.lists, &resources, &tasks));
    let seat = face.audience().join(listener, face.kernel().bus(), face.kernel().log());
    let (id, ending) = (request.id.clone(), request.connection.ending.clone());
    Answer::Later(Box::pin(async move {
        let follow_tasks = async {
            let mut followed: FuturesUnordered<_> =
                tasks.iter().map(|task| follow(task, &seat.listener)).collect();
            while followed.next().await.is_some() {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = follow_tasks => {}
            () = ending.cancelled() => {}
            () = face.ending().cancelled() => {}
        }
        let id: Value = serde_json::from_str(id.as_json()).unwrap_or_default();
        Outcome::from(Ok(Body::empty().meta(SUBSCRIPTION_KEY, &id)))
    }))
}

fn wanted(request: &Request<'_>) -> Result<Wanted, Error> {
    let filter =
        request.params.map("notifications")?.ok_or_else(|| Error::params("notifications is missing"))?;
    let flag = |name: &str| filter.get(name).and_then(Value::as_bool).unwrap_or_default();
    let texts = |name: &str| -> Result<Vec<String>, Error> {
        match filter.get(name) {
            None => Ok(Vec::new()),
            Some(list) => serde_json::from_value(list.clone())
                .map_err(|_| Error::params(format!("notifications.{name} must be an array of strings"))),
        }
    };
    let tasks = texts("taskIds")?;
    if filter.contains_key("taskIds") && !request.capabilities.tasks {
        return Err(tasks_undeclared());
    }
    if tasks.len() > TASKS_FOLLOWED {
        return Err(Error::params(format!("one stream follows at most {TASKS_FOLLOWED} tasks")));
    }
    Ok(Wanted {
        lists: Lists {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
        },
        resources: texts("resourceSubscriptions")?,
        tasks,
    })
}

fn acknowledgment(lists: Lists, resources: &[String], tasks: &[Arc<Task>]) -> Map<String, Value> {
    let mut agreed = Map::new();
    let flags = [
        ("toolsListChanged", lists.tools),
        ("promptsListChanged", lists.prompts),
        ("resourcesListChanged", lists.resources),
    ];
    for (name, _) in flags.into_iter().filter(|(_, wanted)| *wanted) {
        agreed.insert(name.into(), true.into());
    }
    if !resources.is_empty() {
        agreed.insert("resourceSubscriptions".into(), resources.into());
    }
    if !tasks.is_empty() {
        agreed.insert("taskIds".into(), tasks.iter().map(|task| task.id.as_str()).collect());
    }
    Map::from_iter([("notifications".to_owned(), Value::Object(agreed))])
}

/// Tells of every change of a task, until it has ended.
async fn follow(task: &Task, listener: &Listener) {
    let mut changes = task.watch();
    let mut told = None;
    loop {
        changes.borrow_and_update();
        let seen = task.seen();
        let news = (seen.status, seen.questions.len());
        if told.is_some_and(|told| told != news) {
            listener.notify("notifications/tasks", tasks::value(&seen, Era::Modern));
        }
        told = Some(news);
        if seen.status.is_final() || changes.changed().await.is_err() {
            return;
        }
    }
}
