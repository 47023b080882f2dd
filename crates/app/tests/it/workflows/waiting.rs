//! Executions that wait for a person or an event, without a server and with one.

use serde_json::json;

use super::{alone, echo, json_of, write};
use crate::server::Server;

#[test]
fn an_approval_is_given_by_a_second_command() {
    let place = alone();
    let said = place.run(&["run", "examples/approval.json", "--json"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.err.contains("review waits for approval"), "{}", said.err);
    let id = json_of(&said)["executionId"].as_str().unwrap().to_owned();
    let refused = place.run(&["approve", &id, "--data", r#"{"headline": 5}"#]);
    assert_eq!(refused.code, Some(2), "the form says text: {refused:?}");
    let args = ["approve", &id, "--on-behalf-of", "ada", "--data", r#"{"headline": "News"}"#, "--json"];
    let approved = place.run(&args);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let outputs = &json_of(&approved)["outputs"];
    assert_eq!(outputs["publish"], json!({"published": "Our first page", "headline": "News", "by": "local"}));
    assert_eq!(place.run(&["approve", &id]).code, Some(3), "it waits for nothing any more");
}

#[test]
fn a_rejection_takes_the_other_branch() {
    let place = alone();
    let said = place.run(&["run", "examples/approval.json", "--json"]);
    let id = json_of(&said)["executionId"].as_str().unwrap().to_owned();
    let args = ["approve", &id, "--reject", "--comment", "not yet", "--quiet"];
    let rejected = place.run(&args);
    assert_eq!(rejected.code, Some(0), "{rejected:?}");
    assert_eq!(json_of(&rejected)["put-away"]["why"], "not yet");
}

#[test]
fn an_event_wakes_whoever_waits_for_it() {
    let place = alone();
    let wait = json!({"id": "payment", "wait": {"event": "paid"}});
    let after = echo("after", &["payment"], json!({"got": "${steps.payment.output}"}));
    let file = write(&place, "waits", &json!([wait, after]));
    let said = place.run(&["run", &file, "--json"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.err.contains("payment waits for the event 'paid'"), "{}", said.err);
    let id = json_of(&said)["executionId"].as_str().unwrap().to_owned();
    let told = place.run(&["signal", &id, "paid", "--payload", r#"{"amount": 5}"#, "--json"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(json_of(&told)["outputs"]["after"].to_string().contains("\"amount\":5"), "{}", told.out);
}

#[test]
fn a_spent_budget_pauses_and_more_of_it_goes_on() {
    let place = alone();
    let steps =
        json!([echo("a", &[], json!({})), echo("b", &["a"], json!({})), echo("c", &["b"], json!({}))]);
    let workflow = json!({"id": "thrifty", "version": "1.0.0", "name": "Thrifty",
        "policies": {"budget": {"steps": 2}}, "steps": steps});
    place.write("thrifty.json", &workflow.to_string());
    let said = place.run(&["run", "thrifty.json", "--json"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert_eq!(json_of(&said)["status"], "paused");
    let id = json_of(&said)["executionId"].as_str().unwrap().to_owned();
    let resumed = place.run(&["resume", &id, "--budget", "steps=10", "--quiet"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(place.run(&["resume", &id, "--budget", "steps=many"]).code, Some(2));
}

#[test]
fn through_a_server_the_approval_comes_while_the_run_waits() {
    let place = alone();
    let server = Server::start(&place, &[]);
    let url = format!("http://{}", server.address);
    let run = super::Going::start(&place, &["run", "examples/approval.json", "--server", &url]);
    run.heard("review waiting: waits for approval");
    let id = super::newest(&place, &["--server", &url]);
    let approved = place.run(&["approve", &id, "--detach", "--server", &url]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let said = run.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("\"published\": \"Our first page\""), "{}", said.out);
}
