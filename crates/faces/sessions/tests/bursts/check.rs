//! What must hold of every burst, whatever the order in which things happened.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use crate::burst::{Plan, Played};
use crate::heard::{Heard, outcome};
use crate::lane;

pub fn all(plan: &Plan, played: &Played) -> Result<(), String> {
    answered(plan, &played.clients)?;
    identities(plan, &played.clients)?;
    phases(plan, &played.observer)?;
    versions(&played.observer)?;
    lane::check(plan, &played.observer)
}

/// Every command gets one answer, under its own id.
fn answered(plan: &Plan, heard: &[Heard]) -> Result<(), String> {
    for (number, (sent, heard)) in plan.clients.iter().zip(heard).enumerate() {
        if heard.silent {
            return Err(format!(
                "client {number} was not answered: {} of {}",
                heard.responses.len(),
                sent.len()
            ));
        }
        let count = |frames: &[Value]| {
            let mut count: BTreeMap<String, usize> = BTreeMap::new();
            frames.iter().for_each(|frame| *count.entry(frame["id"].to_string()).or_default() += 1);
            count
        };
        if count(sent) != count(&heard.responses) {
            return Err(format!("client {number}: the answers have other ids than the commands"));
        }
    }
    Ok(())
}

/// What a command means, without its id.
fn meaning(command: &Value) -> String {
    let mut command = command.clone();
    command.as_object_mut().unwrap().remove("id");
    command.to_string()
}

/// SES-8.1: one meaning of an id wins; it runs once and all its repeats get the same answer; others get a conflict.
fn identities(plan: &Plan, heard: &[Heard]) -> Result<(), String> {
    let mut meanings: HashMap<&str, BTreeMap<String, usize>> = HashMap::new();
    for command in plan.clients.iter().flatten() {
        let id = command["id"].as_str().unwrap();
        *meanings.entry(id).or_default().entry(meaning(command)).or_default() += 1;
    }
    let mut answers: HashMap<&str, Vec<&Value>> = HashMap::new();
    for response in heard.iter().flat_map(|heard| &heard.responses) {
        answers.entry(response["id"].as_str().unwrap()).or_default().push(response);
    }
    for (id, answers) in answers {
        let conflict = |answer: &&&Value| {
            answer["error"].as_str().is_some_and(|error| error.starts_with(&format!("Conflicting id '{id}'")))
        };
        let others: Vec<_> = answers.iter().filter(|answer| !conflict(answer)).collect();
        let firsts = others.iter().filter(|answer| answer["replayed"] != true).count();
        if firsts != 1 {
            return Err(format!("{id} ran {firsts} times"));
        }
        let different: HashSet<String> = others.iter().map(|answer| outcome(answer).to_string()).collect();
        if different.len() != 1 {
            return Err(format!("{id} has several outcomes: {different:?}"));
        }
        if !meanings[id].values().any(|count| *count == others.len()) {
            return Err(format!("{id}: {} answers fit no meaning of {:?}", others.len(), meanings[id]));
        }
    }
    Ok(())
}

/// SES-7.2, SES-7.4: accepted, started at most once, finished as often as accepted, in this order.
fn phases(plan: &Plan, heard: &Heard) -> Result<(), String> {
    let count = |kind: &str, id: &str| {
        heard.phases.iter().filter(|phase| phase.kind == kind && phase.id == id).count()
    };
    let started = heard.places("command_started");
    let ended: HashMap<&str, usize> = heard
        .phases
        .iter()
        .enumerate()
        .filter(|(_, phase)| phase.is_outcome())
        .map(|(place, phase)| (phase.id.as_str(), place))
        .collect();
    let accepted = heard.places("command_accepted");
    for id in plan.clients.iter().flatten().map(|command| command["id"].as_str().unwrap()) {
        let [accepts, starts, ends] =
            ["command_accepted", "command_started", "command_finished"].map(|kind| count(kind, id));
        if starts != 1 || ends != accepts {
            return Err(format!("{id} was accepted {accepts} times, started {starts}, finished {ends}"));
        }
        let order: Vec<usize> =
            [&accepted, &started, &ended].iter().filter_map(|places| places.get(id)).copied().collect();
        if !order.is_sorted() {
            return Err(format!("{id}: its phases came in another order: {order:?}"));
        }
    }
    Ok(())
}

/// SES-10: within the life of a session every number from one on is given once: each number is given at most as often as the
/// one before it, and the first at most once for each creation.
fn versions(heard: &Heard) -> Result<(), String> {
    let mut outcomes: HashMap<&str, &Value> = HashMap::new();
    for phase in heard.phases.iter().filter(|phase| phase.is_outcome()) {
        outcomes.insert(&phase.id, &phase.data);
    }
    let changes = ["prompt", "steer", "abort", "set_session_name"];
    for session in ["a", "b"] {
        let of_session =
            || outcomes.iter().filter(|(_, data)| data["sessionId"] == session && data["success"] == true);
        let created = of_session().filter(|(_, data)| data["commandType"] == "create_session").count();
        let mut given: BTreeMap<u64, usize> = BTreeMap::new();
        for (_, data) in
            of_session().filter(|(_, data)| changes.contains(&data["commandType"].as_str().unwrap()))
        {
            *given.entry(data["sessionVersion"].as_u64().unwrap_or(0)).or_default() += 1;
        }
        let mut before = (0, created);
        for (version, count) in &given {
            if *version != before.0 + 1 || *count > before.1 {
                return Err(format!(
                    "session {session}, created {created} times, gave the versions {given:?}"
                ));
            }
            before = (*version, *count);
        }
    }
    Ok(())
}
