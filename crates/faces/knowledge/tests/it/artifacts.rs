//! Artifacts: uploaded, fetched, checked; and our own links.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::Method;
use orchestr8_knowledge_face::Settings;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::world::{World, create, id};

pub fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn with_artifact(request: u8, document: u8, uri: &str, hash: &str) -> Value {
    let mut wish = create(request, document, "");
    wish["payload"]["args"]["content"] = json!({"artifact_uri": uri, "artifact_hash": hash});
    wish
}

async fn upload(world: &World, media: &str, body: &str) -> crate::world::Answer {
    let headers = [("content-type", media), ("x-tenant-id", "acme"), ("host", "localhost:8088")];
    world.ask(Method::POST, "/artifacts", &headers, body.into()).await
}

async fn body(world: &World, document: u8) -> Value {
    let target = format!("/documents/{}?full=true&tenant_id=acme", id(document));
    world.get(&target).await.json()["content"]["body"].clone()
}

#[tokio::test]
async fn kno_5_an_upload_becomes_the_content_of_a_document() {
    let world = World::new();
    let large = "x".repeat(200_000);
    let refused = world.send(&create(1, 1, &large)).await;
    assert_eq!(refused.error(400), "INVALID_ARGUMENT");
    assert!(refused.json()["error"]["details"]["hint"].as_str().unwrap().contains("artifact_uri"));
    let link = upload(&world, "text/markdown; charset=utf-8", &large).await.data();
    let (uri, found) = (link["artifact_uri"].as_str().unwrap(), link["artifact_hash"].as_str().unwrap());
    assert!(uri.starts_with("http://localhost:8088/artifacts/upload/acme/"));
    assert_eq!(found, hash(&large));
    world.send(&with_artifact(2, 1, uri, found)).await.data();
    assert_eq!(body(&world, 1).await, large);
}

#[tokio::test]
async fn a_repeat_needs_neither_the_link_nor_the_artifact() {
    let world = World::new();
    let link = upload(&world, "text/plain", "hello").await.data();
    let (uri, found) = (link["artifact_uri"].as_str().unwrap(), link["artifact_hash"].as_str().unwrap());
    let mut wish = with_artifact(1, 1, uri, found);
    wish["idempotency_key"] = json!("k");
    world.send(&wish).await.data();
    wish["payload"]["args"]["content"]["artifact_uri"] = json!("https://nobody.example.com/gone");
    assert_eq!(world.send(&wish).await.json()["replayed"], true);
    wish["payload"]["args"]["content"]["artifact_hash"] = json!(hash("other"));
    assert_eq!(world.send(&wish).await.error(409), "CONFLICT");
}

#[tokio::test]
async fn kno_5_links_end_and_belong_to_one_tenant() {
    let world = World::new();
    let link = upload(&world, "text/plain", "hello").await.data();
    let uri = link["artifact_uri"].as_str().unwrap().to_owned();
    let target = uri.strip_prefix("http://localhost:8088").unwrap().to_owned();
    let read = world.get(&target).await;
    assert_eq!(
        (read.status.as_u16(), read.text.as_str(), read.header("content-type")),
        (200, "hello", "text/plain")
    );
    assert_eq!(world.get(&target.replace("acme", "zeta")).await.error(403), "FORBIDDEN");
    assert_eq!(world.ask(Method::POST, &target, &[], Vec::new()).await.error(405), "INVALID_ARGUMENT");
    let mut foreign = with_artifact(1, 1, &uri, &hash("hello"));
    foreign["tenant_id"] = json!("zeta");
    assert_eq!(world.send(&foreign).await.error(404), "NOT_FOUND");
    world.clock.advance(Duration::from_secs(900));
    assert_eq!(world.get(&target).await.error(440), "EXPIRED");
    let mut late = with_artifact(2, 1, &uri, &hash("hello"));
    late["timestamp"] = json!("2026-01-01T00:15:00Z");
    assert_eq!(world.send(&late).await.error(440), "EXPIRED");
}

#[tokio::test]
async fn a_document_can_be_handed_on_by_a_link() {
    let world = World::new();
    world.send(&create(1, 1, "hello")).await.data();
    let link = world.post(&format!("/documents/{}/link?tenant_id=acme", id(1)), &json!({})).await.data();
    assert_eq!(link["artifact_hash"], hash("hello"));
    let read = world.get(link["artifact_uri"].as_str().unwrap()).await;
    assert_eq!(read.text, "hello");
    assert_eq!(read.header("content-disposition"), "attachment");
    let unknown = world.post(&format!("/documents/{}/link", id(1)), &json!({})).await;
    assert_eq!(unknown.error(404), "NOT_FOUND");
}

#[tokio::test]
async fn kno_5_artifacts_of_others_are_believed_by_their_hash_only() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let text = |media: &'static str, body: String| get(async move || ([("content-type", media)], body));
    let other = Router::new()
        .route("/good", text("text/plain", "hello".into()))
        .route("/page", text("text/html", "hello".into()))
        .route("/large", text("text/plain", "x".repeat(5000)))
        .route("/away", get(async || axum::response::Redirect::to("/good")));
    tokio::spawn(async move { axum::serve(listener, other).await });
    let settings =
        Settings { artifact_hosts: vec!["127.0.0.1".into()], artifact_bytes: 1000, ..Settings::default() };
    let world = World::with(settings);
    let ask = |request: u8, path: &str, hash: &str| {
        let (world, wish) = (&world, with_artifact(request, request, &format!("{base}{path}"), hash));
        async move { world.send(&wish).await }
    };
    ask(1, "/good", &hash("hello")).await.data();
    assert_eq!(body(&world, 1).await, "hello");
    let changed = ask(2, "/good", &hash("other")).await;
    assert_eq!(changed.error(422), "UNPROCESSABLE_ENTITY");
    assert_eq!(changed.json()["error"]["details"]["actual"], hash("hello"));
    assert_eq!(ask(3, "/page", &hash("hello")).await.error(422), "UNPROCESSABLE_ENTITY");
    assert_eq!(ask(4, "/large", &hash(&"x".repeat(5000))).await.error(400), "INVALID_ARGUMENT");
    assert_eq!(ask(5, "/nothing", &hash("")).await.error(503), "UNAVAILABLE");
    assert_eq!(ask(6, "/away", &hash("hello")).await.error(503), "UNAVAILABLE", "no redirect is followed");
    let elsewhere = world.send(&with_artifact(7, 7, "https://example.com/x", &hash(""))).await;
    assert_eq!(elsewhere.error(403), "FORBIDDEN");
    assert_eq!(upload(&world, "text/html", "x").await.error(422), "UNPROCESSABLE_ENTITY");
    assert_eq!(upload(&world, "text/plain", &"x".repeat(1001)).await.error(400), "INVALID_ARGUMENT");
}
