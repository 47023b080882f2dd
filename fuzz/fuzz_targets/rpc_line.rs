//! Any bytes as a line of JSON-RPC: a message, or refused with the right code; what is too long to keep gets the same id.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orchestr8_mcp::Skeleton;
use orchestr8_mcp::wire::{INVALID_REQUEST, Id, Message, PARSE_ERROR, read};

fuzz_target!(|line: &[u8]| {
    let mut skeleton = Skeleton::default();
    line.chunks(7).for_each(|piece| skeleton.feed(piece));
    match read(line) {
        Ok(Message::Request { id, .. }) => {
            assert_eq!(Id::read(id.as_json()).as_ref(), Some(&id));
            match skeleton.finish().map(read) {
                Some(Ok(Message::Request { id: kept, .. })) => assert_eq!(kept, id),
                other => panic!("{other:?}"),
            }
        }
        Ok(Message::Notification { .. } | Message::Response { .. } | Message::Batch(_)) => {}
        Err(refused) => assert!(matches!(refused.error.code, PARSE_ERROR | INVALID_REQUEST)),
    }
});
