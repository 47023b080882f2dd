//! Tests of redaction: the rule for keys, the looks of values, and the property MCP-PROP-9.

use std::borrow::Cow;
use std::cell::Cell;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

thread_local! {
    /// How many bytes the search for secrets has looked at.
    pub static BYTES_READ: Cell<usize> = const { Cell::new(0) };
}

fn text(text: &str) -> String {
    Redactor::default().text(text).into_owned()
}

#[test]
fn redact_keys_match_in_any_case_and_with_any_separator() {
    let redactor = Redactor::default();
    for key in DEFAULT_KEYS {
        assert!(redactor.is_secret(key), "{key}");
        assert!(redactor.is_secret(&key.to_uppercase()), "{key}");
        assert!(redactor.is_secret(&format!("_{key}")), "{key}");
    }
    for key in ["api_key", "api-key", "API KEY", "Api.Key", "aPiKeY", "pass-word"] {
        assert!(redactor.is_secret(key), "{key}");
    }
}

#[test]
fn compound_names_are_secrets_by_their_last_words() {
    let redactor = Redactor::default();
    let keys = "x-api-key access_token accessToken client_secret clientSecret DB_PASSWORD userPassword JWTToken Set-Cookie
        Proxy-Authorization aws_secret_access_key private-key secretKey apiKeys öffentlichesToken";
    for key in keys.split_whitespace() {
        assert!(redactor.is_secret(key), "{key}");
    }
}

#[test]
fn innocent_names_stay() {
    let redactor = Redactor::default();
    let keys =
        "- monkey keyboard keys idempotencyKey primary_key tokens maxTokens tokenizer secretary sessionId
        agentSession cookieless passwordless stoken schlüssel ключ";
    for key in keys.split_whitespace().chain([""]) {
        assert!(!redactor.is_secret(key), "{key}");
    }
}

#[test]
fn own_keys_replace_the_default_ones() {
    let redactor = Redactor::new(["Ssn", "schlüssel", "--"]);
    assert!(redactor.is_secret("SSN") && redactor.is_secret("s_s_n") && redactor.is_secret("schlüssel"));
    assert!(
        !redactor.is_secret("userSsn") && !redactor.is_secret("token") && !redactor.is_secret("accessToken")
    );
    assert!(Redactor::new(["secret"]).is_secret("clientSecret"));
    assert!(!Redactor::new(Vec::<String>::new()).is_secret("token"));
}

#[test]
fn values_under_redact_keys_are_replaced_at_every_depth() {
    let value = json!({"a": 1, "list": [{"Token": {"deep": [1]}}, "x"], "password": null, "z": {"ok": true}});
    let before = value.clone();
    let redacted = Redactor::default().keys(&value).into_owned();
    assert_eq!(
        redacted,
        json!({"a": 1, "list": [{"Token": REDACTED}, "x"], "password": REDACTED, "z": {"ok": true}})
    );
    assert_eq!(value, before);
}

#[test]
fn a_value_without_secrets_is_not_copied() {
    let redactor = Redactor::default();
    let value = json!({"a": [1, 2, {"b": "plain text"}], "n": 1_767_225_600_000_i64, "token": REDACTED});
    assert!(matches!(redactor.keys(&value), Cow::Borrowed(_)));
    assert!(matches!(redactor.value(&value), Cow::Borrowed(_)));
    assert!(matches!(redactor.text("nothing to hide"), Cow::Borrowed(_)));
}

#[test]
fn values_are_searched_too_when_asked() {
    let value = json!({"note": "Bearer abcdef123456", "card": 4_111_111_111_111_111_u64, "sk-aaaaaaaaaaaaaaaaaaaa1": 1, "n": 7});
    let redacted = Redactor::default().value(&value).into_owned();
    assert_eq!(redacted, json!({"note": "Bearer [REDACTED]", "card": REDACTED, "[REDACTED]": 1, "n": 7}));
    assert!(matches!(Redactor::default().keys(&value), Cow::Borrowed(_)));
}

#[test]
fn what_is_too_deep_to_look_at_is_redacted() {
    let mut value = json!({"password": "hunter2"});
    for _ in 0..500 {
        value = json!([value]);
    }
    let text = Redactor::default().keys(&value).to_string();
    assert!(!text.contains("hunter2") && text.contains(REDACTED));
}

