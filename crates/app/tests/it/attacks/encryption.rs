//! A stolen or changed disk: the encrypted data file gives nothing away, and nothing that was changed in it is served.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use super::secrets::forms;
use crate::program::{Place, Said};
use crate::server::Server;
use crate::workflows::echo;

const KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const OTHER_KEY: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
const PAGE: usize = 8192;

/// One for each kind of content.
const CANARIES: [&str; 6] = [
    "canary-workflow-01",
    "canary-input-02",
    "canary-document-03",
    "canary-session-04",
    "canary-message-05",
    "canary-agent-06",
];

fn plain() -> Place {
    Place::new().with("STORE_KEY", KEY).with("NEW_KEY", OTHER_KEY)
}

fn encrypted() -> Place {
    plain().with("ORCHESTR8_STORE_KEY_ENV", "STORE_KEY")
}

/// Runs a command with or without a key.
fn run(place: &Place, key: Option<&str>, args: &[&str]) -> Said {
    let mut command = place.command(args);
    match key {
        Some(key) => command.env("ORCHESTR8_STORE_KEY_ENV", "STORE_KEY").env("STORE_KEY", key),
        None => command.env_remove("ORCHESTR8_STORE_KEY_ENV"),
    };
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn done(said: Said) -> Said {
    assert_eq!(said.code, Some(0), "{said:?}");
    said
}

fn post(server: &Server, method: &str, target: &str, body: &Value) -> Value {
    let answer = server.connect().request(method, target, "", Some(&body.to_string())).unwrap();
    assert!(answer.status < 300, "{target}: {answer:?}");
    answer.json()
}

/// Writes a canary with everything that has content.
fn fill(place: &Place, server: &Server) {
    let [workflow, input, document, session, message, agent] = CANARIES;
    let definition = json!({"id": workflow, "version": "1.0.0", "name": workflow, "steps": [echo("e", &[], json!({"text": input}))]});
    post(server, "PUT", "/v1/workflows", &json!({"workflow": definition}));
    let begun = post(server, "POST", "/v1/workflows/execute", &json!({"workflowId": workflow}));
    let id = begun["executionId"].as_str().unwrap();
    let shown = server.connect().get(&format!("/v1/executions/{id}?wait=60s")).json();
    assert_eq!(shown["status"], "completed", "{shown:#}");
    done(place.run_with(&["knowledge", "put", "/Notes"], document));
    let sent = json!({"sourceAgentId": "me", "targetAgentId": agent, "messageType": "EVENT", "payload": {"text": message}});
    post(server, "POST", "/aacp/agents", &json!({"agentId": agent}));
    post(server, "POST", "/aacp/messages", &sent);
    done(place.run(&["chat", "--session", "talk", "--model", "offline/echo", session]));
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", path.display()))
}

/// The canaries that a file holds, in any form, and the marks of a database that is not encrypted.
fn found(path: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let marks = ["SQLite format 3", "CREATE TABLE", "INTEGER PRIMARY KEY"].map(String::from);
    let all = CANARIES.iter().flat_map(|canary| forms(canary)).chain(marks);
    all.filter(|form| text.contains(form)).collect()
}

#[test]
fn no_content_is_readable_in_data_file_log_and_backup() {
    for (place, readable) in [(plain(), true), (encrypted(), false)] {
        let server = Server::start(&place, &[]);
        fill(&place, &server);
        let data = place.data_file();
        done(place.run(&["backup", "copy.sqlite3"]));
        let copy = place.path().join("copy.sqlite3");
        let log = found(&beside(&data, "-wal"));
        assert_eq!(!log.is_empty(), readable, "{log:?}");
        for path in [&data, &copy] {
            assert_eq!(!found(path).is_empty(), readable, "{path:?}: {:?}", found(path));
        }
        assert_eq!(found(&beside(&data, "-shm")), Vec::<String>::new());
        done(place.run(&["audit", "verify"]));
        server.terminate();
        assert_eq!(!found(&data).is_empty(), readable, "{:?}", found(&data));
        let (mut written, log) = (found(&data), beside(&data, "-wal"));
        if log.exists() {
            written.extend(found(&log));
        }
        let missed: Vec<&str> =
            CANARIES.into_iter().filter(|canary| !written.contains(&(*canary).to_owned())).collect();
        assert_eq!(missed.is_empty(), readable, "a canary that was never written proves nothing: {missed:?}");
        let folder = data.parent().unwrap();
        for entry in
            std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file())
        {
            assert!(readable || found(&entry.path()).is_empty(), "{:?}", entry.path());
        }
    }
}

