//! Expressions of triggers: inputs and keys over what came in, `${hook.body.order.id}`, `${hook.headers.x_github_event}`.

use std::borrow::Cow;

use orchestr8_contract::{Code, Fault};
use serde_json::{Map, Value, json};

use super::spec::wrong;
use crate::definition::{Place, Problem, Problems};
use crate::expression::{Condition, Found, Fuel, Reference, Root, Scope, Template};
use crate::limits;

/// What expressions of a trigger are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerSource {
    Hook,
    Event,
}

impl TriggerSource {
    fn name(self) -> &'static str {
        match self {
            TriggerSource::Hook => "hook",
            TriggerSource::Event => "event",
        }
    }

    /// What the inputs are when a trigger does not say.
    fn default_inputs(self) -> Value {
        match self {
            TriggerSource::Hook => json!("${hook.body}"),
            TriggerSource::Event => json!({}),
        }
    }
}

/// What came in, as expressions see it.
pub struct TriggerScope<'i> {
    pub source: TriggerSource,
    pub value: &'i Value,
}

impl Scope for TriggerScope<'_> {
    fn output(&self, _: &str) -> Found<'_> {
        Found::Unknown
    }

    fn error(&self, _: &str) -> Option<Value> {
        None
    }

    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn env(&self, _: &str) -> Option<Cow<'_, str>> {
        None
    }

    fn secret(&self, _: &str) -> Option<Cow<'_, str>> {
        None
    }

    fn local(&self, name: &str, _: &mut Fuel) -> Option<Cow<'_, Value>> {
        (name == self.source.name()).then_some(Cow::Borrowed(self.value))
    }
}

/// The template of the inputs, checked.
pub fn inputs(given: Option<&Value>, source: TriggerSource) -> Result<Template, Fault> {
    let value = given.cloned().unwrap_or_else(|| source.default_inputs());
    if !value.is_object() && !value.is_string() {
        return Err(wrong("/inputs", "must be an object, or one expression that gives an object"));
    }
    template("/inputs", &value, source)
}

/// The template of a key, checked.
pub fn key(text: &str) -> Result<Template, Fault> {
    template("/webhook/deduplication/key", &Value::from(text), TriggerSource::Hook)
}

/// The filter of events, checked.
pub fn condition(text: &str) -> Result<Condition, Fault> {
    let mut problems = Vec::new();
    let condition = Condition::parse(text, &Place::named("/event/filter"), &mut problems);
    check(&mut problems, condition.located(), TriggerSource::Event);
    match problems.is_empty() {
        true => Ok(condition),
        false => Err(invalid(problems)),
    }
}

fn template(path: &str, value: &Value, source: TriggerSource) -> Result<Template, Fault> {
    let mut problems = Vec::new();
    let template = Template::parse(value, &Place::named(path), &mut problems);
    check(&mut problems, template.located(), source);
    match problems.is_empty() {
        true => Ok(template),
        false => Err(invalid(problems)),
    }
}

/// Adds a problem for every reference to something that a trigger does not see.
fn check<'r>(
    problems: &mut Vec<Problem>,
    references: impl Iterator<Item = (&'r str, &'r Reference)>,
    source: TriggerSource,
) {
    let name = source.name();
    for (at, reference) in references {
        if !matches!(&reference.root, Root::Local(local) if **local == *name) {
            let message = format!("{reference} has no meaning here");
            let hint = format!("Begin with {name}, which holds what came in.");
            problems.push(Problem::new(at, Code::ExprInvalidSyntax, message, hint));
        }
    }
}

fn invalid(problems: Vec<Problem>) -> Fault {
    let first = problems.first().map_or_else(String::new, |one| format!("{}: {}", one.path, one.message));
    let code = problems.first().map_or(Code::ExprInvalidSyntax, |one| one.code);
    Fault::new(code, first).with("problems", Problems(problems).to_value())
}

/// The inputs that a delivery gives.
pub fn resolve(template: &Template, incoming: &TriggerScope<'_>) -> Result<Map<String, Value>, Fault> {
    match template.resolve(incoming, &mut Fuel::evaluation())? {
        Value::Object(inputs) => Ok(inputs),
        other => {
            let kind = orchestr8_contract::json::kind(&other);
            Err(wrong("/inputs", format!("the inputs of the trigger must give an object, and give {kind}")))
        }
    }
}

/// The key that a delivery has by the trigger's own expression.
pub fn resolve_key(text: &str, incoming: &TriggerScope<'_>) -> Result<String, Fault> {
    let key = match key(text)?.resolve(incoming, &mut Fuel::inline())? {
        Value::String(text) => text,
        other => other.to_string(),
    };
    match key.len() <= limits::DEDUPLICATION_KEY_BYTES {
        true => Ok(key),
        false => Err(Fault::new(
            Code::PayloadTooLarge,
            format!("the key of the delivery is longer than {} bytes", limits::DEDUPLICATION_KEY_BYTES),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_see_the_request_and_nothing_else() {
        let value =
            json!({"body": {"id": 7, "items": [1]}, "headers": {"x_kind": "new"}, "query": {"q": "1"}});
        let incoming = TriggerScope { source: TriggerSource::Hook, value: &value };
        let given = json!({"id": "${hook.body.id}", "kind": "${hook.headers.x_kind}", "q": "${hook.query.q}",
                           "none": "${hook.query.z ?? 0}"});
        let inputs_of = |given: &Value| resolve(&inputs(Some(given), TriggerSource::Hook)?, &incoming);
        let expected = json!({"id": 7, "kind": "new", "q": "1", "none": 0});
        assert_eq!(Value::Object(inputs_of(&given).unwrap()), expected);
        let all = resolve(&inputs(None, TriggerSource::Hook).unwrap(), &incoming).unwrap();
        assert_eq!(Value::Object(all), value["body"]);
        for wrong in [
            json!({"a": "${variables.x}"}),
            json!({"a": "${secrets.X}"}),
            json!({"a": "${env.HOME}"}),
            json!({"a": "${item}"}),
            json!({"a": "${hook.body."}),
            json!(3),
        ] {
            assert!(inputs_of(&wrong).is_err(), "{wrong}");
        }
        assert_eq!(inputs_of(&json!("${hook.body.id}")).unwrap_err().code, Code::InvalidArgument);
        assert_eq!(resolve_key("${hook.body.id}-${hook.headers.x_kind}", &incoming).unwrap(), "7-new");
        let long = json!({"body": "x".repeat(600)});
        let incoming = TriggerScope { source: TriggerSource::Hook, value: &long };
        assert_eq!(resolve_key("${hook.body}", &incoming).unwrap_err().code, Code::PayloadTooLarge);
    }
}
