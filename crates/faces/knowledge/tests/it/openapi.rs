//! The description of the API: committed, served, and true.

use http::Method;
use orchestr8_knowledge_face::document;
use orchestr8_testing::description::{committed, described};

use crate::world::World;

/// Written anew with `O8_WRITE_SCHEMAS=1 cargo test -p orchestr8-knowledge-face openapi`.
#[test]
fn the_committed_description_is_the_one_that_is_served() {
    committed("knowledge.openapi.json", &document());
}

#[tokio::test]
async fn it_is_served() {
    assert_eq!(World::new().get("/knowledge/openapi.json").await.json(), document());
}

/// Every path takes exactly the methods it is said to take.
#[tokio::test]
async fn every_described_path_is_served_and_takes_just_its_methods() {
    let (world, document) = (World::new(), document());
    for (target, methods) in described(&document) {
        let answer = world.ask(Method::TRACE, &target, &[], Vec::new()).await;
        assert_eq!(answer.error(405), "INVALID_ARGUMENT", "{target}");
        assert_eq!(answer.allowed(), methods, "{target}");
    }
    let mut described: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    described.sort();
    let mut served = world.envelopes.paths();
    served.sort_unstable();
    assert_eq!(described, served, "what is served is described, and nothing else");
}
