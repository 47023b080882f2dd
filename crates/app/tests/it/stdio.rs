//! A client that talks to `orchestr8 mcp` line by line, and what it is told.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::program::{PATIENCE, Place, wait};

/// A conversation with a server of our own.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Receiver<String>,
}

impl Client {
    pub fn start(place: &Place, args: &[&str]) -> Self {
        Self::of(place.command(&[&["mcp"], args].concat()))
    }

    pub fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = lines(child.stdout.take().unwrap());
        let log = self::lines(child.stderr.take().unwrap());
        let stdin = child.stdin.take();
        Self { child, stdin, lines, log }
    }

    /// Started and past the handshake.
    pub fn ready(place: &Place, args: &[&str]) -> Self {
        Self::start(place, args).greeted()
    }

    /// The same with a command that was prepared.
    pub fn ready_of(command: Command) -> Self {
        Self::of(command).greeted()
    }

    fn greeted(mut self) -> Self {
        let answer = self.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}}));
        assert_eq!(answer["result"]["serverInfo"]["name"], "orchestr8", "{answer}");
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self
    }

    pub fn say(&mut self, line: &str) {
        self.say_bytes(line.as_bytes());
    }

    pub fn say_bytes(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    pub fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next answer; what the server says unasked in between is passed over.
    pub fn ask(&mut self, message: &Value) -> Value {
        self.say(&message.to_string());
        loop {
            let heard = self.hear();
            if heard.get("method").is_none() {
                return heard;
            }
        }
    }

    pub fn call(&mut self, id: u64, tool: &str, args: Value) -> Value {
        self.ask(&call(id, tool, args))
    }

    /// The first line of the log with this in it.
    pub fn logged(&self, what: &str) -> String {
        loop {
            let line =
                self.log.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the log never said {what}"));
            if line.contains(what) {
                return line;
            }
        }
    }

    /// Ends the conversation and gives everything that was logged and not looked at.
    pub fn log_at_end(mut self) -> String {
        self.stdin = None;
        wait(self.child);
        self.log.iter().collect::<Vec<_>>().join("\n")
    }

    pub fn child(&self) -> &Child {
        &self.child
    }

    /// Closes stdin, as a client that has heard enough, and waits for the end; gives what was said until then.
    pub fn end(mut self) -> (ExitStatus, Vec<Value>) {
        self.stdin = None;
        let status = wait(self.child);
        (status, self.lines.iter().map(|line| serde_json::from_str(&line).unwrap()).collect())
    }
}

pub fn call(id: u64, tool: &str, args: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": args}})
}

/// The structured error inside a failed tool result.
pub fn error_of(answer: &Value) -> Value {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[test]
fn the_handshake_then_tools_then_an_answer() {
    let place = Place::new();
    let mut client = Client::ready(&place, &[]);
    let listed = client.ask(&json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "aacp.ack",
            "aacp.inbox",
            "aacp.request_status",
            "aacp.send",
            "agent.getState",
            "agent.list",
            "agent.sendMessage",
            "agents.list",
            "agents.register",
            "cancel_workflow",
            "echo",
            "get_document",
            "get_session",
            "get_status",
            "health",
            "list_documents",
            "prompt_session",
            "run_workflow",
            "search_knowledge",
            "send_event",
            "start_session"
        ]
    );
    let started = client.call(5, "start_session", json!({"model": "offline/echo"}));
    let id = &started["result"]["structuredContent"]["sessionId"];
    let said = client.call(6, "prompt_session", json!({"sessionId": id, "message": "hello there"}));
    assert_eq!(said["result"]["structuredContent"]["text"], "hello there", "{said}");
    let uri = format!("session://{}", id.as_str().unwrap());
    let read =
        client.ask(&json!({"jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": {"uri": uri}}));
    assert!(
        read["result"]["contents"][0]["text"].as_str().unwrap().contains("## Assistant\n\nhello there"),
        "{read}"
    );
    let answer = client.call(1, "echo", json!({"message": "hello"}));
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(false)));
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("hello"));
    let (status, rest) = client.end();
    assert_eq!((status.code(), rest), (Some(0), vec![]));
}

/// MCP-PROP-7 and MCP-TIMEOUT-4: a call that timed out keeps its slot until its work returns.
#[test]
fn a_timed_out_call_keeps_its_slot() {
    let place = Place::new()
        .with("ORCHESTR8_RESOURCES_MAX_CONCURRENT_EXECUTIONS", "1")
        .with("ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS", "50");
    let mut client = Client::ready(&place, &["--conformance", "--ephemeral"]);
    let timed_out = client.call(1, "test_sleep", json!({"ms": 3000, "stubborn": true}));
    assert_eq!(error_of(&timed_out)["code"], "TIMEOUT");
    let refused = error_of(&client.call(2, "echo", json!({"message": "x"})));
    assert_eq!(
        (&refused["code"], &refused["details"]["reason"]),
        (&json!("RESOURCE_EXHAUSTED"), &json!("concurrency_limit_exceeded"))
    );
    client.logged("late_completed");
    let answered = client.call(3, "echo", json!({"message": "x"}));
    assert_eq!(answered["result"]["isError"], false, "the slot is free before the end is logged");
    client.end();
}

#[test]
fn a_panicking_tool_is_internal_and_the_process_lives() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--conformance", "--ephemeral"]);
    let error = error_of(&client.call(1, "test_panic", json!({})));
    assert_eq!(error["code"], "INTERNAL");
    assert!(error["correlationId"].is_string() && error["runId"].is_string(), "{error}");
    assert!(client.logged("panic").contains("\"level\":\"error\""));
    assert_eq!(client.call(2, "echo", json!({"message": "x"}))["result"]["isError"], false);
    client.end();
}

#[test]
fn only_the_tools_asked_for_are_offered() {
    let place = Place::new();
    let mut client = Client::ready(&place, &["--ephemeral", "--tools", "echo,agent.*"]);
    let listed = client.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["agent.getState", "agent.list", "agent.sendMessage", "echo"]);
    assert_eq!(error_of(&client.call(2, "health", json!({})))["code"], "NOT_FOUND");
    client.end();
}

#[test]
fn a_search_finds_only_the_tools_asked_for() {
    let place = Place::new().with("ORCHESTR8_TOOLS_SEARCH_ABOVE", "1");
    let mut client = Client::ready(&place, &["--ephemeral", "--tools", "tool_search,echo,agent.list"]);
    let answer = client.call(1, "tool_search", json!({"query": "echo agent health", "limit": 50}));
    let found: Value =
        serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    let tools = found["tools"].as_array().unwrap();
    let mut found: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, ["agent.list", "echo"]);
    client.end();
}

#[test]
fn deterministic_mode_says_the_same_twice() {
    let talk = || {
        let place = Place::new();
        let mut client = Client::ready(&place, &["--ephemeral", "--deterministic"]);
        let said = (client.call(1, "no_such_tool", json!({})), client.call(2, "health", json!({})));
        client.end();
        format!("{said:?}")
    };
    let (one, other) = (talk(), talk());
    let without_memory = |text: &str| text.split("memoryUsageBytes").next().unwrap().to_owned();
    assert_eq!(without_memory(&one), without_memory(&other));
    assert!(one.contains("00000000-0000-4000-8000-000000000001"), "{one}");
}