#[test]
fn secrets_are_found_by_their_looks() {
    for (given, wanted) in [
        ("Authorization: Bearer abc.def-123", "Authorization: [REDACTED]"),
        ("sent bearer AbCdEfGh to it", "sent bearer [REDACTED] to it"),
        ("Basic dXNlcjpwYXNz", "Basic [REDACTED]"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln!", "jwt [REDACTED]!"),
        ("use sk-ant-api03-abcdefghijklmnop, ok", "use [REDACTED], ok"),
        ("(ghp_abcdefghijklmnopqrst0123)", "([REDACTED])"),
        ("AKIAIOSFODNN7EXAMPLE", "[REDACTED]"),
        ("card 4111 1111 1111 1111.", "card [REDACTED]."),
        ("card 4111-1111-1111-1111 123", "card [REDACTED] 123"),
        ("4111 1111 1111 1111 123", "[REDACTED] 123"),
        ("amex 3782 822463 10005", "amex [REDACTED]"),
        ("378282246310005", "[REDACTED]"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "a [REDACTED] b"),
        (r"pem\n-----BEGIN PRIVATE KEY-----\nMII", r"pem\n[REDACTED]"),
        ("-----BEGIN X-----\n1\n-----END X", "[REDACTED]X"),
        ("postgres://me:hunter2@db/x", "postgres://me:[REDACTED]@db/x"),
        ("GET /?api_key=abc&x=1", "GET /?api_key=[REDACTED]&x=1"),
        ("password='with space' next", "password='[REDACTED]' next"),
        ("password=[abc] next", "password=[REDACTED] next"),
        (r#"{"password":"a\"b","x":1}"#, r#"{"password":"[REDACTED]","x":1}"#),
        (r#"{\"token\": \"abc\", \"x\": 1}"#, r#"{\"token\": \"[REDACTED]\", \"x\": 1}"#),
        (r#"{"secret": 42}"#, r#"{"secret": [REDACTED]"#),
        (r#"{"secret": "cut"#, r#"{"secret": "[REDACTED]"#),
        ("Cookie: a=b; c=d\nnext", "Cookie: [REDACTED]\nnext"),
        ("grüße token=geheimnisäöü ende", "grüße token=[REDACTED] ende"),
    ] {
        assert_eq!(text(given), wanted, "{given}");
        assert_eq!(text(wanted), wanted, "redacting twice changes nothing");
    }
}

#[test]
fn innocent_texts_stay() {
    for given in [
        "the bearer of news",
        "bearer token",
        "basic training",
        "eyJ.eyJ.eyJ",
        "eyJhbGciOiJIUzI1NiJ9",
        "sk-learn",
        "sk-",
        "AKIA",
        "AKIAIOSFODNN7EXAMPLE1",
        "4111 1111 1111 1112",
        "1767225600000",
        "0.4111111111111111",
        "4111111111111111.5",
        "4111111111111111x",
        "4111 1111-1111 1111",
        "550e8400-e29b-41d4-a716-446655440000",
        "00000000-0000-4000-8000-000000000001",
        "41111111-1111-4111-abcd",
        "http://localhost:8088/mcp",
        "https://user@host/",
        "unexpected token: }",
        "unknown key: order",
        "monkey=1",
        "password=",
        "password=\"\"",
        r#""token" is missing"#,
        "cookie:",
        "id: 5",
        "41 11 11 11 11 11 11 11",
    ] {
        assert_eq!(text(given), given);
    }
}

#[test]
fn searching_takes_time_in_proportion_to_the_text() {
    // A careless search would read each of these again from every word of it.
    for piece in [
        "eyJ.",
        "a:",
        "cookie",
        "password\"",
        "bearer ",
        "1 ",
        "4111 ",
        "://",
        "-----",
        "token=\\",
        "eyJaaaaaaa-",
    ] {
        let long = piece.repeat(200_000 / piece.len());
        BYTES_READ.set(0);
        text(&long);
        let read = BYTES_READ.get();
        assert!(read <= long.len() * 6, "{piece:?}: {read} bytes read of {}", long.len());
    }
}

#[test]
fn control_characters_become_unicode_escapes() {
    assert_eq!(sanitize("a\nb\r\t\0"), "a\\u000ab\\u000d\\u0009\\u0000");
    assert_eq!(sanitize("\u{1b}[31m\u{7f}\u{9b}\u{2028}\u{2029}"), "\\u001b[31m\\u007f\\u009b\\u2028\\u2029");
    assert_eq!(sanitize("\u{202e}\u{200b}\u{e0041}"), "\\u202e\\u200b\\udb40\\udc41");
    assert!(matches!(sanitize("grüße 🙂"), Cow::Borrowed("grüße 🙂")));
}

/// JSON with secrets and control characters in it.
fn json_value() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "[a-z]{0,6}",
        prop::sample::select(vec!["token", "PASSWORD", "x-api-key", "clientSecret", "monkey", "Cookie"])
            .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\\x00-\\x1f a-z=:\"]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// The model: what the seed says, written without any care for speed.
fn model(redactor: &Redactor, value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| model(redactor, item)).collect(),
        Value::Object(map) => (map.iter())
            .map(|(key, value)| {
                let value = if redactor.is_secret(key) { REDACTED.into() } else { model(redactor, value) };
                (key.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn mcp_prop_9_redaction_replaces_exactly_the_redact_keys_and_changes_nothing_given(value in json_value()) {
        let redactor = Redactor::default();
        let before = value.clone();
        let redacted = redactor.keys(&value);
        prop_assert_eq!(&*redacted, &model(&redactor, &value));
        prop_assert_eq!(matches!(redacted, Cow::Borrowed(_)), *redacted == value);
        prop_assert_eq!(&*redactor.keys(&redacted), &*redacted);
        let searched = redactor.value(&value).into_owned();
        prop_assert_eq!(&*redactor.value(&searched), &searched);
        prop_assert_eq!(value, before);
    }

    #[test]
    fn mcp_prop_9_no_control_character_survives_and_others_do(given in any::<String>()) {
        let clean = sanitize(&given);
        prop_assert!(!clean.chars().any(is_hidden));
        let kept: String = given.chars().filter(|c| !is_hidden(*c)).collect();
        let mut rest = clean.as_ref();
        for c in kept.chars() {
            let at = rest.find(c);
            prop_assert!(at.is_some());
            rest = &rest[at.unwrap_or(0) + c.len_utf8()..];
        }
    }

    #[test]
    fn mcp_prop_9_a_secret_never_survives_in_any_surroundings(
        before in "[ -~]{0,20}[ \n(\"]",
        after in "[ \n,)\"]([ -~]{0,20})",
        secret in prop::sample::select(vec![
            "sk-ant-api03-abcdefghijklmnop1", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "AKIAIOSFODNN7EXAMPLE",
            "ghp_abcdefghijklmnopqrst0123", "4111111111111111",
        ]),
    ) {
        let found = text(&format!("{before}{secret}{after}"));
        prop_assert!(!found.contains(secret), "{}", found);
    }
}
