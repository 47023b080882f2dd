//! What is made of the words of a server.

use super::*;

#[test]
fn answers_events_and_ends_are_told_apart_and_the_rest_is_left_out() {
    let answered =
        read(json!({"type": "response", "id": "a", "command": "prompt", "success": true, "data": {"x": 1}}));
    assert_eq!(
        answered,
        Some(Told::Answer { id: Some("a".into()), command: "prompt".into(), result: Ok(json!({"x": 1})) })
    );
    let event = read(json!({"type": "event", "sessionId": "s", "seq": 3, "event": {"type": "turn_start"}}));
    assert_eq!(
        event,
        Some(Told::Event { session: "s".into(), seq: 3, event: json!({"type": "turn_start"}) })
    );
    let deleted = read(json!({"type": "session_deleted", "data": {"sessionId": "s"}}));
    assert_eq!(deleted, Some(Told::Deleted { session: "s".into() }));
    for other in [
        json!({"type": "server_shutdown"}),
        json!({}),
        json!([]),
        json!({"type": "response", "success": true}),
    ] {
        assert_eq!(read(other), None);
    }
}

#[test]
fn a_refusal_keeps_its_code() {
    let refused = |code: &str| {
        let message = json!({"type": "response", "id": "a", "command": "get_state", "success": false, "error": "no", "errorCode": code});
        match read(message) {
            Some(Told::Answer { result: Err(failure), .. }) => failure.exit_code(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        [refused("NOT_FOUND"), refused("CONFLICT"), refused("TIMEOUT"), refused("WHAT")],
        [3, 5, 6, 1]
    );
}

#[test]
fn lifecycles_of_others_never_fill_the_line() {
    assert!(line::read(r#"{"type":"command_finished","data":{}}"#).is_none());
    assert!(line::read(r#"{"type":"event"}"#).is_some_and(|read| read.is_ok()));
    assert!(line::read("<html>").is_some_and(|read| read.is_err()));
}
