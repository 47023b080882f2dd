//! Any patch under any mask on any document: refused, or made, and made twice it changes nothing more (KNO-8.2).
#![no_main]

use libfuzzer_sys::fuzz_target;
use orchestr8_contract::json;
use orchestr8_knowledge::apply_patch;
use serde_json::Value;

fuzz_target!(|input: (&str, &str, Vec<String>)| {
    let (target, patch, mask) = input;
    let read = |text: &str| json::read(text.as_bytes(), |_, _| Ok(())).ok();
    let (Some(mut once), Some(patch)) = (read(target), read(patch)) else { return };
    if apply_patch(&mut once, &patch, &mask).is_err() {
        return;
    }
    let mut twice: Value = once.clone();
    assert!(apply_patch(&mut twice, &patch, &mask).is_ok());
    assert_eq!(once, twice);
});
