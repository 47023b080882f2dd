//! Webhooks: what is told, to whom, how often, and what is never reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use orchestr8_contract::Code;
use orchestr8_kernel::ports::clock::Simulated;
use orchestr8_knowledge::{Settings, tables};
use orchestr8_testing::{Parts, memory};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::world::{World, id};

/// What the other side was told, and how often it refuses first.
#[derive(Clone, Default)]
struct Ear {
    heard: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    refusing: Arc<AtomicUsize>,
}

async fn hear(State(ear): State<Ear>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let left = ear.refusing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    if left.is_ok() {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    ear.heard.lock().push((headers, serde_json::from_slice(&body).unwrap()));
    StatusCode::NO_CONTENT
}

impl Ear {
    async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(hear).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        format!("http://{address}/hook")
    }

    fn events(&self) -> Vec<String> {
        self.heard.lock().iter().map(|(_, body)| body["event"].as_str().unwrap().to_owned()).collect()
    }
}

fn open() -> (World, Arc<Simulated>) {
    let lists = [tables::MIGRATIONS, orchestr8_secrets::tables::MIGRATIONS];
    let (store, clock) = (memory(&lists), Arc::new(Simulated::default()));
    let key = Arc::new(orchestr8_secrets::MemoryKey::new().unwrap());
    let ports = Parts::on(Arc::new(store.clone())).kernel().ports().clone();
    let vault = orchestr8_secrets::SecretVault::new(&ports, key, Vec::new());
    let mut settings = Settings { vault: Some(vault), ..Settings::default() };
    settings.webhooks.private = true;
    let parts = Parts { clock: clock.clone(), ..Parts::on(Arc::new(store.clone())) };
    (World::from_parts(parts, store, settings), clock)
}

#[tokio::test]
async fn changes_are_told_until_they_are_heard() {
    let ((world, clock), ear) = (open(), Ear::default());
    let url = ear.listen().await;
    let made = world.ask("webhooks_add", json!({"url": url, "secret": "0123456789abcdef"})).await;
    ear.refusing.store(2, Ordering::SeqCst);
    world.put(1, "root", "One", "x").await;
    for _ in 0..3 {
        world.hub.deliver_due().await.unwrap();
        clock.advance(Duration::from_secs(60));
    }
    assert_eq!(ear.events(), ["document.created"]);
    world.ask("edit", json!({"document_id": id(1), "old_str": "x", "new_str": "y"})).await;
    world.ask("move_document", json!({"document_id": id(1), "new_parent_id": "root"})).await;
    world.ask("delete_document", json!({"document_id": id(1)})).await;
    while world.hub.deliver_due().await.unwrap() > 0 {}
    let mut events = ear.events();
    events.sort();
    assert_eq!(events, ["document.created", "document.deleted", "document.moved", "document.updated"]);
    let (headers, body) = ear.heard.lock()[0].clone();
    assert!(headers["x-orchestr8-signature"].to_str().unwrap().starts_with("sha256="));
    assert_eq!(headers["x-orchestr8-delivery"].to_str().unwrap(), body["id"].as_str().unwrap());
    assert_eq!((&body["document_id"], &body["tenant_id"]), (&json!(id(1)), &json!("acme")));
    let list = world.ask("webhooks_list", json!({})).await;
    let hook = &list["webhooks"][0];
    assert_eq!((&hook["waiting"], &hook["failed"], &hook["signed"]), (&json!(0), &json!(0), &json!(true)));
    world.ask("webhooks_remove", json!({"webhook_id": made["id"]})).await;
    assert_eq!(world.code("webhooks_remove", json!({"webhook_id": made["id"]})).await, Code::NotFound);
    world.put(2, "root", "Two", "x").await;
    assert_eq!(world.hub.deliver_due().await.unwrap(), 0);
}

#[tokio::test]
async fn what_nobody_takes_is_given_up_and_shown() {
    let ((world, clock), ear) = (open(), Ear::default());
    let url = ear.listen().await;
    ear.refusing.store(usize::MAX, Ordering::SeqCst);
    world.ask("webhooks_add", json!({"url": url, "events": ["document.created"]})).await;
    world.put(1, "root", "One", "x").await;
    world.ask("delete_document", json!({"document_id": id(1)})).await;
    for _ in 0..15 {
        world.hub.deliver_due().await.unwrap();
        clock.advance(Duration::from_secs(12 * 3600));
    }
    let hook = world.ask("webhooks_list", json!({})).await["webhooks"][0].clone();
    assert_eq!((&hook["waiting"], &hook["failed"]), (&json!(0), &json!(1)), "only what it asked for");
    assert!(hook["last_failure"].as_str().unwrap().contains("500"), "{hook}");
}

#[tokio::test]
async fn the_inside_is_not_reached() {
    let world = World::new();
    for url in ["http://127.0.0.1:1/x", "http://169.254.169.254/latest", "http://[::1]/", "http://10.0.0.1/"]
    {
        assert_eq!(world.code("webhooks_add", json!({"url": url})).await, Code::Unauthorized, "{url}");
    }
    assert_eq!(world.code("webhooks_add", json!({"url": "file:///etc/passwd"})).await, Code::InvalidArgument);
    assert_eq!(world.code("webhooks_add", json!({"url": "nonsense"})).await, Code::InvalidArgument);
    // A name that leads inside is noticed when it is called.
    world.ask("webhooks_add", json!({"url": "http://localhost:1/x"})).await;
    world.put(1, "root", "One", "x").await;
    assert_eq!(world.hub.deliver_due().await.unwrap(), 0);
    let hook = world.ask("webhooks_list", json!({})).await["webhooks"][0].clone();
    assert_eq!(hook["waiting"], 1);
    assert!(hook["last_failure"].as_str().unwrap().contains("may not be called"), "{hook}");
}