/// A data file with content, closed.
fn filled(place: &Place) -> PathBuf {
    let server = Server::start(place, &[]);
    fill(place, &server);
    assert_eq!(server.terminate().code(), Some(0));
    place.data_file()
}

#[test]
fn without_its_key_a_store_is_refused_and_left_as_it_is() {
    let place = encrypted();
    let data = filled(&place);
    let before = std::fs::read(&data).unwrap();
    for (key, wanted) in [
        (None, "no key is configured"),
        (Some(OTHER_KEY), "another"),
        (Some(""), "is not set"),
        (Some("short"), "32 bytes"),
    ] {
        for args in [
            &["list"][..],
            &["audit", "verify"],
            &["backup", "stolen.sqlite3"],
            &["serve", "--listen", "127.0.0.1:0"],
        ] {
            let said = run(&place, key, args);
            assert_eq!(said.code, Some(4), "{args:?}: {said:?}");
            assert!(said.err.contains(wanted) && said.err.contains("STORE_KEY"), "{said:?}");
            assert!(said.err.contains("hint:"), "{said:?}");
        }
        assert_eq!(run(&place, key, &["doctor"]).code, Some(1));
    }
    assert_eq!(std::fs::read(&data).unwrap(), before);
    assert!(!place.path().join("stolen.sqlite3").exists());
    done(run(&place, Some(KEY), &["list"]));
}

