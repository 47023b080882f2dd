//! One entry comes in, everything else stays.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn new_entry() -> Entry {
    IndexMap::from([("command", json!("orchestr8")), ("args", json!(["mcp"]))])
}

fn entry() -> Value {
    json!({"command": "orchestr8", "args": ["mcp"]})
}

fn added(text: &str) -> String {
    Document::parse(text).unwrap().with_entry("mcpServers", "o8", &new_entry())
}

const FRESH: &str = r#"{
  "mcpServers": {
    "o8": {
      "command": "orchestr8",
      "args": [
        "mcp"
      ]
    }
  }
}
"#;

#[test]
fn an_empty_file_becomes_a_whole_one() {
    assert_eq!(added(""), FRESH);
    assert_eq!(added("{}"), FRESH.trim_end());
    assert_eq!(added("{\n}\n"), FRESH);
}

#[test]
fn other_entries_keep_their_order_and_their_look() {
    let before = "{\n\t\"z\": 1,\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\":   \"x\"},\n\t\t\"a\": { }\n\t},\n\t\"y\": [1,\n2]\n}";
    let after = "{\n\t\"z\": 1,\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\":   \"x\"},\n\t\t\"a\": { },\n\t\t\"o8\": {\n\t\t\t\"command\": \"orchestr8\",\n\t\t\t\"args\": [\n\t\t\t\t\"mcp\"\n\t\t\t]\n\t\t}\n\t},\n\t\"y\": [1,\n2]\n}";
    assert_eq!(added(before), after);
}

#[test]
fn comments_and_trailing_commas_stay() {
    let before = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {}, // \"quoted\", }\n  }, /* end */\n}\n";
    let after = added(before);
    assert!(after.contains("    \"a\": {}, // \"quoted\", }\n    \"o8\": {\n"), "{after}");
    assert!(after.starts_with("{\n  // mine\n") && after.ends_with("\n  }, /* end */\n}\n"), "{after}");
    assert_eq!(Document::parse(&after).unwrap().entry("mcpServers", "o8").unwrap(), Some(&entry()));
    let commented = added("{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n");
    assert!(commented.contains("    // none yet\n    \"o8\": {"), "{commented}");
}

#[test]
fn a_text_of_the_whole_is_replaced_or_added() {
    let with = |text: &str| Document::parse(text).unwrap().with_text("hash", "b");
    assert_eq!(
        with("{\n  \"hash\" : \"a\",\n  \"x\": {\"hash\": 1}\n}\n"),
        "{\n  \"hash\" : \"b\",\n  \"x\": {\"hash\": 1}\n}\n"
    );
    assert_eq!(with("{\n  \"x\": {\"hash\": 1}\n}\n"), "{\n  \"x\": {\"hash\": 1},\n  \"hash\": \"b\"\n}\n");
}

#[test]
fn one_line_stays_one_line_and_windows_lines_stay_so() {
    assert_eq!(
        added(r#"{"mcpServers": {"a": {}}}"#),
        r#"{"mcpServers": {"a": {}, "o8": {"command":"orchestr8","args":["mcp"]}}}"#
    );
    let windows = added("{\r\n  \"a\": 1\r\n}\r\n");
    assert!(
        windows.contains("\"a\": 1,\r\n  \"mcpServers\": {\r\n")
            && !windows.replace("\r\n", "").contains('\n'),
        "{windows:?}"
    );
}

#[test]
fn what_is_not_an_object_is_left_alone() {
    assert!(matches!(Document::parse("[1]"), Err(Error::NotAnObject(_))));
    assert!(matches!(Document::parse("{\"a\": }"), Err(Error::Syntax(_))));
    let document = Document::parse("{\"mcpServers\": 3}").unwrap();
    assert_eq!(document.entry("mcpServers", "o8"), Err(Error::NotAnObject("\"mcpServers\"".into())));
    assert_eq!(Document::parse("{}").unwrap().entry("mcpServers", "o8"), Ok(None));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Whatever else is in the file, it is there afterwards too, byte for byte, and the entry with it.
    #[test]
    fn property_an_insertion_changes_nothing_else(
        others in prop::collection::btree_map(".{0,6}", json_value(), 0..4),
        siblings in prop::option::of(prop::collection::btree_map("[a-n]{1,6}", json_value(), 0..3)),
        pretty in any::<bool>(),
    ) {
        let mut whole = Map::from_iter(others);
        whole.remove("mcpServers");
        if let Some(siblings) = siblings {
            whole.insert("mcpServers".into(), Value::Object(Map::from_iter(siblings)));
        }
        let before = if pretty { format!("{:#}", Value::Object(whole.clone())) } else { Value::Object(whole.clone()).to_string() };
        let after = added(&before);
        let mut expected = whole;
        expected.entry("mcpServers").or_insert_with(|| json!({}))["o8"] = entry();
        prop_assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), Value::Object(expected));
        let mut rest = after.chars();
        for letter in before.chars().filter(|letter| !letter.is_whitespace()) {
            prop_assert!(rest.any(|other| other == letter), "{} lost {:?}", after, letter);
        }
    }
}
