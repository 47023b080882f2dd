//! The workflows that are killed, and what must be true of each once it has ended.

use std::net::SocketAddr;

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Three,
    Each,
    Wait,
    Approval,
    Child,
    Undo,
    /// A step, the items of a list and the steps of a child are undone.
    Saga,
}

pub const SHAPES: [Shape; 7] =
    [Shape::Three, Shape::Each, Shape::Wait, Shape::Approval, Shape::Child, Shape::Undo, Shape::Saga];

/// Items of the list in `Each`.
const ITEMS: u32 = 5;

impl Shape {
    pub fn definition(self, outside: SocketAddr) -> Value {
        let effect = |id: &str, after: &[&str]| effect(outside, id, after);
        let wait = json!({"id": "w", "dependencies": ["a"], "wait": {"durationMs": 30}});
        let ask = json!({"id": "w", "dependencies": ["a"], "approval": {"message": "Go on?"}});
        let steps = match self {
            Shape::Three => json!([effect("a", &[]), effect("b", &["a"]), effect("c", &["b"])]),
            Shape::Each => {
                let mut each = effect("each", &["a"]);
                each["forEach"] = json!({"items": (0..ITEMS).collect::<Vec<_>>(), "concurrency": 2});
                json!([effect("a", &[]), each, effect("c", &["each"])])
            }
            Shape::Wait => json!([effect("a", &[]), wait, effect("c", &["w"])]),
            Shape::Approval => json!([effect("a", &[]), ask, effect("c", &["w"])]),
            Shape::Child => {
                let inner = workflow("inner", &json!([effect("x", &[]), effect("y", &["x"])]));
                let child = json!({"id": "child", "dependencies": ["a"], "workflow": inner});
                json!([effect("a", &[]), child, effect("c", &["child"])])
            }
            Shape::Undo => json!([undoable(outside, "a", &[]), refused("b", "a"), effect("c", &["b"])]),
            Shape::Saga => {
                let mut each = undoable(outside, "each", &["a"]);
                each["forEach"] = json!({"items": (0..ITEMS).collect::<Vec<_>>(), "concurrency": 2});
                let steps = json!([undoable(outside, "x", &[]), undoable(outside, "y", &["x"])]);
                let child =
                    json!({"id": "child", "dependencies": ["each"], "workflow": workflow("inner", &steps)});
                json!([undoable(outside, "a", &[]), each, child, refused("b", "child"), effect("c", &["b"])])
            }
        };
        workflow(&format!("{self:?}").to_lowercase(), &steps)
    }

