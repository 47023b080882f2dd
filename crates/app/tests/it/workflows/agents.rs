//! Agents of steps through the program: the one that `create agent` writes, and sessions that go on from run to run.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;

use super::{alone, json_of, write};

#[test]
fn a_new_python_agent_is_called_by_a_workflow() {
    let place = alone();
    assert_eq!(place.run(&["create:agent", "shout", "--lang", "python"]).code, Some(0));
    let mut command = Command::new("python3");
    command.arg(place.path().join("agents/shout/agent.py")).env("PORT", "0");
    let mut agent = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("python3 is needed");
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("shout listens on ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
    place.write("orchestr8.json", &json!({"workflows": {"agents": {"shout": {"url": url}}}}).to_string());
    let step = |input: serde_json::Value| json!([{"id": "a", "agentId": "shout", "input": input}]);
    let said = place.run(&["run", &write(&place, "calls", &step(json!({"text": "hello"}))), "--quiet"]);
    let wrong = place.run(&["run", &write(&place, "errs", &step(json!({"txet": "hello"}))), "--quiet"]);
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(json_of(&said), json!({"a": {"result": {"text": "HELLO"}}}));
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.err.contains("text is missing"), "{}", wrong.err);
}

#[test]
fn a_session_goes_on_from_one_run_to_the_next() {
    let place = alone();
    let step = |message: &str| json!([{"id": "a", "agentId": "@orchestr8/session", "input": {"sessionId": "s", "message": message}}]);
    for message in ["one", "two"] {
        let said = place.run(&["run", &write(&place, message, &step(message)), "--quiet"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(json_of(&said)["a"]["text"], message);
    }
    let look = json!([{"id": "a", "agentId": "@orchestr8/tool", "config": {"tool": "get_session", "arguments": {"sessionId": "s"}}}]);
    let said = place.run(&["run", &write(&place, "look", &look), "--quiet"]);
    assert_eq!(json_of(&said)["a"]["messageCount"], 4, "{said:?}");
}
