//! What a request asks for: its params, its `_meta`, what the client can do, and the arguments of an action.

use std::borrow::Cow;

use orchestr8_contract::id::{CorrelationId, Key};
use orchestr8_kernel::Args;
use orchestr8_kernel::peer::{About, Severity};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::era::{TASKS, VERSION_KEY};
use crate::wire::{Error, Members, Raw, Shape, text_of};

/// The params of a request and the `_meta` among them.
#[derive(Default)]
pub struct Params<'a> {
    members: Members<'a>,
    meta: Members<'a>,
}

impl<'a> Params<'a> {
    /// Absent params are empty ones. They and their `_meta` must be objects (MCP-ORDER-2) that say nothing twice.
    pub fn read(raw: Option<Raw<'a>>) -> Result<Self, Error> {
        let Some(raw) = raw else { return Ok(Self::default()) };
        let members = object(raw, "params")?;
        let meta = match members.get("_meta") {
            Some(raw) => object(raw, "_meta")?,
            None => Members::default(),
        };
        Ok(Self { members, meta })
    }

    pub fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.members.get(name)
    }

    pub fn meta(&self, name: &str) -> Option<Raw<'a>> {
        self.meta.get(name)
    }

    /// Whether the message itself says that it is of the modern era.
    pub fn is_modern(&self) -> bool {
        self.meta(VERSION_KEY).is_some()
    }

    pub fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(raw) => {
                text_of(raw).map(Some).ok_or_else(|| Error::params(format!("{name} must be a string")))
            }
        }
    }

    pub fn required_text(&self, name: &str) -> Result<Cow<'a, str>, Error> {
        self.text(name)?.ok_or_else(|| Error::params(format!("{name} is missing")))
    }

    /// A member that must be an object, as a value.
    pub fn map(&self, name: &str) -> Result<Option<Map<String, Value>>, Error> {
        self.get(name).map(|raw| map(raw, name)).transpose()
    }

    /// MCP-CORR-1: the client's own id for the request. One that is not fit to be logged counts as none.
    pub fn correlation(&self) -> Option<CorrelationId> {
        CorrelationId::parse(&text_of(self.meta("correlationId")?)?).ok()
    }

    /// What makes a repeat of the call recognisable. A key that cannot be kept is refused: ignoring it could do twice
    /// what should be done once.
    pub fn idempotency_key(&self) -> Result<Option<Key>, Error> {
        let given =
            ["idempotencyKey", "orchestr8/idempotencyKey"].into_iter().find_map(|name| self.meta(name));
        let Some(raw) = given else { return Ok(None) };
        let text = text_of(raw).ok_or_else(|| Error::params("_meta.idempotencyKey must be a string"))?;
        Key::parse(&text).map(Some).map_err(Error::params)
    }

    /// The JSON text of the token under which the client wants to hear of progress.
    pub fn progress_token(&self) -> Option<&'a str> {
        let raw = self.meta("progressToken")?.get();
        matches!(raw.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9')).then_some(raw)
    }
}

fn object<'a>(raw: Raw<'a>, what: &str) -> Result<Members<'a>, Error> {
    let members = Members::within(raw).map_err(|shape| match shape {
        Shape::NotAnObject => Error::params(format!("{what} must be an object")),
        Shape::Crowded | Shape::Unreadable(_) => Error::params(format!("{what}: {shape}")),
    })?;
    match members.repeated() {
        Some(name) => Err(Error::params(format!("{what} has {name} twice"))),
        None => Ok(members),
    }
}

/// An object as a value; a text that is JSON and still cannot be read (`1e999`, half a surrogate) is the client's mistake.
pub fn map(raw: Raw<'_>, what: &str) -> Result<Map<String, Value>, Error> {
    if raw.get().as_bytes().first() != Some(&b'{') {
        return Err(Error::params(format!("{what} must be an object")));
    }
    serde_json::from_str(raw.get()).map_err(|error| Error::params(format!("{what} cannot be read: {error}")))
}

/// The arguments of an action. Absent ones are `{}`; anything but an object is refused (MCP-ORDER-2, MCP-PROP-6).
pub fn arguments(raw: Option<Raw<'_>>) -> Result<Args, Error> {
    match raw {
        None => Ok(Args::new(Map::new())),
        Some(raw) => Ok(Args::read(map(raw, "arguments")?, raw.get().len())),
    }
}

