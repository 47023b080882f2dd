//! Tests of the headers that repeat the body.

use http::HeaderValue;
use orchestr8_contract::Output;
use orchestr8_kernel::action::{Action, Policy};
use serde_json::json;
use serde_json::value::RawValue;

use super::*;

fn tool(schema: Value) -> Action {
    let work = async |_, _| Ok(Output::text("done").into());
    Action::tool("run", "Runs.", schema, Policy::read(), work).unwrap()
}

/// A call of `run` with these arguments and headers beyond the standard ones.
fn call(tool: &Action, arguments: &str, extra: &[(&'static str, &str)]) -> Result<(), String> {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    let facts = Facts {
        method: "tools/call",
        version: "2026-07-28",
        name: Some("run"),
        tool: Some(tool),
        arguments: Some((&*arguments).into()),
    };
    let standard =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "run")];
    let mut headers = HeaderMap::new();
    for (name, value) in standard.iter().chain(extra) {
        headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    check(&headers, &facts)
}

fn region() -> Action {
    tool(json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}))
}

fn standard(lines: &[(&'static str, &str)], name: Option<&str>) -> Result<(), String> {
    let mut headers = HeaderMap::new();
    for (header, value) in lines {
        headers.append(*header, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    check(
        &headers,
        &Facts { method: "prompts/get", version: "2026-07-28", name, tool: None, arguments: None },
    )
}

#[test]
fn the_standard_headers_must_be_there_and_match() {
    let (version, method) = (("mcp-protocol-version", "2026-07-28"), ("mcp-method", "prompts/get"));
    assert_eq!(standard(&[version, method], None), Ok(()));
    assert_eq!(standard(&[version, method, ("mcp-name", " tea ")], Some("tea")), Ok(()));
    for wrong in [
        &[method][..],
        &[version],
        &[("mcp-protocol-version", "2025-11-25"), method],
        &[version, ("mcp-method", "PROMPTS/GET")],
        &[version, method, method],
    ] {
        assert!(standard(wrong, None).is_err(), "{wrong:?}");
    }
    for wrong in [
        &[version, method][..],
        &[version, method, ("mcp-name", "Tea")],
        &[version, method, ("mcp-name", "é")],
    ] {
        assert!(standard(wrong, Some("tea")).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_name_outside_ascii_comes_as_base64() {
    let (version, method) = (("mcp-protocol-version", "2026-07-28"), ("mcp-method", "prompts/get"));
    let wrapped = ("mcp-name", "=?base64?SGVsbG8sIOS4lueVjA==?=");
    assert_eq!(standard(&[version, method, wrapped], Some("Hello, 世界")), Ok(()));
    let error = standard(&[version, method, wrapped], Some("Hello")).unwrap_err();
    assert!(error.contains("Mcp-Name") && error.contains("does not match"), "{error}");
}

#[test]
fn an_annotated_argument_must_match_its_header() {
    let tool = region();
    let hello = r#"{"region":"Hello"}"#;
    assert_eq!(call(&tool, hello, &[("mcp-param-region", "Hello")]), Ok(()));
    assert_eq!(call(&tool, hello, &[("mcp-param-region", "=?base64?SGVsbG8=?=")]), Ok(()));
    for wrong in [
        "=?base64?SGVsbG8?=",
        "=?base64?SGVs!!!bG8=?=",
        "=?BASE64?SGVsbG8=?=",
        "hello",
        "=?base64?/w==?=",
        "",
    ] {
        assert!(call(&tool, hello, &[("mcp-param-region", wrong)]).is_err(), "{wrong}");
    }
    assert!(call(&tool, hello, &[]).is_err(), "the header is missing");
    assert!(call(&tool, hello, &[("mcp-param-region", "Hello"), ("mcp-param-region", "Hello")]).is_err());
}

#[test]
fn what_only_looks_wrapped_is_taken_literally() {
    let tool = region();
    for literal in ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?="] {
        let arguments = json!({"region": literal}).to_string();
        assert_eq!(call(&tool, &arguments, &[("mcp-param-region", literal)]), Ok(()), "{literal}");
    }
}

#[test]
fn an_absent_or_null_argument_has_no_header() {
    let tool = region();
    for arguments in ["{}", r#"{"region":null}"#] {
        assert_eq!(call(&tool, arguments, &[]), Ok(()));
        assert!(call(&tool, arguments, &[("mcp-param-region", "x")]).is_err());
    }
}

#[test]
fn numbers_and_booleans_are_compared_by_value() {
    let tool = tool(json!({"type": "object", "properties": {
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"type": "object", "properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
    }}));
    let arguments = r#"{"count":42,"deep":{"on":true}}"#;
    for count in ["42", "42.0"] {
        assert_eq!(call(&tool, arguments, &[("mcp-param-count", count), ("mcp-param-on", "true")]), Ok(()));
    }
    for (count, on) in [("43", "true"), ("x", "true"), ("42", "True"), ("42", "false")] {
        assert!(
            call(&tool, arguments, &[("mcp-param-count", count), ("mcp-param-on", on)]).is_err(),
            "{count} {on}"
        );
    }
}

#[test]
fn annotations_where_none_may_be_are_passed_over() {
    let tool = tool(json!({"type": "object", "properties": {
        "ratio": {"type": "number", "x-mcp-header": "Ratio"},
        "list": {"type": "array", "items": {"type": "string", "x-mcp-header": "Item"}},
        "odd": {"type": "string", "x-mcp-header": "not a token"},
    }, "anyOf": [{"properties": {"x": {"type": "string", "x-mcp-header": "X"}}}]}));
    assert_eq!(call(&tool, r#"{"ratio":0.5,"list":["a"],"odd":"b","x":"c"}"#, &[]), Ok(()));
}

#[test]
fn an_error_quotes_only_so_much() {
    let error = call(
        &region(),
        &json!({"region": "y".repeat(5000)}).to_string(),
        &[("mcp-param-region", &"x".repeat(5000))],
    );
    assert!(error.unwrap_err().len() < 400);
}
