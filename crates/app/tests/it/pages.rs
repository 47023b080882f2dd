//! What a browser finds: pages at the root, sockets beside them, no change without the token of the page; and the audit trail.

use serde_json::{Value, json};

use crate::program::Place;
use crate::server::{Http, Server};

/// A request as a browser sends it from one of our pages.
fn from_browser(
    http: &mut Http,
    server: &Server,
    method: &str,
    path: &str,
    more: &str,
    body: &str,
) -> (u16, Value) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n",
        server.address,
        body.len()
    );
    let answer = http.send(&head, body).unwrap();
    (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
}

fn token(page: &str) -> &str {
    page.split("name=\"orchestr8-page\" content=\"").nth(1).unwrap().split('"').next().unwrap()
}

#[test]
fn the_root_is_a_page_and_a_socket() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let page = http.get("/");
    assert_eq!(page.status, 200);
    let head = page.head.to_lowercase();
    assert!(head.contains("content-type: text/html"), "{head}");
    assert!(head.contains("script-src 'self'") && !head.contains("unsafe"), "{head}");
    let socket = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address
    );
    assert_eq!(server.connect().send(&socket, "").unwrap().status, 101);
    // Its token outlives the server, so that an open page goes on after a restart.
    let before = token(&page.body).to_owned();
    drop(server);
    let again = Server::start(&place, &[]);
    assert_eq!(token(&again.connect().get("/").body), before);
}

#[test]
fn a_browser_changes_nothing_without_the_token_of_the_page() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    let mut http = server.connect();
    let token = format!("X-Orchestr8-Page: {}\r\n", token(&http.get("/").body));
    let body = json!({"workflow": {"id": "a", "version": "1.0.0", "name": "A",
        "steps": [{"id": "s", "agentId": "@orchestr8/echo"}]}})
    .to_string();
    let (status, said) = from_browser(&mut http, &server, "PUT", "/v1/workflows", "", &body);
    assert_eq!((status, &said["error"]["code"]), (403, &json!("FORBIDDEN")));
    let (status, _) = from_browser(&mut http, &server, "GET", "/v1/workflows", "", "");
    assert_eq!(status, 200, "reading is not asked for it");
    let (status, _) = from_browser(&mut http, &server, "PUT", "/v1/workflows", &token, &body);
    assert_eq!(status, 201);
}

#[test]
fn the_audit_trail_is_read_and_proven() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    let mut http = server.connect();
    let message = json!({"name": "agent.sendMessage", "arguments": {"targetAgentId": "echo", "message": {"type": "greeting", "payload": "secret words"}}});
    assert_eq!(http.modern(1, "tools/call", message, "").unwrap().status, 200);
    let trail = http.get("/v1/audit?action=agent.sendMessage").json();
    assert_eq!((&trail["entries"][0]["end"], &trail["nextCursor"]), (&json!("success"), &Value::Null));
    assert!(!trail.to_string().contains("secret words"), "arguments are told by their hash only");
    assert_eq!(http.get("/v1/audit?action=nothing").json()["entries"], json!([]));
    let first = http.get("/v1/audit?limit=1").json();
    let older =
        http.get(&format!("/v1/audit?limit=1&cursor={}", first["nextCursor"].as_str().unwrap_or("1"))).json();
    assert_ne!(first["entries"], older["entries"]);
    let proof = http.get("/v1/audit/verify").json();
    assert_eq!((&proof["whole"], &proof["head"]), (&json!(true), &first["entries"][0]["hash"]));
}

/// How many there are, once there are any: the examples come in while the server serves.
fn found(http: &mut Http, path: &str, list: &str) -> usize {
    const LOOKS: usize = 20_000;
    let mut count = || Some(http.get(path).json()[list].as_array()?.len()).filter(|count| *count > 0);
    (0..LOOKS).find_map(|_| count()).unwrap_or_default()
}

#[test]
fn the_demo_puts_in_what_there_is_to_see() {
    let place = Place::new();
    for _ in 0..2 {
        let server = Server::start(&place, &["--demo"]);
        let mut http = server.connect();
        assert_eq!(found(&mut http, "/v1/schedules", "schedules"), 1);
        assert_eq!(found(&mut http, "/v1/approvals", "approvals"), 1, "a second start adds no second one");
        assert_eq!(found(&mut http, "/documents/root/children", "children"), 1);
        assert!(found(&mut http, "/v1/executions?workflowId=parcels", "executions") > 0);
    }
}
