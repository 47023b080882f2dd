//! The profiles at work: who is let in, as whom, and how often.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use orchestr8_edge::Caller;
use orchestr8_kernel::ports::clock::Clock;
use orchestr8_knowledge_face::security::jws::{self, Claims, Form};
use orchestr8_knowledge_face::security::jwt::Trust;
use orchestr8_knowledge_face::security::keys;
use orchestr8_knowledge_face::{Security, Settings};
use serde_json::{Value, json};

use crate::world::{Answer, World, create, envelope};

async fn signed(world: &World, wish: &Value, signature: &str) -> Answer {
    let headers = [("x-jws-signature", signature)];
    world.ask(Method::POST, "/mcp/actions", &headers, wish.to_string().into_bytes()).await
}

#[tokio::test]
async fn kno_3_a_signed_envelope_is_taken_once_also_after_a_restart() {
    let (world, pair) = World::external().await;
    let wish = envelope(1, "knowledge.query_knowledge", json!({"query": "q"}));
    assert_eq!(world.send(&wish).await.error(401), "UNAUTHORIZED");
    let detached = world.signature(&pair, wish.to_string().as_bytes(), "nonce-0001", Form::Detached);
    signed(&world, &wish, &detached).await.data();
    assert_eq!(signed(&world, &wish, &detached).await.error(401), "UNAUTHORIZED");
    let world = world.restart();
    let again = signed(&world, &wish, &detached).await;
    assert_eq!(again.error(401), "UNAUTHORIZED");
    assert_eq!(again.json()["error"]["message"], "its nonce was used before");
    let compact = world.signature(&pair, wish.to_string().as_bytes(), "nonce-0002", Form::Compact);
    let jose = [("content-type", "application/jose")];
    world.ask(Method::POST, "/mcp/actions", &jose, compact.clone().into_bytes()).await.data();
    let again = world.ask(Method::POST, "/mcp/actions", &jose, compact.into_bytes()).await;
    assert_eq!(again.error(401), "UNAUTHORIZED");
}

#[tokio::test]
async fn kno_3_the_envelope_speaks_only_for_the_owner_of_the_key() {
    let (world, _) = World::external().await;
    let pair = world.key("k-viewer", "acme", "svc:agent", &["viewer"]).await;
    let mut number = 0;
    let mut outcome = async |change: fn(&mut Value)| {
        number += 1;
        let mut wish = envelope(1, "knowledge.query_knowledge", json!({"query": "q"}));
        wish["principal"]["roles"] = json!([]);
        change(&mut wish);
        let nonce = format!("nonce-{number:04}");
        let signature = world.signature(&pair, wish.to_string().as_bytes(), &nonce, Form::Detached);
        signed(&world, &wish, &signature).await.json()["error"]["code"].clone()
    };
    assert_eq!(outcome(|_| {}).await, Value::Null);
    assert_eq!(outcome(|wish| wish["principal"]["roles"] = json!(["viewer"])).await, Value::Null);
    assert_eq!(outcome(|wish| wish["tenant_id"] = json!("zeta")).await, "FORBIDDEN");
    assert_eq!(outcome(|wish| wish["principal"]["sub"] = json!("svc:other")).await, "FORBIDDEN");
    assert_eq!(outcome(|wish| wish["principal"]["roles"] = json!(["owner"])).await, "FORBIDDEN");
    assert_eq!(outcome(|wish| wish["action"] = json!("knowledge.delete_document")).await, "FORBIDDEN");
}

#[tokio::test]
async fn kno_3_old_revoked_and_unknown_keys_are_refused() {
    let (world, pair) = World::external().await;
    let wish = create(1, 1, "x");
    let outcome = async |nonce: &str| {
        let signature = world.signature(&pair, wish.to_string().as_bytes(), nonce, Form::Detached);
        signed(&world, &wish, &signature).await.json()["error"]["message"].clone()
    };
    world.clock.advance(Duration::from_secs(90 * 86_400 + 1));
    assert_eq!(outcome("nonce-0001").await, "the key is older than 90 days; rotate it");
    let fresh = keys::rotate(world.keys(), "k-1", "k-2", [4; 32], world.clock.now_ms()).await.unwrap();
    keys::revoke(world.keys(), "k-1", world.clock.now_ms(), None).await.unwrap();
    assert_eq!(outcome("nonce-0002").await, "the key is revoked");
    let query = {
        let mut query = envelope(1, "knowledge.query_knowledge", json!({"query": "q"}));
        query.as_object_mut().unwrap().remove("ttl_sec");
        query
    };
    let signature = world.signature(&fresh, query.to_string().as_bytes(), "nonce-0003", Form::Detached);
    signed(&world, &query, &signature).await.data();
    let stranger = keys::Pair { kid: "k-9".into(), seed: [9; 32] };
    let signature = world.signature(&stranger, query.to_string().as_bytes(), "nonce-0004", Form::Detached);
    assert_eq!(signed(&world, &query, &signature).await.error(401), "UNAUTHORIZED");
}

