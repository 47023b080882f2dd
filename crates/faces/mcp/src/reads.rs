//! Resources read, prompts made ready, arguments completed.

use std::sync::Arc;

use orchestr8_contract::{Fault, Kind, Output};
use orchestr8_kernel::action::{Action, Address, Halt, Shown};
use orchestr8_kernel::outcome::Settled;
use orchestr8_kernel::{Args, Started};
use serde_json::{Map, Value, json};

use crate::body::{Body, CacheScope};
use crate::era::Era;
use crate::governed;
use crate::lists::address;
use crate::questions::{Questions, Retry};
use crate::request::{Answer, Outcome, Request};
use crate::to_wire;
use crate::wire::{self, Error};

/// The protocol lets an answer hold this many suggestions.
const SUGGESTIONS: usize = 100;

/// What a read is about, to tell what became of it.
struct Subject {
    era: Era,
    uri: Option<String>,
    cache_ttl_ms: u64,
}

/// `resources/read`.
pub fn resource(request: &Request<'_>) -> Answer {
    let found = request.params.required_text("uri").and_then(|uri| {
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
        Ok((action, args, uri)) => run(request, &action, args, Some(uri)),
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
        let action = action.ok_or_else(|| Error::params(format!("there is no prompt named '{name}'")))?;
        let args = request.params.map("arguments")?.unwrap_or_default();
        prompt_arguments(&action, &args)?;
        Ok((action, args))
    });
    match found {
        Err(error) => Err(error).into(),
        Ok((action, args)) => run(request, &action, args, None),
    }
}

fn prompt_arguments(action: &Action, args: &Map<String, Value>) -> Result<(), Error> {
    let Shown::Prompt { arguments } = &action.shown else { return Ok(()) };
    if let Some((name, _)) = args.iter().find(|(_, value)| !value.is_string()) {
        return Err(Error::params(format!("arguments.{name} must be a string")));
    }
    match arguments.iter().find(|argument| argument.required && !args.contains_key(&argument.name)) {
        Some(argument) => Err(Error::params(format!("arguments.{} is missing", argument.name))),
        None => Ok(()),
    }
}

fn run(request: &Request<'_>, action: &Arc<Action>, args: Map<String, Value>, uri: Option<String>) -> Answer {
    let args = Args::new(args);
    let name: Arc<str> = action.name.as_str().into();
    let questions = match Questions::of(request, &name, Some(args.as_value().to_string())) {
        Ok(questions) => questions,
        Err(error) => return Err(error).into(),
    };
    let subject = Subject { era: request.era, uri, cache_ttl_ms: request.settings().cache_ttl_ms };
    let mut submission = request.submission(name, args);
    submission.peer = Some(Arc::new(questions.client(request)));
    let retry = questions.retry;
    match request.kernel().start(submission) {
        Started::Done(settled) => Answer::Now(conclude(*settled, &subject, retry.as_deref())),
        Started::Running(task) => Answer::Later(Box::pin(async move {
            match task.await {
                Ok(settled) => conclude(settled, &subject, retry.as_deref()),
                Err(_) => Outcome::from(Err(Error::new(wire::INTERNAL, "the read was lost"))),
            }
        })),
    }
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
    match &subject.uri {
        Some(uri) => to_wire::resource_result(output, uri).cached(subject.cache_ttl_ms, CacheScope::Private),
        None => to_wire::prompt_result(output, subject.era),
    }
}

fn error(fault: &Fault, run: orchestr8_contract::id::RunId, subject: &Subject) -> Error {
    if let Some(error) = to_wire::special_error(fault, subject.era) {
        return error;
    }
    match &subject.uri {
        Some(uri) if fault.kind() == Kind::NotFound => unknown_resource(uri, subject.era),
        Some(_) | None => to_wire::protocol_error(fault, run),
    }
}

/// `completion/complete`. Suggestions are for those who may run what they complete.
pub fn complete(request: &Request<'_>) -> Answer {
    let completion = match Completion::of(request) {
        Ok(completion) => completion,
        Err(error) => return Err(error).into(),
    };
    request.refuse(&completion.action).unwrap_or_else(|| Ok(completion.suggest()).into())
}

/// What is completed: an argument of an action, what was typed of it, and the arguments that are known.
struct Completion {
    action: Arc<Action>,
    argument: String,
    typed: String,
    known: Map<String, Value>,
}

impl Completion {
    fn of(request: &Request<'_>) -> Result<Self, Error> {
        let about = request.params.map("ref")?.ok_or_else(|| Error::params("ref is missing"))?;
        let argument = request.params.map("argument")?.ok_or_else(|| Error::params("argument is missing"))?;
        let context = request.params.map("context")?.unwrap_or_default();
        let (name, typed) = (text(&argument, "argument", "name")?, text(&argument, "argument", "value")?);
        let known = context.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Self { action: completed(request, &about)?, argument: name, typed, known })
    }

    fn suggest(&self) -> Body {
        let complete = self.action.complete.as_ref();
        let mut values =
            complete.map(|complete| complete(&self.argument, &self.typed, &self.known)).unwrap_or_default();
        let total = values.len();
        values.truncate(SUGGESTIONS);
        let completion = json!({"values": values, "total": total, "hasMore": total > SUGGESTIONS});
        Body::empty().value("completion", &completion)
    }
}

fn text(map: &Map<String, Value>, what: &str, name: &str) -> Result<String, Error> {
    let text = map.get(name).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| Error::params(format!("{what}.{name} must be a string")))
}

/// The prompt or resource whose argument is completed.
fn completed(request: &Request<'_>, about: &Map<String, Value>) -> Result<Arc<Action>, Error> {
    let table = request.kernel().registry().table();
    match text(about, "ref", "type")?.as_str() {
        "ref/prompt" => {
            let wanted = text(about, "ref", "name")?;
            let found = table.find(&wanted).filter(|action| matches!(action.shown, Shown::Prompt { .. }));
            let found = found.filter(|action| is_for(request, action)).cloned();
            found.ok_or_else(|| Error::params(format!("there is no prompt named '{wanted}'")))
        }
        "ref/resource" => {
            let wanted = text(about, "ref", "uri")?;
            let same = |action: &&Arc<Action>| match address(action) {
                Some(Address::Fixed(uri) | Address::Template(uri)) => *uri == wanted,
                None => false,
            };
            let found =
                table.resources().find(same).or_else(|| table.resource(&wanted).map(|(action, _)| action));
            let found = found.filter(|action| is_for(request, action)).cloned();
            found.ok_or_else(|| unknown_resource(&wanted, request.era))
        }
        other => Err(Error::params(format!("ref.type '{other}' is neither ref/prompt nor ref/resource"))),
    }
}
