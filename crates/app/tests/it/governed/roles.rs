//! A planner and an executor at work in one workspace, each in a process of its own.

use serde_json::json;

use super::{GOOD, Governed, root_of};
use crate::program::Place;

#[test]
fn a_plan_is_written_by_one_and_carried_out_by_the_other() {
    let place = Place::new();
    let folder = place.path().to_owned();
    let mut planner = Governed::start(place, "planner", &[]);
    planner.begin();
    let saved = planner.call("save_plan", json!({"content": GOOD})).unwrap();
    let hash = saved["hash"].as_str().unwrap().to_owned();

    let mut executor = Governed::start(Place::new(), "executor", &[]);
    let root = root_of(&planner.place);
    executor.call("begin_session", json!({"workspace_root": root})).unwrap();
    let write = json!({
        "path": "src/a.txt", "plan": hash, "content": "hello\n", "intent": "Say hello to whoever reads this",
    });
    let refused = executor.call("write_file", write.clone()).unwrap_err();
    assert_eq!(refused["error_code"], "PLAN_NOT_APPROVED");
    planner.call("approve_plan", json!({"hash": hash})).unwrap();
    executor.call("write_file", write).unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("workspace/src/a.txt")).unwrap(), "hello\n");

    let checked = planner.call("verify_workspace_integrity", json!({})).unwrap();
    assert_eq!((&checked["ok"], &checked["entries"]), (&json!(true), &json!(8)), "{checked}");
    let bundle = executor.call("generate_attestation_bundle", json!({"plan_hash": hash})).unwrap();
    let verified = executor.call("verify_attestation_bundle", bundle.clone()).unwrap();
    assert_eq!(
        (&verified["valid"], &verified["signed_by_this_server"]),
        (&json!(true), &json!(true)),
        "{verified}"
    );
    let of_other = planner.call("verify_attestation_bundle", bundle.clone()).unwrap();
    assert_eq!((&of_other["valid"], &of_other["signed_by_this_server"]), (&json!(true), &json!(false)));
    let mut forged = bundle;
    forged["bundle"]["verdict"] = "DIVERGED".into();
    assert_eq!(executor.call("verify_attestation_bundle", forged).unwrap()["valid"], false);

    // Whoever writes past the server is found.
    std::fs::write(folder.join("workspace/src/a.txt"), "changed").unwrap();
    let checked = planner.call("verify_workspace_integrity", json!({})).unwrap();
    assert_eq!((&checked["ok"], &checked["findings"][0]["path"]), (&json!(false), &json!("src/a.txt")));
    let replayed = executor.call("replay_execution", json!({"plan_hash": hash})).unwrap();
    assert_eq!(replayed["verdict"], "DIVERGED");
    let (log, _) = executor.end();
    assert!(!log.contains("panic"), "{log}");
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
