//! The Messages API: requests as they are written, recorded streams, and streams that are broken or evil.

use super::*;
use crate::fixtures::{self, reason, refused, request, spec, survives, whole};
use crate::limits::CONTENT_BYTES;
use crate::message::{Block, Message, StopReason, ToolResult, Usage, User};
use crate::model::Thinking;
use crate::wire::Reasoning;
use orchestr8_contract::Code;
use serde_json::json;

const TEXT: &[u8] = include_bytes!("../../tests/fixtures/anthropic-text.sse");
const TOOLS: &[u8] = include_bytes!("../../tests/fixtures/anthropic-tools.sse");
const UNKNOWN: &[u8] = include_bytes!("../../tests/fixtures/anthropic-unknown.sse");
const OVERLOADED: &[u8] = include_bytes!("../../tests/fixtures/anthropic-overloaded.sse");

fn data(value: Value) -> String {
    format!("data: {value}\n\n")
}

fn begin(index: u64, block: Value) -> String {
    data(json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn piece(index: u64, delta: Value) -> String {
    data(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn end(reason: &str) -> String {
    data(json!({"type": "message_delta", "delta": {"stop_reason": reason}}))
        + &data(json!({"type": "message_stop"}))
}

#[test]
fn a_request_has_everything_in_its_place() {
    let body = request::body(&spec(Reasoning::Budget), &Request { temperature: Some(0.5), ..request() });
    let expected = json!({
        "model": "m-1", "max_tokens": 64_000, "stream": true, "temperature": 0.5,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "weather_get", "description": "does weather.get", "input_schema": {"type": "object"}},
            {"name": "now", "description": "does now", "input_schema": {"type": "object"}},
        ],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}],
    });
    assert_eq!(body, expected);
}

#[test]
fn what_the_model_said_goes_back_as_it_came_and_results_follow_their_calls() {
    let mut request = request();
    let answer = whole(&Anthropic, TOOLS);
    request.messages.push(Message::Assistant(answer));
    request.messages.push(Message::ToolResult(ToolResult {
        tool_call_id: "toolu_01T1x1fJ34qAmk2tNTrN7Up6".into(),
        tool_name: "weather.get".into(),
        content: vec![
            Block::text("sunny"),
            Block::Image { data: "aGk=".into(), mime_type: "image/png".into() },
        ],
        is_error: false,
        timestamp: 1,
    }));
    request.messages.push(Message::User(User::text("go on", 1)));
    let body = request::body(&spec(Reasoning::Budget), &request);
    let said = &body["messages"][1]["content"];
    assert_eq!(said[0]["signature"], "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds");
    assert_eq!(said[1], json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}));
    assert_eq!(
        said[3],
        json!({"type": "tool_use", "id": "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "name": "weather_get",
            "input": {"location": "San Francisco, CA"}})
    );
    let results = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!(results.len(), 3, "two results and what the user says are one message");
    assert_eq!(results[0]["content"][1]["source"]["media_type"], "image/png");
    assert_eq!((&results[0]["is_error"], &results[1]["is_error"]), (&json!(false), &json!(true)));
    assert_eq!((&results[2]["text"], results[2].get("cache_control").is_some()), (&json!("go on"), true));
    assert!(results[0].get("cache_control").is_none());
}

