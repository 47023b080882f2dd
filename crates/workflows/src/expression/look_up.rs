//! Finds the value of one reference.

use std::borrow::Cow;

use orchestr8_contract::{Code, Fault};
use serde_json::Value;

use super::reference::{Part, Reference, Root};
use super::{Found, Fuel, Scope};
use crate::limits;

/// The value, or the default when there is none. A null counts as none for the default, as with `??` in JavaScript;
/// without a default a null that is there is a value like any other.
pub(super) fn look_up<'a>(
    reference: &'a Reference,
    scope: &'a dyn Scope,
    fuel: &mut Fuel,
) -> Result<Cow<'a, Value>, Fault> {
    fuel.spend(1 + reference.path.len()).map_err(|_| fuel.fault())?;
    let base = match &reference.root {
        Root::Step(id) => match scope.output(id) {
            Found::Output(value) => Some(Cow::Borrowed(value)),
            Found::NotCompleted if reference.has_default() => None,
            Found::NotCompleted => {
                return Err(fault(
                    Code::ExprStepNotCompleted,
                    reference,
                    format!("the step {id} has no output, and {reference} has no default"),
                ));
            }
            Found::Unknown => {
                return Err(fault(
                    Code::ExprStepNotFound,
                    reference,
                    format!("{reference} refers to the step {id}, which does not exist"),
                ));
            }
        },
        Root::StepError(id) => scope.error(id).map(Cow::Owned),
        Root::Variable(name) => scope.variable(name).map(Cow::Borrowed),
        Root::Env(name) => scope.env(name).map(text),
        Root::Secret(name) => scope.secret(name).map(text),
        Root::Local(name) => scope.local(name, fuel),
    };
    if let Some(Cow::Owned(made)) = &base {
        fuel.spend_value(made).map_err(|_| fuel.fault())?;
    } else {
        // What a scope evaluates for a name may have used up the rest.
        fuel.spend(1).map_err(|_| fuel.fault())?;
    }
    let found = base.and_then(|base| walk(base, &reference.path));
    match (found, &reference.default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_null() => Ok(value),
        (Some(_) | None, Some(default)) => Ok(Cow::Borrowed(&default.value)),
        (None, None) if matches!(reference.root, Root::Secret(_)) => Err(fault(
            Code::SecretNotAllowed,
            reference,
            format!(
                "{reference} names a secret that this tenant does not have; `orchestr8 secrets set` creates and binds one"
            ),
        )),
        (None, None) => Err(fault(
            Code::ExprPathNotFound,
            reference,
            format!("{reference} finds nothing there and has no default"),
        )),
    }
}

/// The fault of a text that grows beyond its limit.
pub(super) fn too_large() -> Fault {
    Fault::new(
        Code::PayloadTooLarge,
        format!(
            "a text grows beyond {} bytes through its expressions; pass the object that holds the long part as a whole",
            limits::EXPANSION_BYTES
        ),
    )
    .with("limit", limits::EXPANSION_BYTES)
}

fn text(text: Cow<'_, str>) -> Cow<'static, Value> {
    Cow::Owned(Value::String(text.into_owned()))
}

fn fault(code: Code, reference: &Reference, message: String) -> Fault {
    Fault::new(code, message).with("expression", reference.to_string())
}

fn walk<'a>(base: Cow<'a, Value>, path: &[Part]) -> Option<Cow<'a, Value>> {
    match base {
        Cow::Borrowed(value) => walk_in(value, path),
        Cow::Owned(value) if path.is_empty() => Some(Cow::Owned(value)),
        Cow::Owned(value) => walk_in(&value, path).map(|found| Cow::Owned(found.into_owned())),
    }
}

/// As the seed's resolver goes: a number finds an item of a list or a field of that name, and a list knows its `length`.
fn walk_in<'a>(value: &'a Value, path: &[Part]) -> Option<Cow<'a, Value>> {
    let mut current = value;
    for (depth, part) in path.iter().enumerate() {
        let next = match (current, part) {
            (Value::Array(items), Part::Index(index)) => items.get(*index),
            (Value::Array(items), Part::Field(name)) if &**name == "length" => {
                return (depth + 1 == path.len()).then(|| Cow::Owned(items.len().into()));
            }
            (Value::Array(items), Part::Field(name)) => item(items, name),
            (Value::Object(fields), Part::Field(name)) => fields.get(&**name),
            (Value::Object(fields), Part::Index(index)) => fields.get(&index.to_string()),
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => None,
        };
        current = next?;
    }
    Some(Cow::Borrowed(current))
}

fn item<'a>(items: &'a [Value], digits: &str) -> Option<&'a Value> {
    let plain = digits == "0" || !digits.starts_with('0');
    digits.parse::<usize>().ok().filter(|_| plain).and_then(|index| items.get(index))
}
