//! One full run with a canary in every secret, variable, header, token and key; then everything that was written is searched.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::secrets::{Mirror, forms};
use crate::program::Place;
use crate::server::{Answer, Server};
use crate::workflows::echo;

/// One for each way in.
const NAMED: &str = "canary-named-secret-01";
const ROTATED: &str = "canary-rotated-secret-02";
const DECLARED: &str = "canary-declared-secret-03";
const VARIABLE: &str = "canary-variable-04";
const PROVIDER: &str = "canary-provider-key-05";
const BOOTSTRAP: &str = "canary-bootstrap-06";
const TOKEN: &str = "canary-bearer-token-07";
const ADMIN: &str = "canary-admin-token-08";
const AGENT_HEADER: &str = "canary-agent-header-09";
const SERVER_HEADER: &str = "canary-server-header-10";
const SERVER_ENV: &str = "canary-server-env-11";
const CALLBACK: &str = "canary-callback-secret-12";
const WEBHOOK: &str = "canary-webhook-secret-13";
const REQUEST_HEADER: &str = "canary-request-header-14";
const UNBOUND: &str = "canary-unbound-secret-15";
const WRONG_TOKEN: &str = "canary-wrong-token-16";
const EXEC: &str = "canary-exec-secret-17";
const MASTER: &str = "Y2FuYXJ5LW1hc3Rlci1rZXktMTgtLS0tLS0tLS0tLS0=";

const CANARIES: [&str; 18] = [
    NAMED,
    ROTATED,
    DECLARED,
    VARIABLE,
    PROVIDER,
    BOOTSTRAP,
    TOKEN,
    ADMIN,
    AGENT_HEADER,
    SERVER_HEADER,
    SERVER_ENV,
    CALLBACK,
    WEBHOOK,
    REQUEST_HEADER,
    UNBOUND,
    WRONG_TOKEN,
    EXEC,
    MASTER,
];

fn silent(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for canary in CANARIES {
        for form in forms(canary) {
            assert!(!text.contains(&form), "{canary} is in {what}, as {form}");
        }
    }
}

fn place(shop: &Mirror) -> Place {
    let place = Place::new()
        .with("ORCHESTR8_LOGGING_LEVEL", "debug")
        .with("ORCHESTR8_WORKFLOWS_HTTP_ALLOW_PRIVATE", "true")
        .with("ORCHESTR8_AACP_CALLBACKS_ALLOW_PRIVATE", "true")
        .with("ORCHESTR8_KNOWLEDGE_WEBHOOKS_ALLOW_PRIVATE", "true")
        .with("ORCHESTR8_SECRET_DECLARED", DECLARED)
        .with("ORCHESTR8_SECRET_UNBOUND", UNBOUND)
        .with("ORCHESTR8_BOOTSTRAP_SECRET", BOOTSTRAP)
        .with("ANTHROPIC_API_KEY", PROVIDER)
        .with("MY_DB_PASSWORD", VARIABLE)
        .with("MY_ADMIN_TOKEN", ADMIN)
        .with("MASTER", MASTER)
        .with("PATH", "/usr/bin:/bin");
    let sha256: String = Sha256::digest(TOKEN.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    place.write(
        "orchestr8.json",
        &json!({
            "auth": {"tokens": [{"name": "ci", "sha256": sha256, "tenant": "local", "roles": ["owner", "admin"]}]},
            "secrets": {
                "key": {"env": "MASTER"},
                "named": {"DECLARED": {"agents": ["@orchestr8/http", "far"], "to": [shop.header("X-Declared"), shop.header("body")]}},
            },
            "tools": {"adminPolicy": {"mode": "token", "tokenEnvVar": "MY_ADMIN_TOKEN"}},
            "workflows": {
                "agents": {"far": {"url": shop.url(), "headers": {"X-Agent": AGENT_HEADER}}},
                "exec": {"templates": {"sh": {"program": "/bin/sh", "args": ["-c", "{script}"],
                    "holes": {"script": "text"}, "variables": ["TOKEN"]}}},
            },
            "mcpServers": {
                "a": {"command": "/no/such/program", "env": {"KEY": SERVER_ENV}},
                "b": {"url": "http://127.0.0.1:9/", "headers": {"Authorization": format!("Bearer {SERVER_HEADER}")}},
            },
        })
        .to_string(),
    );
    place
}

/// Asks as the bearer of the token, with a header that nothing needs.
fn ask(server: &Server, method: &str, target: &str, body: Option<&Value>) -> Answer {
    let more = format!("Authorization: Bearer {TOKEN}\r\nX-Api-Key: {REQUEST_HEADER}\r\n");
    let body = body.map(Value::to_string);
    let answer = server.connect().request(method, target, &more, body.as_deref()).unwrap();
    silent(target, answer.body.as_bytes());
    silent(target, answer.head.as_bytes());
    answer
}

/// Every way to use a secret, the right ones and the wrong ones.
fn workflow(shop: &Mirror) -> Value {
    let url = shop.url();
    let continued = |mut step: Value| {
        step["onError"] = json!("continue");
        step
    };
    let http = |id: &str, input: Value| json!({"id": id, "agentId": "@orchestr8/http", "config": {"url": url}, "input": input});
    json!({"id": "scan", "version": "1.0.0", "name": "scan", "secretRefs": ["NAMED", "DECLARED", "EXEC"],
    "policies": {"journal": {"allow": ["output", "output.*", "input", "message"]}},
    "steps": [
        http("header", json!({"headers": {"X-Named": "${secrets.NAMED}", "X-Declared": "${secrets.DECLARED}"}})),
        http("body", json!({"body": {"inside": "${secrets.DECLARED}"}})),
        {"id": "far", "agentId": "far", "onError": "continue", "input": {"value": "${secrets.DECLARED}"}},
        continued(http("wrong", json!({"headers": {"X-Wrong": "${secrets.NAMED}"}}))),
        {"id": "program", "agentId": "@orchestr8/exec", "input": {},
         "config": {"template": "sh", "values": {"script": "echo \"$TOKEN\"; echo \"$TOKEN\" >&2"}, "env": {"TOKEN": "${secrets.EXEC}"}}},
        {"id": "broken", "agentId": "@orchestr8/exec", "onError": "continue", "input": {},
         "config": {"template": "sh", "values": {"script": "echo \"$TOKEN\" >&2; exit 3"}, "env": {"TOKEN": "${secrets.EXEC}"}}},
        echo("echo", &[], json!({"plain": "${secrets.NAMED}"})),
    ]})
}

fn run(server: &Server, shop: &Mirror) -> Vec<String> {
    let set = |name: &str, value: &str, to: &str| {
        let body = json!({"name": name, "value": value, "workflows": ["scan"], "to": [to]});
        let answer = ask(server, "POST", "/v1/secrets", Some(&body));
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    set("NAMED", NAMED, &shop.header("X-Named"));
    set("EXEC", EXEC, "exec:sh:TOKEN");
    let applied = ask(server, "PUT", "/v1/workflows", Some(&json!({"workflow": workflow(shop)})));
    assert_eq!(applied.status, 201, "{applied:?}");
    let mut executions = Vec::new();
    let mut execute = || {
        let begun = ask(server, "POST", "/v1/workflows/execute", Some(&json!({"workflowId": "scan"})));
        let id = begun.json()["executionId"].as_str().unwrap_or_else(|| panic!("{begun:?}")).to_owned();
        executions.push(id);
    };
    execute();
    let rotated = ask(server, "PUT", "/v1/secrets/NAMED", Some(&json!({"value": ROTATED})));
    assert_eq!(rotated.status, 200, "{rotated:?}");
    execute();
    let agent = json!({"agentId": "far", "callbackUrl": shop.url(), "callbackSecret": CALLBACK});
    assert!(ask(server, "POST", "/aacp/agents", Some(&agent)).status < 300);
    let message =
        json!({"sourceAgentId": "me", "targetAgentId": "far", "messageType": "EVENT", "payload": {"n": 1}});
    assert!(ask(server, "POST", "/aacp/messages", Some(&message)).status < 300);
    let hook = ask(server, "POST", "/webhooks", Some(&json!({"url": shop.url(), "secret": WEBHOOK})));
    assert!(hook.status < 300, "{hook:?}");
    let refused = server
        .connect()
        .request("GET", "/v1/secrets", &format!("Authorization: Bearer {WRONG_TOKEN}\r\n"), None)
        .unwrap();
    assert_eq!(refused.status, 401);
    executions
}

fn scan_folder(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += scan_folder(&path);
        } else if path.is_file() {
            silent(&path.display().to_string(), &std::fs::read(&path).unwrap());
            files += 1;
        }
    }
    files
}

