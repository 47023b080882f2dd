//! Commands through a running server: found or named, followed, cancelled, and still there after it was killed.

use rustix::process::Signal;
use serde_json::json;

use super::{Going, alone, echo, json_of, newest, write};
use crate::program::{Place, signal};
use crate::server::Server;

fn url(server: &Server) -> String {
    format!("http://{}", server.address)
}

fn slow(place: &Place, wait_ms: u64) -> String {
    let wait = json!({"id": "pause", "wait": {"durationMs": wait_ms}});
    write(place, "slow", &json!([wait, echo("after", &["pause"], json!({"ok": true}))]))
}

#[test]
fn a_server_is_found_by_its_address() {
    let place = alone();
    let server = Server::start(&place, &[]);
    let address = server.address.to_string();
    let place = place.with("ORCHESTR8_HTTP_LISTEN", &address);
    let said = place.run(&["run", "examples/hello-world.json", "--quiet"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(json_of(&place.run(&["list", "--json"]))["executions"].as_array().unwrap().len(), 1);
    let elsewhere = json_of(&place.run(&["list", "--json", "--data-dir", "other"]));
    assert_eq!(elsewhere["executions"], json!([]), "whoever names a folder gets its data");
    server.terminate();
    assert_eq!(json_of(&place.run(&["list", "--json"]))["executions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_named_folder_of_the_server_is_asked_through_it() {
    let place = alone();
    let server = Server::start(&place, &["--data-dir", "data"]);
    let place = place.with("ORCHESTR8_HTTP_LISTEN", &server.address.to_string());
    let said = place.run(&["run", "examples/hello-world.json", "--quiet", "--data-dir", "data"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = place.run(&["run", "examples/hello-world.json", "--embedded", "--data-dir", "data"]);
    assert_eq!(said.code, Some(7), "{said:?}");
}

#[test]
fn ctrl_c_cancels_and_says_so() {
    let place = alone();
    let server = Server::start(&place, &[]);
    let url = url(&server);
    let file = slow(&place, 600_000);
    let run = Going::start(&place, &["run", &file, "--server", &url]);
    run.heard("pause waiting");
    signal(&run.child, Signal::INT);
    run.heard("cancelling it");
    let said = run.end();
    assert_eq!((said.code, said.out.as_str()), (Some(130), ""), "{said:?}");
    let id = newest(&place, &["--server", &url]);
    let shown = json_of(&place.run(&["inspect", &id, "--json", "--server", &url]));
    assert_eq!(shown["status"], "cancelled");
}

#[test]
fn detached_it_is_paused_resumed_followed_and_cancelled() {
    let place = alone();
    let server = Server::start(&place, &[]);
    let place = place.with("ORCHESTR8_SERVER", &url(&server));
    let file = slow(&place, 600_000);
    let started = place.run(&["run", &file, "--detach"]);
    let id = started.out.trim().to_owned();
    assert_eq!(started.code, Some(0), "{started:?}");
    let paused = json_of(&place.run(&["pause", &id, "--reason", "lunch", "--json"]));
    assert_eq!(paused["executionId"], id.as_str());
    let shown = place.run(&["inspect", &id]);
    assert!(shown.out.contains("lunch"), "{}", shown.out);
    assert_eq!(place.run(&["resume", &id, "--detach"]).code, Some(0));
    let follow = Going::start(&place, &["logs", &id, "-f"]);
    let cancelled = place.run(&["cancel", &id]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let said = follow.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.lines().last().unwrap().contains("cancel"), "{}", said.out);
}

#[test]
fn events_are_followed_as_they_happen() {
    let place = alone();
    let server = Server::start(&place, &[]);
    let place = place.with("ORCHESTR8_SERVER", &url(&server));
    let follow = Going::start(&place, &["events", "-f", "--after", "0", "--limit", "5", "--json"]);
    assert_eq!(place.run(&["run", "examples/hello-world.json", "--quiet"]).code, Some(0));
    let said = follow.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let kinds: Vec<String> = said
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds.len(), 5);
    assert!(kinds.iter().any(|kind| kind == "workflow.started"), "{kinds:?}");
}

/// The machine goes down in the middle; whoever watches sees it come back and finish.
#[test]
fn a_follower_outlives_the_server() {
    let place = alone();
    let file = slow(&place, 3000);
    let server = Server::start(&place, &[]);
    let (url, port) = (url(&server), server.address.port());
    let run = Going::start(&place, &["run", &file, "--server", &url]);
    run.heard("pause waiting");
    server.kill();
    run.heard("waiting for it to come back");
    let again = Server::start_at(&place, port, &[]);
    let said = run.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(json_of(&said)["after"], json!({"ok": true}));
    again.terminate();
}

#[test]
fn a_token_is_asked_for_and_taken_from_the_environment() {
    let place = alone();
    let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    place.write(
        "orchestr8.json",
        &json!({"auth": {"tokens": [{"name": "ci", "sha256": hash, "roles": ["owner"]}]}}).to_string(),
    );
    let server = Server::start(&place, &[]);
    let place = place.with("ORCHESTR8_SERVER", &url(&server));
    let refused = place.run(&["list"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains("ORCHESTR8_TOKEN"), "{}", refused.err);
    let place = place.with("ORCHESTR8_TOKEN", "secret");
    assert_eq!(place.run(&["run", "examples/hello-world.json", "--quiet"]).code, Some(0));
}
