//! Any text as a definition: accepted, or refused with at least one problem that has a path and a hint (ADR-002).
#![no_main]

use libfuzzer_sys::fuzz_target;
use orchestr8_workflows::definition;

fuzz_target!(|text: &str| match definition::read(text) {
    Ok(workflow) => {
        // What was accepted as a text is accepted as a value, and is the same definition.
        let again = definition::read_value(&workflow.source).map(|again| again.hash.clone());
        assert_eq!(again.ok().as_deref(), Some(&*workflow.hash));
    }
    Err(problems) => {
        assert!(!problems.0.is_empty());
        for problem in problems.0 {
            assert!(problem.path.starts_with('$') && !problem.message.is_empty() && !problem.hint.is_empty());
        }
    }
});
