//! The description of the API: committed, served, and true.

use std::path::Path;

use http::Method;
use orchestr8_agents::aacp::MEMBERS;
use orchestr8_messaging_face::{PREFIX, document};

use crate::world::World;

/// Written anew with `O8_WRITE_SCHEMAS=1 cargo test -p orchestr8-messaging-face openapi`.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test is told by its environment whether to write")]
fn the_committed_description_is_the_one_that_is_served() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../schemas/aacp.openapi.json");
    let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("O8_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == text,
        "schemas/aacp.openapi.json is not what the code declares; O8_WRITE_SCHEMAS=1 writes it"
    );
}

#[tokio::test]
async fn it_is_served() {
    assert_eq!(World::new().get("/aacp/openapi.json").await.json(), document());
}

/// Every path takes exactly the methods it is said to take.
#[tokio::test]
async fn every_described_path_is_served_and_takes_just_its_methods() {
    let (world, document) = (World::new(), document());
    for (path, operations) in document["paths"].as_object().unwrap() {
        let mut described: Vec<String> =
            operations.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if described.contains(&"GET".to_owned()) {
            described.push("HEAD".to_owned());
        }
        described.sort();
        let target = format!("{PREFIX}{}", path.replace(['{', '}'], ""));
        let answer = world.ask(Method::TRACE, &target, &[], None).await;
        assert_eq!(answer.status, 405, "{target}");
        let mut taken: Vec<&str> = answer.headers["allow"].to_str().unwrap().split(',').collect();
        taken.sort_unstable();
        assert_eq!(taken, described, "{target}");
    }
}

/// What a message may have is the domain's to say; the description says the same.
#[test]
fn the_members_of_a_message_are_described() {
    let document = document();
    let described = document["components"]["schemas"]["Envelope"]["properties"].as_object().unwrap();
    let mut known: Vec<&str> = MEMBERS.to_vec();
    known.sort_unstable();
    assert_eq!(described.keys().map(String::as_str).collect::<Vec<_>>(), known);
}