#[tokio::test]
async fn a_request_without_an_envelope_is_signed_with_its_address() {
    let (world, pair) = World::external().await;
    let iat_s = world.clock.now_ms() / 1000;
    let ask = async |nonce: &str, address: Option<(&str, &str)>| {
        let claims = Claims { iat_s, exp_s: iat_s + 60, nonce, address, key: None };
        let signature = jws::sign(&pair, b"", &claims, Form::Detached);
        let headers = [("x-jws-signature", signature.as_str())];
        world.ask(Method::GET, "/documents?prefix=a", &headers, Vec::new()).await
    };
    assert_eq!(ask("nonce-0001", Some(("GET", "/documents?prefix=a"))).await.status, 200);
    for (nonce, address) in [
        ("nonce-0002", None),
        ("nonce-0003", Some(("GET", "/documents"))),
        ("nonce-0004", Some(("POST", "/documents?prefix=a"))),
    ] {
        assert_eq!(ask(nonce, address).await.error(401), "UNAUTHORIZED");
    }
}

#[tokio::test]
async fn kno_3_a_bearer_token_is_asked_for_in_the_basic_profile() {
    let pair = keys::Pair { kid: "idp".into(), seed: [6; 32] };
    let mut jwk = pair.to_jwk();
    jwk.as_object_mut().unwrap().remove("d");
    let trust = Trust::read(&json!({"keys": [jwk]}).to_string(), "https://idp", "orchestr8").unwrap();
    let world = World::with(Settings { security: Security::Basic(trust), ..Settings::default() });
    let now_s = world.clock.now_ms() / 1000;
    let claims = json!({"iss": "https://idp", "aud": "orchestr8", "sub": "svc:agent", "tenant_id": "acme", "roles": ["codex"], "exp": now_s + 60});
    let times = Claims { iat_s: now_s, exp_s: now_s + 60, nonce: "nonce-0001", address: None, key: None };
    let token = jws::sign(&pair, claims.to_string().as_bytes(), &times, Form::Compact);
    let ask = async |wish: &Value, authorization: &str| {
        let headers = [("authorization", authorization)];
        world.ask(Method::POST, "/mcp/actions", &headers, wish.to_string().into_bytes()).await
    };
    let mut wish = create(1, 1, "x");
    wish["principal"]["roles"] = json!(["editor"]);
    ask(&wish, &format!("Bearer {token}")).await.data();
    let refused = ask(&wish, &format!("Bearer {token}x")).await;
    assert_eq!(refused.error(401), "UNAUTHORIZED");
    assert!(refused.header("www-authenticate").starts_with("Bearer"));
    assert_eq!(ask(&wish, &format!("Basic {token}")).await.error(401), "UNAUTHORIZED");
    wish["tenant_id"] = json!("zeta");
    assert_eq!(ask(&wish, &format!("Bearer {token}")).await.error(403), "FORBIDDEN");
    let list = world
        .ask(Method::GET, "/documents", &[("authorization", &format!("Bearer {token}"))], Vec::new())
        .await;
    assert_eq!(list.json()["documents"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn in_the_local_profile_a_token_of_the_edge_goes_before_what_is_said() {
    let mut world = World::new();
    let caller = |name: &str, verified| {
        let roles = vec!["viewer".to_owned()];
        Some(Arc::new(Caller { name: name.into(), tenant: "acme".into(), roles, verified, grant: None }))
    };
    world.caller = caller("svc:agent", true);
    assert_eq!(world.send(&create(1, 1, "x")).await.error(403), "FORBIDDEN", "its roles are the token's");
    let mut query = envelope(1, "knowledge.query_knowledge", json!({"query": "q"}));
    query["principal"]["roles"] = json!([]);
    world.send(&query).await.data();
    query["tenant_id"] = json!("zeta");
    assert_eq!(world.send(&query).await.error(403), "FORBIDDEN");
    world.caller = caller("", false);
    assert_eq!(
        world.send(&query).await.error(401),
        "UNAUTHORIZED",
        "whom the edge let through as nobody is nobody"
    );
}

#[tokio::test]
async fn somebody_of_this_machine_without_roles_is_the_owner() {
    let world = World::new();
    let mut wish = create(1, 1, "x");
    wish["principal"].as_object_mut().unwrap().remove("roles");
    world.send(&wish).await.data();
    let mut nobody = create(2, 2, "x");
    nobody["principal"]["roles"] = json!(["admin"]);
    assert_eq!(
        world.send(&nobody).await.error(403),
        "FORBIDDEN",
        "a role that does not exist here grants nothing"
    );
}

/// An envelope that was signed to be run at once says nothing of the bus: another must not put it there.
#[tokio::test]
async fn kno_3_a_signed_envelope_cannot_be_moved_to_the_bus() {
    let world = World::with_bus(Settings { security: Security::External, ..Settings::default() }).await;
    let pair = world.key("k-1", "acme", "svc:agent", &["owner"]).await;
    let wish = create(1, 1, "moved").to_string();
    let send = async |claims: Claims<'_>, target: &str| {
        let signature = world.signature_with(&pair, wish.as_bytes(), claims, Form::Detached);
        let headers = [("x-jws-signature", signature.as_str())];
        world.ask(Method::POST, target, &headers, wish.clone().into_bytes()).await
    };
    let claims = |nonce, address| Claims { nonce, address, ..world.claims() };
    let run = Some(("POST", "/mcp/actions"));
    assert_eq!(send(claims("nonce-0001", None), "/a2a/publish").await.error(401), "UNAUTHORIZED");
    assert_eq!(send(claims("nonce-0002", run), "/a2a/publish").await.error(401), "UNAUTHORIZED");
    let publish = Some(("POST", "/a2a/publish"));
    assert_eq!(send(claims("nonce-0003", publish), "/mcp/actions").await.error(401), "UNAUTHORIZED");
    send(claims("nonce-0004", None), "/mcp/actions").await.data();
}

/// A key that was not signed could make one request the repeat of another.
#[tokio::test]
async fn kno_3_an_idempotency_key_that_is_not_signed_is_refused() {
    let world = World::with(Settings { security: Security::External, ..Settings::default() });
    let pair = world.key("k-1", "acme", "svc:agent", &["owner"]).await;
    let send = async |wish: &Value, claims: Claims<'_>, keys: &[&str]| {
        let wish = wish.to_string();
        let signature = world.signature_with(&pair, wish.as_bytes(), claims, Form::Detached);
        let mut headers = vec![("x-jws-signature", signature.as_str())];
        headers.extend(keys.iter().map(|key| ("idempotency-key", *key)));
        world.ask(Method::POST, "/mcp/actions", &headers, wish.into_bytes()).await
    };
    let claims = |nonce, key| Claims { nonce, key, ..world.claims() };
    let (plain, mut keyed) = (create(1, 1, "x"), create(2, 2, "y"));
    keyed["idempotency_key"] = "mine".into();
    assert_eq!(send(&plain, claims("nonce-0001", None), &["theirs"]).await.error(401), "UNAUTHORIZED");
    assert_eq!(
        send(&plain, claims("nonce-0001", Some("mine")), &["theirs"]).await.error(401),
        "UNAUTHORIZED"
    );
    assert_eq!(send(&keyed, claims("nonce-0001", None), &["theirs"]).await.error(401), "UNAUTHORIZED");
    assert_eq!(
        send(&keyed, claims("nonce-0001", None), &["mine", "theirs"]).await.error(401),
        "UNAUTHORIZED"
    );
    send(&plain, claims("nonce-0001", Some("mine")), &["mine"]).await.data();
    send(&keyed, claims("nonce-0002", None), &["mine"]).await.error(409);
    send(&create(3, 3, "z"), claims("nonce-0003", None), &[]).await.data();
}
