//! The description of the API: committed, served, and true.

use std::path::Path;

use http::Method;
use orchestr8_knowledge_face::document;

use crate::world::World;

/// Written anew with `O8_WRITE_SCHEMAS=1 cargo test -p orchestr8-knowledge-face openapi`.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test is told by its environment whether to write")]
fn the_committed_description_is_the_one_that_is_served() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../schemas/knowledge.openapi.json");
    let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("O8_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == text,
        "schemas/knowledge.openapi.json is not what the code declares; O8_WRITE_SCHEMAS=1 writes it"
    );
}

#[tokio::test]
async fn it_is_served() {
    assert_eq!(World::new().get("/knowledge/openapi.json").await.json(), document());
}

/// Every path takes exactly the methods it is said to take.
#[tokio::test]
async fn every_described_path_is_served_and_takes_just_its_methods() {
    let (world, document) = (World::new(), document());
    let mut described = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        described.push(path.clone());
        let mut methods: Vec<String> =
            operations.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if methods.contains(&"GET".to_owned()) {
            methods.push("HEAD".to_owned());
        }
        methods.sort();
        let target = path.replace(['{', '}'], "");
        let answer = world.ask(Method::TRACE, &target, &[], Vec::new()).await;
        assert_eq!(answer.error(405), "INVALID_ARGUMENT", "{target}");
        let mut taken: Vec<&str> = answer.header("allow").split(',').collect();
        taken.sort_unstable();
        assert_eq!(taken, methods, "{target}");
    }
    described.sort();
    let mut served = world.envelopes.paths();
    served.sort_unstable();
    assert_eq!(described, served, "what is served is described, and nothing else");
}
