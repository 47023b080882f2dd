//! What another MCP server offers beside tools, behind the real program: over stdio and HTTP, in either era of the server.

use serde_json::{Value, json};

use crate::program::Place;
use crate::server::Server;
use crate::stdio::Client;

/// With a server of our own that has the fixtures of the conformance suites. `eras` says how it speaks.
fn place(eras: &str) -> Place {
    let place = Place::new().with("PATH", "/usr/bin:/bin");
    let program = env!("CARGO_BIN_EXE_orchestr8");
    place.write(
        "orchestr8.toml",
        &format!(
            "[mcpServers.up]\ncommand = '{program}'\nargs = ['mcp', '--ephemeral', '--conformance']\ncwd = '/'\n\
             env = {{ ORCHESTR8_PROTOCOL_ERAS = '{eras}' }}\n"
        ),
    );
    place
}

/// A client that knows what the other server offers.
fn ready(place: &Place) -> Client {
    let mut client = Client::ready(place, &["--ephemeral"]);
    // It comes up in its own time, and is learned of a moment later.
    while !list(&mut client, "prompts/list", "prompts", "name")
        .contains(&String::from("up.test_simple_prompt"))
    {}
    client
}

fn ask(client: &mut Client, method: &str, params: Value) -> Value {
    client.ask(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
}

fn list(client: &mut Client, method: &str, member: &str, name: &str) -> Vec<String> {
    let answer = ask(client, method, json!({}));
    let items = answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}"));
    items.iter().map(|item| item[name].as_str().unwrap().to_owned()).collect()
}

#[test]
fn resources_and_prompts_of_another_server_are_ours() {
    for eras in ["legacy", "modern"] {
        let mut client = ready(&place(eras));
        let uris = list(&mut client, "resources/list", "resources", "uri");
        assert!(uris.contains(&String::from("mcp://up/test://static-text")), "{uris:?}");
        let templates = list(&mut client, "resources/templates/list", "resourceTemplates", "uriTemplate");
        assert!(templates.contains(&String::from("mcp://up/test://template/{id}/data")), "{templates:?}");
        for (uri, own) in [
            ("mcp://up/test://static-text", "test://static-text"),
            ("mcp://up/test://template/7/data", "test://template/7/data"),
        ] {
            let read = ask(&mut client, "resources/read", json!({"uri": uri}));
            let contents = &read["result"]["contents"][0];
            assert_eq!(contents["uri"], uri, "{read}");
            assert!(
                contents["text"].as_str().is_some_and(|text| !text.contains(own) || own.contains('7')),
                "{read}"
            );
        }
        let unknown = ask(&mut client, "resources/read", json!({"uri": "mcp://up/test://no/such"}));
        assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
        let args =
            json!({"name": "up.test_prompt_with_arguments", "arguments": {"arg1": "one", "arg2": "two"}});
        let prompt = ask(&mut client, "prompts/get", args);
        let text =
            prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{prompt}"));
        assert!(text.contains("one") && text.contains("two"), "{text}");
        let embedded = json!({"name": "up.test_prompt_with_embedded_resource", "arguments": {"resourceUri": "test://x"}});
        let prompt = ask(&mut client, "prompts/get", embedded);
        assert_eq!(
            prompt["result"]["messages"][0]["content"]["resource"]["uri"], "mcp://up/test://x",
            "{prompt}"
        );
        let about = json!({"type": "ref/prompt", "name": "up.test_prompt_with_arguments"});
        let completion = ask(
            &mut client,
            "completion/complete",
            json!({"ref": about, "argument": {"name": "arg1", "value": ""}}),
        );
        assert!(completion["result"]["completion"]["values"].is_array(), "{completion}");
        let none = ask(&mut client, "prompts/get", json!({"name": "up.none"}));
        assert_eq!(none["error"]["code"], -32602, "{none}");
        client.end();
    }
}

/// A server that is reached over the HTTP transport of revision 2024-11-05, which is also how ours is reached by it.
#[test]
fn a_server_of_the_first_revision_is_reached_too() {
    let (behind, here) = (Place::new(), Place::new());
    let server = Server::start(&behind, &["--conformance"]);
    let url = format!("http://{}/sse", server.address);
    here.write("orchestr8.toml", &format!("[mcpServers.up]\ntype = 'sse'\nurl = '{url}'\n"));
    let mut client = ready(&here);
    let read = ask(&mut client, "resources/read", json!({"uri": "mcp://up/test://static-text"}));
    assert!(read["result"]["contents"][0]["text"].is_string(), "{read}");
    let called = client.call(1, "up.test_simple_text", json!({}));
    assert_eq!(called["result"]["isError"], false, "{called}");
    client.end();
}

#[test]
fn updates_and_log_messages_of_another_server_reach_our_client() {
    let mut client = ready(&place("legacy"));
    for method in ["resources/subscribe", "resources/unsubscribe", "resources/subscribe"] {
        let answer = ask(&mut client, method, json!({"uri": "mcp://up/test://static-text"}));
        assert_eq!(answer["result"], json!({}), "{method}: {answer}");
    }
    assert_eq!(ask(&mut client, "logging/setLevel", json!({"level": "debug"}))["result"], json!({}));
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "up.test_tool_with_logging", "arguments": {}}});
    // The level reaches the other server in its own time.
    for id in 1.. {
        client.say(&call(id).to_string());
        let mut loggers = Vec::new();
        loop {
            let heard = client.hear();
            match heard["method"].as_str() {
                Some("notifications/message") => {
                    loggers.push(heard["params"]["logger"].as_str().unwrap().to_owned())
                }
                Some(_) => {}
                None => break,
            }
        }
        if !loggers.is_empty() {
            assert!(loggers.iter().all(|logger| logger.starts_with("up")), "{loggers:?}");
            break;
        }
    }
    client.end();
}

#[test]
fn a_server_that_is_not_running_is_an_error_at_once() {
    let place = Place::new();
    place.write("orchestr8.toml", "[mcpServers.gone]\ncommand = '/no/such/program'\n");
    let mut client = Client::ready(&place, &["--ephemeral"]);
    let read = ask(&mut client, "resources/read", json!({"uri": "mcp://gone/x"}));
    assert_eq!(
        (&read["error"]["code"], &read["error"]["data"]["code"]),
        (&json!(-32603), &json!("UNAVAILABLE")),
        "{read}"
    );
    client.end();
}
