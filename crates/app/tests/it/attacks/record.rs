//! Someone who can write the data file, and knows how hashes are made, changes the record of what was done.

mod proofs;
mod witness;

use std::fs;
use std::path::{Path, PathBuf};

use orchestr8_contract::chain::seal;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::program::{Place, Said};
use crate::server::Server;
use crate::workflows::{echo, newest, write};

/// An installation with entries in both logs, stopped in good order, and a copy of its data file.
struct Installation {
    place: Place,
    untouched: PathBuf,
    executions: Vec<String>,
}

impl Installation {
    fn new() -> Self {
        let place = Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:0");
        write(&place, "hello", &json!([echo("greet", &[], json!({"text": "hello"}))]));
        let server = Server::start(&place, &["--conformance"]);
        for number in 0..8 {
            append(&server, number);
        }
        let url = format!("http://{}", server.address);
        let executions = (0..3).map(|_| run(&place, &["--server", &url])).collect();
        for number in 8..12 {
            append(&server, number);
        }
        assert_eq!(server.terminate().code(), Some(0));
        let untouched = place.path().join("untouched.sqlite3");
        let installation = Self { place, untouched, executions };
        installation.sql("SELECT 1");
        fs::copy(installation.place.data_file(), &installation.untouched).unwrap();
        installation
    }

    /// Puts the data file back as it was.
    fn restore(&self) {
        self.put(&self.untouched);
    }

    fn put(&self, copy: &Path) {
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(self.place.data_file().with_extension(format!("sqlite3{ending}")));
        }
        fs::copy(copy, self.place.data_file()).unwrap();
    }

    fn open(&self) -> Connection {
        Connection::open(self.place.data_file()).unwrap()
    }

    fn sql(&self, sql: &str) {
        let connection = self.open();
        connection.execute_batch(sql).unwrap();
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    }

    fn verify(&self) -> Said {
        self.place.run(&["audit", "verify"])
    }

    /// Applies a change to the untouched file, and expects that it is found.
    fn expect(&self, change: impl FnOnce(&Self), named: &[&str]) {
        self.restore();
        change(self);
        let said = self.verify();
        assert_eq!(said.code, Some(1), "{named:?}: {said:?}");
        for words in named {
            assert!(said.err.contains(words), "{words}: {}", said.err);
        }
        let doctor = self.place.run(&["--json", "doctor"]);
        assert_eq!(doctor.code, Some(1), "{named:?}: {doctor:?}");
    }

    fn public_key(&self) -> String {
        let said = self.place.run(&["--json", "audit", "key"]);
        serde_json::from_str::<Value>(&said.out).unwrap()["key"].as_str().unwrap().to_owned()
    }

    /// The only head file there is.
    fn heads(&self) -> PathBuf {
        let folder = self.place.path().join("home/.local/state/orchestr8/audit");
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "heads")).unwrap()
    }
}

fn append(server: &Server, number: u32) {
    let params = json!({"name": "test_append", "arguments": {"list": "l", "value": number.to_string()}});
    let key = format!("Idempotency-Key: k{number}\r\n");
    let answer = server.connect().modern(1, "tools/call", params, &key).unwrap();
    assert_eq!(answer.json()["result"]["isError"], false);
}

fn run(place: &Place, more: &[&str]) -> String {
    let said = place.run(&[&["run", "hello.json", "--quiet"], more].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    newest(place, more)
}

/// Changes the principal of an entry and computes the hashes of it and of all later ones again.
fn forge(connection: &Connection, seq: i64) {
    let mut select = connection
        .prepare(
            "SELECT seq, at_ms, body, prev_hash FROM chain WHERE name = 'actions' AND seq >= ?1 ORDER BY seq",
        )
        .unwrap();
    let rows = select
        .query_map([seq], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, String>(3)?,
            ))
        })
        .unwrap();
    let rows: Vec<_> = rows.map(Result::unwrap).collect();
    let mut prev = rows[0].3.clone();
    for (number, at_ms, body, _) in rows {
        let mut value: Value = serde_json::from_str(&body).unwrap();
        if number == seq {
            value["principal"] = "mallory".into();
        }
        let body = orchestr8_contract::canonical::text(&value);
        let hash = seal(&prev, number, at_ms, body.as_bytes());
        let update =
            "UPDATE chain SET body = ?2, prev_hash = ?3, entry_hash = ?4 WHERE name = 'actions' AND seq = ?1";
        connection.execute(update, rusqlite::params![number, body, prev, hash]).unwrap();
        prev = hash;
    }
}

/// execution, seq, at_ms, kind, step, level, data, truncated, record
type JournalRow = (i64, i64, i64, String, Option<String>, String, String, Option<String>, Option<String>);

