//! What holds for every line a client may send.

use proptest::prelude::*;

use super::{INVALID_REQUEST, Id, Message, PARSE_ERROR, read};
use crate::Salvage;

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

fn salvaged(text: &[u8], piece: usize) -> Salvage {
    let mut salvage = Salvage::default();
    text.chunks(piece.max(1)).for_each(|piece| salvage.feed(piece));
    salvage
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_line_is_a_message_or_refused_with_the_right_code(text in line(), piece in 1_usize..9) {
        match read(text.as_bytes()) {
            Ok(Message::Request { id, method, .. }) => {
                prop_assert_eq!(Id::read(id.as_json()), Some(id.clone()), "an id reads as itself");
                let salvage = salvaged(text.as_bytes(), piece);
                prop_assert_eq!(salvage.id(), Some(id), "what is too long to keep gets the same id");
                prop_assert!(!salvage.is_call() || method == "tools/call");
            }
            Ok(Message::Notification { .. } | Message::Response { .. } | Message::Batch(_)) => {}
            Err(refused) => {
                prop_assert!(matches!(refused.error.code, PARSE_ERROR | INVALID_REQUEST), "{:?}", refused.error);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_a_parse_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let refused = read(&bytes).err().map(|refused| refused.error.code);
        if std::str::from_utf8(&bytes).is_err() {
            prop_assert_eq!(refused, Some(PARSE_ERROR));
        }
        salvaged(&bytes, 7);
    }
}
