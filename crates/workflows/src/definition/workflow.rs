//! A whole workflow, in either form. Workflows inside it are read the same way.

use std::collections::HashSet;
use std::sync::Arc;

use orchestr8_contract::json::kind;
use orchestr8_kernel::resilience::Resilience;
use serde_json::{Map, Value};

use super::Place;
use super::fields::{Fields, Sink, note};
use super::form::Form;
use super::graph;
use super::kinds::json_schema;
use super::limits;
use super::model::{Join, Policies, StepSection, Workflow};
use super::policies::{self, is_name};
use super::references::{self, Names};
use super::resilience::Wish;
use super::step::{self, Draft};
use super::words::{id_hint, is_env_name, is_id, is_semver, quoted};
use super::{HASH, text};

pub(super) const METADATA: &[&str] = &["id", "name", "description", "tags"];
pub(super) const CONTEXT: &[&str] = &["variables", "secretRefs", "allowedEnvVars"];

/// Who the workflow is.
#[derive(Default)]
struct Identity<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    description: Option<&'a str>,
    tags: Vec<&'a str>,
}

/// What its expressions may name.
#[derive(Default)]
struct Context<'a> {
    variables: Map<String, Value>,
    secrets: Vec<&'a str>,
    env: Vec<&'a str>,
}

/// Reads a workflow. `depth` counts the workflows around it. What is returned is only good if no problem was noted.
pub(super) fn read(
    value: &Value,
    at: Place<'_>,
    hash: String,
    depth: usize,
    sink: &Sink,
) -> Option<Workflow> {
    let Some(members) = value.as_object() else {
        match value.as_str().and_then(text::other_format) {
            Some(problem) => sink.borrow_mut().push(problem),
            None => {
                let message = format!("a workflow must be a JSON object, and is {}", kind(value));
                note(
                    sink,
                    &at,
                    message,
                    "Write {\"id\": …, \"version\": \"1.0.0\", \"name\": …, \"steps\": […]}.",
                );
            }
        }
        return None;
    };
    let form = Form::of(members);
    let fields = Fields::of(value, at, form.top(), sink)?;
    let version = header(&fields, &hash);
    let (identity, context) = match form {
        Form::Canonical => canonical(&fields),
        Form::Engine => (identity(&fields), self::context(&fields)),
    };
    let inputs = fields.get("inputs");
    if let Some(inputs) = inputs {
        json_schema(inputs, &fields.at.field("inputs"), sink);
    }
    let (policies, wish) = all_policies(&fields, identity.id.unwrap_or_default());
    let mut drafts = steps(&fields, form, &wish.over(&Resilience::default()), depth);
    let ancestry = graph::connect(&mut drafts, sink);
    let needs_schedule =
        references::check(&drafts, ancestry.as_ref(), &policies, &names(&context, inputs), sink);
    Some(Workflow {
        id: identity.id.unwrap_or_default().into(),
        name: identity.name.unwrap_or_default().into(),
        version: version.unwrap_or_default().into(),
        description: identity.description.map(str::to_owned),
        tags: identity.tags.into_iter().map(str::to_owned).collect(),
        hash: hash.into(),
        bytes: 0,
        source: Arc::new(value.clone()),
        variables: context.variables,
        inputs: inputs.cloned(),
        secrets: context.secrets.into_iter().map(Arc::from).collect(),
        env: context.env.into_iter().map(Arc::from).collect(),
        policies,
        section_ends: section_ends(&drafts),
        needs_schedule,
        has_race: drafts.iter().any(|draft| draft.step.join == Join::Race),
        steps: graph::steps(drafts),
    })
}

/// Version, schema version and hash, which both forms have at the top.
fn header<'a>(fields: &Fields<'a>, hash: &str) -> Option<&'a str> {
    fields.text("$schema", limits::NAME_CHARACTERS);
    fields.need("version", "Add a semantic version such as 1.0.0.");
    let hint = "Write a semantic version such as 1.0.0.";
    let version = fields.word("version", limits::NAME_CHARACTERS, is_semver, hint);
    let is_first = |text: &str| text == "1" || text.strip_prefix("1.").is_some_and(is_minor);
    let hint = "Write 1.0.0, or leave it out.";
    fields.word("schemaVersion", limits::NAME_CHARACTERS, is_first, hint);
    if let Some(given) = fields.text(HASH, limits::NAME_CHARACTERS)
        && !given.eq_ignore_ascii_case(hash)
    {
        fields.wrong(
            HASH,
            "Schema hash mismatch: content has been modified",
            "Look at what changed; `orchestr8 validate --write-hash FILE` writes the new hash.",
        );
    }
    version
}

