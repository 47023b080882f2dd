//! A small MCP server on stdio for tests: it echoes, fails, hangs, dies and changes its mind on request.
//!
//! Flags: `--mute` never answers, `--deaf` does not end calls that are cancelled, `--id-last` writes the id of an answer last,
//! `--modern` knows only the current revision, `--stay` does not end with its input,
//! `--second` tells the changed definition from the start, `--chatty` writes to stderr, `--tasks` has tools that run
//! as tasks, and with `--no-tasks` does not say so of itself; `--malformed` also lists tools that are not as the protocol has them;
//! `--offers` has resources and prompts.

mod offers;
mod tasks;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";

/// Tools on one page of the list.
const PAGE: usize = 4;

struct Server {
    flags: Vec<String>,
    changed: bool,
    cancelled: Vec<Value>,
    subscription: Option<Value>,
    children: Vec<std::process::Child>,
    /// Calls that wait for an answer of the client, by the id of our question.
    asking: HashMap<String, Asking>,
    tasks: tasks::Tasks,
    /// How often `count` was called.
    counted: u64,
    offers: offers::Offers,
}

/// A call that asks so many questions, one after the other, and then gives back all it heard.
struct Asking {
    call: Value,
    args: Value,
    heard: Vec<Value>,
}

fn main() -> ExitCode {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    if has("--chatty") {
        let _ = writeln!(std::io::stderr(), "the fixture has started");
    }
    let (stay, changed, modern) = (has("--stay"), has("--second"), has("--modern"));
    let mut server = Server {
        changed,
        flags,
        cancelled: Vec::new(),
        subscription: None,
        children: Vec::new(),
        asking: HashMap::new(),
        tasks: tasks::Tasks::new(modern),
        counted: 0,
        offers: offers::Offers::default(),
    };
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        server.receive(&message);
    }
    if stay {
        loop {
            std::thread::park();
        }
    }
    ExitCode::SUCCESS
}

impl Server {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    fn capabilities(&self, version: &str) -> Value {
        if self.has("--offers") {
            return offers::capabilities();
        }
        match self.has("--tasks") && !self.has("--no-tasks") {
            true => tasks::capability(version),
            false => json!({"tools": {"listChanged": true}}),
        }
    }

    fn receive(&mut self, message: &Value) {
        if self.has("--mute") {
            return;
        }
        let params = &message["params"];
        let answer = match message["method"].as_str().unwrap_or_default() {
            "initialize" if self.has("--modern") => error(-32_601, "Method not found"),
            "initialize" => result(json!({
                "protocolVersion": "2025-11-25", "capabilities": self.capabilities("2025-11-25"),
                "serverInfo": {"name": "fixture", "version": "1"},
            })),
            "server/discover" if self.has("--modern") => result(json!({
                "supportedVersions": [MODERN], "capabilities": self.capabilities(MODERN), "ttlMs": 0,
                "cacheScope": "private",
            })),
            "subscriptions/listen" => {
                self.subscription = Some(message["id"].clone());
                let agreed = match self.has("--offers") {
                    true => params["notifications"].clone(),
                    false => json!({"toolsListChanged": true}),
                };
                let followed = agreed["resourceSubscriptions"].as_array().into_iter().flatten();
                self.offers.followed = followed.filter_map(|uri| uri.as_str().map(str::to_owned)).collect();
                self.notify("notifications/subscriptions/acknowledged", json!({"notifications": agreed}));
                return;
            }
            "tools/list" => result(self.list(params)),
            method if self.has("--offers") && offers::is_of(method) => {
                let (changed, modern) = (self.changed, self.has("--modern"));
                match self.offers.answer(method, params, changed, modern) {
                    Some(answer) => answer,
                    None => return,
                }
            }
            "" => return self.hear(message),
            method if method.starts_with("tasks/") && self.has("--tasks") => {
                match self.tasks.about(method, &message["id"], params) {
                    Some(answer) => answer,
                    None => return,
                }
            }
            "tools/call" if params["name"] == "ask" || params["name"] == "ask_and_write" => {
                match self.has("--modern") {
                    true => ask_in_rounds(params),
                    false => return self.ask(message["id"].clone(), params["arguments"].clone(), Vec::new()),
                }
            }
            "tools/call" => match self.call(params) {
                Some(answer) => answer,
                None => return,
            },
            "notifications/cancelled" => {
                self.cancelled.push(params["requestId"].clone());
                if !self.has("--deaf") {
                    let (member, value) = error(-32_800, "Request cancelled");
                    send(json!({"jsonrpc": "2.0", "id": params["requestId"], member: value}));
                }
                return;
            }
            _ if message.get("id").is_none() => return,
            _ => error(-32_601, "Method not found"),
        };
        if self.has("--id-last") {
            return send_text(&format!(
                r#"{{"{}":{},"jsonrpc":"2.0","id":{}}}"#,
                answer.0, answer.1, message["id"]
            ));
        }
        send(json!({"jsonrpc": "2.0", "id": message["id"], answer.0: answer.1}));
    }

