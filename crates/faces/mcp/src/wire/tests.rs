//! What the envelope takes and what it refuses.

use super::*;

fn refused(text: &str) -> (i64, Option<String>) {
    let refused = read(text.as_bytes()).map(|message| format!("{message:?}")).unwrap_err();
    (refused.error.code, refused.id.map(|id| id.as_json().to_owned()))
}

#[test]
fn a_request_is_taken_apart_without_being_copied() {
    let text = r#" {"params":{"a":[1,"}"]},"method":"tools/call","id":"x","jsonrpc":"2.0","other":1} "#;
    match read(text.as_bytes()).unwrap() {
        Message::Request { id, method, params } => {
            assert_eq!((id.as_json(), params.unwrap().get()), ("\"x\"", r#"{"a":[1,"}"]}"#));
            assert!(matches!(method, Cow::Borrowed("tools/call")));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_id_is_kept_whenever_it_can_be_read() {
    assert_eq!(refused(r#"{"id":7}"#), (-32600, Some("7".into())));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":"a","method":1}"#), (-32600, Some("\"a\"".into())));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":[],"method":"x"}"#), (-32600, None));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#), (-32600, Some("1".into())));
    assert_eq!(refused(r#"{"id":1,"#), (-32700, None));
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}{}}}"#, "[".repeat(101), "]".repeat(101));
    assert_eq!(refused(&deep), (-32700, Some("1".into())));
    assert_eq!(read(b"\xff").unwrap_err().error.code, -32700);
}

#[test]
fn brackets_in_strings_are_not_depth() {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":["\"{}"]}}"#, "[{".repeat(200));
    assert!(matches!(read(text.as_bytes()), Ok(Message::Request { .. })));
}

#[test]
fn two_spellings_of_one_id_are_one_id() {
    assert_eq!(Id::read(r#""\u0061""#), Id::read(r#""a""#));
    assert_ne!(Id::read("1"), Id::read("\"1\""));
    assert_eq!(Id::read("1.0").unwrap().as_json(), "1.0");
    assert_eq!(Id::read(r#""\ud800""#), None);
}

#[test]
fn strings_are_written_as_json() {
    for text in ["", "plain", "q\"b\\s/", "\n\r\t\u{8}\u{c}\u{0}\u{1f}", "ünï 😀 \u{2028}"] {
        let mut out = String::new();
        push_string(&mut out, text);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}

#[test]
fn an_error_has_the_correlation_id_beside_its_own_data() {
    let error = Error::new(VERSION_UNSUPPORTED, "no").with("requested", "x");
    let json: Value = serde_json::from_str(&error.to_json(&CorrelationId::parse("c").unwrap())).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"code": -32022, "message": "no", "data": {"correlationId": "c", "requested": "x"}})
    );
    assert_eq!(error.status, 400);
}
