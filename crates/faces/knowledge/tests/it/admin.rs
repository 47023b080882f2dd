//! What whoever runs the server may do, and who that is.

use std::sync::Arc;

use http::Method;
use orchestr8_edge::Caller;
use orchestr8_knowledge_face::Settings;
use serde_json::{Value, json};

use crate::world::{World, create, envelope};

fn caller(name: &str, tenant: &str, roles: &[&str], verified: bool) -> Option<Arc<Caller>> {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    Some(Arc::new(Caller { name: name.into(), tenant: tenant.into(), roles, verified, grant: None }))
}

/// A key of RFC 8037.
const PUBLIC: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const OTHER: &str = "PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw";

fn key(kid: &str, tenant: &str, public: &str) -> Value {
    json!({"kid": kid, "public": public, "tenant_id": tenant, "principal": "svc:a", "roles": ["agent"]})
}

#[tokio::test]
async fn who_runs_the_server_is_whoever_the_edge_says() {
    let mut world = World::with_bus(Settings::default()).await;
    let paths = ["/admin/queues", "/admin/dead-letters", "/admin/keys", "/admin/slo"];
    let local = [("host", "localhost:8088")];
    for (who, headers, status) in [
        (None, &[][..], 200),
        (caller("local", "default", &[], false), &local[..], 200),
        (caller("local", "default", &[], false), &[("host", "[::1]:8088")][..], 200),
        (caller("local", "default", &[], false), &[("host", "app.example.org")][..], 401),
        (caller("local", "default", &[], false), &[local[0], ("x-forwarded-for", "192.0.2.7")][..], 401),
        (caller("", "", &[], false), &local[..], 401),
        (caller("ops", "local", &["admin"], true), &local[..], 200),
        (caller("ci", "acme", &["viewer"], true), &local[..], 403),
    ] {
        world.caller = who.clone();
        for path in paths {
            let answer = world.ask(Method::GET, path, headers, Vec::new()).await;
            assert_eq!(answer.status, status, "{who:?} {path} {}", answer.text);
        }
    }
    // An admin of one tenant has no rights in another, and none over the machine.
    for role in ["admin", "owner"] {
        world.caller = caller("ops", "acme", &[role], true);
        assert_eq!(world.get("/admin/keys").await.status, 200);
        assert_eq!(world.get("/admin/keys?tenant_id=rival").await.error(403), "FORBIDDEN");
        assert_eq!(world.post("/admin/keys", &key("k-r", "rival", PUBLIC)).await.error(403), "FORBIDDEN");
        assert_eq!(world.get("/admin/slo").await.error(403), "FORBIDDEN");
    }
    world.caller = caller("ops", "acme", &["admin"], true);
    let owner_key = json!({"kid": "k-o", "public": PUBLIC, "tenant_id": "acme", "principal": "svc:a", "roles": ["owner"]});
    assert_eq!(world.post("/admin/keys", &owner_key).await.error(403), "FORBIDDEN", "an admin is no owner");
    world.caller = caller("ci", "acme", &["owner"], true);
    assert_eq!(world.get("/admin/dead-letters").await.status, 200);
    assert_eq!(world.get("/admin/dead-letters?tenant_id=zeta").await.error(403), "FORBIDDEN");
    assert_eq!(world.post("/admin/keys", &key("k-1", "zeta", PUBLIC)).await.error(403), "FORBIDDEN");
    assert_eq!(world.get("/admin/slo").await.error(403), "FORBIDDEN");
}

#[tokio::test]
async fn kno_3_keys_are_taken_up_rotated_and_revoked() {
    let mut world = World::new();
    let made = world.post("/admin/keys", &key("k-1", "acme", PUBLIC)).await.data();
    assert_eq!((&made["status"], &made["age_days"]), (&json!("active"), &json!(0)));
    assert_eq!(made["expires_at"], "2026-04-01T00:00:00.000Z");
    assert_eq!(world.post("/admin/keys", &key("k-1", "acme", PUBLIC)).await.error(409), "CONFLICT");
    for (wrong, path) in [
        (json!({}), "/tenant_id"),
        (json!({"tenant_id": "acme", "principal": "a", "roles": "agent"}), "/roles"),
        (json!({"tenant_id": "acme", "principal": "a", "roles": [], "kid": "k", "public": "AA"}), "/public"),
    ] {
        let answer = world.post("/admin/keys", &wrong).await;
        assert_eq!(answer.error(400), "INVALID_ARGUMENT");
        assert!(answer.text.contains(path), "{}", answer.text);
    }
    let next = json!({"kid": "k-2", "public": OTHER});
    let rotated = world.post("/admin/keys/k-1/rotate", &next).await.data();
    assert_eq!((&rotated["principal"], &rotated["status"]), (&json!("svc:a"), &json!("active")));
    let keys = world.get("/admin/keys?tenant_id=acme").await.data()["keys"].clone();
    assert_eq!(
        (&keys[0]["status"], &keys[0]["ends_at"]),
        (&json!("rotated"), &json!("2026-01-02T00:00:00.000Z"))
    );
    world.post("/admin/keys/k-2/revoke", &json!({})).await.data();
    let keys = world.get("/admin/keys").await.data()["keys"].clone();
    assert_eq!(keys[1]["status"], "revoked");
    assert_eq!(
        world.post("/admin/keys/k-2/rotate", &json!({"kid": "k-3", "public": PUBLIC})).await.error(409),
        "CONFLICT"
    );
    assert_eq!(world.post("/admin/keys/nobody/revoke", &json!({})).await.error(404), "NOT_FOUND");
    world.caller = caller("ci", "zeta", &["owner"], true);
    assert_eq!(world.post("/admin/keys/k-1/revoke", &json!({})).await.error(404), "NOT_FOUND");
    assert_eq!(world.get("/admin/keys").await.data()["keys"], json!([]));
}

#[tokio::test]
async fn kno_11_the_report_counts_over_restarts() {
    let world = World::new();
    world.send(&create(1, 1, "x")).await.data();
    world.send(&envelope(2, "knowledge.nothing", json!({}))).await;
    assert_eq!(world.get("/admin/slo").await.data()["error_budget"]["requests"], 2);
    let world = world.restart();
    world.send(&create(3, 3, "x")).await.data();
    let report = world.get("/admin/slo").await.data();
    let budget = &report["error_budget"];
    assert_eq!(
        (&budget["requests"], &budget["failures"], &budget["met"]),
        (&json!(3), &json!(1), &json!(false))
    );
    assert_eq!((&report["ack_p95"]["goal_ms"], &report["ack_p95"]["met"]), (&json!(1000.0), &json!(true)));
    assert_eq!(report["dlq"]["dead_letters"], 0);
}
