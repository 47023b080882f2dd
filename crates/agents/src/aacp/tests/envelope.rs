//! Both shapes of an envelope, and everything that is none.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::aacp::envelope::{Envelope, Kind, MEMBERS, Target};

fn read(value: Value) -> Result<Envelope, String> {
    let Value::Object(map) = value else { panic!("an envelope is an object") };
    Envelope::read(map).map_err(|fault| fault.message.into_owned())
}

#[test]
fn aacp_1_both_shapes_say_the_same() {
    let seed = read(json!({
        "messageId": "m", "requestId": "m", "sourceAgentId": "ann", "targetAgentId": "bob", "messageType": "REQUEST", "ttlMs": 5,
        "correlationId": "c", "payload": {"n": 1}
    }));
    let later = read(json!({
        "id": "m", "type": "request", "source": {"id": "ann"}, "destination": {"type": "agent", "agentId": "bob"}, "ttl": 5,
        "correlationId": "c", "payload": {"n": 1}
    }));
    assert_eq!(seed.unwrap(), later.unwrap());
}

#[test]
fn a_message_may_go_to_a_topic_or_to_everyone() {
    let to = |destination: Value| {
        read(json!({"source": "ann", "destination": destination, "payload": 1}))
            .map(|read| (read.target, read.kind))
    };
    assert_eq!(to(json!({"type": "topic", "topic": "t"})).unwrap(), (Target::Topic("t".into()), Kind::Event));
    assert_eq!(to(json!({"type": "broadcast"})).unwrap(), (Target::Everyone, Kind::Event));
    assert!(to(json!({"type": "queue"})).unwrap_err().starts_with("/destination/type"));
    assert!(to(json!({"type": "topic"})).unwrap_err().starts_with("/destination/topic"));
}

#[test]
fn aacp_4_what_is_wrong_is_named_with_its_place() {
    let base =
        || json!({"sourceAgentId": "ann", "targetAgentId": "bob", "messageType": "EVENT", "payload": 1});
    let with = |name: &str, value: Value| {
        let mut envelope = base();
        envelope[name] = value;
        read(envelope).err().unwrap_or_default()
    };
    assert_eq!(with("priority", json!("high")), "");
    for (name, value, place) in [
        ("messageType", json!("RESPONSE"), "/requestId"),
        ("messageType", json!("request"), "/messageType"),
        ("requestId", json!("r"), "/requestId"),
        ("messageId", json!("a b"), "/messageId"),
        ("messageId", json!(7), "/messageId"),
        ("seq", json!(0), "/seq"),
        ("seq", json!(1.5), "/seq"),
        ("ack", json!(-1), "/ack"),
        ("ttlMs", json!(0), "/ttlMs"),
        ("topic", json!("t"), "/topic"),
        ("error", json!({"message": "x"}), "/error"),
        ("outcome", json!("MAYBE"), "/outcome"),
        ("timestamp", json!("a\nb"), "/timestamp"),
        ("sourceAgentId", json!(""), "/sourceAgentId"),
        ("extra", json!(1), "/extra"),
    ] {
        assert!(
            with(name, value.clone()).starts_with(place),
            "{name} {value}: {}",
            with(name, value.clone())
        );
    }
}

#[test]
fn the_error_of_another_agent_is_its_own_failure() {
    let response = read(json!({
        "sourceAgentId": "bob", "targetAgentId": "ann", "messageType": "RESPONSE", "requestId": "r", "outcome": "FAILED",
        "error": {"code": "E_THEIRS", "message": "no", "details": {"row": 7}}
    }));
    let error = response.unwrap().error.unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("AGENT_FAILED", "no"));
    assert_eq!(error.details.unwrap()["row"], 7);
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z*:\\x00 -]{0,12}".prop_map(Value::from),
        Just(json!({"id": "x", "type": "topic", "agentId": 7})),
        Just(json!(["x"])),
        Just(json!("REQUEST")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No message is too odd to be answered.
    #[test]
    fn whatever_comes_is_read_or_refused(members in prop::collection::hash_map(0..MEMBERS.len() + 1, anything(), 0..12)) {
        let named = |at: usize| MEMBERS.get(at).copied().unwrap_or("strange").to_owned();
        let map = members.into_iter().map(|(at, value)| (named(at), value)).collect();
        if let Err(fault) = Envelope::read(map) {
            prop_assert!(fault.message.starts_with('/'), "{}", fault.message);
        }
    }
}
