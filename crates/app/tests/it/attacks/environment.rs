//! A definition names variables of the server's environment: REST, MCP over stdio, command line, schedule, child workflow, another tenant.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::program::Place;
use crate::server::{Answer, Server};
use crate::stdio::{Client, error_of};
use crate::workflows::{echo, json_of};

/// Variables that an attacker would like to read, with their values.
const VICTIMS: [(&str, &str); 5] = [
    ("ANTHROPIC_API_KEY", "env-canary-provider"),
    ("MY_DB_PASSWORD", "env-canary-database"),
    ("AWS_SECRET_ACCESS_KEY", "env-canary-cloud"),
    ("ORCHESTR8_BOOTSTRAP_SECRET", "env-canary-bootstrap"),
    ("ORCHESTR8_SECRET_SHOP", "env-canary-shop"),
];

fn place() -> Place {
    let mut place = Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:1");
    for (name, value) in VICTIMS {
        place = place.with(name, value);
    }
    place
}

/// A workflow that gives back every victim.
fn thief(id: &str) -> Value {
    let names: Vec<&str> = VICTIMS.iter().map(|(name, _)| *name).collect();
    let input: Value =
        names.iter().map(|name| ((*name).to_owned(), json!(format!("${{env.{name}}}")))).collect();
    json!({"id": id, "version": "1.0.0", "name": id, "allowedEnvVars": names, "steps": [echo("take", &[], input)]})
}

fn assert_refused(what: &str, text: &str) {
    assert!(text.contains("ENV_NOT_ALLOWED") && text.contains("workflows.env"), "{what}: {text}");
    for (name, value) in VICTIMS {
        assert!(!text.contains(value), "{name} is in the answer of {what}");
    }
}

fn post(server: &Server, target: &str, more: &str, body: &Value) -> Answer {
    server.connect().request("POST", target, more, Some(&body.to_string())).unwrap()
}

#[test]
fn no_face_starts_stores_or_approves_a_definition_that_names_other_variables() {
    let place = place();
    let server = Server::start(&place, &[]);
    for target in ["/v1/workflows/execute?mode=sync", "/v1/workflows/execute"] {
        let answer = post(&server, target, "", &json!({"workflow": thief("thief")}));
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_refused(target, &answer.body);
    }
    let inside = json!({"id": "outer", "version": "1.0.0", "name": "outer",
        "steps": [{"id": "child", "type": "workflow", "workflow": thief("inner")}]});
    let answer = post(&server, "/v1/workflows/execute?mode=sync", "", &json!({"workflow": inside}));
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_refused("a child workflow", &answer.body);
    let answer = post(&server, "/v1/workflows/validate", "", &json!({"workflow": thief("thief")}));
    assert_refused("validate", &answer.body);
    let answer = server
        .connect()
        .request("PUT", "/v1/workflows", "", Some(&json!({"workflow": thief("thief")}).to_string()))
        .unwrap();
    assert_refused("storing it", &answer.body);
}

#[test]
fn a_token_of_another_tenant_reads_no_variable() {
    let hash: String = Sha256::digest(b"rival-token").iter().map(|byte| format!("{byte:02x}")).collect();
    let place = place();
    let token = json!({"name": "rival", "sha256": hash, "tenant": "rival", "roles": ["operator", "editor"]});
    place.write("orchestr8.json", &json!({"auth": {"tokens": [token]}}).to_string());
    let server = Server::start(&place, &[]);
    let more = "Authorization: Bearer rival-token\r\n";
    let answer = post(&server, "/v1/workflows/execute?mode=sync", more, &json!({"workflow": thief("thief")}));
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_refused("another tenant", &answer.body);
}

#[test]
fn a_tool_call_over_stdio_reads_no_variable_of_the_users_shell() {
    let place = place();
    let mut client = Client::ready(&place, &[]);
    let answer = client.call(1, "run_workflow", json!({"workflow": thief("thief")}));
    assert_refused("run_workflow", &error_of(&answer).to_string());
    let log = client.log_at_end();
    for (name, value) in VICTIMS {
        assert!(!log.contains(value), "{name} is in the log");
    }
}

