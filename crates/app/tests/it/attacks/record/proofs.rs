//! The independent verifier: it accepts what was not touched, and names what was.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Installation, forge};
use crate::program::Place;
use crate::server::Server;

fn verifier(args: &[&str]) -> (bool, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/verifier/verify.py");
    let output = Command::new("python3").arg(script).args(args).output().expect("python3 is needed");
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
    )
}

#[test]
fn the_independent_verifier_accepts_proofs_and_finds_what_was_changed_in_them() {
    let installation = Installation::new();
    let (place, key) = (&installation.place, installation.public_key());
    let id = &installation.executions[2];
    for (what, file) in [(id.as_str(), "execution.json"), ("7", "entry.json")] {
        let said = place.run(&["prove", what, "--out", file]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let path = place.path().join(file);
        let path = path.to_str().unwrap();
        let (ok, out) = verifier(&["proof", path, "--key", &key]);
        assert!(ok && out.starts_with("ok: "), "{out}");
        let proof: Value = serde_json::from_str(&place.read(file)).unwrap();
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut proof = proof.clone();
            change(&mut proof);
            place.write("changed.json", &proof.to_string());
            let (ok, out) =
                verifier(&["proof", place.path().join("changed.json").to_str().unwrap(), "--key", &key]);
            assert!(!ok && out.starts_with("FAIL: "), "{out}");
        };
        changed(&|proof| {
            proof["entries"][0]["number"] = json!(proof["entries"][0]["number"].as_u64().unwrap() + 1)
        });
        changed(&|proof| proof["entries"][0]["values"][0] = json!("x"));
        changed(&|proof| proof["entries"][0]["path"][0] = json!("00".repeat(32)));
        changed(&|proof| drop(proof["entries"][0]["path"].as_array_mut().unwrap().pop()));
        changed(&|proof| proof["head"] = json!(proof["head"].as_str().unwrap().replace("event ", "event x")));
        changed(&|proof| proof["entries"] = json!([]));
        changed(&|proof| drop(proof["entries"].as_array_mut().unwrap().pop()));
        changed(&|proof| drop(proof["entries"].as_array_mut().unwrap().remove(0)));
        changed(&|proof| proof["target"] = json!("8"));
        changed(&|proof| drop(proof.as_object_mut().unwrap().remove("target")));
        changed(&|proof| proof["key"] = json!("another"));
        changed(&|proof| proof["head"] = json!(format!("{}more\n", proof["head"].as_str().unwrap())));
        changed(&|proof| proof["head"] = json!(format!("{}more", proof["head"].as_str().unwrap())));
    }
    let other = "orchestr8-log-00000000+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let proof = place.path().join("entry.json");
    assert!(!verifier(&["proof", proof.to_str().unwrap(), "--key", other]).0);
    let execution: Value = serde_json::from_str(&place.read("execution.json")).unwrap();
    let mut changed = execution.clone();
    changed["execution"]["given"] =
        json!(execution["execution"]["given"].as_str().unwrap().replace("principal", "someone"));
    place.write("given.json", &changed.to_string());
    let (ok, out) = verifier(&["proof", place.path().join("given.json").to_str().unwrap(), "--key", &key]);
    assert!(!ok && out.contains("was started with was changed"), "{out}");
    assert_eq!(place.run(&["prove", "exec-nothing"]).code, Some(3));
    assert_eq!(place.run(&["prove", "9999"]).code, Some(3));
}

