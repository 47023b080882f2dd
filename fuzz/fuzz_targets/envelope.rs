//! Any bytes as an envelope: one, or refused with what is wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orchestr8_contract::Code;
use orchestr8_knowledge_face::check_envelope;

fuzz_target!(|text: &[u8]| {
    if let Err(fault) = check_envelope(text) {
        assert_eq!(fault.code, Code::InvalidArgument);
        assert!(fault.details.is_some_and(|details| details.contains_key("errors")));
    }
});
