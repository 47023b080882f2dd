//! The fixtures say what the suites expect, to the letter.

use orchestr8_contract::Code;
use orchestr8_kernel::action::{Address, Shown, Tasking};
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::registry;
use orchestr8_testing::settled::{text, value, wire};
use serde_json::{Map, Value, json};

use super::world::{World, able, settings};
use crate::Settings;

fn world() -> World {
    World::new(&Settings { conformance: true, search_above: 1000, ..settings() })
}

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

#[tokio::test]
async fn contents_are_what_the_suites_expect() {
    let world = world();
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    for (tool, expected) in [
        (
            "test_simple_text",
            json!([{"type": "text", "text": "This is a simple text response for testing."}]),
        ),
        ("test_image_content", json!([image])),
        (
            "test_audio_content",
            json!([{"type": "audio", "data": "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=", "mimeType": "audio/wav"}]),
        ),
        (
            "test_embedded_resource",
            json!([{"type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."
            }}]),
        ),
        (
            "test_multiple_content_types",
            json!([{"type": "text", "text": "Multiple content types test:"}, image, {"type": "resource", "resource": {
                "uri": "test://mixed-content-resource", "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}"
            }}]),
        ),
    ] {
        assert_eq!(
            wire(world.call(tool, json!({})).await),
            json!({"content": expected, "isError": false}),
            "{tool}"
        );
    }
    let failed = wire(world.call("test_error_handling", json!({})).await);
    let told = "This tool intentionally returns an error for testing";
    assert_eq!(failed, json!({"content": [{"type": "text", "text": told}], "isError": true}));
    assert_eq!(text(world.call("greet", json!({"name": "Ann"})).await), "Hello, Ann!");
    assert_eq!(text(world.call("test_x_mcp_header", json!({"region": "eu"})).await), "Region: eu");
}

