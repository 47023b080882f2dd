//! Knowledge behind a proof: commands that sign for the external profile, and show a token to the basic one.

use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use orchestr8_knowledge_face::security::jws::{self, Claims, Form};
use orchestr8_knowledge_face::security::keys::Pair;
use serde_json::{Value, json};

use super::{Place, done, know, put};
use crate::server::Server;

const EXTERNAL: (&str, &str) = ("ORCHESTR8_KNOWLEDGE_SECURITY_PROFILE", "external");

fn new_key(place: &Place, role: &str, out: &str) {
    let whose = ["--tenant", "acme", "--principal", "svc:a", "--role", role, "--out", out];
    let said = place.run(&[&["keys", "new"], &whose[..]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn kno_3_commands_sign_with_a_key_that_the_server_knows() {
    let place = Place::new();
    new_key(&place, "owner", "owner.key");
    let server = Server::start_with(&place, &[EXTERNAL]);
    let place = place
        .with("ORCHESTR8_SERVER", &format!("http://{}", server.address))
        .with("ORCHESTR8_KEY_FILE", "owner.key");
    let id = put(&place, "/Handbook/Setup & \"more\"", "zebra");
    assert_eq!(done(&place, &["get", "/Handbook/Setup & \"more\""]).out, "zebra\n");
    assert_eq!(put(&place, &id, "zebra two"), id);
    assert_eq!(done(&place, &["history", &id, "--json"]).out.matches("\"revision\"").count(), 2);
    assert!(done(&place, &["query", "zebra"]).out.contains("Setup"));
    place.write("notes/a.md", "# Ä\nfalcon");
    assert_eq!(done(&place, &["import", "notes", "--into", "/Handbook"]).out, "1 created\n");
    done(&place, &["mv", &id, "/"]);
    assert_eq!(done(&place, &["tree"]).out, "/\n├── Handbook\n│   └── Ä\n└── Setup & \"more\"\n");
    assert_eq!(done(&place, &["export", "out"]).out, "3 written\n");
    place.write("out/new.md", "# New\nheron");
    done(&place, &["sync", "out"]);
    assert!(done(&place, &["tree"]).out.contains("New"));
    done(&place, &["rm", &id, "--yes"]);
    done(&place, &["restore", &id]);
    done(&place, &["verify"]);
    assert!(done(&place, &["webhooks", "list"]).err.contains("nobody is told"));
    let elsewhere = know(&place, &["tree", "--tenant", "other"]);
    assert_eq!(elsewhere.code, Some(4), "a key speaks for its own tenant: {elsewhere:?}");
    server.terminate();
}

#[test]
fn without_a_key_or_with_the_wrong_one_it_is_said_what_to_do() {
    let place = Place::new();
    new_key(&place, "viewer", "viewer.key");
    let server = Server::start_with(&place, &[EXTERNAL]);
    let place = place.with("ORCHESTR8_SERVER", &format!("http://{}", server.address));
    let unsigned = know(&place, &["tree"]);
    assert_eq!(unsigned.code, Some(4), "{unsigned:?}");
    assert!(unsigned.err.contains("this server asks for a signature"), "{}", unsigned.err);
    assert!(unsigned.err.contains("hint: sign with --key FILE or ORCHESTR8_KEY_FILE"), "{}", unsigned.err);
    assert!(unsigned.err.contains("code: UNAUTHENTICATED"), "{}", unsigned.err);
    assert_eq!(know(&place, &["tree", "--key", "viewer.key"]).code, Some(0), "a flag names one too");
    let refused = place.run_with(&["knowledge", "put", "/A", "-", "--key", "viewer.key"], "x");
    assert_eq!(refused.code, Some(4), "a viewer writes nothing: {refused:?}");
    let elsewhere = Place::new();
    new_key(&elsewhere, "owner", "unknown.key");
    let unknown = elsewhere.path().join("unknown.key").display().to_string();
    let unknown = know(&place, &["tree", "--key", &unknown]);
    assert!(unknown.code == Some(4) && unknown.err.contains("orchestr8 keys list"), "{unknown:?}");
    place.write("open.key", &place.read("viewer.key"));
    let open = know(&place, &["tree", "--key", "open.key"]);
    assert!(open.code == Some(2) && open.err.contains("chmod 600"), "{open:?}");
    let none = place.run(&["sign", "--request", "GET /documents"]);
    assert!(none.code == Some(2) && none.err.contains("ORCHESTR8_KEY_FILE"), "{none:?}");
    let place = place.with("ORCHESTR8_KEY_FILE", "viewer.key");
    assert_eq!(place.run(&["sign", "--request", "GET /documents"]).code, Some(0));
    server.terminate();
}

#[test]
fn a_token_is_shown_to_a_server_that_asks_for_one() {
    let place = Place::new();
    new_key(&place, "owner", "issuer.key");
    let issuer: Value = serde_json::from_str(&place.read("issuer.key")).unwrap();
    let public = json!({"kty": "OKP", "crv": "Ed25519", "kid": issuer["kid"], "x": issuer["x"]});
    place.write("keys.json", &json!({"keys": [public]}).to_string());
    let server = Server::start_with(
        &place,
        &[
            ("ORCHESTR8_KNOWLEDGE_SECURITY_PROFILE", "basic"),
            ("ORCHESTR8_KNOWLEDGE_SECURITY_ISSUER", "https://issuer.example"),
            ("ORCHESTR8_KNOWLEDGE_SECURITY_AUDIENCE", "orchestr8"),
            ("ORCHESTR8_KNOWLEDGE_SECURITY_KEY_SET_FILE", "keys.json"),
        ],
    );
    let place = place.with("ORCHESTR8_SERVER", &format!("http://{}", server.address));
    let unproven = know(&place, &["tree"]);
    assert!(unproven.code == Some(4) && unproven.err.contains("ORCHESTR8_TOKEN"), "{unproven:?}");
    let pair = Pair::from_jwk(&issuer).ok().unwrap();
    let now_s = Real::new().now_ms() / 1000;
    let said = json!({"iss": "https://issuer.example", "aud": "orchestr8", "exp": now_s + 600, "sub": "svc:a",
        "tenant_id": "acme", "roles": ["owner"]});
    let claims =
        Claims { iat_s: now_s, exp_s: now_s + 600, nonce: "not looked at", address: None, key: None };
    let token = jws::sign(&pair, said.to_string().as_bytes(), &claims, Form::Compact);
    let place = place.with("ORCHESTR8_TOKEN", &token);
    put(&place, "/Handbook/Setup", "zebra");
    assert_eq!(done(&place, &["tree"]).out, "/\n└── Handbook\n    └── Setup\n");
    server.terminate();
}
