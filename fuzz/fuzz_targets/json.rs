//! Any bytes as JSON: the strict reader reads what serde_json reads, and a canonical text is its own canonical text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orchestr8_contract::{canonical, json};
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let strict = json::read(text, |_, _| Ok(()));
    let lenient = serde_json::from_slice::<Value>(text);
    if !matches!(strict, Err(json::Error::TooDeep(_))) {
        assert_eq!(strict.as_ref().ok(), lenient.as_ref().ok());
    }
    let Ok(value) = strict else { return };
    assert_eq!(json::bytes(&value), value.to_string().len());
    let canonical = canonical::text(&value);
    let again: Value = serde_json::from_str(&canonical).expect("a canonical text is JSON");
    assert_eq!(canonical::text(&again), canonical);
});
