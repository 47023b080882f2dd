//! Governed workspaces, served by the real program.

mod attacks;
mod canaries;
mod elicitation;
mod gate_kill;
pub mod http;
mod roles;
mod trail;
mod transcripts;

use std::path::PathBuf;

use orchestr8_contract::envelope::Role;
use orchestr8_workspace::plan::{Head, Status, hash_of, with_head};
use serde_json::{Value, json};

use crate::program::Place;
use crate::stdio::Client;

pub const GOOD: &str = include_str!("../../../../workspace/src/plan/good.md");

/// A workspace in a place of its own, and a connection to it.
pub struct Governed {
    pub place: Place,
    client: Client,
    next_id: u64,
}

impl Governed {
    pub fn start(place: Place, role: &str, more: &[&str]) -> Self {
        let place = with_workspace(place);
        let args = [&["--governed", role], more].concat();
        let client = Client::ready(&place, &args);
        Self { place, client, next_id: 1 }
    }

    pub fn root(&self) -> PathBuf {
        root_of(&self.place)
    }

    /// The whole answer to a call.
    pub fn answer(&mut self, tool: &str, args: Value) -> Value {
        self.next_id += 1;
        self.client.call(self.next_id, tool, args)
    }

    pub fn ask(&mut self, message: &Value) -> Value {
        self.client.ask(message)
    }

    /// What a call gives; an error if it failed. Every failure is the same object as text and as data.
    pub fn call(&mut self, tool: &str, args: Value) -> Result<Value, Value> {
        let answer = self.answer(tool, args);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let value: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{answer}"));
        if result["isError"] == json!(true) {
            assert_eq!(result["structuredContent"], value, "{answer}");
            return Err(value);
        }
        Ok(value)
    }

    pub fn begin(&mut self) {
        let root = self.root();
        self.call("begin_session", json!({"workspace_root": root})).unwrap();
    }

    /// Ends the conversation; gives the log and the place.
    pub fn end(self) -> (String, Place) {
        (self.client.log_at_end(), self.place)
    }
}

/// The same place, whose folder `workspace` is the only workspace unless it has named some.
pub fn with_workspace(place: Place) -> Place {
    std::fs::create_dir_all(place.path().join("workspace")).unwrap();
    if place.has(ROOTS) {
        return place;
    }
    let root = root_of(&place);
    place.with(ROOTS, root.to_str().unwrap())
}

const ROOTS: &str = "ORCHESTR8_WORKSPACE_ROOTS";

/// Approves a plan of the workspace, as the person at this machine.
pub fn approve(place: &Place, hash: &str) {
    let root = root_of(place);
    let words = ["plans", "approve", hash, "--yes", "--deterministic", "--workspace", root.to_str().unwrap()];
    let said = place.run(&words);
    assert_eq!(said.code, Some(0), "{said:?}");
}

pub fn root_of(place: &Place) -> PathBuf {
    std::fs::canonicalize(place.path()).unwrap().join("workspace")
}

/// Puts a plan into a workspace, approved or not, and gives its hash.
pub fn plant(place: &Place, text: &str, status: Status) -> String {
    let hash = hash_of(text);
    let head = Head { hash: hash.clone(), role: Role::Planner, status: Status::Draft };
    place.write(&format!("workspace/docs/plans/{hash}.md"), &with_head(text, &head));
    match status {
        Status::Approved => approve(place, &hash),
        Status::Draft | Status::Rejected => {}
    }
    hash
}
