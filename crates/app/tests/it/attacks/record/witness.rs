//! Someone who owns the machine puts back old copies of the data, the heads and the key together: only a witness shows it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use serde_json::{Value, json};

use super::super::tls::{Authority, TlsServer, place as tls_place};
use super::append;
use crate::program::{Place, Said};
use crate::server::{Answer, Server};

/// A witness, and a server whose heads it remembers.
struct Witnessed {
    witness_place: Place,
    witness: Server,
    place: Place,
}

fn watched(address: SocketAddr, token: &str) -> Place {
    watched_at(&format!("http://{address}"), token)
}

fn watched_at(url: &str, token: &str) -> Place {
    Place::new()
        .with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:0")
        .with("ORCHESTR8_AUDIT_WITNESSES", url)
        .with("ORCHESTR8_AUDIT_WITNESS_TOKEN_ENV_VAR", "WITNESS_TOKEN")
        .with("WITNESS_TOKEN", token)
}

impl Witnessed {
    fn new() -> Self {
        let witness_place = Place::new();
        let token = new_token(&witness_place);
        let witness = Server::start(&witness_place, &[]);
        let place = watched(witness.address, &token);
        Self { witness_place, witness, place }
    }

    /// What the server shows the witness.
    fn bearer(&self) -> String {
        let command = self.place.command(&[]);
        let token = command.get_envs().find(|(name, _)| *name == "WITNESS_TOKEN").unwrap().1.unwrap();
        format!("Authorization: Bearer {}\r\n", token.to_str().unwrap())
    }

    /// Sends heads as the server does.
    fn send(&self, body: &Value) -> Answer {
        let mut witness = self.witness.connect();
        witness.request("POST", "/v1/witness/heads", &self.bearer(), Some(&body.to_string())).unwrap()
    }

    fn at_witness(&self, args: &[&str]) -> Said {
        let url = format!("http://{}", self.witness.address);
        self.witness_place.run(&[args, &["--server", &url]].concat())
    }