#[test]
fn the_independent_verifier_checks_a_whole_log_against_heads_kept_elsewhere() {
    let installation = Installation::new();
    let (place, key) = (&installation.place, installation.public_key());
    let said = place.run(&["audit", "export", "--all", "-o", "log.jsonl"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    fs::copy(installation.heads(), place.path().join("anchored.heads")).unwrap();
    let log = place.read("log.jsonl");
    let check = |lines: &[String], heads: &str, key: &str| {
        place.write("checked.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        verifier(&["log", &at("checked.jsonl"), "--heads", &at(heads), "--key", key])
    };
    let lines: Vec<String> = log.lines().map(str::to_owned).collect();
    let (ok, out) = check(&lines, "anchored.heads", &key);
    assert!(ok && out.contains("heads agree"), "{out}");
    let fails = |change: &dyn Fn(&mut Vec<String>), named: &str| {
        let mut lines = lines.clone();
        change(&mut lines);
        let (ok, out) = check(&lines, "anchored.heads", &key);
        assert!(!ok && out.contains(named), "{named}: {out}");
    };
    let journal = lines.iter().position(|line| line.contains("\"log\":\"journal\"")).unwrap();
    fails(&|lines| lines[journal + 1] = lines[journal + 1].replace("info", "warn"), "is not what was signed");
    fails(&|lines| lines[4] = lines[4].replace("success", "failure"), "does not match its hash");
    fails(&|lines| drop(lines.remove(5)), "entry 5 of the log audit is missing");
    fails(&|lines| lines.insert(5, lines[5].clone()), "entry 5 of the log audit was put in");
    fails(&|lines| lines.swap(6, 7), "entry 6 of the log audit is missing");
    fails(&|lines| lines.truncate(lines.len() - 1), "is missing: a signed head covers");
    // The forger's own chain, and the forger's own key.
    forge(&installation.open(), 3);
    place.run(&["audit", "export", "--all", "-o", "forged.jsonl"]);
    let forged: Vec<String> = place.read("forged.jsonl").lines().map(str::to_owned).collect();
    let (ok, out) = check(&forged, "anchored.heads", &key);
    assert!(!ok && out.contains("of the log audit is not what was signed"), "{out}");
    installation.restore();
    let other = Installation::new();
    let (ok, out) = check(&lines, "anchored.heads", &other.public_key());
    assert!(!ok && out.contains("foreign key"), "{out}");
    fs::copy(other.heads(), place.path().join("foreign.heads")).unwrap();
    let (ok, out) = check(&lines, "foreign.heads", &key);
    assert!(!ok && out.contains("foreign key"), "{out}");
}

#[test]
fn the_independent_verifier_accepts_a_log_that_has_grown_and_no_other() {
    let installation = Installation::new();
    let (place, key) = (&installation.place, installation.public_key());
    fs::copy(installation.heads(), place.path().join("anchored.heads")).unwrap();
    let anchored = place.read("anchored.heads");
    let newest: Value = serde_json::from_str(anchored.lines().last().unwrap()).unwrap();
    let mut notes = newest["heads"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
    let note = notes.find(|note| note.lines().next().unwrap().ends_with("/audit")).unwrap();
    let from = note.lines().nth(1).unwrap();
    let server = Server::start(place, &["--conformance"]);
    (12..19).for_each(|number| super::append(&server, number));
    assert_eq!(server.terminate().code(), Some(0));
    let said = place.run(&["prove", "--since", from, "--out", "growth.json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let check = |file: &str| {
        let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        verifier(&["growth", &at(file), "--heads", &at("anchored.heads"), "--key", &key])
    };
    let (ok, out) = check("growth.json");
    assert!(ok && out.contains(&format!("has grown from {from} to ")), "{out}");
    let growth: Value = serde_json::from_str(&place.read("growth.json")).unwrap();
    let fails = |change: &dyn Fn(&mut Value)| {
        let mut changed = growth.clone();
        change(&mut changed);
        place.write("changed.json", &changed.to_string());
        let (ok, out) = check("changed.json");
        assert!(!ok && out.starts_with("FAIL: "), "{out}");
    };
    fails(&|proof| proof["hashes"][0] = json!("00".repeat(32)));
    fails(&|proof| drop(proof["hashes"].as_array_mut().unwrap().pop()));
    fails(&|proof| proof["hashes"].as_array_mut().unwrap().push(json!("00".repeat(32))));
    fails(&|proof| proof["from"] = json!(1));
    fails(&|proof| proof["log"] = json!("journal"));
    fails(&|proof| proof["head"] = json!(proof["head"].as_str().unwrap().replace("event ", "event x")));
    assert_eq!(place.run(&["prove", "--since", "9999"]).code, Some(3));
}

/// A server on another machine, as far as this one knows: it keeps the bodies that it is posted.
fn collector() -> (std::net::SocketAddr, std::thread::JoinHandle<Vec<String>>) {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let collect = move || {
        let mut bodies: Vec<String> = Vec::new();
        while !bodies.last().is_some_and(|body| body.contains("event shutdown")) {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut length = 0;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                let line = line.to_ascii_lowercase();
                if let Some(text) = line.strip_prefix("content-length:") {
                    length = text.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            bodies.push(String::from_utf8(body).unwrap());
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.get_mut().write_all(answer).unwrap();
        }
        bodies
    };
    (address, std::thread::spawn(collect))
}

#[test]
fn heads_that_another_server_has_collected_prove_the_log() {
    let (address, collected) = collector();
    let place = Place::new();
    place.write("orchestr8.toml", &format!("[audit]\nanchors = ['http://{address}/heads']\n"));
    let server = Server::start(&place, &["--conformance"]);
    for number in 0..3 {
        super::append(&server, number);
    }
    assert_eq!(server.terminate().code(), Some(0));
    place.write("collected.heads", &(collected.join().unwrap().join("\n") + "\n"));
    let said = place.run(&["--json", "audit", "key"]);
    let key = serde_json::from_str::<Value>(&said.out).unwrap()["key"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["audit", "export", "--all", "-o", "log.jsonl"]).code, Some(0));
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (ok, out) = verifier(&["log", &at("log.jsonl"), "--heads", &at("collected.heads"), "--key", &key]);
    assert!(ok && out.contains("audit with 3 entries"), "{out}");
    let said = place.run(&["audit", "verify", "--heads", "collected.heads", "--key", &key]);
    assert_eq!(said.code, Some(0), "{said:?}");
    // The collector is gone: the server works, and doctor says which anchor fails.
    let server = Server::start(&place, &["--conformance"]);
    super::append(&server, 3);
    assert_eq!(server.terminate().code(), Some(0));
    let doctor = place.run(&["doctor"]);
    assert!(doctor.out.contains("does not have the newest head"), "{}", doctor.out);
}
