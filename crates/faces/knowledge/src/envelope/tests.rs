//! What an envelope must say, and what it may leave out.

use serde_json::{Value, json};

use super::*;

fn good() -> Value {
    json!({
        "envelope_version": "2.2", "request_id": "7b0d3b9e-52b4-4a6f-9d55-0d1f0a1b2c3d",
        "correlation_id": "c-1", "trace_id": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "tenant_id": "acme", "principal": {"sub": "svc:agent-cskh", "roles": ["agent", "editor"]},
        "timestamp": "2026-01-01T00:00:00Z", "ttl_sec": 300, "idempotency_key": "acme:subject-123:create_document:v1",
        "seq": 1, "action": "knowledge.create_document", "action_version": "1.0.0", "context_id": "thread",
        "resource_links": [], "payload": {"schema_version": "1.0", "args": {"document_id": "d"}}, "something": "else",
    })
}

fn read(value: &Value) -> Result<Envelope, Failure> {
    Envelope::read(value.to_string().as_bytes(), None)
}

#[test]
fn kno_4_what_is_wrong_is_told_under_the_trace_of_the_envelope() {
    let correlation = CorrelationId::parse("c-9").unwrap();
    let told = |change: &dyn Fn(&mut Value)| {
        let mut wrong = good();
        wrong["envelope_version"] = json!("1.0");
        change(&mut wrong);
        read(&wrong).unwrap_err().body(&correlation)["error"]["details"]["trace_id"].clone()
    };
    assert_eq!(told(&|_| {}), good()["trace_id"]);
    for unfit in [json!(7), json!("a\nb"), json!("x".repeat(300)), Value::Null] {
        assert_eq!(told(&|wrong| wrong["trace_id"] = unfit.clone()), "c-9", "{unfit}");
    }
}

#[test]
fn kno_2_the_whole_envelope_is_read_and_strangers_are_ignored() {
    let envelope = read(&good()).unwrap();
    assert_eq!(envelope.sub, "svc:agent-cskh");
    assert_eq!(envelope.roles, ["agent", "editor"]);
    assert_eq!((envelope.ttl_ms, envelope.seq), (Some(300_000), Some(1)));
    assert_eq!(envelope.subject(), "thread");
    assert!(envelope.trace.is_some());
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let wrong = read(&json!({})).unwrap_err();
    for name in [
        "/envelope_version",
        "/request_id",
        "/tenant_id",
        "/principal",
        "/timestamp",
        "/action",
        "/action_version",
        "/payload",
    ] {
        assert!(wrong.message().contains(&format!("{name}: it is required")), "{}", wrong.message());
    }
}

#[test]
fn each_wrong_value_is_named_with_its_path() {
    for (name, value, path) in [
        ("envelope_version", json!("2.1"), "/envelope_version"),
        ("envelope_version", json!(2.2), "/envelope_version"),
        ("request_id", json!("one"), "/request_id"),
        ("tenant_id", json!("a b"), "/tenant_id"),
        ("principal", json!("svc"), "/principal"),
        ("principal", json!({}), "/principal/sub"),
        ("principal", json!({"sub": "x", "roles": "owner"}), "/principal/roles"),
        ("timestamp", json!("yesterday"), "/timestamp"),
        ("ttl_sec", json!(0), "/ttl_sec"),
        ("ttl_sec", json!("300"), "/ttl_sec"),
        ("seq", json!(-1), "/seq"),
        ("seq", json!(1.5), "/seq"),
        ("idempotency_key", json!(""), "/idempotency_key"),
        ("resource_links", json!({}), "/resource_links"),
        ("payload", json!([]), "/payload"),
        ("payload", json!({}), "/payload/args"),
        ("payload", json!({"args": []}), "/payload/args"),
        ("payload", json!({"schema_version": "9.9", "args": {}}), "/payload/schema_version"),
    ] {
        let mut envelope = good();
        envelope[name] = value;
        let wrong = read(&envelope).unwrap_err();
        assert!(wrong.message().starts_with(&format!("{path}: ")), "{path}: {}", wrong.message());
        assert_eq!(wrong.word(), "INVALID_ARGUMENT");
    }
}

#[test]
fn what_may_be_left_out_may_be_left_out() {
    let mut envelope = good();
    for name in
        ["correlation_id", "trace_id", "ttl_sec", "idempotency_key", "seq", "context_id", "resource_links"]
    {
        envelope[name] = Value::Null;
    }
    let read = read(&envelope).unwrap();
    assert_eq!(read.subject(), "d", "without a context the document is the subject");
    assert!(read.check_time(i64::MAX).is_ok(), "without ttl_sec it does not expire");
}

#[test]
fn the_address_and_the_envelope_must_agree() {
    let text = good().to_string();
    assert!(Envelope::read(text.as_bytes(), Some("knowledge.create_document")).is_ok());
    assert!(Envelope::read(text.as_bytes(), Some("knowledge.delete_document")).is_err());
    let mut without = good();
    without["action"] = Value::Null;
    let read = Envelope::read(without.to_string().as_bytes(), Some("knowledge.x")).unwrap();
    assert_eq!(read.action, "knowledge.x");
}

#[test]
fn duplicate_keys_are_refused() {
    let text = good().to_string().replacen("\"seq\":1", "\"seq\":1,\"seq\":2", 1);
    assert!(Envelope::read(text.as_bytes(), None).unwrap_err().message().contains("given twice"));
}

#[test]
fn kno_9_time_is_kept_with_a_minute_of_grace() {
    let envelope = read(&good()).unwrap();
    let sent = envelope.timestamp_ms;
    let word = |now_ms| envelope.check_time(now_ms).map_err(|failure| failure.word());
    assert_eq!(word(sent), Ok(()));
    assert_eq!(word(sent + 360_000), Ok(()));
    assert_eq!(word(sent + 360_001), Err("EXPIRED"));
    assert_eq!(word(sent - 60_000), Ok(()));
    assert_eq!(word(sent - 60_001), Err("INVALID_ARGUMENT"));
}