    /// Asks the client with a request of our own.
    fn ask(&mut self, call: Value, args: Value, heard: Vec<Value>) {
        let id = format!("question {call} {}", heard.len());
        send(json!({"jsonrpc": "2.0", "id": id, "method": args["method"], "params": args["params"]}));
        self.asking.insert(id, Asking { call, args, heard });
    }

    /// The client has answered.
    fn hear(&mut self, message: &Value) {
        self.tasks.hear(message);
        let Some(Asking { call, args, mut heard }) =
            message["id"].as_str().and_then(|id| self.asking.remove(id))
        else {
            return;
        };
        heard.push(message.get("result").unwrap_or(&message["error"]).clone());
        if heard.len() < usize::try_from(args["count"].as_u64().unwrap_or(1)).unwrap_or(1) {
            return self.ask(call, args, heard);
        }
        let (member, value) = said(&json!(heard).to_string());
        send(json!({"jsonrpc": "2.0", "id": call, member: value}));
    }

    fn list(&self, params: &Value) -> Value {
        let from = params["cursor"].as_str().and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or(0);
        let all = self.tools();
        let page: Vec<&Value> = all.iter().skip(from).take(PAGE).collect();
        let mut listed = json!({"tools": page, "ttlMs": 0, "cacheScope": "private"});
        if from + PAGE < all.len() {
            listed["nextCursor"] = json!((from + PAGE).to_string());
        }
        listed
    }