#[test]
fn levels_of_thinking_are_budgets_or_words() {
    let body = |reasoning, level, max_output| {
        let request = Request { thinking: level, temperature: Some(0.5), max_output, ..request() };
        request::body(&spec(reasoning), &request)
    };
    let budgets: Vec<_> = Thinking::ALL
        .into_iter()
        .map(|level| body(Reasoning::Budget, level, None)["thinking"]["budget_tokens"].as_u64())
        .collect();
    assert_eq!(budgets, [None, Some(1_024), Some(4_096), Some(10_240), Some(20_480), Some(32_768)]);
    let high = body(Reasoning::Effort, Thinking::High, None);
    assert_eq!(high["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!((&high["output_config"]["effort"], high.get("temperature")), (&json!("high"), None));
    let small = body(Reasoning::Budget, Thinking::High, Some(5_000));
    assert_eq!((&small["max_tokens"], &small["thinking"]["budget_tokens"]), (&json!(5_000), &json!(3_976)));
    for body in
        [body(Reasoning::Budget, Thinking::High, Some(2_000)), body(Reasoning::None, Thinking::High, None)]
    {
        assert_eq!((body.get("thinking"), body["temperature"].as_f64()), (None, Some(0.5)));
    }
    let off = body(Reasoning::Effort, Thinking::Off, None);
    assert_eq!((off.get("thinking"), off.get("output_config"), off.get("temperature")), (None, None, None));
}

#[test]
fn a_round_of_calls_that_began_without_thinking_ends_without() {
    let mut request = Request { thinking: Thinking::High, ..request() };
    request.messages.push(Message::Assistant(whole(&Anthropic, TOOLS)));
    let thinks =
        |request: &Request| request::body(&spec(Reasoning::Budget), request).get("thinking").is_some();
    assert!(thinks(&request));
    if let Some(Message::Assistant(assistant)) = request.messages.last_mut() {
        assistant.model = "another".into();
    }
    assert!(!thinks(&request));
    request.messages.push(Message::User(User::text("hurry", 1)));
    assert!(!thinks(&request), "it is still the same round");
    request.messages.push(Message::Assistant(whole(&Anthropic, TEXT)));
    request.messages.push(Message::User(User::text("and now?", 1)));
    assert!(thinks(&request));
}

#[test]
fn a_schema_is_told_in_the_system_prompt() {
    let schema = Some(json!({"type": "array"}));
    let body =
        request::body(&spec(Reasoning::None), &Request { response_schema: schema.clone(), ..request() });
    let system = body["system"][0]["text"].as_str().unwrap();
    assert!(
        system.starts_with("Be kind.\n\nAnswer with one JSON value")
            && system.ends_with(r#"{"type":"array"}"#)
    );
    let body = request::body(
        &spec(Reasoning::None),
        &Request { response_schema: schema, system: None, ..request() },
    );
    assert!(body["system"][0]["text"].as_str().unwrap().starts_with("Answer with one"));
}

#[test]
fn the_key_is_in_its_header_and_marked_as_secret() {
    let headers = Anthropic.headers(Some(&Secret::new("sk-ant-1\n"))).unwrap();
    assert_eq!(headers["x-api-key"], "sk-ant-1");
    assert_eq!(headers["anthropic-version"], "2023-06-01");
    assert!(!format!("{headers:?}").contains("sk-ant"), "{headers:?}");
    assert!(Anthropic.headers(Some(&Secret::new("a\nb"))).is_none());
    assert!(!Anthropic.headers(None).unwrap().contains_key("x-api-key"));
}

#[test]
fn a_text_is_folded_with_its_usage_and_cost() {
    let done = whole(&Anthropic, TEXT);
    assert_eq!(
        (done.content.as_slice(), done.stop_reason),
        ([Block::text("Hello, wörld!")].as_slice(), StopReason::Stop)
    );
    assert_eq!((done.provider.as_str(), done.model.as_str(), done.timestamp), ("p", "m-1", fixtures::NOW_MS));
    let cost = (25.0 * 3.0 + 15.0 * 15.0 + 2000.0 * 0.3 + 100.0 * 3.75) / 1e6;
    assert!((done.usage.cost - cost).abs() < 1e-12);
    let counts = Usage { input: 25, output: 15, cache_read: 2_000, cache_write: 100, cost: done.usage.cost };
    assert_eq!(done.usage, counts);
}

#[test]
fn thinking_and_calls_are_folded() {
    let done = whole(&Anthropic, TOOLS);
    assert_eq!(done.stop_reason, StopReason::ToolUse);
    let signature = Some("EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds".to_owned());
    assert_eq!(done.content[0], Block::Thinking { thinking: "Two places, two calls.".into(), signature });
    let locked = Some("redacted_thinking:EmwKAhgBEgy3va3pzix".to_owned());
    assert_eq!(done.content[1], Block::Thinking { thinking: String::new(), signature: locked });
    let calls: Vec<_> = done.tool_calls().map(|(_, name, arguments)| (name, json!(arguments))).collect();
    assert_eq!(calls, [("weather.get", json!({"location": "San Francisco, CA"})), ("now", json!({}))]);
}

#[test]
fn what_is_not_known_is_passed_over() {
    let done = whole(&Anthropic, UNKNOWN);
    assert_eq!(
        (done.content.as_slice(), done.stop_reason),
        ([Block::text("So it is.")].as_slice(), StopReason::Stop)
    );
    assert_eq!((done.usage.input, done.usage.output), (9, 4));
}

#[test]
fn reasons_to_stop_are_ours() {
    let text = begin(0, json!({"type": "text", "text": "x"}));
    let stopped = |reason: &str| whole(&Anthropic, (text.clone() + &end(reason)).as_bytes());
    assert_eq!(stopped("max_tokens").stop_reason, StopReason::Length);
    assert_eq!(stopped("model_context_window_exceeded").stop_reason, StopReason::Length);
    assert_eq!(stopped("tool_use").stop_reason, StopReason::Stop, "there is no call");
    let refused = stopped("refusal");
    assert_eq!((refused.stop_reason, refused.error_message.is_some()), (StopReason::Error, true));
}

#[test]
fn an_error_within_the_stream_is_a_fault() {
    let fault = fixtures::fold(&Anthropic, OVERLOADED, 10).unwrap_err();
    assert_eq!((fault.code, reason(&fault)), (Code::Unavailable, "overloaded"));
}

#[test]
fn streams_that_make_no_sense_are_broken() {
    let text = || begin(0, json!({"type": "text", "text": ""}));
    let hostile = [
        "data: {not json\n\n".to_owned(),
        format!("data: {}1{}\n\n", "[".repeat(5_000), "]".repeat(5_000)),
        text() + &text(),
        piece(0, json!({"type": "text_delta", "text": "x"})),
        text() + &piece(1, json!({"type": "text_delta", "text": "x"})),
        text() + &piece(0, json!({"type": "input_json_delta", "partial_json": "{}"})),
        begin(0, json!({"type": "tool_use", "name": "now"})),
        data(json!({"type": "content_block_start", "content_block": {"type": "text"}})),
        data(json!({"type": "content_block_stop", "index": -1})),
        (0..2_000).map(|index| begin(index, json!({"type": "text"}))).collect(),
        (0..2_000).map(|index| begin(index, json!({"type": "unknown"}))).collect(),
        data(json!({"type": "message_stop"})),
        text(),
        String::new(),
    ];
    for stream in hostile {
        let fault = refused(&Anthropic, &stream);
        let start: String = stream.chars().take(100).collect();
        assert_eq!((fault.code, reason(&fault)), (Code::Unavailable, "stream_broken"), "{start}");
    }
}

#[test]
fn arguments_that_are_no_object_fail_unless_the_output_was_cut() {
    for arguments in ["{\"a\": ", "[1]", "null", "\u{0}"] {
        let stream = begin(0, json!({"type": "text", "text": "so"}))
            + &begin(1, json!({"type": "tool_use", "id": "1", "name": "now", "input": {}}))
            + &piece(1, json!({"type": "input_json_delta", "partial_json": arguments}))
            + &data(json!({"type": "content_block_stop", "index": 1}));
        let fault = refused(&Anthropic, &(stream.clone() + &end("tool_use")));
        assert_eq!(
            (fault.code, reason(&fault)),
            (Code::Unavailable, "invalid_tool_arguments"),
            "{arguments}"
        );
        let done = fixtures::fold(&Anthropic, (stream + &end("max_tokens")).as_bytes(), 10).unwrap();
        let Some(crate::model::Delta::Done(done)) = done.last() else { panic!("{done:?}") };
        assert_eq!(
            (done.content.as_slice(), done.stop_reason),
            ([Block::text("so")].as_slice(), StopReason::Length)
        );
    }
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let large = "x".repeat(1024 * 1024);
    let mut stream = begin(0, json!({"type": "text", "text": ""}));
    for _ in 0..=CONTENT_BYTES / large.len() {
        stream += &piece(0, json!({"type": "text_delta", "text": large}));
    }
    let fault = refused(&Anthropic, &stream);
    assert_eq!((fault.code, reason(&fault)), (Code::PayloadTooLarge, "answer_too_large"));
}

#[test]
fn recorded_streams_may_be_cut_and_mangled_anywhere() {
    survives(&Anthropic, TEXT);
    survives(&Anthropic, TOOLS);
}