    /// The heads of the audit log that the witness remembers.
    fn remembered(&self) -> Value {
        let said = self.at_witness(&["--json", "witness", "list"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let page: Value = serde_json::from_str(&said.out).unwrap();
        let heads = page["heads"].as_array().unwrap();
        heads
            .iter()
            .find(|head| head["origin"].as_str().unwrap().ends_with("/audit"))
            .cloned()
            .unwrap_or_default()
    }
}

/// A token of the witness that can do what a witness is for, and nothing else.
fn new_token(witness: &Place) -> String {
    let scope = ["tokens", "create", "--name", "prod", "--role", "agent", "--scope", "witness.*", "--json"];
    let made = witness.run(&scope);
    assert_eq!(made.code, Some(0), "{made:?}");
    serde_json::from_str::<Value>(&made.out).unwrap()["token"].as_str().unwrap().to_owned()
}

/// The lines of the head file, the oldest first.
fn signed_heads(place: &Place) -> Vec<Value> {
    let files = fs::read_dir(place.path().join("home/.local/state/orchestr8/audit")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|end| end == "heads")).unwrap();
    fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Appends entries, and stops in good order: the last head is anchored by then.
fn work(place: &Place, numbers: std::ops::Range<u32>) {
    let server = Server::start(place, &["--conformance"]);
    for number in numbers {
        append(&server, number);
    }
    assert_eq!(server.terminate().code(), Some(0));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

fn serve(place: &Place) -> Said {
    place.run(&["serve", "--listen", "127.0.0.1:0"])
}

#[test]
fn a_rollback_of_data_heads_and_key_together_is_found_through_the_witness() {
    let world = Witnessed::new();
    work(&world.place, 0..4);
    let before = world.remembered();
    assert!(before["size"].as_u64().unwrap() >= 4, "{before}");
    let (home, old) = (world.place.path().join("home/.local"), world.place.path().join("old"));
    copy(&home, &old);
    work(&world.place, 4..8);
    let verified = world.place.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(world.remembered()["size"].as_u64() > before["size"].as_u64());
    fs::remove_dir_all(&home).unwrap();
    copy(&old, &home);
    let refused = serve(&world.place);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("that the witness http://127.0.0.1"), "{}", refused.err);
    assert!(refused.err.contains("orchestr8 witness forget"), "{}", refused.err);
    let verified = world.place.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    // The control: nothing on the machine itself shows it.
    let mut alone = world.place.command(&["audit", "verify"]);
    let alone = alone.env_remove("ORCHESTR8_AUDIT_WITNESSES").output().unwrap();
    assert!(alone.status.success(), "{alone:?}");
    // A planned restore: the operator of the witness lets the logs begin again.
    let origin = before["origin"].as_str().unwrap();
    let journal = origin.replace("/audit", "/journal");
    for log in [origin, &journal] {
        let said = world.at_witness(&["witness", "forget", log, "--principal", "prod", "--yes"]);
        assert!(said.code == Some(0) || log == journal, "{said:?}");
    }
    work(&world.place, 8..9);
    let said = world.at_witness(&["audit", "list", "--json", "--action", "witness.forget"]);
    assert!(said.out.contains(origin), "{said:?}");
}

#[test]
fn a_witness_refuses_heads_that_contradict_it_and_answers_with_its_own() {
    let world = Witnessed::new();
    work(&world.place, 0..3);
    let first = signed_heads(&world.place).swap_remove(0);
    work(&world.place, 3..6);
    let newest = world.remembered();
    let (key, bearer) = (newest["key"].clone(), world.bearer());
    let send = |body: Value| world.send(&body);
    let smaller = send(json!({"key": key, "heads": first["heads"]}));
    assert_eq!(smaller.status, 409, "{smaller:?}");
    assert!(smaller.body.contains("the log has become smaller"), "{}", smaller.body);
    assert!(smaller.body.contains("orchestr8-log-"), "with the stored head: {}", smaller.body);
    let note = newest["note"].as_str().unwrap();
    let size = format!("\n{}\n", newest["size"]);
    let forged = note.replace(&size, "\n999999\n");
    assert_eq!(send(json!({"key": key, "heads": [forged]})).status, 400, "a head that the key did not sign");
    assert_eq!(world.remembered(), newest);
    // The token does this and nothing else.
    let other = world.witness.connect().request("GET", "/v1/executions", &bearer, None).unwrap();
    assert_eq!(other.status, 403, "{other:?}");
    let without_role =
        world.witness.connect().request("DELETE", "/v1/witness/heads?origin=o&principal=prod", &bearer, None);
    assert_eq!(without_role.unwrap().status, 403);
    let said = world.at_witness(&["audit", "list", "--json", "--action", "witness.submit"]);
    assert!(said.out.contains("\"prod\""), "{said:?}");
}

/// The key is stolen, the log rewritten and then made longer: size and signature are right, only the history is not.
#[test]
fn a_longer_log_with_another_history_is_refused_although_the_key_has_signed_it() {
    let world = Witnessed::new();
    let (home, old) = (world.place.path().join("home/.local"), world.place.path().join("old"));
    work(&world.place, 0..2);
    copy(&home, &old);
    work(&world.place, 2..4);
    let remembered = world.remembered();
    fs::remove_dir_all(&home).unwrap();
    copy(&old, &home);
    let mut unwatched = world.place.command(&["serve", "--listen", "127.0.0.1:0", "--conformance"]);
    unwatched.env_remove("ORCHESTR8_AUDIT_WITNESSES").env_remove("ORCHESTR8_AUDIT_WITNESS_TOKEN_ENV_VAR");
    let server = Server::of(unwatched);
    (10..20).for_each(|number| append(&server, number));
    assert_eq!(server.terminate().code(), Some(0));
    let forged = signed_heads(&world.place).pop().unwrap();
    let origin = remembered["origin"].as_str().unwrap();
    let note =
        forged["heads"].as_array().unwrap().iter().find(|note| note.as_str().unwrap().starts_with(origin));
    let (note, from) = (note.unwrap(), remembered["size"].as_u64().unwrap());
    let size: u64 = note.as_str().unwrap().lines().nth(1).unwrap().parse().unwrap();
    assert!(size > from, "{size} and {from}");
    let plain = world.send(&json!({"key": remembered["key"], "heads": [note]}));
    assert_eq!(plain.status, 409, "{plain:?}");
    let details = serde_json::from_str::<Value>(&plain.body).unwrap()["error"]["details"].clone();
    assert_eq!((&details["reason"], &details["from"]), (&json!("consistency_proof_missing"), &json!(from)));
    // The best that the forger can prove: that the log has grown from its own past.
    let said = world.place.run(&["prove", "--since", &from.to_string(), "--out", "growth.json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let growth: Value = serde_json::from_str(&world.place.read("growth.json")).unwrap();
    let proof = json!({"origin": origin, "from": from, "hashes": growth["hashes"]});
    let proven = world.send(&json!({"key": remembered["key"], "heads": [note], "proofs": [proof]}));
    assert_eq!(proven.status, 409, "{proven:?}");
    assert!(proven.body.contains("has not grown from the one that is remembered"), "{}", proven.body);
    assert_eq!(world.remembered(), remembered);
}

/// Answers every request with this.
fn false_witness(answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            let _ = reader.get_mut().write_all(format!("{head}{answer}").as_bytes());
        }
    });
    address
}

#[test]
fn a_forged_answer_of_a_witness_is_not_believed() {
    let world = Witnessed::new();
    work(&world.place, 0..3);
    let mut head = world.remembered();
    let note = head["note"].as_str().unwrap().replace(&format!("\n{}\n", head["size"]), "\n999999\n");
    head["note"] = note.into();
    let address = false_witness(json!({"heads": [head]}).to_string());
    let with = |url: &str, args: &[&str]| {
        let output = world.place.command(args).env("ORCHESTR8_AUDIT_WITNESSES", url).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let url = format!("http://{address}");
    let (code, err) = with(&url, &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("it shows a head that is not ours"), "{err}");
    let (code, err) = with(&url, &["audit", "verify"]);
    assert_eq!(code, Some(1), "{err}");
    let (code, err) = with("http://witness.example", &["config", "check"]);
    assert_ne!(code, Some(0), "a token is not sent in the clear: {err}");
}

#[test]
fn a_witness_that_is_down_is_warned_of_and_stops_nothing_unless_it_is_required() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = watched(free, "o8_none");
    work(&place, 0..2);
    let doctor = place.run(&["--json", "doctor"]);
    assert!(doctor.out.contains("witness http://127.0.0.1"), "{doctor:?}");
    let verified = place.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.err.contains("not compared with the witness"), "{verified:?}");
    let named = place.run(&["audit", "verify", "--witness", &format!("http://{free}")]);
    assert_ne!(named.code, Some(0), "one that is named must answer: {named:?}");
    let mut required = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let required = required.env("ORCHESTR8_AUDIT_REQUIRE_WITNESS", "true").output().unwrap();
    assert!(!required.status.success());
    let err = String::from_utf8_lossy(&required.stderr);
    assert!(err.contains("audit.requireWitness is set"), "{err}");
}

