//! A real Qdrant server behind the search by meaning. `cargo xtask test vectors` fetches the server and runs this;
//! `O8_QDRANT` names its program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

#[path = "../shared/dense.rs"]
mod dense;
#[path = "../shared/letters.rs"]
mod letters;
#[allow(dead_code, reason = "the benchmark does more with it")]
mod server;
#[path = "../it/world.rs"]
mod world;

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_knowledge::retrieval::{Filter, Mend};
use orchestr8_knowledge::vectors::qdrant::Settings;
use orchestr8_knowledge::vectors::{Qdrant, search};
use orchestr8_knowledge::{Meaning, tables};
use orchestr8_testing::{Parts, memory};
use serde_json::json;

use letters::Letters;
use server::Server;
use world::{World, id};

const WAIT: Duration = Duration::from_secs(60);

fn settings(server: &Server) -> Settings {
    Settings { url: server.url(), key: None, collection: String::from("tests") }
}

/// Knowledge whose vectors are kept there. What was kept is found again by the next one on the same store.
fn world(store: &orchestr8_stores::Sqlite, letters: &Letters, server: &Server) -> World {
    let parts = Parts::on(Arc::new(store.clone()));
    let kernel = Parts::on(Arc::new(store.clone())).kernel();
    let dense = Arc::new(Qdrant::new(&kernel, &settings(server), letters));
    World::meaning(parts, store.clone(), Meaning { embedder: Arc::new(letters.clone()), dense })
}

async fn near(world: &World, query: &str) -> Result<search::Found, orchestr8_contract::Fault> {
    let meaning = world.hub.meaning().unwrap();
    search::search(&world.hub, meaning, "acme", query, &Filter::default(), (5, WAIT)).await
}

async fn assert_right(world: &World) {
    assert!(!near(world, "anything").await.unwrap().around.behind);
    let found = world.hub.check_vectors("acme", Mend::No).await.unwrap().unwrap();
    assert_eq!((found.wrong, found.astray, found.behind), (0, 0, 0), "{found:?}");
    assert_eq!(found.passages, found.indexed);
}

#[tokio::test]
async fn it_does_what_every_index_must() {
    let server = Server::start().await;
    let kernel = Parts::in_memory(&[tables::MIGRATIONS]).kernel();
    let qdrant = Qdrant::new(&kernel, &settings(&server), &Letters::new("a"));
    qdrant.reach().await.unwrap();
    dense::suite(&qdrant, "first").await;
    // Another model has another collection.
    let other = Qdrant::new(&kernel, &settings(&server), &Letters::new("b"));
    dense::suite(&other, "first").await;
}

#[tokio::test]
async fn a_server_that_was_gone_is_caught_up_with() {
    let (mut server, letters) = (Server::start().await, Letters::new("a"));
    let store = memory(&[tables::MIGRATIONS]);
    let world = world(&store, &letters, &server);
    for n in 1..=20 {
        world.put(n, "root", &format!("T{n}"), &format!("zebra{n}")).await;
    }
    assert_right(&world).await;
    server.stop();
    // Writes go on, words still find everything, and the search by meaning says quickly that it cannot.
    world.put(21, "root", "T21", "zebra21").await;
    assert_eq!(world.find(json!({"query": "zebra21"})).await, ["T21"]);
    for _ in 0..5 {
        assert!(near(&world, "zebra21").await.is_err());
    }
    assert_eq!(near(&world, "zebra21").await.unwrap_err().code, Code::CircuitOpen);
    server.start_again().await;
    orchestr8_testing::within(async {
        while world.hub.follow_all().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(near(&world, "zebra21").await.unwrap().hits[0].document, id(21));
    assert_right(&world).await;
    assert_eq!(letters.passages(), 21, "nothing was learned twice");
}

#[tokio::test]
async fn a_server_that_lost_everything_is_filled_anew_from_the_store() {
    let (mut server, letters) = (Server::start().await, Letters::new("a"));
    let store = memory(&[tables::MIGRATIONS]);
    let first = world(&store, &letters, &server);
    for n in 1..=20 {
        first.put(n, "root", &format!("T{n}"), &format!("zebra{n}")).await;
    }
    assert_right(&first).await;
    // A process that starts anew goes on where the server is.
    let second = world(&store, &letters, &server);
    second.put(21, "root", "T21", "zebra21").await;
    assert_right(&second).await;
    server.stop();
    server.lose_everything();
    server.start_again().await;
    orchestr8_testing::within(async {
        while near(&second, "zebra7").await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(near(&second, "zebra7").await.unwrap().hits[0].document, id(7));
    assert_right(&second).await;
    assert_eq!(letters.passages(), 21, "the store knew all vectors");
}
