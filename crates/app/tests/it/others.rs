//! Tools of other MCP servers, behind the real program.

use serde_json::{Value, json};

use crate::program::Place;
use crate::stdio::{Client, error_of};

/// A server in a few lines of shell: one tool, whose description is in a file.
pub const SERVER: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
        *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"hi","description":"'$(cat about)'","inputSchema":{"type":"object"}}]}}' ;;
        *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"hi from sh"}]}}' ;;
        *'"method":"notifications'*) ;;
        *) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
    esac
done
"#;

fn place() -> Place {
    let place = Place::new().with("PATH", "/usr/bin:/bin");
    place.write("server.sh", SERVER);
    place.write("about", "first");
    place.write("orchestr8.toml", "[mcpServers.other]\ncommand = 'sh'\nargs = ['server.sh']\n");
    place
}

#[test]
fn a_tool_of_another_server_is_a_tool_of_ours() {
    let place = place();
    let lists = |args: &[&str]| {
        let listed: Value = serde_json::from_str(&place.run(args).out).unwrap();
        listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "other.hi")
    };
    assert!(!lists(&["tools", "list", "--json"]), "nothing was started");
    assert!(lists(&["tools", "list", "--json", "--refresh"]));
    assert!(lists(&["tools", "list", "--json"]), "what was learned is known");
    let called = place.run(&["tools", "call", "other.hi"]);
    assert_eq!((called.code, called.out.as_str()), (Some(0), "hi from sh\n"), "{called:?}");
}

#[test]
fn a_client_hears_of_tools_that_come_later() {
    let place = place();
    let mut client = Client::ready(&place, &["--ephemeral"]);
    let answer = loop {
        let answer = client.call(1, "other.hi", json!({}));
        if answer["result"]["isError"] == false {
            break answer;
        }
        assert_eq!(error_of(&answer)["code"], "NOT_FOUND", "it is not up yet");
    };
    assert_eq!(answer["result"]["content"][0]["text"], "hi from sh");
    client.end();
}

#[test]
fn a_changed_definition_waits_until_it_is_accepted() {
    let place = place();
    assert_eq!(place.run(&["tools", "call", "other.hi"]).code, Some(0));
    let nothing = place.run(&["tools", "accept", "other.hi"]);
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
    place.write("about", "second");
    let refused = place.run(&["tools", "call", "other.hi"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains("code: QUARANTINED"), "{}", refused.err);
    let over_mcp = answer_over_mcp(&place);
    assert_eq!(over_mcp["cause"]["code"], "QUARANTINED", "{over_mcp}");
    assert!(
        over_mcp["message"].as_str().unwrap().contains("has changed since it was accepted"),
        "{over_mcp}"
    );
    assert_eq!(place.run(&["tools", "accept"]).out, "other.hi\n");
    let shown = place.run(&["tools", "accept", "other.hi", "--dry-run"]);
    assert!(
        shown.out.contains("-  \"description\": \"first\"")
            && shown.out.contains("+  \"description\": \"second\""),
        "{}",
        shown.out
    );
    assert_eq!(place.run(&["tools", "call", "other.hi"]).code, Some(4));
    assert_eq!(place.run(&["tools", "accept", "other.hi"]).code, Some(0));
    assert_eq!(place.run(&["tools", "call", "other.hi"]).code, Some(0));
}

/// What a client is told that calls the tool, once its server is up.
fn answer_over_mcp(place: &Place) -> Value {
    let mut client = Client::ready(place, &[]);
    loop {
        let answer = client.call(1, "other.hi", json!({}));
        let error = error_of(&answer);
        if error["code"] != "NOT_FOUND" {
            client.end();
            return error;
        }
    }
}

/// What models and people read of a tool of another server holds nothing that they cannot see.
#[test]
fn hidden_characters_of_a_description_are_written_out() {
    let place = place();
    place.write("about", "safe\u{202e}evil\u{200b}");
    assert_eq!(place.run(&["tools", "call", "other.hi"]).code, Some(0));
    let mut client = Client::ready(&place, &[]);
    while client.call(1, "other.hi", json!({}))["result"]["isError"] == true {}
    let listed = client.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let tool = tools.iter().find(|tool| tool["name"] == "other.hi").unwrap();
    assert_eq!(tool["description"], "safe\\u{202e}evil\\u{200b}");
    client.end();
}

#[test]
fn a_server_that_does_not_start_holds_up_nobody() {
    let place = Place::new();
    place.write("orchestr8.toml", "[mcpServers.gone]\ncommand = '/no/such/program'\n");
    let mut client = Client::ready(&place, &["--ephemeral"]);
    assert_eq!(client.call(1, "echo", json!({"message": "x"}))["result"]["isError"], false);
    client.logged("gone");
    client.end();
}
