//! Chat completions: requests as they are written, recorded streams, and streams that are broken or evil.

use super::*;
use crate::fixtures::{self, reason, refused, request, spec, survives, whole};
use crate::limits::CONTENT_BYTES;
use crate::message::{Block, Message, StopReason, ToolResult, Usage, User};
use crate::model::Thinking;
use crate::wire::Reasoning;
use orchestr8_contract::Code;
use serde_json::json;

const TEXT: &[u8] = include_bytes!("../../tests/fixtures/openai-text.sse");
const TOOLS: &[u8] = include_bytes!("../../tests/fixtures/openai-tools.sse");
const REASONING: &[u8] = include_bytes!("../../tests/fixtures/openai-reasoning.sse");
const SMALL: &[u8] = include_bytes!("../../tests/fixtures/openai-small-server.sse");

fn chunk(delta: Value, finish_reason: Option<&str>) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]});
    format!("data: {chunk}\n\n")
}

fn call(piece: Value) -> String {
    chunk(json!({"tool_calls": [piece]}), None)
}

#[test]
fn a_request_has_everything_in_its_place() {
    let body = request::body(&spec(Reasoning::None), &Request { temperature: Some(0.5), ..request() });
    let function = |name: &str, ours: &str| {
        json!({"type": "function", "function": {
            "name": name, "description": format!("does {ours}"), "parameters": {"type": "object"}}})
    };
    let expected = json!({
        "model": "m-1", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.5,
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}],
        "tools": [function("weather_get", "weather.get"), function("now", "now")],
    });
    assert_eq!(body, expected);
}

#[test]
fn what_the_model_said_goes_back_and_images_of_results_follow_them() {
    let image = || Block::Image { data: "aGk=".into(), mime_type: "image/png".into() };
    let mut request = request();
    let seen = User { content: vec![Block::text("look"), image()], timestamp: 1 };
    request.messages = vec![Message::User(seen), Message::Assistant(whole(&OpenAi, TOOLS))];
    let result = |id: &str, content, is_error| {
        let (tool_call_id, tool_name) = (id.to_owned(), "t".to_owned());
        Message::ToolResult(ToolResult { tool_call_id, tool_name, content, is_error, timestamp: 1 })
    };
    request.messages.push(result("call_a", vec![image()], false));
    request.messages.push(result("call_b", vec![Block::text("no")], true));
    let body = request::body(&spec(Reasoning::Effort), &request);
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[1]["content"], json!([{"type": "text", "text": "look"}, url]));
    assert_eq!(messages[2]["content"], "Let me look.");
    assert_eq!(
        messages[2]["tool_calls"][0],
        json!({"id": "call_a", "type": "function",
            "function": {"name": "weather_get", "arguments": r#"{"location":"San Francisco, CA"}"#}})
    );
    assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "call_a", "content": "(nothing)"}));
    assert_eq!(messages[4], json!({"role": "tool", "tool_call_id": "call_b", "content": "Error: no"}));
    assert_eq!((&messages[5]["role"], &messages[5]["content"][1]), (&json!("user"), &url));
}

#[test]
fn levels_limits_and_schemas_are_passed_on() {
    let schema = json!({"type": "object"});
    let asked = |thinking| Request {
        thinking,
        max_output: Some(u64::MAX),
        temperature: Some(0.5),
        response_schema: Some(schema.clone()),
        ..request()
    };
    let body = request::body(&spec(Reasoning::Effort), &asked(Thinking::Xhigh));
    assert_eq!(
        (&body["reasoning_effort"], &body["max_completion_tokens"]),
        (&json!("xhigh"), &json!(64_000))
    );
    assert_eq!((body.get("temperature"), body.get("max_tokens")), (None, None));
    assert_eq!(
        body["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": false}})
    );
    let body = request::body(&spec(Reasoning::None), &asked(Thinking::Xhigh));
    assert_eq!((body.get("reasoning_effort"), &body["max_tokens"]), (None, &json!(64_000)));
    let body = request::body(&spec(Reasoning::Effort), &asked(Thinking::Off));
    assert!(body.get("reasoning_effort").is_none());
}

#[test]
fn the_key_is_in_its_header_and_marked_as_secret() {
    let headers = OpenAi.headers(Some(&Secret::new("sk-1"))).unwrap();
    assert_eq!(headers["authorization"], "Bearer sk-1");
    assert!(!format!("{headers:?}").contains("sk-1"), "{headers:?}");
    assert!(OpenAi.headers(None).unwrap().is_empty());
}

#[test]
fn a_text_is_folded_with_its_usage_and_cost() {
    let done = whole(&OpenAi, TEXT);
    assert_eq!(
        (done.content.as_slice(), done.stop_reason),
        ([Block::text("Hello, wörld!")].as_slice(), StopReason::Stop)
    );
    let cost = (86.0 * 3.0 + 15.0 * 15.0 + 1920.0 * 0.3) / 1e6;
    assert!((done.usage.cost - cost).abs() < 1e-12);
    let counts = Usage { input: 86, output: 15, cache_read: 1_920, cache_write: 0, cost: done.usage.cost };
    assert_eq!(done.usage, counts);
}

