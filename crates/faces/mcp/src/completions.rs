//! `completion/complete`: arguments of prompts and templates completed, ours and those of other servers.

use std::sync::Arc;

use orchestr8_contract::{Kind, Output};
use orchestr8_kernel::Args;
use orchestr8_kernel::action::{Action, Address, Halt, Shown};
use serde_json::{Map, Value, json};

use crate::body::Body;
use crate::lists::address;
use crate::reads::{is_for, unknown_prompt, unknown_resource};
use crate::request::{Answer, Outcome, Request};
use crate::to_wire;
use crate::upstream;
use crate::wire::{self, Error};

/// The protocol lets an answer hold this many suggestions.
const SUGGESTIONS: usize = 100;

/// `completion/complete`. Suggestions are for those who may run what they complete.
pub fn complete(request: &Request<'_>) -> Answer {
    match Completion::of(request) {
        Err(error) => Err(error).into(),
        Ok(completion) => match &completion.about {
            About::Own(action) => {
                request.refuse(action).unwrap_or_else(|| Ok(completion.suggest(action)).into())
            }
            About::Upstream(action, about) => completion.ask(request, action, about),
        },
    }
}

/// What is completed: an argument of an action, what was typed of it, and the arguments that are known.
struct Completion {
    about: About,
    argument: String,
    typed: String,
    known: Map<String, Value>,
}

/// Whose argument it is.
enum About {
    Own(Arc<Action>),
    /// That of another server, with the action that asks it.
    Upstream(Arc<Action>, Reference),
}

/// A prompt or a resource of another server.
#[derive(Clone)]
enum Reference {
    Prompt(String),
    Resource(String),
}

impl Completion {
    fn of(request: &Request<'_>) -> Result<Self, Error> {
        let about = request.params.map("ref")?.ok_or_else(|| Error::params("ref is missing"))?;
        let argument = request.params.map("argument")?.ok_or_else(|| Error::params("argument is missing"))?;
        let context = request.params.map("context")?.unwrap_or_default();
        let (name, typed) = (text(&argument, "argument", "name")?, text(&argument, "argument", "value")?);
        let known = context.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Self { about: completed(request, &about)?, argument: name, typed, known })
    }

    /// Asks the other server for its suggestions.
    fn ask(&self, request: &Request<'_>, action: &Action, about: &Reference) -> Answer {
        let mut args = Map::from_iter([
            ("argument".to_owned(), Value::from(self.argument.as_str())),
            ("value".to_owned(), self.typed.as_str().into()),
            ("known".to_owned(), Value::Object(self.known.clone())),
        ]);
        let (member, name) = match about {
            Reference::Prompt(name) => ("prompt", name),
            Reference::Resource(uri) => ("uri", uri),
        };
        args.insert(member.into(), name.as_str().into());
        let (era, about) = (request.era, about.clone());
        let submission = request.submission(action.name.as_str().into(), Args::new(args));
        upstream::run(request, submission, move |settled| {
            let result = match settled.result {
                Ok(Output::Json { value }) => Ok(Body::empty().value("completion", &value)),
                Ok(_) | Err(Halt::Asks(_)) => Err(Error::new(wire::INTERNAL, "there were no suggestions")),
                Err(Halt::Fault(fault)) => Err(match about {
                    Reference::Prompt(name) if fault.kind() == Kind::NotFound => unknown_prompt(&name),
                    Reference::Resource(uri) if fault.kind() == Kind::NotFound => unknown_resource(&uri, era),
                    Reference::Prompt(_) | Reference::Resource(_) => {
                        to_wire::protocol_error(&fault, settled.run)
                    }
                }),
            };
            Outcome { result, correlation: Some(settled.correlation) }
        })
    }

    fn suggest(&self, action: &Action) -> Body {
        let complete = action.complete.as_ref();
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
fn completed(request: &Request<'_>, about: &Map<String, Value>) -> Result<About, Error> {
    let table = request.kernel().registry().table();
    match text(about, "ref", "type")?.as_str() {
        "ref/prompt" => {
            let wanted = text(about, "ref", "name")?;
            let found = table.find(&wanted).filter(|action| matches!(action.shown, Shown::Prompt { .. }));
            let found = found.filter(|action| is_for(request, action)).cloned().map(About::Own);
            let upstream = || {
                let action = upstream::action(request, upstream::COMPLETE)?;
                Some(About::Upstream(action, Reference::Prompt(wanted.clone())))
            };
            found.or_else(upstream).ok_or_else(|| unknown_prompt(&wanted))
        }
        "ref/resource" => {
            let wanted = text(about, "ref", "uri")?;
            if let Some(action) = upstream::action_for(request, upstream::COMPLETE, &wanted) {
                return Ok(About::Upstream(action, Reference::Resource(wanted)));
            }
            let same = |action: &&Arc<Action>| match address(action) {
                Some(Address::Fixed(uri) | Address::Template(uri)) => *uri == wanted,
                None => false,
            };
            let found =
                table.resources().find(same).or_else(|| table.resource(&wanted).map(|(action, _)| action));
            let found = found.filter(|action| is_for(request, action)).cloned().map(About::Own);
            found.ok_or_else(|| unknown_resource(&wanted, request.era))
        }
        other => Err(Error::params(format!("ref.type '{other}' is neither ref/prompt nor ref/resource"))),
    }
}
