//! What a step does besides calling an agent: another workflow, a wait, an approval, a switch.

use orchestr8_kernel::schema::Schema;
use serde_json::Value;

use super::Place;
use super::fields::{Elsewhere, Fields, Known, Sink, note};
use super::graph::Link;
use super::limits;
use super::model::{Approval, Child, OnTimeout, Wait, Which};
use super::moment;
use super::policies::is_name;
use super::{hash, workflow};
use crate::expression::{Template, is_equal};

pub(super) const STORED: &[&str] = &["id", "version"];
pub(super) const WAIT: &[&str] = &["durationMs", "duration", "until", "event", "key", "timeoutMs"];
pub(super) const APPROVAL: &[&str] = &["message", "who", "excludeStarter", "timeoutMs", "onTimeout", "form"];
pub(super) const SWITCH: &[&str] = &["on", "cases", "default"];
pub(super) const CASE: &[&str] = &["value", "steps"];

/// The branches of a switch before the steps they name are known.
#[derive(Debug, Default)]
pub(super) struct Branches {
    pub cases: Vec<(Value, Vec<Link>)>,
    pub default: Vec<Link>,
}

/// `workflow: {id, version?}` or a whole definition; it is one when it has steps.
pub(super) fn child(fields: &Fields<'_>, depth: usize) -> Option<Child> {
    let inputs = fields.object_template("inputs");
    let detached = fields.flag("detached").unwrap_or(false);
    let value = fields.get("workflow")?;
    if value.get("steps").is_none() {
        let stored = fields.object("workflow", STORED)?;
        stored.need("id", "Name a stored workflow, or write a whole definition with steps.");
        let id = stored.id("id");
        let version = stored.text("version", limits::NAME_CHARACTERS).map(str::to_owned);
        return Some(Child { which: Which::Stored { id: id?.into(), version }, inputs, detached });
    }
    if depth >= limits::CHILD_DEPTH {
        fields.wrong(
            "workflow",
            format!("workflows are nested deeper than {} levels", limits::CHILD_DEPTH),
            "Store the inner workflow and refer to it by id.",
        );
        return None;
    }
    let inline = workflow::read(value, fields.at.field("workflow"), hash(value), depth + 1, fields.sink)?;
    Some(Child { which: Which::Inline(std::sync::Arc::new(inline)), inputs, detached })
}

/// `wait: {durationMs | duration | until | event, timeoutMs?}`
pub(super) fn wait(fields: &Fields<'_>) -> Option<Wait> {
    let own = fields.object("wait", WAIT)?;
    let given: Vec<&str> = WAIT[..4].iter().copied().filter(|name| own.has(name)).collect();
    let [name] = given.as_slice() else {
        let message = match given.len() {
            0 => String::from("it does not say what to wait for"),
            _ => format!("it waits for several things at once: {}", given.join(", ")),
        };
        note(own.sink, &own.at, message, "Give exactly one of durationMs, duration, until and event.");
        return None;
    };
    if *name != "event" && own.has("timeoutMs") {
        own.wrong("timeoutMs", "only a wait for an event can time out", "Remove timeoutMs.");
    }
    if *name != "event" && own.has("key") {
        own.wrong("key", "only a wait for an event has a key", "Remove key.");
    }
    match *name {
        "durationMs" => milliseconds(&own).map(Wait::For),
        "duration" => {
            let hint =
                "Write an ISO 8601 duration such as PT15M or P1D, ten years at most, or one expression.";
            timely(&own, "duration", |value| moment::duration_ms(value).is_ok(), hint).map(Wait::For)
        }
        "until" => {
            let hint = "Write a moment with its time zone, such as 2027-01-31T08:00:00Z, or one expression.";
            timely(&own, "until", |value| moment::moment_ms(value).is_ok(), hint).map(Wait::Until)
        }
        _ => {
            let timeout_ms = own.ms("timeoutMs", 1);
            let key = own.has("key").then(|| own.text_template("key")).flatten();
            own.text_template("event").map(|name| Wait::Event { name, key, timeout_ms })
        }
    }
}