#[test]
fn the_command_line_runs_only_what_the_setting_allows() {
    let place = place().with("REGION", "eu-west");
    place.write("thief.json", &thief("thief").to_string());
    let said = place.run(&["run", "thief.json"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("workflows.env"), "{}", said.err);
    let region = json!({"id": "region", "version": "1.0.0", "name": "region", "allowedEnvVars": ["REGION"],
        "steps": [echo("say", &[], json!({"region": "${env.REGION}"}))]});
    place.write("region.json", &region.to_string());
    assert_eq!(place.run(&["run", "region.json"]).code, Some(2), "nothing is allowed by default");
    place.write("orchestr8.json", &json!({"workflows": {"env": ["REGION"]}}).to_string());
    let said = place.run(&["run", "region.json", "--quiet"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(json_of(&said)["say"], json!({"region": "eu-west"}));
}

#[test]
fn a_stored_workflow_a_schedule_and_a_child_stop_when_the_server_no_longer_allows_the_variable() {
    let place = Place::new().with("REGION", "env-canary-region");
    place.write("orchestr8.json", &json!({"workflows": {"env": ["REGION"]}}).to_string());
    let server = Server::start(&place, &[]);
    let region = json!({"id": "region", "version": "1.0.0", "name": "region", "allowedEnvVars": ["REGION"],
        "steps": [echo("say", &[], json!({"region": "${env.REGION}"}))]});
    let stored = server
        .connect()
        .request("PUT", "/v1/workflows", "", Some(&json!({"workflow": region}).to_string()))
        .unwrap();
    assert_eq!(stored.status, 201, "{stored:?}");
    server.terminate();
    place.write("orchestr8.json", "{}");
    let server = Server::start(&place, &[]);
    let answer = post(&server, "/v1/workflows/execute?mode=sync", "", &json!({"workflowId": "region"}));
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("ENV_NOT_ALLOWED"), "{answer:?}");
    let outer = json!({"id": "outer", "version": "1.0.0", "name": "outer",
        "steps": [{"id": "child", "type": "workflow", "workflow": {"id": "region"}}]});
    let answer = post(&server, "/v1/workflows/execute?mode=sync", "", &json!({"workflow": outer}));
    assert!(
        answer.body.contains("workflows.env") && !answer.body.contains("env-canary-region"),
        "{answer:?}"
    );
    let schedule = json!({"id": "yearly", "workflowId": "region", "cron": "0 0 1 1 *"});
    let answer = post(&server, "/v1/schedules", "", &schedule);
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = post(&server, "/v1/schedules/yearly/trigger", "", &json!({}));
    assert!(answer.status == 400 && answer.body.contains("ENV_NOT_ALLOWED"), "{answer:?}");
}

#[test]
fn variables_that_hold_credentials_cannot_be_allowed() {
    let wrong = |name: &str, config: Value| {
        let mut config = config;
        config["workflows"] = json!({"env": [name]});
        let place = place().with("QDRANT_KEY", "x").with("COPY", "env-canary-provider");
        place.write("orchestr8.json", &config.to_string());
        let said = place.run(&["list", "--embedded"]);
        assert_eq!(said.code, Some(2), "{name}: {said:?}");
        assert!(said.err.contains("workflows.env[0]") && said.err.contains(name), "{name}: {}", said.err);
    };
    for name in [
        "ORCHESTR8_SECRET_SHOP",
        "orchestr8_token",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "VOYAGE_API_KEY",
        "COPY",
    ] {
        wrong(name, json!({}));
    }
    let provider = json!({"models": {"providers": {"own": {"kind": "openai", "baseUrl": "http://127.0.0.1:9", "models": ["m"], "keyVariable": "OWN_KEY"}}}});
    wrong("OWN_KEY", provider);
    let vectors = json!({"knowledge": {"vectors": {"engine": "qdrant", "url": "https://q.example", "keyVariable": "QDRANT_KEY"}}});
    wrong("QDRANT_KEY", vectors);
    wrong("BOOT", json!({"workspace": {"bootstrapSecretEnvVar": "BOOT"}}));
    let admin = json!({"tools": {"adminPolicy": {"mode": "token", "tokenEnvVar": "MY_DB_PASSWORD"}}});
    wrong("MY_DB_PASSWORD", admin);
    wrong("QDRANT_KEY", json!({"audit": {"witnessTokenEnvVar": "QDRANT_KEY"}}));
}
