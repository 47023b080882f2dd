//! A call of an agent, in either form, as the work of a step or as what undoes it.

use serde_json::{Map, Value};

use super::fields::Fields;
use super::form::Form;
use super::limits;
use super::model::Call;
use super::resilience::Wish;
use super::words::is_agent;
use crate::expression::Template;

pub(super) const AGENT: &[&str] = &["id", "version", "config"];
pub(super) const COMPENSATE: &[&str] = &["agent", "agentId", "config", "input", "resilience"];

const AGENT_HINT: &str = "Write the name of an agent, for example @orchestr8/echo.";

/// What a step calls.
pub(super) fn of_step(fields: &Fields<'_>, form: Form) -> Option<Call> {
    match form {
        Form::Canonical => in_object(fields, input(fields, true)),
        Form::Engine => flat(fields, input(fields, false)),
    }
}

/// What undoes a step, and how hard that is tried: both ways of naming an agent are taken in both forms.
pub(super) fn compensate(fields: &Fields<'_>) -> Option<(Call, Wish)> {
    let own = fields.object("compensate", COMPENSATE)?;
    let wish = Wish::of_engine_step(&own);
    own.only_one("agent", "agentId");
    own.only_one("agent", "config");
    if own.has("agent") {
        return in_object(&own, input(&own, false)).map(|call| (call, wish));
    }
    own.need("agentId", "Name the agent that undoes the step: agentId, or agent with id.");
    flat(&own, input(&own, false)).map(|call| (call, wish))
}

/// `agent: {id, version?, config?}`
fn in_object(fields: &Fields<'_>, input: Template) -> Option<Call> {
    let agent = fields.object("agent", AGENT)?;
    agent.need("id", AGENT_HINT);
    let id = agent.word("id", limits::NAME_CHARACTERS, is_agent, AGENT_HINT);
    let version = agent.text("version", limits::NAME_CHARACTERS).map(str::to_owned);
    let config = agent.object_template("config");
    Some(Call { agent: id?.into(), version, input, config })
}

/// `agentId`, `config?`
fn flat(fields: &Fields<'_>, input: Template) -> Option<Call> {
    let id = fields.word("agentId", limits::NAME_CHARACTERS, is_agent, AGENT_HINT);
    let config = fields.object_template("config");
    Some(Call { agent: id?.into(), version: None, input, config })
}

/// Any value. The canonical form may wrap it: `{"mapping": {…}}`.
fn input(fields: &Fields<'_>, may_map: bool) -> Template {
    let mapping = fields.get("input").and_then(Value::as_object).and_then(|members| match members.len() {
        1 => members.get("mapping"),
        _ => None,
    });
    match mapping {
        Some(Value::Object(_)) if may_map => match fields.object("input", &["mapping"]) {
            Some(own) => own.object_template("mapping"),
            None => Template::literal(Value::Null),
        },
        Some(_) | None => {
            fields.template("input").unwrap_or_else(|| Template::literal(Value::Object(Map::new())))
        }
    }
}
