//! The description of the API: committed, served, and true.

use http::Method;
use orchestr8_contract::canonical;
use orchestr8_testing::description::{committed, described};
use orchestr8_workflows_face::{PREFIXES, document};
use serde_json::Value;

use crate::world::World;

/// Written anew with `O8_WRITE_SCHEMAS=1 cargo test -p orchestr8-workflows-face openapi`.
#[test]
fn the_committed_description_is_the_one_that_is_served() {
    committed("openapi.json", &document());
}

#[tokio::test]
async fn it_is_found_where_people_look() {
    let world = World::new();
    for target in ["/openapi.json", "/v1/openapi.json", "/api/v1/openapi.json"] {
        let answer = world.get(target).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (200, document()), "{target}");
        let fresh = world.get_with(target, &[("if-none-match", answer.header("etag"))]).await;
        assert_eq!((fresh.status.as_u16(), fresh.text.as_str()), (304, ""));
    }
}

/// Every path takes exactly the methods it is said to take, under both prefixes.
#[tokio::test]
async fn every_described_path_is_served_and_takes_just_its_methods() {
    let world = World::new();
    for (path, methods) in described(&document()) {
        for prefix in PREFIXES {
            let target = format!("{prefix}{path}");
            let answer = world.ask(Method::TRACE, &target, &[], None).await;
            assert_eq!(answer.error(405), "VALIDATION", "{target}");
            assert_eq!(answer.allowed(), methods, "{target}");
        }
    }
}

/// What is refused, the description says is refused.
#[tokio::test]
async fn every_operation_is_sound() {
    let document = document();
    let mut ids = std::collections::BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} twice");
            let in_path: Vec<&str> = operation["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            let named: Vec<&str> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(in_path, named, "{method} {path}");
            for response in operation["responses"].as_object().unwrap().values() {
                let shared = response["$ref"].as_str().map(|place| place.rsplit('/').next().unwrap());
                let response = shared.map_or(response, |status| &document["components"]["responses"][status]);
                assert!(
                    response["description"].as_str().is_some_and(|text| !text.is_empty()),
                    "{method} {path}"
                );
            }
        }
    }
    let text = canonical::text(&document);
    let known = document["components"]["schemas"].as_object().unwrap();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(known.contains_key(name), "{name}");
    }
    for name in known.keys().filter(|name| *name != "Event") {
        assert!(text.contains(&format!("#/components/schemas/{name}\"")), "{name} is never used");
    }
    assert!(matches!(document["openapi"], Value::String(ref version) if version == "3.1.0"));
}
