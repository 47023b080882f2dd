//! What one client heard, in order.

use std::collections::HashMap;

use serde_json::Value;

#[derive(Default)]
pub struct Heard {
    pub responses: Vec<Value>,
    /// Lifecycle events of all clients, in the order in which this one heard them.
    pub phases: Vec<Phase>,
    /// Not everything was answered within an hour.
    pub silent: bool,
}

#[derive(Debug, Clone)]
pub struct Phase {
    pub kind: String,
    pub id: String,
    pub data: Value,
}

impl Heard {
    pub fn take(&mut self, mut frame: Value) {
        match frame["type"].as_str().unwrap() {
            "response" => self.responses.push(frame),
            kind @ ("command_accepted" | "command_started" | "command_finished") => {
                let kind = kind.to_owned();
                let data = frame["data"].take();
                self.phases.push(Phase { kind, id: data["commandId"].as_str().unwrap().to_owned(), data });
            }
            _ => {}
        }
    }

    /// Where each id was first heard in a phase.
    pub fn places(&self, kind: &str) -> HashMap<&str, usize> {
        let mut places = HashMap::new();
        for (place, phase) in self.phases.iter().enumerate().filter(|(_, phase)| phase.kind == kind) {
            places.entry(phase.id.as_str()).or_insert(place);
        }
        places
    }
}

impl Phase {
    /// The end of a run, and not the answer to a repeat or to another use of its id.
    pub fn is_outcome(&self) -> bool {
        let conflict = self.data["error"].as_str().is_some_and(|error| error.starts_with("Conflicting "));
        self.kind == "command_finished" && self.data["replayed"] != true && !conflict
    }
}

/// A response without what differs between the first and a repeat.
pub fn outcome(response: &Value) -> Value {
    let mut outcome = response.clone();
    outcome.as_object_mut().unwrap().remove("replayed");
    outcome
}