/// What may follow `1.`: one or two numbers.
fn is_minor(text: &str) -> bool {
    text.split('.').count() <= 2
        && text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn canonical<'a>(fields: &'a Fields<'a>) -> (Identity<'a>, Context<'a>) {
    fields.need("metadata", "Add \"metadata\": {\"id\": …, \"name\": …}.");
    let metadata = fields.object("metadata", METADATA);
    let own = fields.object("context", CONTEXT);
    (
        metadata.map(|metadata| identity(&metadata)).unwrap_or_default(),
        own.map(|own| context(&own)).unwrap_or_default(),
    )
}

fn identity<'a>(fields: &Fields<'a>) -> Identity<'a> {
    fields.need("id", "Add an id: letters, digits, - and _.");
    fields.need("name", "Add a name for people.");
    let tags = fields.words("tags", limits::NAMES, is_name, "Write a short text.");
    Identity {
        id: fields.id("id"),
        name: fields.text("name", limits::NAME_CHARACTERS),
        description: fields.text("description", limits::DESCRIPTION_CHARACTERS),
        tags: tags.into_iter().map(|(_, tag)| tag).collect(),
    }
}

fn context<'a>(fields: &Fields<'a>) -> Context<'a> {
    let variables = fields.map("variables").cloned().unwrap_or_default();
    let at = fields.at.field("variables");
    for name in variables.keys().filter(|name| !is_id(name)) {
        let message = format!("a variable cannot be called {}", quoted(name));
        note(fields.sink, &at.field(name), message, id_hint(name));
    }
    let secrets = fields.words("secretRefs", limits::NAMES, is_id, "Write the name of a secret.");
    let env = fields.words(
        "allowedEnvVars",
        limits::NAMES,
        is_env_name,
        "Write the name of an environment variable.",
    );
    Context {
        variables,
        secrets: secrets.into_iter().map(|(_, name)| name).collect(),
        env: env.into_iter().map(|(_, name)| name).collect(),
    }
}

fn all_policies(fields: &Fields<'_>, id: &str) -> (Policies, Wish) {
    let own = fields.object("policies", policies::POLICIES);
    let (mut policies, wish) = own.as_ref().map(|own| policies::read(own, id)).unwrap_or_default();
    for name in ["maxConcurrency", "compensateOn"] {
        if own.as_ref().is_some_and(|own| own.has(name)) && fields.has(name) {
            let hint = format!("Keep one of {name} and policies.{name}.");
            fields.wrong(name, "policies says this already", &hint);
        }
    }
    policies.max_concurrency = policies::max_concurrency(fields).or(policies.max_concurrency);
    policies.compensate_on = policies::compensate_on(fields).unwrap_or(policies.compensate_on);
    (policies, wish)
}

fn steps(fields: &Fields<'_>, form: Form, base: &Resilience, depth: usize) -> Vec<Draft> {
    fields.need("steps", "Add a list of steps.");
    if fields.get("steps").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        fields.wrong("steps", "a workflow needs a step at least", "Add a step.");
    }
    let mut drafts = Vec::new();
    for section in StepSection::ALL {
        let name = section.member();
        let list = fields.at.field(name);
        let items = fields.list(name, limits::STEPS).unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            let Some(own) = Fields::of(item, list.item(index), form.step(), fields.sink) else { continue };
            if section.is_closing() && own.has("compensate") {
                let message = format!("a step of {name} runs after the rollback and is never undone");
                own.wrong("compensate", message, "Remove it.");
            }
            let draft = step::read(&own, form, base, depth);
            drafts.extend(draft.map(|draft| draft.in_section(section)));
        }
    }
    if drafts.len() > limits::STEPS {
        let message =
            format!("all lists together have {} steps; at most {} are allowed", drafts.len(), limits::STEPS);
        note(fields.sink, &fields.at, message, "Put some of them into a child workflow.");
    }
    drafts
}

/// Where each section ends in the list of all steps.
fn section_ends(drafts: &[Draft]) -> [usize; 3] {
    StepSection::ALL.map(|section| drafts.iter().filter(|draft| draft.step.section <= section).count())
}

/// Variables are what the definition sets and what its inputs describe.
fn names<'n>(context: &'n Context<'n>, inputs: Option<&'n Value>) -> Names<'n> {
    let described = inputs.and_then(|inputs| inputs.get("properties")).and_then(Value::as_object);
    let mut variables: HashSet<&str> = context.variables.keys().map(String::as_str).collect();
    variables.extend(described.into_iter().flat_map(Map::keys).map(String::as_str));
    Names {
        variables,
        env: context.env.iter().copied().collect(),
        secrets: context.secrets.iter().copied().collect(),
    }
}
