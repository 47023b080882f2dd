//! What holds for every line a client may send.

use proptest::prelude::*;

use super::{INVALID_REQUEST, Id, Members, Message, PARSE_ERROR, Raw, read};
use crate::Skeleton;

/// Lines that are messages often enough to reach deep into the reader.
fn line() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"id\"",
        "\"method\"",
        "\"params\"",
        "\"jsonrpc\"",
        "\"2.0\"",
        "\"result\"",
        "\"error\"",
        "\"tools/call\"",
        "\"\\u0069d\"",
        "1",
        "-1.5e3",
        "null",
        "true",
        " ",
        "\\",
        "\"",
        "é",
    ]);
    let id = prop::sample::select(vec!["1", "\"a\"", "\"\\u0041\"", "null", "1.50", "[]", "\"\\\"\""]);
    let extra = prop::sample::select(vec!["", ",\"params\":{\"id\":2}", ",\"x\":[{\"id\":3}]", ",\"id\":4"]);
    prop_oneof![
        prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat()),
        (id, extra).prop_map(|(id, extra)| {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\"{extra}}}")
        }),
        any::<String>(),
    ]
}

/// Objects with everything in them that could hide the end of a value.
fn object() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "_meta", "\\u0061", "\\ud800", "q\\\"", "b\\\\", "é", "", "}"]);
    let value = prop::sample::select(vec![
        "1",
        "-0.5e+3",
        "null",
        "true",
        "\"\"",
        "\"}\"",
        "\"\\\\\"",
        "\"\\\",\"",
        "{}",
        "[]",
        "[ ]",
        "{\"a\":[{}, \"]\"]}",
        "[1,[2,\"\\\"]\"],{}]",
        "\"é\"",
    ]);
    let space = prop::sample::select(vec!["", " ", "\n\t", "\r "]);
    let member = (space.clone(), name, space.clone(), value, space.clone())
        .prop_map(|(a, name, b, value, c)| format!("{a}\"{name}\"{b}:{c}{value}{a}"));
    (prop::collection::vec(member, 0..8), space)
        .prop_map(|(members, space)| format!("{{{space}{}{space}}}", members.join(",")))
}

fn skeleton_of(text: &[u8], piece: usize) -> Skeleton {
    let mut skeleton = Skeleton::default();
    text.chunks(piece.max(1)).for_each(|piece| skeleton.feed(piece));
    skeleton
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_line_is_a_message_or_refused_with_the_right_code(text in line(), piece in 1_usize..9) {
        match read(text.as_bytes()) {
            Ok(Message::Request { id, method, .. }) => {
                prop_assert_eq!(Id::read(id.as_json()), Some(id.clone()), "an id reads as itself");
                let skeleton = skeleton_of(text.as_bytes(), piece);
                let kept = skeleton.finish().map(read);
                let Some(Ok(Message::Request { id: kept_id, method: kept_method, .. })) = kept else {
                    return Err(TestCaseError::fail(format!("{kept:?}")));
                };
                prop_assert_eq!(kept_id, id, "what is too long to keep gets the same id");
                prop_assert_eq!(kept_method, method);
            }
            Ok(Message::Notification { .. } | Message::Response { .. } | Message::Batch(_)) => {}
            Err(refused) => {
                prop_assert!(matches!(refused.error.code, PARSE_ERROR | INVALID_REQUEST), "{:?}", refused.error);
            }
        }
    }

    #[test]
    fn members_are_found_by_their_ends_as_by_reading_them(text in object(), scrap in any::<String>()) {
        let read = Members::read(&text).map_err(|_| "unreadable");
        let found = Members::within(Raw::new(&text)).map_err(|_| "unreadable");
        prop_assert_eq!(format!("{read:?}"), format!("{found:?}"), "{}", text);
        // What is no JSON never comes here; if it did, it would be refused or make no sense, and nothing worse.
        let _ = Members::within(Raw::new(&format!("{{{scrap}")));
        let _ = Members::within(Raw::new(text.get(..text.len() / 2).unwrap_or_default()));
    }

    #[test]
    fn bytes_that_are_no_text_are_a_parse_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let refused = read(&bytes).err().map(|refused| refused.error.code);
        if std::str::from_utf8(&bytes).is_err() {
            prop_assert_eq!(refused, Some(PARSE_ERROR));
        }
        skeleton_of(&bytes, 7).finish();
    }
}
