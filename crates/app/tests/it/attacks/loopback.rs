//! Other users of the machine reach the loopback port, and are not the person at this machine.

use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

use super::tokens::create;
use crate::program::Place;
use crate::server::Server;

/// The user id that systems give to processes without rights.
const UNPRIVILEGED: u32 = 65534;

/// The status of a request by curl, as another user if one is given.
fn status(user: Option<u32>, method: &str, url: &str) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, url]);
    if method == "POST" {
        curl.args([
            "-H",
            "content-type: application/json",
            "-d",
            "{\"name\":\"mallory\",\"roles\":[\"owner\"]}",
        ]);
    }
    if let Some(user) = user {
        curl.uid(user).gid(user).current_dir("/");
    }
    String::from_utf8(curl.output().unwrap().stdout).unwrap()
}

#[test]
fn the_user_who_runs_the_server_needs_no_token_and_others_do() {
    let place = Place::new();
    let server = Server::start(&place, &["--ephemeral"]);
    let url = |path: &str| format!("http://{}{path}", server.address);
    assert_eq!(status(None, "GET", &url("/v1/executions")), "200");
    // Only root can become another user; where the tests run as another user, only the unit tests of `peer_owner` check this.
    if rustix::process::geteuid().is_root() {
        for path in ["/v1/executions", "/v1/tokens", "/documents", "/metrics", "/v1/events"] {
            assert_eq!(status(Some(UNPRIVILEGED), "GET", &url(path)), "401", "{path}");
        }
        assert_eq!(status(Some(UNPRIVILEGED), "POST", &url("/v1/tokens")), "401");
        assert_eq!(status(Some(UNPRIVILEGED), "GET", &url("/healthz")), "200", "probes ask for nothing");
    }
    assert_eq!(status(None, "POST", &url("/v1/tokens")), "201", "the own user is the owner");
}

#[test]
fn what_the_server_itself_sends_is_not_the_person_at_this_machine() {
    let place = Place::new();
    place.write("orchestr8.toml", "[workflows.http]\nallowedHosts = ['127.0.0.1']\n");
    let server = Server::start(&place, &[]);
    let (rival, _) = create(&place, &["--name", "eve", "--tenant", "rival", "--role", "operator"]);
    let call = |path: &str| {
        let steps = json!([{"id": "a", "agentId": "@orchestr8/http", "maxRetries": 0,
                            "config": {"url": format!("http://{}{path}", server.address)}}]);
        let definition = json!({"id": "self", "version": "1.0.0", "name": "self", "steps": steps});
        let more = format!("Authorization: Bearer {rival}\r\n");
        let body = json!({"workflow": definition}).to_string();
        let said = server.connect().request("POST", "/v1/workflows/execute?mode=sync", &more, Some(&body));
        said.unwrap().json()
    };
    let open = call("/healthz");
    assert_eq!(open["status"], "completed", "{open}");
    for path in ["/v1/tokens", "/v1/audit", "/v1/executions", "/documents", "/metrics"] {
        let said: Value = call(path);
        assert!(said.to_string().contains("401"), "{path}: {said}");
        assert!(said["error"].is_object(), "{path}: {said}");
    }
}

#[test]
fn credentials_that_are_wrong_give_no_rights_and_are_on_record() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let (token, _) = create(&place, &["--name", "vic", "--tenant", "acme", "--role", "viewer"]);
    let damaged = format!("Bearer {}", &token[..token.len() - 8]);
    let wrong = [damaged.as_str(), "Bearer garbage", "Bearer ", "Basic eDp5", "Token x"];
    for value in wrong {
        for path in ["/v1/tokens", "/v1/executions", "/documents", "/metrics"] {
            let more = format!("Authorization: {value}\r\n");
            let said = server.connect().request("GET", path, &more, None).unwrap();
            assert!([401, 429].contains(&said.status), "{value} {path}: {said:?}");
        }
    }
    let logins = server.connect().get("/v1/audit?action=auth.login").json();
    assert!(logins["entries"].as_array().unwrap().len() >= wrong.len(), "{logins}");
    assert_eq!(server.connect().get("/v1/executions").status, 200, "the own user needs no token");
}

#[test]
fn other_users_of_the_machine_are_on_record() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let url = format!("http://{}/v1/tokens", server.address);
    assert_eq!(status(Some(UNPRIVILEGED), "GET", &url), "401");
    // Rejections are counted first and written a little later.
    let recorded = |_| {
        let seen = server.connect().get("/v1/audit?action=http.reject_anonymous").json();
        (seen["entries"].as_array().unwrap().len() == 1).then_some(())
    };
    assert!((0..20_000).find_map(recorded).is_some());
}
