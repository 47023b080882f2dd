//! Resources read and prompts made ready.

use std::sync::Arc;

use orchestr8_contract::{Fault, Kind, Output};
use orchestr8_kernel::Args;
use orchestr8_kernel::action::{Action, Halt, Shown};
use orchestr8_kernel::outcome::Settled;
use serde_json::{Map, Value};

use crate::body::{Body, CacheScope};
use crate::era::Era;
use crate::governed;
use crate::questions::{Questions, Retry};
use crate::request::{Answer, Outcome, Request};
use crate::to_wire;
use crate::upstream;
use crate::wire::{self, Error};

/// What a read is about, to tell what became of it.
struct Subject {
    era: Era,
    object: Object,
    cache_ttl_ms: u64,
}

/// The address or the name that was asked for.
enum Object {
    Resource(String),
    Prompt(String),
}

/// `resources/read`.
pub fn resource(request: &Request<'_>) -> Answer {
    let found = request.params.required_text("uri").and_then(|uri| {
        if let Some(action) = upstream::action_for(request, upstream::READ, &uri) {
            let args = Map::from_iter([("uri".to_owned(), Value::from(uri.as_ref()))]);
            return Ok((action, args, uri.into_owned()));
        }
        let table = request.kernel().registry().table();
        let found = table.resource(&uri).filter(|(action, _)| is_for(request, action));
        let (action, places) = found.ok_or_else(|| unknown_resource(&uri, request.era))?;
        let mut args: Map<String, Value> =
            places.into_iter().map(|(name, value)| (name, value.into())).collect();
        args.insert("uri".into(), uri.as_ref().into());
        Ok((action.clone(), args, uri.into_owned()))
    });
    match found {
        Err(error) => Err(error).into(),
        Ok((action, args, uri)) => run(request, &action, args, Object::Resource(uri)),
    }
}

/// A governed connection reaches nothing but what is governed.
pub(crate) fn is_for(request: &Request<'_>, action: &Action) -> bool {
    governed::role(request.who()).is_none_or(|role| governed::shows(role, action))
}

pub fn unknown_resource(uri: &str, era: Era) -> Error {
    let code = if era.is_modern() { wire::INVALID_PARAMS } else { wire::RESOURCE_NOT_FOUND };
    Error::new(code, "Resource not found").with("uri", uri)
}

/// `prompts/get`.
pub fn prompt(request: &Request<'_>) -> Answer {
    let found = request.params.required_text("name").and_then(|name| {
        let action = request.kernel().registry().find(&name);
        let action =
            action.filter(|action| matches!(action.shown, Shown::Prompt { .. }) && is_for(request, action));
        let args = request.params.map("arguments")?.unwrap_or_default();
        match (action, upstream::action(request, upstream::PROMPT)) {
            (Some(action), _) => {
                prompt_arguments(&action, &args)?;
                Ok((action, args, name.into_owned()))
            }
            (None, Some(action)) => {
                are_texts(&args)?;
                let mut outer = Map::from_iter([("name".to_owned(), Value::from(name.as_ref()))]);
                outer.insert("arguments".into(), Value::Object(args));
                Ok((action, outer, name.into_owned()))
            }
            (None, None) => Err(unknown_prompt(&name)),
        }
    });
    match found {
        Err(error) => Err(error).into(),
        Ok((action, args, name)) => run(request, &action, args, Object::Prompt(name)),
    }
}

pub fn unknown_prompt(name: &str) -> Error {
    Error::params(format!("there is no prompt named '{name}'"))
}

fn are_texts(args: &Map<String, Value>) -> Result<(), Error> {
    match args.iter().find(|(_, value)| !value.is_string()) {
        Some((name, _)) => Err(Error::params(format!("arguments.{name} must be a string"))),
        None => Ok(()),
    }
}

fn prompt_arguments(action: &Action, args: &Map<String, Value>) -> Result<(), Error> {
    let Shown::Prompt { arguments } = &action.shown else { return Ok(()) };
    are_texts(args)?;
    match arguments.iter().find(|argument| argument.required && !args.contains_key(&argument.name)) {
        Some(argument) => Err(Error::params(format!("arguments.{} is missing", argument.name))),
        None => Ok(()),
    }
}

fn run(request: &Request<'_>, action: &Arc<Action>, args: Map<String, Value>, object: Object) -> Answer {
    let args = Args::new(args);
    let name: Arc<str> = action.name.as_str().into();
    let questions = match Questions::of(request, &name, Some(args.as_value().to_string())) {
        Ok(questions) => questions,
        Err(error) => return Err(error).into(),
    };
    let subject = Subject { era: request.era, object, cache_ttl_ms: request.settings().cache_ttl_ms };
    let mut submission = request.submission(name, args);
    submission.peer = Some(Arc::new(questions.client(request)));
    let retry = questions.retry;
    upstream::run(request, submission, move |settled| conclude(settled, &subject, retry.as_deref()))
}

fn conclude(settled: Settled, subject: &Subject, retry: Option<&Retry>) -> Outcome {
    let result = match settled.result {
        Ok(output) => Ok(shown(&output, subject)),
        Err(Halt::Asks(asks)) => match retry {
            Some(retry) => retry.input_required(&asks),
            None => Err(Error::new(wire::INTERNAL, "a question was asked and its answer not waited for")),
        },
        Err(Halt::Fault(fault)) => Err(error(&fault, settled.run, subject)),
    };
    Outcome { result, correlation: Some(settled.correlation) }
}

fn shown(output: &Output, subject: &Subject) -> Body {
    match &subject.object {
        Object::Resource(uri) => {
            to_wire::resource_result(output, uri).cached(subject.cache_ttl_ms, CacheScope::Private)
        }
        Object::Prompt(_) => to_wire::prompt_result(output, subject.era),
    }
}

fn error(fault: &Fault, run: orchestr8_contract::id::RunId, subject: &Subject) -> Error {
    if let Some(error) = to_wire::special_error(fault, subject.era) {
        return error;
    }
    match &subject.object {
        Object::Resource(uri) if fault.kind() == Kind::NotFound => unknown_resource(uri, subject.era),
        Object::Prompt(name) if fault.kind() == Kind::NotFound => unknown_prompt(name),
        Object::Resource(_) | Object::Prompt(_) => to_wire::protocol_error(fault, run),
    }
}