#[test]
fn a_plain_store_is_not_opened_with_a_key_and_the_command_is_named() {
    let place = plain();
    let data = filled(&place);
    let before = std::fs::read(&data).unwrap();
    let said = run(&place, Some(KEY), &["list"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("orchestr8 store encrypt"), "{said:?}");
    let said = run(&place, None, &["store", "encrypt", "--yes"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let said = run(&place, Some(KEY), &["store", "encrypt"]);
    assert_eq!(said.code, Some(2), "never without a question: {said:?}");
    assert_eq!(std::fs::read(&data).unwrap(), before);
}

/// Whether the store passes its check.
fn is_sound(place: &Place) -> bool {
    let said = place.run(&["--json", "doctor"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let store = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "store").unwrap();
    store["status"] == "ok"
}

#[test]
fn changed_moved_and_foreign_pages_are_never_served() {
    let (place, other) = (encrypted(), encrypted());
    let (data, foreign) = (filled(&place), filled(&other));
    let (whole, foreign) = (std::fs::read(&data).unwrap(), std::fs::read(foreign).unwrap());
    assert!(is_sound(&place));
    let pages = whole.len() / PAGE;
    let page = |number: usize| number * PAGE..(number + 1) * PAGE;
    let mut changes: Vec<(String, Vec<u8>)> = Vec::new();
    for round in 0..8 {
        // Any byte of any page: the reserved bytes at its end as well.
        let at = PAGE + (round * 7919 * 31 + 11) % (whole.len() - PAGE);
        let mut changed = whole.clone();
        changed[at] ^= 1 << (round % 8);
        changes.push((format!("byte {at}"), changed));
    }
    let mut moved = whole.clone();
    moved[page(1)].copy_from_slice(&whole[page(pages / 2)]);
    changes.push((String::from("the first page"), moved));
    let mut swapped = whole.clone();
    swapped[page(2)].copy_from_slice(&whole[page(pages - 2)]);
    swapped[page(pages - 2)].copy_from_slice(&whole[page(2)]);
    changes.push((String::from("two pages of one store"), swapped));
    let mut mixed = whole.clone();
    mixed[page(1)].copy_from_slice(&foreign[page(1)]);
    changes.push((String::from("a page of another store with the same key"), mixed));
    for (what, bytes) in changes {
        std::fs::write(&data, bytes).unwrap();
        assert!(!is_sound(&place), "{what}");
    }
    std::fs::write(&data, &whole).unwrap();
    assert!(is_sound(&place));
}

fn append(server: &Server, value: &str) {
    let params = json!({"name": "test_append", "arguments": {"list": "l", "value": value}});
    let answer =
        server.connect().modern(1, "tools/call", params, &format!("Idempotency-Key: {value}\r\n")).unwrap();
    assert_eq!(answer.json()["result"]["isError"], false);
}

fn values(server: &Server) -> usize {
    let params = json!({"name": "test_list", "arguments": {"list": "l"}});
    let answer = server.connect().modern(1, "tools/call", params, "").unwrap().json();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    serde_json::from_str::<Value>(&text).unwrap()["values"].as_array().unwrap().len()
}

#[test]
fn killed_again_and_again_it_loses_nothing_and_a_changed_log_is_refused() {
    let place = encrypted();
    let data = place.data_file();
    for cycle in 0..8 {
        let server = Server::start(&place, &["--conformance"]);
        assert_eq!(values(&server), cycle * 5);
        for n in 0..5 {
            append(&server, &format!("{cycle}-{n}"));
        }
        server.kill();
        done(place.run(&["audit", "verify"]));
    }
    let server = Server::start(&place, &["--conformance"]);
    append(&server, "one");
    for n in 0..10 {
        append(&server, &format!("more-{n}"));
    }
    server.kill();
    let log = beside(&data, "-wal");
    let whole = std::fs::read(&log).unwrap();
    for at in [10, 64 + 3, 64 + 30, 64 + 4000] {
        let mut changed = whole.clone();
        changed[at] ^= 4;
        std::fs::write(&log, &changed).unwrap();
        for args in [&["audit", "verify"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let said = place.run(args);
            assert_eq!(said.code, Some(1), "byte {at}: {said:?}");
            assert!(said.err.contains("write-ahead log fails its check"), "{said:?}");
        }
        assert_eq!(std::fs::read(&log).unwrap(), changed, "nothing was cut off");
    }
    std::fs::write(&log, &whole).unwrap();
    let server = Server::start(&place, &["--conformance"]);
    assert_eq!(values(&server), 51);
}

#[test]
fn a_new_key_replaces_the_old_one_and_backups_restore() {
    let place = encrypted();
    let data = filled(&place);
    done(place.run(&["backup", "before.sqlite3"]));
    let said = run(&place, Some(OTHER_KEY), &["store", "rekey", "--new-env", "NEW_KEY", "--yes"]);
    assert_eq!(said.code, Some(4), "the old key has to be right: {said:?}");
    done(run(&place, Some(KEY), &["store", "rekey", "--new-env", "NEW_KEY", "--yes"]));
    assert_eq!(run(&place, Some(KEY), &["list"]).code, Some(4));
    done(run(&place, Some(OTHER_KEY), &["audit", "verify"]));
    done(run(&place, Some(OTHER_KEY), &["backup", "after.sqlite3"]));
    for (backup, key) in [("before.sqlite3", KEY), ("after.sqlite3", OTHER_KEY)] {
        std::fs::copy(place.path().join(backup), &data).unwrap();
        let other = if key == KEY { OTHER_KEY } else { KEY };
        assert_eq!(run(&place, Some(other), &["list"]).code, Some(4), "{backup}");
        let listed = done(run(&place, Some(key), &["--json", "list"]));
        assert!(listed.out.contains(CANARIES[0]), "{backup}: {listed:?}");
        done(run(&place, Some(key), &["audit", "verify"]));
    }
}

/// What a store says of itself, to be compared.
fn content(place: &Place, key: Option<&str>) -> (Value, Value) {
    let json = |args: &[&str]| serde_json::from_str(&done(run(place, key, args)).out).unwrap();
    let mut verified: Value = json(&["--json", "audit", "verify"]);
    verified.as_object_mut().unwrap().retain(|name, _| matches!(name.as_str(), "entries" | "head"));
    (verified, json(&["--json", "list"]))
}

#[test]
fn there_and_back_the_content_is_the_same() {
    let place = plain();
    let data = filled(&place);
    let before = content(&place, None);
    let said = done(run(&place, Some(KEY), &["store", "encrypt", "--yes"]));
    assert!(said.err.contains("old blocks"), "{said:?}");
    assert_eq!(found(&data), Vec::<String>::new());
    assert_eq!(content(&place, Some(KEY)), before);
    assert_eq!(run(&place, Some(KEY), &["store", "encrypt", "--yes"]).code, Some(5), "it is already");
    assert_eq!(run(&place, Some(OTHER_KEY), &["store", "decrypt", "--yes"]).code, Some(4));
    done(run(&place, Some(KEY), &["store", "decrypt", "--yes"]));
    assert_eq!(content(&place, None), before);
    assert_eq!(run(&place, Some(KEY), &["store", "decrypt", "--yes"]).code, Some(5));
    let server = Server::start(&plain(), &[]);
    let busy = run(&place, Some(KEY), &["store", "rekey", "--new-env", "NEW_KEY", "--yes"]);
    assert_eq!(busy.code, Some(2), "it is not encrypted: {busy:?}");
    server.terminate();
}

#[test]
fn killed_while_it_is_encrypted_a_store_is_the_one_or_the_other() {
    let place = plain();
    let data = filled(&place);
    let (before, whole) = (content(&place, None), std::fs::read(&data).unwrap());
    let unfinished = beside(&data, ".converting");
    let mut kinds = [0, 0];
    // Killed when the new file has this share of its size; the last time only once it has its name.
    for percent in [0, 1, 10, 30, 60, 90, 99, 100, 1000] {
        let mut command = place.command(&["store", "encrypt", "--yes"]);
        command.env("ORCHESTR8_STORE_KEY_ENV", "STORE_KEY").stderr(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut existed = false;
        loop {
            let size = unfinished.metadata().map(|found| found.len()).ok();
            let is_big = size.is_some_and(|size| size * 100 >= whole.len() as u64 * percent);
            if is_big || (existed && size.is_none()) || child.try_wait().unwrap().is_some() {
                break;
            }
            existed |= size.is_some();
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().unwrap();
        let is_encrypted = found(&data).is_empty();
        assert_eq!(content(&place, is_encrypted.then_some(KEY)), before, "at {percent} %");
        kinds[usize::from(is_encrypted)] += 1;
        std::fs::write(&data, &whole).unwrap();
    }
    assert!(kinds[0] > 0 && kinds[1] > 0, "{kinds:?}");
    let server = Server::start(&place, &[]);
    assert!(!beside(&data, ".converting").exists(), "what was left is removed");
    server.terminate();
}

#[test]
fn a_folder_that_is_not_trusted_names_no_key() {
    let place = plain();
    let trace = place.path().join("trace");
    let command = json!(["touch", trace]);
    place.plant("orchestr8.json", &json!({"store": {"key": {"command": command}}}).to_string());
    let said = place.run(&["list"]);
    assert!(!trace.exists(), "{said:?}");
    let data = place.data_file();
    assert!(!data.exists() || !found(&data).is_empty(), "the data file is plain");
}