#[test]
fn calls_are_put_together_from_their_pieces() {
    let done = whole(&OpenAi, TOOLS);
    assert_eq!(
        (done.content[0].clone(), done.stop_reason),
        (Block::text("Let me look."), StopReason::ToolUse)
    );
    let calls: Vec<_> = done.tool_calls().map(|(id, name, arguments)| (id, name, json!(arguments))).collect();
    let expected =
        [("call_a", "weather.get", json!({"location": "San Francisco, CA"})), ("call_b", "now", json!({}))];
    assert_eq!(calls, expected);
}

#[test]
fn both_names_of_reasoning_are_thinking() {
    let done = whole(&OpenAi, REASONING);
    let thinking = Block::Thinking { thinking: "Let me see.".into(), signature: None };
    assert_eq!(done.content, [thinking, Block::text("42")]);
    assert_eq!((done.usage.input, done.usage.cache_read, done.usage.output), (12, 8, 30));
}

#[test]
fn a_small_server_that_leaves_half_of_it_out_is_understood() {
    let done = whole(&OpenAi, SMALL);
    assert_eq!(done.stop_reason, StopReason::ToolUse);
    let calls: Vec<_> = done.tool_calls().map(|(id, name, arguments)| (id, name, json!(arguments))).collect();
    let made_up = format!("call_{}_0", fixtures::NOW_MS);
    let expected = [
        (made_up.as_str(), "weather.get", json!({"location": "Ulm"})),
        ("call_same", "now", json!({"zone": "UTC"})),
    ];
    assert_eq!(calls, expected);
    assert!(done.usage.input > 0 && done.usage.output > 0, "it is estimated: {:?}", done.usage);
}

#[test]
fn reasons_to_stop_are_ours() {
    let stopped = |reason: &str| {
        let stream =
            chunk(json!({"content": "x"}), None) + &chunk(json!({}), Some(reason)) + "data: [DONE]\n\n";
        whole(&OpenAi, stream.as_bytes())
    };
    assert_eq!(stopped("length").stop_reason, StopReason::Length);
    assert_eq!(stopped("tool_calls").stop_reason, StopReason::Stop, "there is no call");
    assert_eq!(stopped("whatever").stop_reason, StopReason::Stop);
    let held = stopped("content_filter");
    assert_eq!((held.stop_reason, held.error_message.is_some()), (StopReason::Error, true));
}

#[test]
fn an_error_within_the_stream_is_a_fault() {
    let stream = r#"data: {"error":{"message":"slow down","type":"rate_limit_exceeded","code":"rate_limit_exceeded"}}"#;
    let fault = refused(&OpenAi, &format!("{stream}\n\n"));
    assert_eq!((fault.code, reason(&fault)), (Code::ResourceExhausted, "rate_limited"));
    let fault = refused(&OpenAi, "data: {\"error\":\"out of memory\"}\n\n");
    assert_eq!((fault.code, reason(&fault)), (Code::Unavailable, "stream_broken"));
    assert!(fault.message.contains("out of memory"), "{fault}");
}

#[test]
fn streams_that_make_no_sense_are_broken() {
    let many =
        (0..2_000).map(|n| call(json!({"index": n, "id": n.to_string(), "function": {"name": "now"}})));
    let hostile = [
        "data: {not json\n\n".to_owned(),
        format!("data: {}\n\n", "[".repeat(5_000)),
        call(json!({"index": 0, "function": {"arguments": "{}"}})),
        call(json!({"id": "1", "function": {}})),
        chunk(json!({"content": "x"}), None),
        chunk(json!({"content": "x"}), None) + "data: [DONE]\n\n",
        "data: 7\n\ndata: null\n\ndata: {\"choices\": \"none\"}\n\n".to_owned(),
        "<html>nothing here</html>".to_owned(),
        String::new(),
    ];
    for stream in hostile {
        let fault = refused(&OpenAi, &stream);
        assert_eq!((fault.code, reason(&fault)), (Code::Unavailable, "stream_broken"), "{stream}");
    }
    let fault = refused(&OpenAi, &many.collect::<String>());
    assert_eq!(reason(&fault), "stream_broken");
}

#[test]
fn arguments_that_are_no_object_fail_unless_the_output_was_cut() {
    let stream = chunk(json!({"content": "so"}), None)
        + &call(json!({"index": 0, "id": "1", "function": {"name": "now", "arguments": "{\"a\": "}}));
    let fault = refused(&OpenAi, &(stream.clone() + &chunk(json!({}), Some("tool_calls"))));
    assert_eq!((fault.code, reason(&fault)), (Code::Unavailable, "invalid_tool_arguments"));
    let deltas =
        fixtures::fold(&OpenAi, (stream + &chunk(json!({}), Some("length"))).as_bytes(), 10).unwrap();
    let done = fixtures::consistent(&deltas);
    assert_eq!(
        (done.content.as_slice(), done.stop_reason),
        ([Block::text("so")].as_slice(), StopReason::Length)
    );
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let large = "x".repeat(1024 * 1024);
    let stream: String =
        (0..=CONTENT_BYTES / large.len()).map(|_| chunk(json!({"content": large}), None)).collect();
    let fault = refused(&OpenAi, &stream);
    assert_eq!((fault.code, reason(&fault)), (Code::PayloadTooLarge, "answer_too_large"));
}

#[test]
fn recorded_streams_may_be_cut_and_mangled_anywhere() {
    for fixture in [TEXT, TOOLS, REASONING, SMALL] {
        survives(&OpenAi, fixture);
    }
}
