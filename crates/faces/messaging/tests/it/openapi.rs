//! The description of the API: committed, served, and true.

use http::Method;
use orchestr8_agents::aacp::MEMBERS;
use orchestr8_messaging_face::{PREFIX, document};
use orchestr8_testing::description::{committed, described};

use crate::world::World;

/// Written anew with `O8_WRITE_SCHEMAS=1 cargo test -p orchestr8-messaging-face openapi`.
#[test]
fn the_committed_description_is_the_one_that_is_served() {
    committed("aacp.openapi.json", &document());
}

#[tokio::test]
async fn it_is_served() {
    assert_eq!(World::new().get("/aacp/openapi.json").await.json(), document());
}

/// Every path takes exactly the methods it is said to take.
#[tokio::test]
async fn every_described_path_is_served_and_takes_just_its_methods() {
    let world = World::new();
    for (path, methods) in described(&document()) {
        let answer = world.ask(Method::TRACE, &format!("{PREFIX}{path}"), &[], None).await;
        assert_eq!(answer.status, 405, "{path}");
        assert_eq!(answer.allowed(), methods, "{path}");
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