#[test]
fn heads_are_signed_after_so_many_entries_and_the_key_can_come_from_a_command() {
    let first = Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:0");
    work(&first, 0..1);
    let key = first.path().join("home/.local/state/orchestr8/audit/log.key");
    let place = Place::new()
        .with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:0")
        .with("ORCHESTR8_AUDIT_KEY_COMMAND", &format!("cat,{}", key.display()))
        .with("ORCHESTR8_AUDIT_HEAD_SECONDS", "3600")
        .with("ORCHESTR8_AUDIT_HEAD_ENTRIES", "5");
    let server = Server::start(&place, &["--conformance"]);
    for number in 0..6 {
        append(&server, number);
    }
    let folder = place.path().join("home/.local/state/orchestr8/audit");
    let mut tries = 0;
    while !fs::read_dir(&folder).is_ok_and(|files| {
        let has_head =
            |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.contains("event interval"));
        files
            .map(|file| file.unwrap().path())
            .any(|path| path.extension().is_some_and(|end| end == "heads") && has_head(&path))
    }) {
        tries += 1;
        assert!(tries < 20_000, "no head was made after six entries");
        assert_eq!(server.connect().get("/healthz").status, 200);
    }
    server.kill();
    assert!(!folder.join("log.key").exists(), "the key is nowhere on the disk of this installation");
    let shown = |place: &Place| place.run(&["--json", "audit", "key"]).out;
    let key_of = |out: &str| serde_json::from_str::<Value>(out).unwrap()["key"].clone();
    assert_eq!(key_of(&shown(&place)), key_of(&shown(&first)));
    assert_eq!(place.run(&["audit", "verify"]).code, Some(0));
}

#[test]
fn a_witness_with_a_certificate_of_an_own_authority_is_believed_only_once_that_is_trusted() {
    let authority = Authority::new();
    let witness_place = tls_place(&authority);
    let token = new_token(&witness_place);
    let witness = TlsServer::start(&witness_place);
    let url = format!("https://{}", witness.address);
    let place = watched_at(&url, &token).with("ORCHESTR8_AUDIT_REQUIRE_WITNESS", "true");
    let refused = serve(&place);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.err.contains("audit.requireWitness is set"), "{}", refused.err);
    let ca = witness_place.path().join("ca.pem");
    let place = place.with("ORCHESTR8_AUDIT_WITNESS_CA_FILE", ca.to_str().unwrap());
    work(&place, 0..2);
    let verified = place.run(&["audit", "verify", "--witness", &url]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let key = witness_place.path().join("key.pem");
    let place = place.with("ORCHESTR8_AUDIT_WITNESS_CA_FILE", key.to_str().unwrap());
    let wrong = place.run(&["config", "check"]);
    assert_ne!(wrong.code, Some(0), "{wrong:?}");
    assert!(wrong.err.contains("audit.witnessCaFile"), "{}", wrong.err);
}
