//! Names that can be taken for those of others.

use serde_json::json;

use super::actors::{ask, serve, token};
use crate::program::Place;

#[test]
fn an_agent_is_not_named_like_another_one() {
    let place = Place::new();
    let config = [
        token("alice", "acme", &["owner"]),
        token("mallory", "acme", &["agent"]),
        token("eve", "rival", &["agent"]),
    ]
    .concat();
    let server = serve(&place, &config);
    let register = |who: &str, name: &str| {
        ask(&server, who, "POST", "/aacp/agents", Some(json!({"agentId": name}))).status
    };
    assert_eq!(register("alice", "builder"), 200);
    for (name, status) in [("Builder", 409), ("BUILDER", 409), ("builder ", 400), (" builder", 400)] {
        assert_eq!(register("mallory", name), status, "{name:?}");
    }
    assert_eq!(register("mallory", "builder-2"), 200);
    assert_eq!(register("alice", "builder"), 200, "its own name");
    assert_eq!(register("eve", "Builder"), 200, "another tenant");
}
