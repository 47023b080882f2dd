//! Tools that run as tasks. Every look at a task brings it one step further, so that nothing here depends on time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{MODERN, error, result, said, send, text};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The tools, and what they say about tasks in the older revision.
const TOOLS: [(&str, &str); 9] = [
    ("steps", "required"),
    ("steps_and_write", "required"),
    ("either", "optional"),
    ("asking_task", "required"),
    ("asking_task_and_write", "required"),
    ("failing_task", "required"),
    ("cancelled_task", "required"),
    ("vanishing_task", "required"),
    ("odd_task", "required"),
];

#[derive(Default)]
pub struct Tasks {
    modern: bool,
    all: BTreeMap<String, Task>,
    /// The ids of tasks that the client has cancelled.
    stopped: Vec<String>,
}

struct Task {
    tool: String,
    args: Value,
    looks: u64,
    /// What the client has answered.
    heard: Option<Value>,
    /// Requests for the result that wait for the end.
    waiting: Vec<Value>,
}

pub type Answer = (&'static str, Value);

impl Tasks {
    pub fn new(modern: bool) -> Self {
        Self { modern, ..Self::default() }
    }

    pub fn definitions(&self) -> Vec<Value> {
        let tools = TOOLS.iter().map(|(name, support)| {
            let hints = json!({"readOnlyHint": (["steps", "either", "asking_task"].contains(name))});
            let mut tool = json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints});
            if !self.modern {
                tool["execution"] = json!({"taskSupport": support});
            }
            tool
        });
        let stopped = json!({"name": "stopped", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
        tools.chain([stopped]).collect()
    }

    /// A call of one of the tools here; nothing if it is none.
    pub fn call(&mut self, params: &Value) -> Option<Answer> {
        let name = params["name"].as_str()?;
        if name == "stopped" {
            return Some(said(&json!(self.stopped).to_string()));
        }
        let (_, support) = TOOLS.iter().find(|(tool, _)| *tool == name)?;
        let declared = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"][TASKS];
        let as_task = if self.modern { declared.is_object() } else { params["task"]["ttl"].is_u64() };
        if !as_task {
            return Some(match (*support, self.modern) {
                ("optional", _) => said("not a task"),
                (_, true) => (
                    "error",
                    json!({"code": -32_021, "message": "tasks", "data": {"requiredCapabilities": {"extensions": {TASKS: {}}}}}),
                ),
                (_, false) => error(-32_601, "only as a task"),
            });
        }
        let id = format!("task {}", self.all.len() + 1);
        let args = params["arguments"].clone();
        let task = Task { tool: name.to_owned(), args, looks: 0, heard: None, waiting: Vec::new() };
        self.all.insert(id.clone(), task);
        if name.starts_with("asking") && !self.modern {
            let meta = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
            let mut question = self.question(&id);
            question["params"]["_meta"] = meta;
            send(
                json!({"jsonrpc": "2.0", "id": id, "method": question["method"], "params": question["params"]}),
            );
        }
        let mut task = self.shown(&id);
        if self.modern {
            task["resultType"] = json!("task");
            return Some(("result", task));
        }
        // This is allowed beside a task, and must not make it look like the result of a tool.
        let meta = json!({"io.modelcontextprotocol/model-immediate-response": "begun"});
        Some(("result", json!({"task": task, "_meta": meta})))
    }

    /// A request about a task; nothing if it is none, or has to wait.
    pub fn about(&mut self, method: &str, id: &Value, params: &Value) -> Option<Answer> {
        let task = params["taskId"].as_str()?.to_owned();
        let Some(found) = self.all.get_mut(&task) else { return Some(error(-32_602, "no such task")) };
        if found.tool == "vanishing_task" && method != "tasks/cancel" {
            self.all.remove(&task);
            return Some(error(-32_602, "it has vanished"));
        }
        Some(match method {
            "tasks/get" => {
                found.looks += 1;
                result(self.shown(&task))
            }
            "tasks/cancel" => {
                self.stopped.push(task);
                result(json!({}))
            }
            "tasks/update" => {
                found.heard = Some(params["inputResponses"]["it"].clone());
                result(json!({}))
            }
            "tasks/result" if !self.modern => {
                found.waiting.push(id.clone());
                self.settle(&task);
                return None;
            }
            _ => return None,
        })
    }

    /// The client has answered the question with this id.
    pub fn hear(&mut self, message: &Value) {
        let Some(task) = message["id"].as_str().map(str::to_owned) else { return };
        if let Some(found) = self.all.get_mut(&task) {
            found.heard = Some(message.get("result").unwrap_or(&message["error"]).clone());
            self.settle(&task);
        }
    }

    /// Answers those who wait for the result, once there is one.
    fn settle(&mut self, id: &str) {
        let Some((member, mut value)) = self.end(id) else { return };
        if member == "result" {
            value["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": id}, "own": 1});
        }
        for waiting in self.all.get_mut(id).map(|task| std::mem::take(&mut task.waiting)).unwrap_or_default()
        {
            send(json!({"jsonrpc": "2.0", "id": waiting, member: value}));
        }
    }

    /// What the call itself would have been answered, once it has ended.
    fn end(&self, id: &str) -> Option<Answer> {
        let task = &self.all[id];
        match task.tool.as_str() {
            "asking_task" | "asking_task_and_write" => {
                task.heard.as_ref().map(|heard| said(&heard.to_string()))
            }
            "failing_task" => Some(error(-32_603, "it failed")),
            "cancelled_task" | "vanishing_task" | "odd_task" => None,
            _ => {
                let looks = task.args["looks"].as_u64().unwrap_or(1);
                (task.looks >= looks).then(|| said(&format!("done after {} looks", task.looks)))
            }
        }
    }

    fn shown(&self, id: &str) -> Value {
        let task = &self.all[id];
        let (poll, ttl) = if self.modern { ("pollIntervalMs", "ttlMs") } else { ("pollInterval", "ttl") };
        let mut shown = json!({
            "taskId": id, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", ttl: 1000,
            poll: task.args.get("poll").unwrap_or(&json!(0)), "statusMessage": format!("look {}", task.looks),
        });
        let end = self.end(id);
        shown["status"] = json!(match (task.tool.as_str(), &end) {
            ("cancelled_task", _) => "cancelled",
            ("odd_task", _) if task.looks > 0 => "dreaming",
            (_, Some(("error", _))) => "failed",
            (_, Some(_)) => "completed",
            ("asking_task" | "asking_task_and_write", None) => "input_required",
            (_, None) => "working",
        });
        match end {
            Some((member, value)) if self.modern => shown[member] = value,
            None if self.modern && shown["status"] == "input_required" => {
                shown["inputRequests"] = json!({"it": self.question(id)});
            }
            Some(_) | None => {}
        }
        shown
    }

    fn question(&self, id: &str) -> Value {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let message = self.all[id].args.get("message").cloned().unwrap_or_else(|| text(None)["text"].clone());
        let message = message.as_str().unwrap_or("Who?").to_owned();
        json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
    }
}

/// What the server says it can do with tasks.
pub fn capability(version: &str) -> Value {
    match version {
        MODERN => json!({"tools": {"listChanged": true}, "extensions": {TASKS: {}}}),
        _ => {
            json!({"tools": {"listChanged": true}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}})
        }
    }
}
