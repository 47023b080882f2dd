//! The fixtures that ask: what they ask under which key, and what they make of the answers.

use orchestr8_contract::Code;
use orchestr8_kernel::peer::About;
use orchestr8_testing::Person;
use orchestr8_testing::settled::{asks, text};
use serde_json::{Value, json};

use super::world::{World, able, settings};
use crate::Settings;

fn world() -> World {
    World::new(&Settings { conformance: true, ..settings() })
}

fn accepted(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn written(text: &str) -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "test-model", "stopReason": "endTurn"})
}

fn roots() -> Value {
    json!({"roots": [{"uri": "file:///test/root", "name": "Test Root"}]})
}

/// A fixture that asks once: its name, its arguments, its keys, the answers, and what it says then.
type Round = (String, Value, &'static [&'static str], Value, &'static str);

/// Those of the legacy era, whose keys are ours to choose.
fn plain() -> Vec<Round> {
    let form = accepted(json!({"username": "u", "email": "e"}));
    let filled = r#"User response: action=accept, content={"email":"e","username":"u"}"#;
    let aged = r#"Elicitation completed: action=accept, content={"age":30}"#;
    let declined = "Elicitation completed: action=decline, content={}";
    let ok = accepted(json!({"ok": true}));
    vec![
        (
            "test_sampling".into(),
            json!({"prompt": "p"}),
            &["sampling"],
            json!({"sampling": written("w")}),
            "LLM response: w",
        ),
        (
            "test_elicitation".into(),
            json!({"message": "m"}),
            &["elicitation"],
            json!({"elicitation": form}),
            filled,
        ),
        (
            "test_elicitation_sep1034_defaults".into(),
            json!({}),
            &["defaults"],
            json!({"defaults": accepted(json!({"age": 30}))}),
            aged,
        ),
        (
            "test_elicitation_sep1330_enums".into(),
            json!({}),
            &["enums"],
            json!({"enums": {"action": "decline"}}),
            declined,
        ),
        (
            "test_streaming_elicitation".into(),
            json!({}),
            &["confirmation"],
            json!({"confirmation": ok}),
            "Confirmation: accept",
        ),
    ]
}

/// Those of the modern era, whose keys the suites know.
fn input_required() -> Vec<Round> {
    let ok = json!({"confirm": accepted(json!({"ok": true}))});
    let alice = accepted(json!({"name": "Alice"}));
    let three = json!({"user_name": alice, "greeting": written("Hi"), "client_roots": roots()});
    let context = json!({"user_context": accepted(json!({"context": "c"}))});
    let rounds: [(&str, &[&str], Value, &str); 8] = [
        ("result_elicitation", &["user_name"], json!({"user_name": alice, "unknown": 1}), "Hello, Alice!"),
        ("result_sampling", &["capital_question"], json!({"capital_question": written("Paris")}), "Paris"),
        ("result_list_roots", &["client_roots"], json!({"client_roots": roots()}), "Found 1 root(s)"),
        ("result_request_state", &["confirm"], ok.clone(), "Confirmed, state-ok"),
        ("result_tampered_state", &["confirm"], ok, "Confirmed with an untouched state"),
        (
            "result_multiple_inputs",
            &["user_name", "greeting", "client_roots"],
            three,
            "Name: Alice; Greeting: Hi; Roots: 1",
        ),
        ("result_prompt", &["user_context"], context, "Prompt with context: c"),
        ("test_tool_with_task", &["user_name"], json!({"user_name": alice}), "Hello, Alice!"),
    ];
    let whole = |name: &str| match name.starts_with("test_") {
        true => name.to_owned(),
        false => format!("test_input_required_{name}"),
    };
    rounds
        .into_iter()
        .map(|(name, keys, answers, said)| (whole(name), json!({}), keys, answers, said))
        .collect()
}

#[tokio::test]
async fn each_asks_under_its_keys_and_ends_with_the_answers() {
    let world = world();
    for (action, args, keys, answers, expected) in plain().into_iter().chain(input_required()) {
        let asked = asks(world.call_with(&able(json!({})), &action, args.clone()).await);
        assert_eq!(asked.iter().map(|ask| ask.key.as_str()).collect::<Vec<_>>(), keys, "{action}");
        for ask in &asked {
            let wanted = match ask.about {
                About::Elicit => "requestedSchema",
                About::Sample => "maxTokens",
                About::Roots => continue,
            };
            assert!(ask.params.get(wanted).is_some(), "{action}: {}", ask.params);
        }
        let said = text(world.call_with(&able(answers), &action, args).await);
        assert_eq!(said, expected, "{action}");
    }
}