fn milliseconds(fields: &Fields<'_>) -> Option<Template> {
    match fields.get("durationMs")? {
        Value::String(_) => {
            let hint = "Write a number of milliseconds, or one expression that gives it.";
            timely(fields, "durationMs", |_| false, hint)
        }
        _ => {
            let ms = fields.ms("durationMs", 0)?;
            Some(Template::literal(ms.into()))
        }
    }
}

/// A text that is right as it stands, or one with expressions, which is seen at run time.
fn timely(fields: &Fields<'_>, name: &str, fits: fn(&Value) -> bool, hint: &str) -> Option<Template> {
    let template = fields.text_template(name)?;
    if let Some(constant) = template.constant()
        && !fits(constant)
    {
        fields.wrong(name, format!("{name} cannot be {constant}"), hint);
        return None;
    }
    Some(template)
}

/// `approval: {message, who?, excludeStarter?, timeoutMs?, onTimeout?, form?}`
pub(super) fn approval(fields: &Fields<'_>) -> Option<Approval> {
    let own = fields.object("approval", APPROVAL)?;
    own.need("message", "Say what is to be decided.");
    let who = own.words("who", limits::NAMES, is_name, "Write the name of somebody, or role:<name>.");
    let timeout_ms = own.ms("timeoutMs", 1);
    let on_timeout = own.choice(
        "onTimeout",
        &[("fail", OnTimeout::Fail), ("approve", OnTimeout::Approve), ("reject", OnTimeout::Reject)],
    );
    if own.has("onTimeout") && !own.has("timeoutMs") {
        own.wrong("onTimeout", "without timeoutMs there is no timeout", "Add timeoutMs.");
    }
    let form = own.get("form");
    if let Some(form) = form {
        json_schema(form, &own.at.field("form"), own.sink);
    }
    Some(Approval {
        message: own.text_template("message")?,
        who: who.into_iter().map(|(_, name)| name.to_owned()).collect(),
        exclude_starter: own.flag("excludeStarter").unwrap_or(false),
        timeout_ms,
        on_timeout: on_timeout.unwrap_or(OnTimeout::Fail),
        form: form.cloned(),
    })
}

/// `switch: {on, cases: [{value, steps}], default?}`
pub(super) fn switch(fields: &Fields<'_>) -> Option<(Template, Branches)> {
    let own = fields.object("switch", SWITCH)?;
    own.need("on", "Add the value to look at, usually one expression.");
    own.need("cases", "Add a list of {\"value\": …, \"steps\": […]}.");
    let on = own.template("on");
    let list = own.at.field("cases");
    let mut branches = Branches { cases: Vec::new(), default: links(&own, "default") };
    for (index, value) in own.list("cases", limits::CASES).unwrap_or_default().iter().enumerate() {
        let known = Known { names: CASE, elsewhere: Elsewhere::default() };
        let Some(case) = Fields::of(value, list.item(index), known, own.sink) else { continue };
        case.need("value", "Add the value this case is for.");
        case.need("steps", "Add the ids of the steps that go on in this case.");
        let Some(value) = case.get("value") else { continue };
        if branches.cases.iter().any(|(other, _)| is_equal(other, value)) {
            case.wrong("value", format!("the value {value} has a case already"), "Join the two cases.");
        }
        branches.cases.push((value.clone(), links(&case, "steps")));
    }
    Some((on?, branches))
}

/// A list of ids of steps, each with its place.
pub(super) fn links(fields: &Fields<'_>, name: &str) -> Vec<Link> {
    let list = fields.at.field(name);
    let words = fields.words(name, limits::STEPS, |_| true, "Write the id of a step.");
    words
        .into_iter()
        .map(|(index, id)| Link { id: id.to_owned(), at: list.item(index).to_string() })
        .collect()
}

/// A schema that people will be asked to follow must be one.
pub(super) fn json_schema(value: &Value, at: &Place<'_>, sink: &Sink) {
    if let Err(error) = Schema::compile(value.clone()) {
        note(sink, at, error.to_string(), "Write a JSON Schema whose type is \"object\".");
    }
}
