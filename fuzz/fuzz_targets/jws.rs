//! Any text as a signature: nobody who does not have the key is believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orchestr8_knowledge_face::security::jws::verify;
use orchestr8_knowledge_face::security::keys::{Owner, make};

const NOW_MS: i64 = 1_767_225_600_000;

fuzz_target!(|text: &str| {
    let owner = Owner { tenant: "acme".into(), principal: "svc:a".into(), roles: Vec::new() };
    let (_, record) = make("k", owner, [7; 32], NOW_MS);
    assert!(verify(text, None, &record, NOW_MS).is_err());
    assert!(verify(text, Some(b"{}"), &record, NOW_MS).is_err());
});
