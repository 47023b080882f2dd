//! Runs without a server: progress, results, exit codes, and what can be seen of them afterwards.

use serde_json::json;

use super::{alone, echo, json_of, newest, tool, write};
use crate::stdio::Client;

#[test]
fn a_run_shows_progress_and_gives_its_outputs() {
    let place = alone();
    let said = place.run(&["run", "examples/hello-world.json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(json_of(&said)["answer"]["text"], "Hello, world! Your name has 5 letters.");
    assert!(said.err.starts_with("Hello, world 1.0.0 is execution "), "{}", said.err);
    assert!(said.err.contains("\n  answer completed"), "{}", said.err);
    assert!(said.err.lines().last().unwrap().starts_with("completed after "), "{}", said.err);
    let whole = json_of(&place.run(&["run", "examples/hello-world.json", "--json", "--input", "who=Ada"]));
    assert_eq!(
        (&whole["status"], &whole["steps"]["greet"]["status"]),
        (&json!("completed"), &json!("completed"))
    );
    assert_eq!(whole["outputs"]["greet"]["text"], "Hello, Ada!");
}

#[test]
fn every_end_has_its_exit_code() {
    let place = alone();
    let failing = write(&place, "failing", &json!([tool("a", &[], "no_such_tool", json!({}))]));
    let said = place.run(&["run", &failing]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.contains("failed at step 'a': there is no tool named 'no_such_tool'"), "{}", said.err);
    assert!(said.err.contains("orchestr8 retry "), "{}", said.err);
    let unknown = place.run(&["run", "no-such-workflow"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(unknown.err.contains("orchestr8 workflows list"), "{}", unknown.err);
    assert_eq!(place.run(&["inspect", "no-such-execution"]).code, Some(3));
    assert_eq!(place.run(&["run", "examples/hello-world.json", "--input", "who"]).code, Some(2));
    let refused = place.run(&["run", "examples/data-pipeline.json", "--input", "report=long"]);
    assert_eq!(refused.code, Some(2), "inputs that do not match the schema: {refused:?}");
    let waiting = write(&place, "waiting", &json!([{"id": "w", "wait": {"durationMs": 600_000}}]));
    let said = place.run(&["run", &waiting, "--timeout", "50ms"]);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.err.contains("orchestr8 resume "), "{}", said.err);
}

#[test]
fn a_key_joins_the_first_execution() {
    let place = alone();
    let run = |who: &str| {
        let input = format!("who={who}");
        place.run(&["run", "examples/hello-world.json", "--json", "--key", "k1", "--input", &input])
    };
    let (first, second) = (run("Ada"), run("Ada"));
    assert_eq!(json_of(&first)["executionId"], json_of(&second)["executionId"]);
    assert!(second.err.contains("this key was used before"), "{}", second.err);
    let other = run("Grace");
    assert_eq!(other.code, Some(5), "{other:?}");
    assert!(other.err.contains("IDEMPOTENCY_KEY_CONFLICT"), "{}", other.err);
}

#[test]
fn what_ran_can_be_looked_at() {
    let place = alone();
    place.run(&["run", "examples/data-pipeline.json", "--quiet"]);
    place.run(&["run", "examples/hello-world.json", "--quiet"]);
    let id = newest(&place, &["--workflow", "data-pipeline"]);
    let listed = place.run(&["list"]);
    assert_eq!(listed.out.lines().count(), 3, "{}", listed.out);
    assert!(listed.out.lines().nth(1).unwrap().contains("hello-world 1.0.0"), "newest first: {}", listed.out);
    assert_eq!(json_of(&place.run(&["list", "--status", "failed", "--json"]))["executions"], json!([]));
    let shown = place.run(&["inspect", &id]);
    assert!(shown.out.starts_with("✓ completed  Data pipeline 1.0.0 (data-pipeline)\n"), "{}", shown.out);
    assert!(shown.out.contains("  - short-report  skipped"), "{}", shown.out);
    let whole = json_of(&place.run(&["inspect", &id, "--json"]));
    let early = json_of(&place.run(&["inspect", &id, "--json", "--at", "2"]));
    assert_ne!(early["status"], whole["status"], "{early:#}");
    let lines: Vec<serde_json::Value> = place
        .run(&["logs", &id, "--json"])
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let sequences: Vec<u64> = lines.iter().map(|entry| entry["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>(), "without gaps");
    let later = place.run(&["logs", &id, "--since", "3"]);
    assert_eq!(later.out.lines().count(), sequences.len() - 3, "{}", later.out);
    let events = place.run(&["events", "--execution", &id, "--json"]);
    assert!(events.out.lines().any(|line| line.contains("\"workflow.completed\"")), "{}", events.out);
    assert!(events.out.lines().all(|line| line.contains(&id)), "{}", events.out);
    assert_eq!(place.run(&["events", "--limit", "2"]).out.lines().count(), 2);
}

#[test]
fn a_failed_execution_is_retried_and_forked() {
    let place = alone();
    let said = place.run(&["run", "examples/order-saga.json", "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let failed = json_of(&said);
    let id = failed["executionId"].as_str().unwrap();
    assert_eq!(failed["status"], "compensated", "{failed:#}");
    let shown = place.run(&["inspect", id]).out;
    for part in
        ["↩ compensated  Order with compensation", "undone", "rolled back: 2 undone\n", "ship NOT_FOUND"]
    {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let listed = json_of(&place.run(&["list", "--status", "compensated", "--json"]));
    assert_eq!(listed["executions"][0]["error"]["stepId"], "ship", "{listed:#}");
    for step in ["reserve", "charge"] {
        assert_eq!(failed["steps"][step]["compensated"], true, "{failed:#}");
    }
    assert_eq!(place.run(&["retry", id]).code, Some(1), "it fails again");
    let many = place.run(&["retry", "--all", "--status", "compensated"]);
    assert_eq!(many.code, Some(2), "not without --yes: {many:?}");
    let many =
        json_of(&place.run(&["retry", "--all", "--status", "compensated", "--yes", "--json", "--quiet"]));
    assert_eq!(many["retried"], json!([id]));
    let forked = place.run(&["fork", id, "--from-step", "ship", "--input", "courier=echo", "--json"]);
    assert_eq!(forked.code, Some(0), "{forked:?}");
    let forked = json_of(&forked);
    assert_eq!(forked["forkedFrom"], id);
    assert_eq!(forked["outputs"]["ship"]["message"], "Ship teapot");
    assert_eq!(place.run(&["fork", id, "--from-step", "nowhere"]).code, Some(3));
    let resumed = place.run(&["resume", forked["executionId"].as_str().unwrap()]);
    assert_eq!(resumed.code, Some(5), "{resumed:?}");
}

#[test]
fn workflows_are_stored_with_their_revisions() {
    let place = alone();
    let file = write(&place, "kept", &json!([echo("a", &[], json!({"v": 1}))]));
    assert_eq!(place.run(&["workflows", "apply", &file]).out, "applied kept 1.0.0 (revision 1)\n");
    assert_eq!(place.run(&["workflows", "apply", &file]).out, "unchanged kept 1.0.0 (revision 1)\n");
    write(&place, "kept", &json!([echo("a", &[], json!({"v": 2}))]));
    let refused = place.run(&["workflows", "apply", &file]);
    assert_eq!(refused.code, Some(5), "a stored version is immutable: {refused:?}");
    assert!(refused.err.contains("give the changed workflow a new version"), "{refused:?}");
    let changed =
        json!({"id": "kept", "version": "1.1.0", "name": "kept", "steps": [echo("a", &[], json!({"v": 2}))]});
    place.write(&file, &changed.to_string());
    assert_eq!(place.run(&["workflows:apply", &file]).out, "applied kept 1.1.0 (revision 2)\n");
    assert_eq!(json_of(&place.run(&["run", "kept", "--quiet"])), json!({"a": {"v": 2}}));
    assert_eq!(json_of(&place.run(&["run", "kept", "--revision", "1", "--quiet"])), json!({"a": {"v": 1}}));
    assert_eq!(place.run(&["run", "kept", "--revision", "3"]).code, Some(3));
    assert_eq!(place.run(&["run", &file, "--revision", "1"]).code, Some(2), "a file has no revisions");
    let old = json_of(&place.run(&["workflows", "show", "kept", "--revision", "1", "--quiet"]));
    assert_eq!(old["steps"][0]["input"]["v"], 1);
    assert!(place.run(&["workflows", "list"]).out.contains("kept"), "it is listed");
    assert_eq!(place.run(&["workflows", "delete", "kept"]).code, Some(2), "not without --yes");
    assert_eq!(place.run(&["workflows", "delete", "kept", "--yes"]).code, Some(0));
    assert_eq!(place.run(&["run", "kept"]).code, Some(3));
}

#[test]
fn schedules_are_kept() {
    let place = alone();
    place.run(&["workflows", "apply", "examples/nightly.json"]);
    let applied = place.run(&["schedule", "apply", "examples/nightly.schedule.json"]);
    assert!(applied.out.starts_with("applied every-night; next at 20"), "{applied:?}");
    let flags =
        ["schedule", "apply", "hourly", "--workflow", "nightly", "--cron", "0 * * * *", "--paused", "--json"];
    assert_eq!(place.run(&flags).code, Some(0));
    let listed = place.run(&["schedule", "list"]);
    assert!(listed.out.contains("every-night  nightly   0 3 * * *  Europe/Berlin"), "{}", listed.out);
    assert!(
        listed.out.lines().any(|line| line.starts_with("hourly") && line.ends_with("paused")),
        "{}",
        listed.out
    );
    assert_eq!(place.run(&["schedule", "resume", "hourly"]).out, "hourly is resumed\n");
    assert_eq!(place.run(&["schedule", "pause", "hourly"]).out, "hourly is paused\n");
    assert_eq!(
        place.run(&["schedule", "apply", "bad", "--workflow", "nightly", "--cron", "at noon"]).code,
        Some(2)
    );
    assert_eq!(place.run(&["schedule", "delete", "hourly"]).code, Some(2), "not without --yes");
    assert_eq!(place.run(&["schedule", "delete", "hourly", "--yes"]).out, "hourly is forgotten\n");
    assert_eq!(place.run(&["schedule", "show", "hourly"]).code, Some(3));
}

/// Somebody has the data and speaks no HTTP: the command says so instead of working on other data.
#[test]
fn data_of_a_process_that_does_not_answer_is_left_alone() {
    let place = alone();
    let client = Client::ready(&place, &[]);
    let said = place.run(&["run", "examples/hello-world.json"]);
    assert_eq!(said.code, Some(7), "{said:?}");
    assert!(said.err.contains("is in use by the process"), "{}", said.err);
    assert!(said.err.contains("that process does not answer as its server"), "{}", said.err);
    assert!(said.err.contains("--server URL"), "{}", said.err);
    assert_eq!(place.run(&["run", "examples/hello-world.json", "--ephemeral", "--quiet"]).code, Some(0));
    client.end();
    let named = place.run(&["list", "--server", "http://127.0.0.1:1"]);
    assert_eq!(named.code, Some(7), "{named:?}");
}

#[test]
fn executions_are_found_by_their_tags() {
    let place = alone();
    let run = |tags: &[&str]| {
        let options: Vec<&str> = tags.iter().flat_map(|tag| ["--tag", tag]).collect();
        let said = place.run(&[&["run", "examples/hello-world.json", "--json"], options.as_slice()].concat());
        json_of(&said)["executionId"].as_str().unwrap().to_owned()
    };
    let (first, second) = (run(&["customer=42", "region=eu"]), run(&["customer=42"]));
    run(&[]);
    let found = |conditions: &[&str]| {
        let options: Vec<&str> = conditions.iter().flat_map(|condition| ["--where", condition]).collect();
        let page = json_of(&place.run(&[&["list", "--json"], options.as_slice()].concat()));
        let rows = page["executions"].as_array().unwrap().clone();
        rows.iter().map(|row| row["executionId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(&["customer=42"]), [second, first.clone()]);
    assert_eq!(found(&["customer=42", "region=eu"]), [first]);
    assert!(found(&["customer=4"]).is_empty());
    for wrong in ["customer", "=42", "bad key=1"] {
        assert_eq!(place.run(&["list", "--where", wrong]).code, Some(2), "{wrong}");
        assert_eq!(place.run(&["run", "examples/hello-world.json", "--tag", wrong]).code, Some(2), "{wrong}");
    }
}

#[test]
fn many_executions_are_cancelled_and_deleted_after_a_plan() {
    let place = alone();
    let waiting = write(&place, "waiting", &json!([{"id": "w", "wait": {"durationMs": 600_000}}]));
    for customer in ["42", "42", "7"] {
        let tag = format!("customer={customer}");
        assert_eq!(place.run(&["run", &waiting, "--tag", &tag, "--timeout", "50ms"]).code, Some(6));
    }
    let count = |status: &str| {
        let page = json_of(&place.run(&["list", "--json", "--status", status]));
        page["executions"].as_array().unwrap().len()
    };
    let dry = place.run(&["cancel", "--where", "customer=42", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(dry.out.starts_with("cancel 2 executions\n  exec-"), "{}", dry.out);
    let unasked = place.run(&["cancel", "--where", "customer=42"]);
    assert_eq!(unasked.code, Some(2), "there is no terminal to ask on: {unasked:?}");
    assert!(unasked.err.contains("--yes"), "{}", unasked.err);
    assert_eq!(count("waiting"), 3, "nothing was changed");
    let said = place.run(&["cancel", "--where", "customer=42", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "cancelled 2\n"), "{said:?}");
    assert_eq!((count("waiting"), count("cancelled")), (1, 2));
    assert_eq!(place.run(&["cancel"]).code, Some(2), "which?");
    let running = newest(&place, &[]);
    assert_eq!(place.run(&["delete", &running, "--yes"]).code, Some(5), "it runs");
    assert_eq!(place.run(&["delete", "exec-none", "--yes"]).code, Some(3));
    let deleted = json_of(&place.run(&["delete", "--status", "cancelled", "--yes", "--json"]));
    assert_eq!(deleted["count"], 2, "{deleted}");
    assert_eq!((count("waiting"), count("cancelled")), (1, 0));
    let nothing = place.run(&["delete", "--where", "customer=42", "--yes"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(0), "delete 0 executions\n"), "{nothing:?}");
}
