//! The person at the client of a planner is asked whether a plan is approved, over stdio.

use serde_json::{Value, json};

use super::{GOOD, root_of, with_workspace};
use crate::program::Place;
use crate::stdio::{Client, call, error_of};

/// A planner whose client can ask its person, in a session, with a saved plan; the hash of that plan.
fn planner(place: &Place) -> (Client, String) {
    let mut client = Client::start(place, &["--governed", "planner"]);
    client.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"}}}));
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.call(1, "begin_session", json!({"workspace_root": root_of(place)}));
    let saved = client.call(2, "save_plan", json!({"content": GOOD}));
    let text = saved["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{saved}"));
    let saved: Value = serde_json::from_str(text).unwrap();
    let hash = saved["hash"].as_str().unwrap().to_owned();
    (client, hash)
}

/// Calls approve_plan and answers the question with this; what the call gives.
fn approve_plan(client: &mut Client, hash: &str, result: &Value) -> Value {
    client.say(&call(3, "approve_plan", json!({"hash": hash})).to_string());
    loop {
        let heard = client.hear();
        if heard["method"] == "elicitation/create" {
            let message = heard["params"]["message"].as_str().unwrap();
            assert!(message.contains(hash) && message.contains("# Plan: greeting"), "{message}");
            client.say(&json!({"jsonrpc": "2.0", "id": heard["id"], "result": result}).to_string());
        } else if heard["id"] == 3 {
            return heard;
        }
    }
}

#[test]
fn a_person_who_says_yes_approves_and_everything_else_does_not() {
    let place = with_workspace(Place::new());
    let (mut client, hash) = planner(&place);
    for no in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept", "content": {"approve": false}}),
    ] {
        let error = error_of(&approve_plan(&mut client, &hash, &no));
        assert_eq!(error["error_code"], "UNAUTHORIZED_ACTION", "{no}: {error}");
        assert_eq!(error["details"]["reason"], "not_approved", "{no}: {error}");
    }
    let yes = json!({"action": "accept", "content": {"approve": true}});
    let approved = approve_plan(&mut client, &hash, &yes);
    assert_eq!(approved["result"]["isError"], false, "{approved}");
    client.end();
    let shown = place.run(&["--json", "plans", "show", &hash]);
    let shown: Value = serde_json::from_str(&shown.out).unwrap_or_else(|_| panic!("{shown:?}"));
    assert_eq!((&shown["status"], &shown["method"]), (&json!("approved"), &json!("elicitation")), "{shown}");
}
