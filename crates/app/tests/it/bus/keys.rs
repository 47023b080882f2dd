//! A key is made, signs what is sent, is rotated and revoked; the secret half is seen once.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{create, json, replies};
use crate::program::Place;
use crate::server::{Answer, Http, Server};

const EXTERNAL: (&str, &str) = ("ORCHESTR8_KNOWLEDGE_SECURITY_PROFILE", "external");

fn new_key(place: &Place, out: &str) -> String {
    let args = [
        "keys",
        "new",
        "--tenant",
        "acme",
        "--principal",
        "svc:a",
        "--role",
        "editor",
        "--json",
        "--out",
        out,
    ];
    let said = place.run(&args);
    assert_eq!(said.code, Some(0), "{said:?}");
    let made = json(&said);
    assert!(made.get("key").is_none(), "what is in the file is not on the screen");
    made["kid"].as_str().unwrap().to_owned()
}

/// Signs and sends an envelope.
fn send(place: &Place, http: &mut Http, key: &str, envelope: &Value, compact: bool) -> Answer {
    let form: &[&str] = if compact { &["--compact"] } else { &[] };
    let said =
        place.run_with(&[&["sign", "-", "--key", key, "--json"], form].concat(), &envelope.to_string());
    assert_eq!(said.code, Some(0), "{said:?}");
    let signed = json(&said);
    match compact {
        true => {
            let body = signed["jws"].as_str().unwrap();
            let (address, length) = (http.address, body.len());
            let head = format!(
                "POST /mcp/actions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/jose\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            http.send(&head, body).unwrap()
        }
        false => {
            let header =
                format!("X-JWS-Signature: {}\r\n", signed["headers"]["X-JWS-Signature"].as_str().unwrap());
            http.request("POST", "/mcp/actions", &header, Some(&envelope.to_string())).unwrap()
        }
    }
}

#[test]
fn kno_3_a_key_signs_until_it_is_revoked_and_a_rotated_one_for_a_day_more() {
    let place = Place::new();
    let first = new_key(&place, "first.json");
    let mode = std::fs::metadata(place.path().join("first.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let server = Server::start_with(&place, &[EXTERNAL]);
    let url = format!("http://{}", server.address);
    let at = ["--server", url.as_str()];
    let mut http = server.connect();
    assert_eq!(http.request("POST", "/mcp/actions", "", Some(&create(1).to_string())).unwrap().status, 401);
    assert_eq!(send(&place, &mut http, "first.json", &create(1), false).status, 200);
    assert_eq!(send(&place, &mut http, "first.json", &create(2), true).status, 200);
    let rotated =
        place.run(&[&["keys", "rotate", &first, "--out", "second.json", "--json"][..], &at].concat());
    let second = json(&rotated)["kid"].as_str().unwrap().to_owned();
    assert_eq!(send(&place, &mut http, "second.json", &create(3), false).status, 200);
    assert_eq!(send(&place, &mut http, "first.json", &create(4), false).status, 200, "for one day more");
    let unsure = place.run(&[&["keys", "revoke", &second][..], &at].concat());
    assert_eq!(unsure.code, Some(2), "{unsure:?}");
    let revoked = place.run(&[&["keys", "revoke", &second, "--yes"][..], &at].concat());
    assert_eq!((revoked.code, revoked.out.trim()), (Some(0), format!("{second} is revoked").as_str()));
    assert_eq!(send(&place, &mut http, "second.json", &create(5), false).status, 401);
    let listed = place.run(&[&["keys", "list"][..], &at].concat());
    let line = |kid: &str| listed.out.lines().find(|line| line.starts_with(kid)).unwrap().to_owned();
    assert!(line(&first).contains("rotated") && line(&second).contains("revoked"), "{}", listed.out);
    assert!(listed.out.contains("0 of 90 days"), "{}", listed.out);
    assert!(!listed.out.contains(json_secret(&place, "first.json").as_str()));
}

fn json_secret(place: &Place, name: &str) -> String {
    let key: Value = serde_json::from_str(&place.read(name)).unwrap();
    key["d"].as_str().unwrap().to_owned()
}

#[test]
fn a_signed_request_without_an_envelope_is_for_one_address_and_once() {
    let place = Place::new();
    new_key(&place, "key.json");
    let server = Server::start_with(&place, &[EXTERNAL]);
    let mut http = server.connect();
    let target = "/documents?prefix=a";
    let said = place.run(&["sign", "--key", "key.json", "--request", &format!("GET {target}"), "--json"]);
    let signature = json(&said)["headers"]["X-JWS-Signature"].as_str().unwrap().to_owned();
    let header = format!("X-JWS-Signature: {signature}\r\n");
    assert_eq!(
        http.request("GET", "/documents?prefix=b", &header, None).unwrap().status,
        401,
        "it is for one address"
    );
    assert_eq!(http.request("GET", target, &header, None).unwrap().status, 200);
    assert_eq!(http.request("GET", target, &header, None).unwrap().status, 401, "and for once");
}

#[test]
fn what_cannot_be_signed_is_refused_with_a_reason() {
    let place = Place::new();
    new_key(&place, "key.json");
    let refused = |args: &[&str], input: &str| {
        let said = place.run_with(&[&["sign"], args].concat(), input);
        assert_eq!(said.out, "");
        (said.code, said.err)
    };
    let (code, err) = refused(&["-", "--key", "key.json"], "{}");
    assert_eq!(code, Some(2));
    assert!(err.contains("- /request_id: it is required"), "{err}");
    let (code, err) = refused(&["-", "--key", "key.json", "--valid", "1h"], &create(1).to_string());
    assert!(code == Some(2) && err.contains("15 minutes"), "{err}");
    assert_eq!(refused(&["--key", "key.json", "--request", "documents"], "").0, Some(2));
    assert_eq!(refused(&["nowhere.json", "--key", "key.json"], "").0, Some(3));
    place.write("open.json", &place.read("key.json"));
    let (code, err) = refused(&["-", "--key", "open.json"], "");
    assert!(code == Some(2) && err.contains("chmod 600"), "{err}");
    let again = place.run(&[
        "keys",
        "new",
        "--tenant",
        "a",
        "--principal",
        "b",
        "--role",
        "agent",
        "--out",
        "key.json",
    ]);
    assert_eq!(again.code, Some(5), "a key is never written over another: {again:?}");
    let wrong = place.run(&[
        "keys",
        "new",
        "--tenant",
        "a",
        "--principal",
        "b",
        "--role",
        "king",
        "--out",
        "new.json",
    ]);
    assert_eq!(wrong.code, Some(2));
    assert!(!place.path().join("new.json").exists(), "a key nobody took up is forgotten");
}

#[test]
fn published_envelopes_are_answered_in_an_inbox() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    assert_eq!(super::publish(&mut http, &create(1)).unwrap(), 202);
    let reply = &replies(&mut http, 0)[0]["envelope"];
    assert_eq!(
        (&reply["request_id"], &reply["payload"]["response"]["ok"]),
        (&create(1)["request_id"], &Value::Bool(true))
    );
}
