//! The lane of a session, done again one command after the other (SES-7.3): each must have had the outcome it has here.

use std::collections::HashMap;

use serde_json::Value;

use crate::burst::Plan;
use crate::heard::{Heard, Phase};

/// What the model says of a command.
enum Says {
    Succeeds(Option<u64>),
    Fails(String),
    /// It depends on moments that clients do not hear of.
    Either,
}

/// A session of the model.
#[derive(Default)]
struct Session {
    version: Option<u64>,
}

pub fn check(plan: &Plan, heard: &Heard) -> Result<(), String> {
    order(plan, heard)?;
    if plan.beside {
        return Ok(());
    }
    let finished = outcomes(heard);
    let mut sessions: HashMap<String, Session> = HashMap::new();
    let started = heard.phases.iter().enumerate().filter(|(_, phase)| phase.kind == "command_started");
    for (place, phase) in started {
        let Some((_, outcome)) = finished.get(phase.id.as_str()) else {
            return Err(format!("{} began and did not end", phase.id));
        };
        let name = phase.data["sessionId"].as_str().unwrap().to_owned();
        let says = depends(phase, place, &finished, heard)
            .unwrap_or_else(|| says(phase, &name, &sessions.entry(name.clone()).or_default().version));
        agree(phase, &says, outcome)?;
        if outcome["success"] == true {
            let session = sessions.entry(name).or_default();
            session.version = match phase.data["commandType"].as_str().unwrap() {
                "create_session" => Some(0),
                "delete_session" => None,
                "get_state" => session.version,
                _ => session.version.map(|version| version + 1),
            };
        }
    }
    Ok(())
}

/// How and where each command ended.
fn outcomes(heard: &Heard) -> HashMap<&str, (usize, &Value)> {
    let mut finished = HashMap::new();
    for (place, phase) in heard.phases.iter().enumerate().filter(|(_, phase)| phase.is_outcome()) {
        finished.entry(phase.id.as_str()).or_insert((place, &phase.data));
    }
    finished
}

/// What a client sends to one lane begins in the order in which it was sent.
fn order(plan: &Plan, heard: &Heard) -> Result<(), String> {
    let started = heard.places("command_started");
    let side = |command: &Value| matches!(command["type"].as_str(), Some("steer" | "abort"));
    for sent in &plan.clients {
        for session in ["a", "b"] {
            for beside in [false, true] {
                let mut seen = Vec::new();
                for command in
                    sent.iter().filter(|command| command["sessionId"] == session && side(command) == beside)
                {
                    let id = command["id"].as_str().unwrap();
                    // Ids that others use too may have begun on behalf of them.
                    if id.starts_with('u') && !seen.contains(&id) {
                        seen.push(id);
                    }
                }
                let places: Vec<usize> = seen.iter().filter_map(|id| started.get(id)).copied().collect();
                if !places.is_sorted() {
                    return Err(format!("the lane of {session} was not kept: {seen:?} began at {places:?}"));
                }
            }
        }
    }
    Ok(())
}

/// SES-9: what follows from its dependencies; none when they let it go on.
fn depends(
    phase: &Phase,
    place: usize,
    finished: &HashMap<&str, (usize, &Value)>,
    heard: &Heard,
) -> Option<Says> {
    let dependency = phase.data["dependsOn"].get(0)?.as_str()?;
    if dependency == phase.id {
        return Some(Says::Fails(format!("Command '{dependency}' cannot depend on itself")));
    }
    let accepted = heard.places("command_accepted");
    match (accepted.get(dependency), finished.get(dependency)) {
        (Some(accepted), Some((ended, outcome))) if *accepted < place && *ended < place => {
            match outcome["success"] == true {
                true => None,
                false => {
                    let why = outcome["error"].as_str().unwrap_or_default();
                    Some(Says::Fails(format!("Dependency '{dependency}' failed: {why}")))
                }
            }
        }
        _ => Some(Says::Either),
    }
}

/// SES-10 and what each command is for.
fn says(phase: &Phase, session: &str, version: &Option<u64>) -> Says {
    let expected = phase.data["ifSessionVersion"].as_u64();
    match (expected, version) {
        (Some(expected), None) => {
            return Says::Fails(format!("Session {session} not found for ifSessionVersion={expected}"));
        }
        (Some(expected), Some(found)) if expected != *found => {
            return Says::Fails(format!("Session version mismatch: expected {expected}, got {found}"));
        }
        (Some(_), Some(_)) | (None, _) => {}
    }
    match (phase.data["commandType"].as_str().unwrap(), version) {
        ("create_session", Some(_)) => Says::Fails(format!("Session {session} already exists")),
        ("create_session", None) => Says::Succeeds(Some(0)),
        (_, None) => Says::Fails(format!("Session {session} not found")),
        ("delete_session", Some(_)) => Says::Succeeds(None),
        ("get_state", Some(version)) => Says::Succeeds(Some(*version)),
        (_, Some(version)) => Says::Succeeds(Some(version + 1)),
    }
}

fn agree(phase: &Phase, says: &Says, outcome: &Value) -> Result<(), String> {
    let (kind, id) = (phase.data["commandType"].as_str().unwrap(), &phase.id);
    match says {
        Says::Either => Ok(()),
        Says::Succeeds(version)
            if outcome["success"] == true
                && outcome.get("sessionVersion").and_then(Value::as_u64) == *version =>
        {
            Ok(())
        }
        Says::Fails(why) if outcome["success"] == false && outcome["error"] == why.as_str() => Ok(()),
        Says::Succeeds(version) => {
            Err(format!("{kind} {id} should give version {version:?} and gave {outcome}"))
        }
        Says::Fails(why) => Err(format!("{kind} {id} should fail with {why:?} and gave {outcome}")),
    }
}
