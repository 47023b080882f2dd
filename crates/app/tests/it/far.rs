//! Tools of another server that run as tasks there. The other server is this very program, over pipes and over HTTP.

use serde_json::{Value, json};

use crate::program::Place;
use crate::server::Server;
use crate::stdio::Client;

/// Where the other server is, and which era it speaks; the first is spoken when there are both.
const ERAS: [&str; 2] = ["legacy,modern", "modern"];

/// A place with the other server `far`; over HTTP it is started here.
fn place(over_http: bool, eras: &str) -> (Place, Option<Server>) {
    let place = Place::new();
    if over_http {
        let server = Server::of_far(&place, eras);
        let url = format!("http://{}/mcp", server.address);
        place.write("orchestr8.toml", &format!("[mcpServers.far]\nurl = '{url}'\n"));
        return (place, Some(server));
    }
    // In a folder of its own, where it does not find the configuration that names it.
    place.write("far/empty", "");
    let (command, cwd) = (env!("CARGO_BIN_EXE_orchestr8"), place.path().join("far"));
    let config = format!(
        "[mcpServers.far]\ncommand = '{command}'\nargs = ['mcp', '--conformance', '--ephemeral']\ncwd = '{}'\n\
         env = {{ ORCHESTR8_PROTOCOL_ERAS = '{eras}' }}\n",
        cwd.display()
    );
    place.write("orchestr8.toml", &config);
    (place, None)
}

impl Server {
    fn of_far(place: &Place, eras: &str) -> Self {
        place.write("far/empty", "");
        let mut command =
            place.command(&["serve", "--listen", "127.0.0.1:0", "--conformance", "--ephemeral"]);
        command.current_dir(place.path().join("far")).env("ORCHESTR8_PROTOCOL_ERAS", eras);
        Self::of(command)
    }
}

/// A client that can be asked for forms, once the tools of the other server are there.
fn client(place: &Place) -> Client {
    let mut client = Client::start(place, &["--ephemeral"]);
    client.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "it", "version": "1"}}}));
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    while client.call(1, "far.echo", json!({"message": "x"}))["result"]["isError"] != false {}
    client
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn begin(client: &mut Client, tool: &str, args: Value) -> Value {
    let params = json!({"name": tool, "arguments": args, "task": {"ttl": 60_000}});
    let answer = client.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
    let id = answer["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{answer}");
    json!({"taskId": id})
}

fn about(client: &mut Client, method: &str, task: &Value) -> Value {
    client.ask(&json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": task}))
}

/// What the tools of the other server say about tasks, through us.
fn support(client: &mut Client, tool: &str) -> Value {
    let mut params = json!({});
    loop {
        let page = client.ask(&json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": params}));
        let tools = page["result"]["tools"].as_array().unwrap();
        if let Some(found) = tools.iter().find(|found| found["name"] == tool) {
            return found["execution"]["taskSupport"].clone();
        }
        params = json!({"cursor": page["result"]["nextCursor"]});
        assert!(params["cursor"].is_string(), "there is no {tool}");
    }
}

#[test]
fn a_tool_that_must_be_a_task_there_is_called_like_any_other_here() {
    for (over_http, eras) in [(false, ERAS[0]), (false, ERAS[1]), (true, ERAS[0]), (true, ERAS[1])] {
        let (place, _server) = place(over_http, eras);
        let mut client = client(&place);
        let answer = client.call(5, "far.failing_job", json!({}));
        let said = answer["result"]["content"].as_array().and_then(|blocks| blocks.last()).unwrap();
        assert_eq!(said["text"], "The job failed, as it always does", "{over_http} {eras}: {answer}");
        assert_eq!(answer["result"]["isError"], true);
        let named = &answer["result"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(named, &Value::Null, "nobody here knows the task there");
        client.end();
    }
}

#[test]
fn a_task_here_is_a_task_there_from_its_beginning_to_its_end() {
    for over_http in [false, true] {
        let (place, server) = place(over_http, ERAS[0]);
        let mut client = client(&place);
        for (tool, expected) in [
            ("far.slow_compute", json!("optional")),
            ("far.failing_job", json!("optional")),
            ("far.echo", Value::Null),
        ] {
            assert_eq!(support(&mut client, tool), expected, "{tool}");
        }
        let task = begin(&mut client, "far.slow_compute", json!({"seconds": 0.01, "label": "it"}));
        assert_eq!(text(&about(&mut client, "tasks/result", &task)), "Computed it after 0.01s");
        let task = begin(&mut client, "far.confirm_delete", json!({"filename": "a.txt"}));
        let question = loop {
            let heard = client.hear();
            if heard["method"] == "elicitation/create" {
                break heard;
            }
        };
        assert_eq!(question["params"]["message"], "far: Delete a.txt?", "{question}");
        let answer = json!({"action": "accept", "content": {"confirm": true}});
        client.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}).to_string());
        assert_eq!(text(&about(&mut client, "tasks/result", &task)), "Deleted a.txt");
        let task = begin(&mut client, "far.slow_compute", json!({"seconds": 60}));
        let there = server.as_ref().map(There::greet);
        if let Some(there) = &there {
            there.until("working");
        }
        assert_eq!(about(&mut client, "tasks/cancel", &task)["result"]["status"], "cancelled");
        if let Some(there) = &there {
            there.until("cancelled");
        }
        client.end();
    }
}

/// The other server, asked by itself.
struct There<'s> {
    server: &'s Server,
    /// The headers of the conversation with it.
    head: String,
}

impl<'s> There<'s> {
    fn greet(server: &'s Server) -> Self {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}});
        let head = server.connect().post("", &hello.to_string()).unwrap().head;
        let session = head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id")).unwrap();
        let head = format!("{session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(server.connect().post(&head, ready).unwrap().status, 202);
        Self { server, head }
    }

    /// Waits until one of its tasks is so.
    fn until(&self, status: &str) {
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tasks/list"}"#;
        let mut http = self.server.connect();
        loop {
            let listed = http.post(&self.head, list).unwrap().json();
            let tasks = listed["result"]["tasks"].as_array().unwrap();
            if tasks.iter().any(|task| task["status"] == status) {
                return;
            }
        }
    }
}
