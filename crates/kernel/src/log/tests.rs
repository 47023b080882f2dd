//! Tests of the log: the shape of a line, what it hides, its limits, and that a level which is off costs nothing.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ports::clock::Simulated;
use crate::redact::{REDACTED, Redactor};

fn log_at(level: Level) -> (Log, Captured) {
    let sink = Captured::default();
    (Log::new(level, sink.clone(), Arc::new(Redactor::default()), Arc::new(Simulated::new())), sink)
}

fn only_entry(sink: &Captured) -> Value {
    let entries = sink.entries();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

#[test]
fn an_entry_is_one_line_of_json_with_the_fields_of_the_seed() {
    let (log, sink) = log_at(Level::Info);
    let fault = Fault::new(Code::Timeout, "too slow").with("timeoutMs", 5).because("socket gone");
    log.error(
        "it failed",
        json!({"correlationId": "c-1", "runId": "r-1", "durationMs": 7, "error": error(&fault)}),
    );
    assert_eq!(
        sink.lines(),
        [concat!(
            r#"{"timestamp":"2026-01-01T00:00:00.000Z","level":"error","message":"it failed","#,
            r#""correlationId":"c-1","durationMs":7,"error":{"cause":"socket gone","code":"TIMEOUT","#,
            r#""details":{"timeoutMs":5},"message":"too slow"},"runId":"r-1"}"#
        )]
    );
}

#[test]
fn fields_may_be_missing_made_late_or_without_a_name() {
    let (log, sink) = log_at(Level::Info);
    log.info("m", ());
    log.info("m", || json!({"a": 1}));
    log.info("m", json!([1]));
    let ends: Vec<String> =
        sink.lines().iter().map(|line| line.split_once("\"message\":\"m\"").unwrap().1.to_owned()).collect();
    assert_eq!(ends, ["}", ",\"a\":1}", ",\"data\":[1]}"]);
}

#[test]
fn levels_below_the_one_set_are_not_written_and_their_fields_not_made() {
    let (log, sink) = log_at(Level::Warn);
    log.info("quiet", || -> Value { panic!("made for nothing") });
    log.debug("quiet", ());
    Log::off().error("quiet", || -> Value { panic!("made for nothing") });
    assert!(sink.lines().is_empty());
    log.set_level(Level::Debug);
    log.clone().debug("heard", || json!({"field": 1}));
    assert_eq!(only_entry(&sink)["field"], 1);
}

#[test]
fn each_level_lets_through_itself_and_what_matters_more() {
    for (rank, level) in Level::ALL.into_iter().enumerate() {
        let (log, sink) = log_at(level);
        log.debug("m", ());
        log.info("m", ());
        log.warn("m", ());
        log.error("m", ());
        let heard: Vec<Value> = sink.entries().iter().map(|entry| entry["level"].clone()).collect();
        let wanted: Vec<Value> = Level::ALL[rank..].iter().map(|level| level.as_str().into()).collect();
        assert_eq!(heard, wanted);
        assert_eq!(level.to_string().parse(), Ok(level));
    }
    let refused = "loud".parse::<Level>().unwrap_err().to_string();
    assert_eq!(refused, "\"loud\" is not a log level: use debug, info, warn or error");
}

#[test]
fn a_child_adds_its_context_and_the_nearest_value_of_a_name_counts() {
    let (log, sink) = log_at(Level::Info);
    let child = log.child(json!({"connection": 1, "a": "parent", "b": 1})).child(json!({"a": "child"}));
    child.info("m", json!({"b": 2, "c": null}));
    let line = sink.lines().remove(0);
    assert!(line.ends_with(r#""message":"m","b":2,"c":null,"a":"child","connection":1}"#), "{line}");
    log.info("m", ());
    assert_eq!(sink.entries()[1].get("connection"), None);
}

#[test]
fn a_field_cannot_pass_for_a_part_of_the_entry() {
    let (log, sink) = log_at(Level::Info);
    log.info("true", json!({"message": "false", "level": "none"}));
    let entry = only_entry(&sink);
    assert_eq!((&entry["message"], &entry["message_"]), (&json!("true"), &json!("false")));
    assert_eq!(entry["level"], "info");
}

#[test]
fn secrets_do_not_reach_the_line() {
    let (log, sink) = log_at(Level::Info);
    let child = log.child(json!({"session": "canary-1"}));
    let fault = Fault::invalid("password=canary-2").with("apiKey", "canary-3").because("Cookie: canary-4");
    let list =
        json!([{"x-api-key": ["canary-7"]}, "Bearer canary-888", true, false, 4_111_111_111_111_111_u64]);
    child.info("token=canary-5", json!({"accessToken": "canary-6", "list": list, "error": error(&fault)}));
    let line = sink.lines().remove(0);
    assert!(!line.contains("canary") && !line.contains("4111"), "{line}");
    assert_eq!(line.matches(REDACTED).count(), 9, "{line}");
}

#[test]
fn control_characters_do_not_reach_the_line_nor_whoever_decodes_it() {
    let (log, sink) = log_at(Level::Info);
    log.info("a\nb\u{1b}[0m", json!({"field": {"k\r": "\u{2028}\"\\\t"}}));
    let line = sink.lines().remove(0);
    assert!(line.contains(r#""message":"a\\u000ab\\u001b[0m""#), "{line}");
    assert_eq!(only_entry(&sink)["field"], json!({"k\\u000d": "\\u2028\"\\\\u0009"}));
}

#[test]
fn a_long_text_is_cut_and_says_so() {
    let (log, sink) = log_at(Level::Info);
    log.info(&"ä".repeat(100_000), json!({"big": "\n".repeat(100_000), "end": 1}));
    log.info("m", json!({"note": format!("token={} {}", "x".repeat(13_000), "y".repeat(9_000))}));
    let entries = sink.entries();
    for name in ["message", "big"] {
        let text = entries[0][name].as_str().unwrap();
        assert!(text.ends_with("[truncated]") && text.len() < 9_000, "{name}: {}", text.len());
    }
    assert_eq!(entries[0]["end"], 1);
    assert_eq!(entries[1]["note"], "token=[REDACTED][truncated]");
}

#[test]
fn a_line_that_is_full_leaves_out_the_rest_and_says_so() {
    let (log, sink) = log_at(Level::Info);
    let text = "x".repeat(7_000);
    let nested = json!({"a": text, "b": text, "c": [text, text, text, text], "d": text});
    log.info("m", json!({"a": nested, "more": 1, "most": 1}));
    let mut deep = nested;
    for _ in 0..150 {
        deep = json!([[text], deep]);
    }
    log.info("m", json!({"deep": deep}));
    let entries = sink.entries();
    assert_eq!(entries[0]["a"]["c"].as_array().unwrap().last(), Some(&json!("[truncated]")));
    assert_eq!(entries[0]["a"]["[truncated]"], true);
    assert_eq!(entries[0]["[truncated]"], true);
    assert_eq!(entries[0].get("more"), None);
    assert!(entries[1].is_object());
    assert!(sink.lines().iter().all(|line| line.len() < LINE_BYTES));
}

#[test]
fn what_is_nested_too_deep_is_not_followed() {
    let (log, sink) = log_at(Level::Info);
    let mut deep = json!("canary");
    for _ in 0..150 {
        deep = json!([deep]);
    }
    log.info("m", json!({"deep": deep}));
    let line = sink.lines().remove(0);
    assert!(!line.contains("canary") && line.contains(REDACTED));
}

#[test]
fn the_capturing_sink_forgets_the_oldest_lines() {
    let (log, sink) = log_at(Level::Info);
    for number in 0..=Captured::LINES {
        log.info("m", json!({"number": number}));
    }
    let lines = sink.lines();
    assert_eq!(lines.len(), Captured::LINES);
    assert!(lines[0].ends_with(r#""number":1}"#));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn mcp_prop_9_every_line_is_json_within_its_limit_and_without_control_characters(
        message in any::<String>(),
        texts in prop::collection::vec((any::<String>(), "[\\x00-\\x1f\"\\\\]{0,9000}"), 0..6),
    ) {
        let (log, sink) = log_at(Level::Info);
        let map: Map<String, Value> = texts.iter().map(|(key, text)| (key.clone(), text.clone().into())).collect();
        let before = map.clone();
        log.info(&message, json!({"map": map}));
        let line = sink.lines().remove(0);
        prop_assert!(line.len() < LINE_BYTES);
        prop_assert!(!line.chars().any(orchestr8_contract::visible::is_hidden));
        prop_assert!(serde_json::from_str::<Value>(&line).is_ok());
        prop_assert_eq!(map, before);
    }
}