#[tokio::test]
async fn an_answer_of_the_wrong_shape_is_asked_for_again() {
    let world = world();
    for (wrong, code) in [
        (json!(12345), None),
        (Value::Null, None),
        (accepted(json!({"nom": "x"})), None),
        (json!({"action": "decline"}), Some(Code::Cancelled)),
    ] {
        let client = able(json!({"user_name": wrong}));
        let settled = world.call_with(&client, "test_input_required_result_elicitation", json!({})).await;
        match code {
            Some(code) => assert_eq!(settled.code(), Some(code), "{wrong}"),
            None => assert_eq!(asks(settled)[0].key, "user_name", "{wrong}"),
        }
    }
}

#[tokio::test]
async fn two_rounds_ask_one_after_the_other() {
    let (world, tool) = (world(), "test_input_required_result_multi_round");
    let keys = |settled| asks(settled).into_iter().map(|ask| ask.key).collect::<Vec<_>>();
    assert_eq!(keys(world.call_with(&able(json!({})), tool, json!({})).await), ["step1"]);
    let first = json!({"step1": accepted(json!({"name": "Al"}))});
    assert_eq!(keys(world.call_with(&able(first.clone()), tool, json!({})).await), ["step2"]);
    let mut both = first;
    both["step2"] = accepted(json!({"color": "blue"}));
    let said = text(world.call_with(&able(both), tool, json!({})).await);
    assert_eq!(said, "Multi-round complete for Al who likes blue");
}

#[tokio::test]
async fn only_what_the_client_can_answer_is_asked() {
    let (world, tool) = (world(), "test_input_required_result_capabilities");
    let asked = asks(world.call_with(&Person::by_key(&[About::Sample], json!({})), tool, json!({})).await);
    assert_eq!(asked.iter().map(|ask| ask.about).collect::<Vec<_>>(), [About::Sample]);
    let settled =
        world.call_with(&Person::by_key(&[], json!({})), "test_missing_capability", json!({})).await;
    let orchestr8_kernel::Halt::Fault(fault) = settled.result.unwrap_err() else { panic!("a fault") };
    assert_eq!(fault.code, Code::CapabilityMissing);
    assert_eq!(fault.details.unwrap()["requiredCapabilities"], json!({"sampling": {}}));
    let sampler = Person::by_key(&[About::Sample], json!({}));
    assert_eq!(text(world.call_with(&sampler, "test_missing_capability", json!({})).await), "Success");
}

#[tokio::test]
async fn forms_have_the_fields_the_suites_look_for() {
    let world = world();
    let fields = async |tool: &str| {
        let asked = asks(world.call_with(&able(json!({})), tool, json!({})).await);
        asked[0].params["requestedSchema"]["properties"].clone()
    };
    let defaults = fields("test_elicitation_sep1034_defaults").await;
    for (name, kind, default) in [
        ("name", "string", json!("John Doe")),
        ("age", "integer", json!(30)),
        ("score", "number", json!(95.5)),
        ("status", "string", json!("active")),
        ("verified", "boolean", json!(true)),
    ] {
        assert_eq!((&defaults[name]["type"], &defaults[name]["default"]), (&json!(kind), &default), "{name}");
    }
    let enums = fields("test_elicitation_sep1330_enums").await;
    assert_eq!(enums["untitledSingle"]["enum"], json!(["option1", "option2", "option3"]));
    assert_eq!(enums["titledSingle"]["oneOf"][2], json!({"const": "value3", "title": "Third Option"}));
    assert_eq!(enums["legacyEnum"]["enumNames"], json!(["Option One", "Option Two", "Option Three"]));
    assert_eq!(enums["untitledMulti"]["items"]["enum"], json!(["option1", "option2", "option3"]));
    assert_eq!(
        enums["titledMulti"]["items"]["anyOf"][0],
        json!({"const": "value1", "title": "First Choice"})
    );
    assert_eq!(enums["titledMulti"]["maxItems"], 3);
}