    /// How it must end.
    pub fn status(self) -> &'static str {
        match self {
            Shape::Undo | Shape::Saga => "compensated",
            Shape::Three | Shape::Each | Shape::Wait | Shape::Approval | Shape::Child => "completed",
        }
    }

    /// Keys of what happened outside, for each step that has finished.
    pub fn keys(self, id: &str, resource: &Value) -> Vec<String> {
        let steps = resource["steps"].as_object().unwrap();
        let finished = steps.iter().filter(|(_, step)| step["status"] == "completed");
        let mut keys = Vec::new();
        for (step, body) in finished {
            match (self, step.as_str()) {
                (Shape::Wait | Shape::Approval, "w") | (Shape::Child | Shape::Saga, "child") => continue,
                (Shape::Each | Shape::Saga, "each") => {
                    keys.extend((0..ITEMS).map(|item| format!("{id}:each:{item}")));
                }
                (_, step) => keys.push(format!("{id}:{step}")),
            }
            match body["compensated"] == true {
                true if step == "each" => {
                    keys.extend((0..ITEMS).map(|item| format!("{id}:each:{item}:compensate")));
                }
                true => keys.push(format!("{id}:{step}:compensate")),
                false => {}
            }
        }
        keys
    }

    /// What has to have happened outside at the end.
    pub fn all_keys(self, id: &str) -> Vec<String> {
        let of = |steps: &[&str]| steps.iter().map(|step| format!("{id}:{step}")).collect::<Vec<_>>();
        match self {
            Shape::Three => of(&["a", "b", "c"]),
            Shape::Each => {
                let items = (0..ITEMS).map(|item| format!("{id}:each:{item}"));
                of(&["a", "c"]).into_iter().chain(items).collect()
            }
            Shape::Wait | Shape::Approval | Shape::Child => of(&["a", "c"]),
            Shape::Undo => of(&["a", "a:compensate"]),
            Shape::Saga => {
                let items = (0..ITEMS)
                    .flat_map(|item| [format!("{id}:each:{item}"), format!("{id}:each:{item}:compensate")]);
                of(&["a", "a:compensate"]).into_iter().chain(items).collect()
            }
        }
    }

    /// The answers of the world outside are in the outputs.
    pub fn check_outputs(self, id: &str, resource: &Value) {
        let outputs = &resource["outputs"];
        let key = |step: &str| json!(format!("{id}:{step}"));
        assert_eq!(outputs["a"]["body"]["key"], key("a"), "{resource:#}");
        if matches!(self, Shape::Undo | Shape::Saga) {
            let undone = if self == Shape::Undo { 1 } else { ITEMS + 2 };
            let compensation = json!({"cause": "failed", "undone": undone, "remaining": 0, "notUndone": []});
            assert_eq!(resource["compensation"], compensation, "{resource:#}");
            assert_eq!(resource["steps"]["a"]["compensated"], true, "{resource:#}");
            assert_eq!(resource["steps"]["c"]["status"], "skipped", "{resource:#}");
            return;
        }
        assert_eq!(outputs["c"]["body"]["key"], key("c"), "{resource:#}");
        match self {
            Shape::Each => {
                let results = outputs["each"]["results"].as_array().unwrap();
                let found: Vec<&Value> = results.iter().map(|item| &item["body"]["key"]).collect();
                let wanted: Vec<Value> = (0..ITEMS).map(|item| key(&format!("each:{item}"))).collect();
                assert_eq!(found, wanted.iter().collect::<Vec<_>>());
            }
            Shape::Approval => {
                assert_eq!(outputs["w"]["decision"], "approved", "{resource:#}");
                assert_eq!(outputs["w"]["onBehalfOf"], id, "whose decision was it? {resource:#}");
            }
            Shape::Child => {
                let inner = outputs["child"]["y"]["body"]["key"].as_str().unwrap();
                assert!(inner.ends_with(":y") && !inner.starts_with(id), "{resource:#}");
            }
            Shape::Three | Shape::Wait | Shape::Undo | Shape::Saga => {}
        }
    }
}

fn workflow(id: &str, steps: &Value) -> Value {
    json!({"version": "1.0.0", "metadata": {"id": id, "name": id}, "context": {"secretRefs": ["LIFE"]}, "steps": steps})
}

fn input(outside: SocketAddr) -> Value {
    json!({"url": format!("http://{outside}/effect"), "method": "POST", "headers": {"X-Life": "${secrets.LIFE}"}})
}

/// A step that its agent refuses.
fn refused(id: &str, after: &str) -> Value {
    json!({"id": id, "agent": {"id": "@orchestr8/transform"}, "dependencies": [after], "input": {"no": "operation"}})
}

/// A step with an effect outside that another effect undoes.
fn undoable(outside: SocketAddr, id: &str, after: &[&str]) -> Value {
    let mut step = effect(outside, id, after);
    step["compensate"] = json!({"agent": {"id": "@orchestr8/http"}, "input": input(outside)});
    step
}

/// A step with an effect outside.
fn effect(outside: SocketAddr, id: &str, after: &[&str]) -> Value {
    json!({"id": id, "agent": {"id": "@orchestr8/http"}, "dependencies": after, "input": input(outside)})
}