#[test]
fn no_canary_is_found_in_anything_that_was_written() {
    let shop = Mirror::start();
    let place = place(&shop);
    let log = place.path().join("serve.log");
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.stderr(std::fs::File::create(&log).unwrap());
    let server = Server::logging(command);
    let executions = run(&server, &shop);
    for (index, execution) in executions.iter().enumerate() {
        let shown = ask(&server, "GET", &format!("/v1/executions/{execution}?wait=60s"), None).json();
        assert_eq!(shown["status"], "completed", "{index}: {shown:#}");
        assert_eq!(shown["outputs"]["program"]["stdout"], "[REDACTED]\n");
        assert_eq!(shown["steps"]["wrong"]["error"]["details"]["reason"], "destination", "{shown:#}");
        ask(&server, "GET", &format!("/v1/executions/{execution}/journal"), None);
        ask(&server, "GET", &format!("/v1/executions/{execution}/workflow"), None);
    }
    let heard = shop.heard();
    for sent in [NAMED, ROTATED, DECLARED, AGENT_HEADER] {
        assert!(heard.contains(sent), "{sent} was never sent, so nothing is proven");
    }
    for target in [
        "/v1/audit",
        "/v1/secrets",
        "/metrics",
        "/v1/executions",
        "/v1/dashboard/system",
        "/v1/dashboard/servers",
        "/aacp/agents",
    ] {
        ask(&server, "GET", target, None);
    }
    assert!(scan_folder(place.data_file().parent().unwrap()) >= 2, "the data file and its write-ahead log");
    let said = place.run(&["backup", "copy.sqlite3"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    silent("the backup", &std::fs::read(place.path().join("copy.sqlite3")).unwrap());
    server.terminate();
    scan_folder(place.data_file().parent().unwrap());
    let log = std::fs::read(&log).unwrap();
    assert!(
        log.windows(16).any(|window| window == b"\"level\":\"debug\"".as_slice()) || log.len() > 1000,
        "the log was on"
    );
    silent("the log", &log);
    for args in [
        &["audit", "export"][..],
        &["audit", "tail"],
        &["config", "show"],
        &["config", "show", "--json"],
        &["doctor"],
        &["secrets", "list", "--json", "--embedded"],
        &["list", "--json", "--embedded"],
    ] {
        let said = place.run(args);
        silent(&args.join(" "), format!("{}{}", said.out, said.err).as_bytes());
    }
}
