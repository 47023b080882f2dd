//! Secrets stay where they were put: canaries in arguments, configuration and environment appear nowhere else.

use serde_json::json;

use crate::program::Place;
use crate::stdio::{Client, error_of};

/// One word for each place a secret can come in by.
const CANARIES: [&str; 6] = [
    "canary-argument",
    "canary-wrong-argument",
    "canary-nested",
    "canary-env",
    "canary-header",
    "canary-admin",
];

fn assert_silent(what: &str, bytes: &[u8]) {
    for canary in CANARIES {
        let found = bytes.windows(canary.len()).any(|window| window == canary.as_bytes());
        assert!(!found, "{canary} is in {what}");
    }
}

#[test]
fn no_secret_reaches_log_journal_audit_or_error() {
    let place = Place::new()
        .with("ORCHESTR8_LOGGING_LEVEL", "debug")
        .with("ORCHESTR8_TOOLS_ADMIN_POLICY_MODE", "token")
        .with("ORCHESTR8_TOOLS_ADMIN_POLICY_TOKEN_ENV_VAR", "MY_ADMIN_TOKEN")
        .with("MY_ADMIN_TOKEN", "canary-admin");
    place.write(
        "orchestr8.toml",
        "[mcpServers.a]\ncommand = '/no/such/program'\nenv = { KEY = 'canary-env' }\n\
         [mcpServers.b]\nurl = 'http://127.0.0.1:9/'\nheaders = { Authorization = 'Bearer canary-header' }\n",
    );
    let mut client = Client::ready(&place, &["--conformance"]);
    let message = json!({"type": "login", "payload": {"password": "canary-argument", "deep": [{"apiKey": "canary-nested"}]}});
    let sent = client.call(1, "agent.sendMessage", json!({"targetAgentId": "echo", "message": message}));
    assert_eq!(sent["result"]["isError"], false, "{sent}");
    let wrong = client.call(2, "echo", json!({"message": 5, "token": "canary-wrong-argument"}));
    assert_eq!(error_of(&wrong)["code"], "INVALID_ARGUMENT");
    assert_silent("the error", wrong.to_string().as_bytes());
    let state = client.call(3, "agent.getState", json!({"agentId": "echo"}));
    assert_eq!(state["result"]["isError"], false, "{state}");
    assert_silent("the state of an agent", state.to_string().as_bytes());
    client.logged("\"b\"");
    let log = client.log_at_end();
    assert!(log.contains("\"level\":\"debug\""), "the log was on");
    assert_silent("the log", log.as_bytes());
    let mut files = 0;
    for entry in std::fs::read_dir(place.data_file().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_silent(&path.display().to_string(), &std::fs::read(&path).unwrap());
        files += 1;
    }
    assert!(files > 0);
    for args in [&["config", "show"][..], &["config", "show", "--json"], &["doctor"]] {
        let said = place.run(args);
        assert_silent(&args.join(" "), format!("{}{}", said.out, said.err).as_bytes());
    }
}