#[test]
fn an_untouched_record_agrees_with_its_signed_heads() {
    let installation = Installation::new();
    let said = installation.verify();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("signed: audit with "), "{}", said.out);
    let said = installation.place.run(&["--json", "doctor"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let server = Server::start(&installation.place, &["--conformance"]);
    append(&server, 100);
    server.kill();
    let server = Server::start(&installation.place, &["--conformance"]);
    append(&server, 101);
    assert_eq!(server.terminate().code(), Some(0), "a crash is no attack");
    assert_eq!(installation.verify().code, Some(0));
}

#[test]
fn every_change_of_the_audit_trail_is_found_and_named() {
    let installation = Installation::new();
    let recorded = "it is not the entry that was recorded under this number";
    installation.expect(|it| forge(&it.open(), 5), &["entry 5 of the log `audit`", "by mallory", recorded]);
    installation.expect(
        |it| it.sql("UPDATE chain SET body = replace(body, 'success', 'failure') WHERE seq = 6"),
        &["entry 6 of the chain is broken"],
    );
    installation.expect(|it| it.sql("DELETE FROM chain"), &["entry 1 of the log `audit`", "it is missing"]);
    installation.expect(
        |it| it.sql("DELETE FROM chain WHERE seq > 9"),
        &["entry 10 of the log `audit`", "it is missing"],
    );
    let swap = "UPDATE chain SET seq = -1 WHERE seq = 3; UPDATE chain SET seq = 3 WHERE seq = 4; UPDATE chain SET seq = 4 WHERE seq = -1";
    installation.expect(|it| it.sql(swap), &["entry 3 of the chain is broken"]);
    // The whole trail recomputed, with the tables that record its length.
    let forget = "DELETE FROM merkle_checkpoint; DELETE FROM merkle_pruned; DELETE FROM merkle_note";
    installation.expect(
        |it| {
            forge(&it.open(), 2);
            it.sql(forget);
        },
        &["entry 2 of the log `audit`", "by mallory"],
    );
}

#[test]
fn every_change_of_a_journal_or_an_execution_is_found_and_named() {
    let installation = Installation::new();
    let id = installation.executions[1].clone();
    let of = format!("(SELECT num FROM wf_executions WHERE id = '{id}')");
    let named = |seq: usize| format!("execution {id}, seq {seq}");
    let last: i64 = installation
        .open()
        .query_row(&format!("SELECT MAX(seq) FROM wf_journal WHERE execution = {of}"), [], |row| row.get(0))
        .unwrap();
    let change = format!(
        "UPDATE wf_journal SET data = replace(data, 'completed', 'failed') WHERE execution = {of} AND seq = {last}"
    );
    installation
        .expect(|it| it.sql(&change), &[&named(usize::try_from(last).unwrap()), "it is not the entry"]);
    let remove = format!("DELETE FROM wf_journal WHERE execution = {of} AND seq = 2");
    installation.expect(|it| it.sql(&remove), &[&named(2), "it is missing"]);
    let swap = format!(
        "UPDATE wf_journal SET seq = -1 WHERE execution = {of} AND seq = 1; UPDATE wf_journal SET seq = 1 WHERE execution = {of} AND seq = 2;
         UPDATE wf_journal SET seq = 2 WHERE execution = {of} AND seq = -1"
    );
    installation.expect(|it| it.sql(&swap), &[&id, "it is not the entry"]);
    let given = format!(
        "UPDATE wf_executions SET given = replace(given, '\"principal\":\"', '\"principal\":\"mallory-') WHERE id = '{id}'"
    );
    installation.expect(|it| it.sql(&given), &[&named(0), "who started it, with what, or when"]);
    let status = format!("UPDATE wf_executions SET status = 'failed' WHERE id = '{id}'");
    installation.expect(|it| it.sql(&status), &[&id, "its journal says otherwise"]);
    let delete = format!("DELETE FROM wf_executions WHERE id = '{id}'");
    installation.expect(|it| it.sql(&delete), &[&id, "was deleted, and not for its age"]);
    let all = format!(
        "DELETE FROM wf_journal WHERE execution = {of}; DELETE FROM wf_executions WHERE id = '{id}'; DELETE FROM wf_gone"
    );
    installation.expect(
        |it| it.sql(&all),
        &["of the log `journal`", "it is missing and was not deleted for its age"],
    );
    let invent = "INSERT INTO wf_executions (num, tenant, id, workflow, name, version, hash, status, awake, priority, correlation, given, created_ms)
        SELECT num + 100, tenant, 'exec-forged', workflow, name, version, hash, status, 0, priority, 'c', given, created_ms FROM wf_executions LIMIT 1";
    installation.expect(|it| it.sql(invent), &["exec-forged", "the log has no entry of its start"]);
}

/// A child that completed and is rolled back with its parent has two ends in its journal; the last one counts.
#[test]
fn a_rollback_agrees_with_the_record_and_a_changed_one_does_not() {
    let place = Place::new();
    let undone = |id: &str| {
        let mut step = echo(id, &[], json!({"n": 1}));
        step["compensate"] = json!({"agentId": "@orchestr8/echo"});
        step
    };
    let inner = json!({"id": "inner", "version": "1.0.0", "name": "Inner", "steps": [undone("x")]});
    let refused = json!({"id": "b", "agentId": "@orchestr8/transform", "dependsOn": ["child"], "input": {"no": "operation"}});
    write(&place, "hello", &json!([undone("a"), {"id": "child", "workflow": inner}, refused]));
    let said = place.run(&["run", "hello.json", "--quiet"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let child = newest(&place, &["--workflow", "inner", "--status", "compensated"]);
    let said = place.run(&["audit", "verify"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for status in ["completed", "failed"] {
        let connection = Connection::open(place.data_file()).unwrap();
        let change = format!("UPDATE wf_executions SET status = '{status}' WHERE id = '{child}'");
        connection.execute_batch(&change).unwrap();
        drop(connection);
        let said = place.run(&["audit", "verify"]);
        assert!(
            said.code == Some(1) && said.err.contains("its journal says otherwise"),
            "{status}: {said:?}"
        );
    }
}

/// The hash of a deleted entry in its place: the root is right, and what is signed about deleted entries is not.
#[test]
fn entries_that_are_made_to_look_old_are_found() {
    let installation = Installation::new();
    let said = installation.place.run(&["audit", "export", "--all", "-o", "all.jsonl"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = installation.place.read("all.jsonl");
    let fourth = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["log"] == "audit" && line["number"] == 4)
        .unwrap();
    let hash = fourth["values"][0].as_str().unwrap();
    let leaf = orchestr8_stores::merkle::leaf_of("audit", &[hash.into()]);
    let hide = |it: &Installation| {
        let connection = it.open();
        connection
            .execute("INSERT INTO merkle_pruned VALUES ('audit', 3, 0, ?1)", [leaf.as_slice()])
            .unwrap();
        connection.execute_batch("DELETE FROM chain WHERE seq = 4").unwrap();
    };
    // The chain itself has a gap; without the chain's own check the signature shows it.
    installation.expect(hide, &["entry 4 of the chain is broken"]);
    let journal = |it: &Installation| {
        let connection = it.open();
        let row: JournalRow = connection
            .query_row("SELECT execution, seq, at_ms, kind, step, level, data, truncated, record FROM wf_journal WHERE id = 2", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?, row.get(8)?))
            })
            .unwrap();
        let values = [
            row.0.into(),
            row.1.into(),
            row.2.into(),
            row.3.into(),
            row.4.into(),
            row.5.into(),
            row.6.into(),
            row.7.into(),
            row.8.into(),
        ];
        let leaf = orchestr8_stores::merkle::leaf_of("journal", &values);
        connection
            .execute("INSERT INTO merkle_pruned VALUES ('journal', 1, 0, ?1)", [leaf.as_slice()])
            .unwrap();
        connection.execute_batch("DELETE FROM wf_journal WHERE id = 2").unwrap();
    };
    installation
        .expect(journal, &["log `journal`", "the server has not signed that it did so for their age"]);
}

#[test]
fn a_server_does_not_start_on_an_older_copy_or_on_added_entries_until_a_person_accepts_it() {
    let installation = Installation::new();
    let place = &installation.place;
    let server = Server::start(place, &["--conformance"]);
    append(&server, 50);
    server.terminate();
    installation.put(&installation.untouched);
    let refused = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("does not agree with the newest signed head"), "{}", refused.err);
    assert!(refused.err.contains("orchestr8 audit accept --reason TEXT"), "{}", refused.err);
    assert_eq!(installation.verify().code, Some(1));
    let accepted = place.run(&["audit", "accept", "--reason", "restored from the backup of Monday"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    assert_eq!(installation.verify().code, Some(0));
    let tail = place.run(&["--json", "audit", "tail", "-n", "1"]);
    assert!(tail.out.contains("restored from the backup of Monday"), "{}", tail.out);
    let server = Server::start(place, &["--conformance"]);
    append(&server, 51);
    assert_eq!(server.terminate().code(), Some(0));
    assert_eq!(installation.verify().code, Some(0));
    installation.sql(
        "INSERT INTO wf_journal (execution, seq, at_ms, kind, level, data)
         SELECT execution, seq + 100, at_ms, kind, level, data FROM wf_journal ORDER BY id DESC LIMIT 1",
    );
    let refused = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("it was put in while the server was stopped"), "{}", refused.err);
    installation.sql("DELETE FROM chain");
    assert_eq!(place.run(&["serve", "--listen", "127.0.0.1:0"]).code, Some(1));
    fs::remove_file(place.data_file()).unwrap();
    let refused = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(1), "a data file that is gone: {refused:?}");
}

#[test]
fn the_key_is_private_outside_the_data_and_no_other_is_accepted() {
    let installation = Installation::new();
    let place = &installation.place;
    let key = place.path().join("home/.local/state/orchestr8/audit/log.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&key).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let inside = place.run(&["serve", "--data-dir", "home/.local"]);
    assert_eq!(inside.code, Some(2), "{inside:?}");
    assert!(inside.err.contains("would be in the data directory"), "{}", inside.err);
    fs::remove_file(&key).unwrap();
    let refused = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("it is signed with another key"), "{}", refused.err);
    assert_eq!(installation.verify().code, Some(1), "a foreign key");
}
