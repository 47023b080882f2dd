//! Other users of the machine reach the loopback port, and are not the person at this machine.

use std::os::unix::process::CommandExt;
use std::process::Command;

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
