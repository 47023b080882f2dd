//! A planner, a person and an executor at work in one workspace.

use std::path::PathBuf;

use serde_json::json;

use super::http::{Caller, config, token};
use super::{GOOD, Governed};
use crate::program::Place;
use crate::server::Server;

#[test]
fn a_plan_is_written_by_one_approved_by_a_person_and_carried_out_by_the_other() {
    let place = Place::new();
    let (server, root) = serve(&place, "open");
    let mut planner = Caller::new(&server, "plans");
    planner.call("begin_session", &json!({"workspace_root": root}));
    let hash = planner.call("save_plan", &json!({"content": GOOD}))["hash"].as_str().unwrap().to_owned();

    let mut executor = Caller::new(&server, "executes");
    executor.call("begin_session", &json!({"workspace_root": root}));
    let write = json!({
        "path": "src/a.txt", "plan": hash, "content": "hello\n", "intent": "Say hello to all who read this",
    });
    assert_eq!(executor.call("write_file", &write)["error_code"], "PLAN_NOT_APPROVED");
    let more = "Authorization: Bearer decides\r\n";
    let decision = json!({"decision": "approve", "comment": "discussed"}).to_string();
    let decided =
        server.connect().request("POST", &format!("/v1/plans/{hash}"), more, Some(&decision)).unwrap();
    assert_eq!((decided.status, &decided.json()["decidedBy"]), (200, &json!("decides")));
    assert_eq!(executor.call("write_file", &write)["status"], "OK");
    assert_eq!(place.read("open/src/a.txt"), "hello\n");

    let checked = planner.call("verify_workspace_integrity", &json!({}));
    assert_eq!((&checked["ok"], &checked["entries"]), (&json!(true), &json!(8)), "{checked}");
    let bundle = executor.call("generate_attestation_bundle", &json!({"plan_hash": hash}));
    let verified = executor.call("verify_attestation_bundle", &bundle);
    assert_eq!(
        (&verified["valid"], &verified["signed_by_this_server"]),
        (&json!(true), &json!(true)),
        "{verified}"
    );
    let mut forged = bundle.clone();
    forged["bundle"]["verdict"] = "DIVERGED".into();
    assert_eq!(executor.call("verify_attestation_bundle", &forged)["valid"], false);

    // What is written past the server is found.
    place.plant("open/src/a.txt", "changed");
    let checked = planner.call("verify_workspace_integrity", &json!({}));
    assert_eq!((&checked["ok"], &checked["findings"][0]["path"]), (&json!(false), &json!("src/a.txt")));
    assert_eq!(executor.call("replay_execution", &json!({"plan_hash": hash}))["verdict"], "DIVERGED");

    // Another server does not know the key, so it says nothing about the bundle.
    let elsewhere = Place::new();
    let (other, root) = serve(&elsewhere, "open");
    let mut stranger = Caller::new(&other, "plans");
    stranger.call("begin_session", &json!({"workspace_root": root}));
    let verified = stranger.call("verify_attestation_bundle", &bundle);
    assert_eq!((&verified["valid"], &verified["signed_by_this_server"]), (&json!(false), &json!(false)));
    let problems = verified["problems"].as_array().unwrap();
    assert!(problems.iter().any(|what| what.as_str().unwrap().contains("does not know")), "{verified}");
}

/// A server with one workspace, and tokens for a planner, an executor and an approver.
fn serve(place: &Place, folder: &str) -> (Server, PathBuf) {
    place.write(&format!("{folder}/README.md"), "hello\n");
    let config = config(place) + &token("decides", "'approver'");
    place.write("orchestr8.toml", &config);
    let root = std::fs::canonicalize(place.path()).unwrap().join(folder);
    (Server::start(place, &[]), root)
}

/// An ordinary connection sees nothing of workspaces, and a governed one nothing but them.
#[test]
fn only_governed_connections_see_governed_tools() {
    let place = Place::new();
    let mut plain = crate::stdio::Client::ready(&place, &["--ephemeral"]);
    for name in ["workspace.read_file", "read_file"] {
        let answer = plain.call(1, name, json!({"path": "x"}));
        assert_eq!(crate::stdio::error_of(&answer)["code"], "NOT_FOUND", "{answer}");
    }
    let mut governed = Governed::start(Place::new(), "executor", &[]);
    for name in ["echo", "workspace.read_file", "agent.sendMessage"] {
        let refused = governed.call(name, json!({"message": "x"})).unwrap_err();
        assert_eq!(
            (&refused["code"], &refused["tool_name"]),
            (&json!("NOT_FOUND"), &json!(name)),
            "{refused}"
        );
    }
    let prompts = governed.ask(&json!({"jsonrpc": "2.0", "id": "p", "method": "prompts/list"}));
    assert_eq!(prompts["result"]["prompts"], json!([]));
}