    fn tools(&self) -> Vec<Value> {
        let tool = |name: &str, hints: Value| json!({"name": name, "description": format!("The tool {name}"), "inputSchema": {"type": "object"}, "annotations": hints});
        let (read, write) = (json!({"readOnlyHint": true, "openWorldHint": false}), json!({}));
        let about = if self.changed { "Echoes, and more." } else { "Echoes." };
        let message =
            json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]});
        let mut tools = vec![json!({
            "name": "echo", "title": "Echo", "description": about, "inputSchema": message, "outputSchema": message,
            "annotations": read,
        })];
        let reading = [
            "fail",
            "progress",
            "environment",
            "cancelled",
            "hang_read",
            "die_once",
            "ask",
            "weird name!",
            "count",
            "large",
            "finish",
        ];
        tools.extend(reading.map(|name| tool(name, read.clone())));
        tools.extend(
            ["broken", "wrong", "hang", "die", "change", "spawn", "ask_and_write"]
                .map(|name| tool(name, write.clone())),
        );
        if self.has("--offers") {
            tools.extend(
                ["offered", "touch", "log", "grow", "change_prompt", "link"]
                    .map(|name| tool(name, read.clone())),
            );
        }
        if self.has("--tasks") {
            tools.extend(self.tasks.definitions());
        }
        if self.has("--malformed") {
            tools.insert(0, json!({"name": "no_schema"}));
            tools.push(json!({"name": "odd_hint", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}}));
            let looks = json!({"pattern": r"^(?!\.)(?!.*\.\.)[a-z.]+@[a-z.]+$", "type": "string"});
            let odd = json!({"pattern": r"\p{NoSuchScript}", "type": "string"});
            tools.push(json!({"name": "patterns", "inputSchema": {"type": "object", "properties": {"to": looks, "odd": odd}}}));
        }
        tools.push(json!({"name": "bad_schema", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}}));
        tools
    }

    fn call(&mut self, params: &Value) -> Option<(&'static str, Value)> {
        if self.has("--tasks")
            && let Some(answer) = self.tasks.call(params)
        {
            return Some(answer);
        }
        if self.has("--offers")
            && let Some(answer) = self.call_of_offers(params)
        {
            return Some(answer);
        }
        let args = &params["arguments"];
        Some(match params["name"].as_str().unwrap_or_default() {
            "echo" => result(
                json!({"content": [text(args["message"].as_str())], "structuredContent": {"message": args["message"]}}),
            ),
            "fail" => result(json!({"content": [text(Some("it failed"))], "isError": true})),
            "broken" => error(-32_603, "it broke"),
            "wrong" => error(-32_602, "it is wrong"),
            "hang" | "hang_read" => return None,
            "die" => std::process::exit(3),
            "die_once" => self.die_once(args["mark"].as_str().unwrap_or_default()),
            "change" => {
                self.changed = !self.changed;
                self.notify("notifications/tools/list_changed", json!({}));
                said("changed")
            }
            "cancelled" => said(&json!(self.cancelled).to_string()),
            // Answers a call that was cancelled, as a server does that cannot stop.
            "finish" => {
                for id in std::mem::take(&mut self.cancelled) {
                    let (member, value) = said("late");
                    send(json!({"jsonrpc": "2.0", "id": id, member: value}));
                }
                said("finished")
            }
            "large" => {
                let bytes = usize::try_from(args["bytes"].as_u64().unwrap_or(0)).unwrap_or(0);
                said(&"x".repeat(bytes))
            }
            "environment" => said(&environment()),
            "count" => {
                self.counted += 1;
                said(&self.counted.to_string())
            }
            "spawn" => self.spawn(),
            // It tells how far it has come, and never ends.
            "progress" => {
                for done in [1, 2] {
                    let token = &params["_meta"]["progressToken"];
                    self.notify(
                        "notifications/progress",
                        json!({"progressToken": token, "progress": done, "total": 2}),
                    );
                }
                return None;
            }
            other => said(&format!("called {other}")),
        })
    }

    /// Dies the first time, and answers once the mark is there.
    fn die_once(&self, mark: &str) -> (&'static str, Value) {
        if std::path::Path::new(mark).exists() {
            return said("survived");
        }
        let _ = std::fs::write(mark, "");
        std::process::exit(3)
    }

    /// Starts a child of its own that outlives it, unless somebody ends the group.
    fn spawn(&mut self) -> (&'static str, Value) {
        match Command::new("sleep").arg("1000").spawn() {
            Ok(child) => {
                let id = child.id();
                self.children.push(child);
                said(&id.to_string())
            }
            Err(problem) => error(-32_603, &problem.to_string()),
        }
    }

    fn notify(&self, method: &str, mut params: Value) {
        if let Some(id) = &self.subscription {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        }
        send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
}

/// Ends the call with a question, until so many were answered.
fn ask_in_rounds(params: &Value) -> (&'static str, Value) {
    let (args, state) = (&params["arguments"], params["requestState"].as_str());
    let mut heard: Vec<Value> = state.and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default();
    heard.extend(params["inputResponses"].get("it").cloned());
    if heard.len() >= usize::try_from(args["count"].as_u64().unwrap_or(1)).unwrap_or(1) {
        let able = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        return said(&json!({"heard": heard, "able": able}).to_string());
    }
    let question = json!({"method": args["method"], "params": args["params"]});
    let needs = json!({
        "resultType": "input_required", "inputRequests": {"it": question}, "requestState": json!(heard).to_string(),
    });
    ("result", needs)
}

fn environment() -> String {
    let bytes = std::fs::read("/proc/self/environ").unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let pairs: HashMap<&str, &str> = text.split('\0').filter_map(|pair| pair.split_once('=')).collect();
    json!(pairs).to_string()
}

fn text(text: Option<&str>) -> Value {
    json!({"type": "text", "text": text})
}

fn said(words: &str) -> (&'static str, Value) {
    result(json!({"content": [text(Some(words))]}))
}

fn result(mut value: Value) -> (&'static str, Value) {
    value["resultType"] = json!("complete");
    ("result", value)
}

fn error(code: i64, message: &str) -> (&'static str, Value) {
    ("error", json!({"code": code, "message": message}))
}

fn send(message: Value) {
    send_text(&message.to_string());
}

fn send_text(message: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{message}");
    let _ = stdout.flush();
}