#[tokio::test]
async fn every_listed_tool_is_well_described() {
    let world = world();
    let table = world.kernel.registry().table();
    assert!(table.tools().count() >= 39);
    for action in table.all() {
        assert!(!action.about.description.is_empty(), "{}", action.name);
        assert_eq!(action.input.source["type"], "object", "{}", action.name);
    }
    let schema = &table.find("json_schema_2020_12_tool").unwrap().input.source;
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["$defs"]["address"]["$anchor"], "addressDef");
    for keyword in ["allOf", "if", "then", "else", "additionalProperties"] {
        assert!(schema.get(keyword).is_some(), "{keyword}");
    }
    let annotated =
        table.tools().filter(|action| action.input.source.to_string().contains("x-mcp-header")).count();
    assert_eq!(annotated, 1, "the suite takes the first one it finds");
    for (tool, tasking) in [
        ("greet", Tasking::Forbidden),
        ("slow_compute", Tasking::Optional),
        ("failing_job", Tasking::Required),
        ("test_tool_with_task", Tasking::Required),
    ] {
        assert_eq!(table.find(tool).unwrap().policy.tasking, tasking, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_client_hears_of_progress_and_logs() {
    let world = world();
    let client = able(json!({}));
    text(world.call_with(&client, "test_tool_with_progress", json!({})).await);
    let told: Vec<Value> = [0.0, 50.0, 100.0].map(|done| json!({"progress": done, "total": 100.0})).to_vec();
    assert_eq!(std::mem::take(&mut *client.heard.lock()), told);
    let answer = text(world.call_with(&client, "test_tool_with_logging", json!({})).await);
    assert_eq!(answer, "Tool with logging executed successfully");
    let told = ["Tool execution started", "Tool processing data", "Tool execution completed"];
    let told: Vec<Value> = told.map(|data| json!({"level": "info", "data": data})).to_vec();
    assert_eq!(std::mem::take(&mut *client.heard.lock()), told);
    assert_eq!(text(world.call_with(&client, "test_logging_tool", json!({})).await), "Logging evaluated");
    let told = json!({"level": "info", "data": "Diagnostic trace logging activated"});
    assert_eq!(std::mem::take(&mut *client.heard.lock()), [told]);
    text(world.call_with(&client, "test_reconnection", json!({})).await);
    assert_eq!(*client.heard.lock(), [json!("closed")]);
}

#[tokio::test]
async fn changes_are_announced_to_those_they_concern() {
    let world = world();
    let listen =
        |list: &str| world.kernel.bus().subscribe(&Filter::names([registry::CHANGED]).about(list)).unwrap();
    let (mut tools, mut prompts) = (listen("tools"), listen("prompts"));
    assert_eq!(text(world.call("test_trigger_tool_change", json!({})).await), "Mutation triggered");
    assert!(tools.try_next().is_some() && prompts.try_next().is_none());
    assert_eq!(text(world.call("test_trigger_prompt_change", json!({})).await), "Mutation triggered");
    assert!(tools.try_next().is_none() && prompts.try_next().is_some());
}

#[tokio::test]
async fn resources_hold_what_the_suites_expect() {
    let world = world();
    for (name, uri, expected) in [
        (
            "static-text",
            "test://static-text",
            json!({"mimeType": "text/plain", "text": "This is the content of the static text resource."}),
        ),
        ("static-binary", "test://static-binary", json!({"mimeType": "image/png", "blob": PNG})),
        (
            "watched-resource",
            "test://watched-resource",
            json!({"mimeType": "text/plain", "text": "Watched resource content"}),
        ),
    ] {
        let mut expected = expected;
        expected["uri"] = json!(uri);
        let table = world.kernel.registry().table();
        assert_eq!(table.resource(uri).unwrap().0.name.as_str(), name);
        assert_eq!(wire(world.call(name, json!({"uri": uri})).await), json!({"contents": [expected]}));
    }
    let table = world.kernel.registry().table();
    let (action, captured) = table.resource("test://template/123/data").unwrap();
    let Shown::Resource(resource) = &action.shown else { panic!("a resource") };
    assert_eq!(resource.address, Address::Template("test://template/{id}/data".into()));
    let args: Map<String, Value> = captured.into_iter().map(|(name, value)| (name, value.into())).collect();
    let data = r#"{"id":"123","templateTest":true,"data":"Data for ID: 123"}"#;
    let expected = json!({"uri": "test://template/123/data", "mimeType": "application/json", "text": data});
    assert_eq!(wire(world.call("template-data", Value::Object(args)).await), json!({"contents": [expected]}));
    assert!(table.resource("test://nonexistent-resource-for-conformance-testing").is_none());
}

#[tokio::test]
async fn prompts_say_what_the_suites_expect() {
    let world = world();
    let user = |content: Value| json!({"role": "user", "content": content});
    let words = |text: &str| json!({"type": "text", "text": text});
    for (prompt, args, expected) in [
        ("test_simple_prompt", json!({}), vec![words("This is a simple prompt for testing.")]),
        (
            "test_prompt_with_arguments",
            json!({"arg1": "hello", "arg2": "world"}),
            vec![words("Prompt with arguments: arg1='hello', arg2='world'")],
        ),
        (
            "test_prompt_with_embedded_resource",
            json!({"resourceUri": "test://example-resource"}),
            vec![
                json!({"type": "resource", "resource": {
                    "uri": "test://example-resource", "mimeType": "text/plain", "text": "Embedded resource content for testing."
                }}),
                words("Please process the embedded resource above."),
            ],
        ),
        (
            "test_prompt_with_image",
            json!({}),
            vec![
                json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
                words("Please analyze the image above."),
            ],
        ),
    ] {
        let messages: Vec<Value> = expected.into_iter().map(user).collect();
        assert_eq!(wire(world.call(prompt, args).await), json!({"messages": messages}), "{prompt}");
    }
    let table = world.kernel.registry().table();
    let complete = table.find("test_prompt_with_arguments").unwrap().complete.clone().unwrap();
    assert_eq!(complete("arg1", "teste", &Map::new()), ["tested"]);
    assert_eq!(complete("arg1", "x", &Map::new()), [""; 0]);
}

#[tokio::test]
async fn a_row_is_appended_once_for_one_key() {
    let world = world();
    let row = json!({"list": "l", "value": "a"});
    for _ in 0..2 {
        assert_eq!(value(world.call_keyed("k1", "test_append", row.clone()).await), row);
    }
    assert_eq!(value(world.call_keyed("k2", "test_append", row.clone()).await), row);
    value(world.call("test_append", json!({"list": "other", "value": "b"})).await);
    let listed = value(world.call("test_list", json!({"list": "l"})).await);
    assert_eq!((&listed["values"], &listed["truncated"]), (&json!(["a", "a"]), &json!(false)));
    let rest = value(world.call("test_list", json!({"list": "l", "after": listed["last"]})).await);
    assert_eq!(rest["values"], json!([]));
}

#[tokio::test]
async fn a_panic_is_answered_and_the_kernel_lives() {
    let world = world();
    assert_eq!(world.call("test_panic", json!({})).await.code(), Some(Code::Internal));
    assert_eq!(text(world.call("test_sleep", json!({"ms": 1})).await), "slept 1");
}

#[tokio::test(start_paused = true)]
async fn jobs_end_as_they_should() {
    let world = world();
    let computed = text(world.call("slow_compute", json!({"seconds": 1.5, "label": "pi"})).await);
    assert_eq!(computed, "Computed pi after 1.5s");
    assert_eq!(wire(world.call("failing_job", json!({})).await)["isError"], true);
    assert_eq!(world.call("protocol_error_job", json!({})).await.code(), Some(Code::Internal));
    let answers = json!({
        "confirm": {"action": "accept", "content": {"name": "Ann", "confirm": true}},
        "name": {"action": "accept", "content": {"name": "Ann", "confirm": true}}
    });
    let client = able(answers);
    assert_eq!(text(world.call_with(&client, "confirm_delete", json!({"filename": "a"})).await), "Deleted a");
    assert_eq!(text(world.call_with(&client, "multi_input", json!({})).await), "Name: Ann; confirmed: true");
}
