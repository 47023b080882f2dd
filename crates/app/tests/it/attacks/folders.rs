//! Tenants try to reach each other's files through the folders that the settings give to sessions and programs.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::actors::{ask, execute, serve, token, workflow};
use super::sandbox::Client;
use crate::program::Place;

/// Owners of two tenants, one of them with a name that would lead elsewhere, and of the tenant that tokens have if they name none.
fn people() -> String {
    [token("ann", "acme", &["owner"]), token("eve", "..", &["owner"]), token("ops", "default", &["owner"])]
        .concat()
}

#[test]
fn sessions_of_tenants_share_no_folder() {
    let place = Place::new();
    place.write("shared/plan", "of the operator");
    place.write("per/outside", "PRIVATE");
    let root = |name: &str| place.path().join(name).display().to_string();
    let config = format!(
        "{}[sessions]\nbash = true\nroots = [{:?}, {:?}]\n",
        people(),
        root("shared"),
        root("per/{tenant}")
    );
    let server = serve(&place, &config);
    let mut ann = Client::connect(server.address, Some("ann"));
    let mut eve = Client::connect(server.address, Some("eve"));
    let mut ops = Client::connect(server.address, Some("ops"));
    let shared = place.path().join("shared");
    assert_eq!(ops.session("o", &shared)["success"], true);
    for client in [&mut ann, &mut eve] {
        let refused = client.session("s", &shared);
        assert_eq!(refused["success"], false, "{refused}");
    }
    let own = place.path().join("per/acme");
    assert_eq!(ann.session("a", &own)["success"], true);
    assert_eq!(ann.bash("a", "echo mine > note; cat note")["output"], "mine\n");
    let mode = std::fs::metadata(&own).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    for folder in ["per/acme", "per", "per/..", "."] {
        let refused = eve.session("e", &place.path().join(folder));
        assert_eq!(refused["success"], false, "{folder}: {refused}");
    }
    // Without a folder of its own choice a session works in that of its tenant.
    let begun = eve.ask("create_session", json!({"sessionId": "e2"}));
    assert!(begun.to_string().contains("per/%2E."), "{begun}");
    assert_eq!(eve.bash("e2", "ls")["output"], "");
}

#[test]
fn programs_of_tenants_share_no_directory() {
    let place = Place::new();
    place.write("work/readme", "of the operator");
    let config = |more: &str| {
        let work = place.path().join("work").display().to_string();
        let own = place.path().join("per/{tenant}").display().to_string();
        format!(
            "{}{more}\n[workflows.exec.templates.fixed]\nprogram = '/bin/ls'\ndirectory = {work:?}\n\
             [workflows.exec.templates.own]\nprogram = '/bin/pwd'\ndirectory = {own:?}\n",
            people()
        )
    };
    let run = |template: &str| {
        let step = json!([{"id": "x", "agentId": "@orchestr8/exec", "config": {"template": template}}]);
        json!({"workflow": workflow(template, step)})
    };
    let server = serve(&place, &config(""));
    let refused = ask(&server, "ann", "POST", "/v1/workflows/execute?mode=sync", Some(run("fixed")));
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.body.contains("{tenant}"), "{refused:?}");
    assert_eq!(execute(&server, "ops", run("fixed"))["outputs"]["x"]["stdout"], "readme\n");
    let ran = execute(&server, "ann", run("own"));
    assert!(ran["outputs"]["x"]["stdout"].as_str().unwrap().contains("per/acme"), "{ran}");
    let ran = execute(&server, "eve", run("own"));
    assert!(ran["outputs"]["x"]["stdout"].as_str().unwrap().contains("per/%2E."), "{ran}");
    server.terminate();
    let server = serve(&place, &config("[workflows.exec]\nsharedDirectories = true"));
    assert_eq!(execute(&server, "ann", run("fixed"))["outputs"]["x"]["stdout"], "readme\n");
}
