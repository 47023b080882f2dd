//! Any text as a template and as a condition: parsed, printed, parsed again, and resolved (WF-19.5).
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use orchestr8_workflows::definition::Place;
use orchestr8_workflows::expression::{Condition, Found, Reference, Scope, Template};
use orchestr8_workflows::limits::EXPANSION_BYTES;
use serde_json::{Value, json};

/// Every name leads to the same value.
struct World(Value);

impl Scope for World {
    fn output(&self, step: &str) -> Found<'_> {
        if step.len() % 2 == 1 { Found::Output(&self.0) } else { Found::NotCompleted }
    }

    fn variable(&self, _name: &str) -> Option<&Value> {
        Some(&self.0)
    }

    fn env(&self, name: &str) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(name.to_owned()))
    }

    fn secret(&self, _name: &str) -> Option<Cow<'_, str>> {
        None
    }

    fn local(&self, _name: &str) -> Option<Cow<'_, Value>> {
        Some(Cow::Borrowed(&self.0))
    }
}

fuzz_target!(|text: &str| {
    let world = World(json!({"a": {"b": [1, "two", null]}, "0": text}));
    let mut problems = Vec::new();
    let template = Template::parse(&json!({"text": text}), &Place::ROOT, &mut problems);
    let resolved = template.resolve(&world);
    if let Ok(Some(Value::String(found))) = resolved.map(|value| value.get("text").cloned())
        && !template.is_literal()
    {
        assert!(found.len() <= EXPANSION_BYTES);
    }
    for reference in template.references() {
        let printed = reference.to_string();
        let again = Template::parse(&Value::from(printed.as_str()), &Place::ROOT, &mut Vec::new());
        assert_eq!(again.references().collect::<Vec<&Reference>>(), [reference], "{printed}");
    }
    let condition = Condition::parse(text, &Place::ROOT, &mut problems);
    let first = condition.test(&world).map_err(|fault| fault.to_string());
    assert_eq!(first, condition.test(&world).map_err(|fault| fault.to_string()));
});