/// A word for how serious a message is.
pub fn severity(text: &str) -> Result<Severity, Error> {
    Severity::deserialize(Value::from(text)).map_err(|_| {
        Error::params(format!(
            "'{text}' is no log level: debug, info, notice, warning, error, critical, alert, emergency"
        ))
    })
}

/// What a client says it can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub sampling: bool,
    pub elicit_form: bool,
    pub elicit_url: bool,
    pub roots: bool,
    /// The tasks extension of the modern era.
    pub tasks: bool,
}

impl Capabilities {
    pub fn of(declared: &Value) -> Self {
        let has = |of: &Value, name: &str| of.get(name).is_some_and(Value::is_object);
        let elicitation = declared.get("elicitation").unwrap_or(&Value::Null);
        let url = has(elicitation, "url");
        Self {
            sampling: has(declared, "sampling"),
            // An empty object is how forms are declared since before there was anything else.
            elicit_form: elicitation.is_object() && (has(elicitation, "form") || !url),
            elicit_url: url,
            roots: has(declared, "roots"),
            tasks: declared.get("extensions").and_then(|extensions| extensions.get(TASKS)).is_some(),
        }
    }

    /// Whether the client can be asked such a thing; `params` tells a form from a page to open.
    pub fn can(&self, about: About, params: &Value) -> bool {
        match about {
            About::Sample => self.sampling,
            About::Elicit if params.get("mode").and_then(Value::as_str) == Some("url") => self.elicit_url,
            About::Elicit => self.elicit_form,
            About::Roots => self.roots,
        }
    }

    /// What the client would have to declare to be asked such a thing.
    pub fn required(about: About) -> Value {
        match about {
            About::Sample => json!({"sampling": {}}),
            About::Elicit => json!({"elicitation": {}}),
            About::Roots => json!({"roots": {}}),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn params(text: &str) -> Result<Params<'_>, Error> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        Params::read(Some(raw.into()))
    }

    #[test]
    fn params_and_meta_are_objects_that_say_nothing_twice() {
        for text in ["[]", "1", r#"{"_meta":[]}"#, r#"{"a":1,"a":2}"#, r#"{"_meta":{"x":1,"\u0078":2}}"#] {
            assert_eq!(params(text).err().map(|error| error.code), Some(-32602), "{text}");
        }
        assert!(params(r#"{"_meta":{"unknown":1}}"#).is_ok());
    }

    #[test]
    fn the_ids_of_a_request_are_bounded() {
        let given = params(r#"{"_meta":{"correlationId":"abc","idempotencyKey":"k"}}"#).unwrap();
        assert_eq!(given.correlation().unwrap().as_str(), "abc");
        assert_eq!(given.idempotency_key().unwrap().unwrap().as_str(), "k");
        let unfit =
            format!(r#"{{"_meta":{{"correlationId":"{0}","idempotencyKey":"{0}"}}}}"#, "x".repeat(300));
        let unfit = params(&unfit).unwrap();
        assert!(unfit.correlation().is_none(), "an unfit correlation id counts as none");
        assert!(unfit.idempotency_key().is_err(), "an unfit key must not be ignored");
    }

    #[test]
    fn arguments_that_are_json_but_cannot_be_read_are_refused() {
        for text in [r#"{"a":1e999}"#, r#"{"a":"\ud800"}"#, "null", "[]", "3"] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(arguments(Some(raw.into())).err().map(|error| error.code), Some(-32602), "{text}");
        }
        assert_eq!(arguments(None).unwrap().as_value(), &json!({}));
    }

    #[test]
    fn an_empty_elicitation_capability_means_forms() {
        let of = |value: Value| Capabilities::of(&value);
        assert!(of(json!({"elicitation": {}})).elicit_form);
        let url_only = of(json!({"elicitation": {"url": {}}}));
        assert!(url_only.elicit_url && !url_only.elicit_form);
        assert!(of(json!({"extensions": {TASKS: {}}})).tasks);
        assert_eq!(of(json!({"sampling": null})), Capabilities::default());
    }
}
