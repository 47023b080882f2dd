//! Runs the definitions under `conformance/workflows/definitions`: what is refused and with which words, what is accepted, and
//! that both forms of a workflow mean the same.

use std::fs;
use std::path::{Path, PathBuf};

use orchestr8_contract::Code;
use orchestr8_kernel::schema::Schema;
use serde_json::{Value, json};

use super::model::{Call, Kind, Wait, Which};
use super::{Problem, Problems, Workflow, read};
use crate::expression::{Condition, Template};

/// How many refused definitions there are at least; fewer means that the folder was not found.
const REFUSED: usize = 60;

fn files(folder: &str) -> Vec<PathBuf> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/workflows/definitions").join(folder);
    let entries = fs::read_dir(&root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}

pub(super) fn published() -> Schema {
    Schema::own(super::schema()).unwrap()
}

/// Whether the published schema takes a text.
fn is_accepted(schema: &Schema, text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| schema.check(&value).is_ok())
}

/// As the `.problems` files have it.
fn print(problems: &[Problem]) -> String {
    let mut out = String::new();
    for problem in problems {
        out += &format!("{}\n    {}\n    hint: {}\n", problem.path, problem.message, problem.hint);
        if problem.code != Code::InvalidWorkflow {
            out += &format!("    code: {}\n", problem.code);
        }
    }
    out
}

/// Lines that begin with `#` say what the case is about, and whether the published schema accepts it all the same.
#[test]
fn what_is_refused_is_refused_with_these_words() {
    let schema = published();
    let files = files("refused");
    assert!(files.len() >= REFUSED);
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        let expected = fs::read_to_string(file.with_extension("problems")).unwrap_or_default();
        let (remarks, expected): (Vec<&str>, Vec<&str>) =
            expected.lines().partition(|line| line.starts_with('#'));
        let Err(Problems(problems)) = read(&text) else { panic!("{name} is accepted") };
        let found = print(&problems);
        if found.lines().collect::<Vec<_>>() != expected {
            wrong.push(format!("{name}:\n{found}"));
        }
        let says_accepted =
            remarks.contains(&"# The published schema accepts it: this is more than a schema can say.");
        if is_accepted(&schema, &text) != says_accepted {
            wrong.push(format!("{name}: the schema accepts it: {}", !says_accepted));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_accepted_is_accepted_by_the_schema_too() {
    let schema = published();
    for file in files("valid").into_iter().chain(files("both")) {
        let text = fs::read_to_string(&file).unwrap();
        if let Err(problems) = read(&text) {
            panic!("{}:\n{}", file.display(), print(&problems.0));
        }
        let checked = schema.check(&serde_json::from_str(&text).unwrap());
        assert!(checked.is_ok(), "{}: {checked:?}", file.display());
    }
}

#[test]
fn both_forms_of_a_workflow_are_the_same_model() {
    let files = files("both");
    assert!(files.len() >= 8);
    for pair in files.chunks(2) {
        let [canonical, engine] = pair else { panic!("a form is missing: {pair:?}") };
        let model = |file: &Path| summary(&read(&fs::read_to_string(file).unwrap()).unwrap());
        let (canonical_model, engine_model) = (model(canonical), model(engine));
        assert_eq!(canonical_model, engine_model, "{}", canonical.display());
    }
}

/// Everything of a model that does not depend on how it was written.
fn summary(workflow: &Workflow) -> Value {
    let steps: Vec<Value> = workflow
        .steps
        .iter()
        .map(|step| {
            json!({
                "id": *step.id, "name": step.name, "kind": kind(&step.kind), "dependencies": step.dependencies,
                "if": condition(step.only_if.as_ref()), "unless": condition(step.unless.as_ref()),
                "each": step.each.as_ref().map(|each| {
                    json!([each.items.source(), each.concurrency, format!("{:?}", each.on_item_error)])
                }),
                "repeat": step.repeat.as_ref().map(|repeat| {
                    json!([repeat.condition.source(), repeat.max_iterations, repeat.delay_ms])
                }),
                "onError": format!("{:?}", step.on_error), "fallback": step.fallback, "isFallback": step.is_fallback,
                "resilience": step.resilience, "onUnknown": format!("{:?}", step.on_unknown),
                "key": step.idempotency_key.as_ref().map(Template::source),
                "compensate": step.compensate.as_ref().map(call),
                "heartbeat": step.heartbeat_timeout_ms, "checkpoint": step.checkpoint,
            })
        })
        .collect();
    let policies = &workflow.policies;
    json!({
        "id": *workflow.id, "name": *workflow.name, "version": *workflow.version,
        "description": workflow.description, "tags": workflow.tags, "variables": workflow.variables,
        "inputs": workflow.inputs, "secrets": workflow.secrets, "env": workflow.env, "steps": steps,
        "timeout": policies.timeout_ms, "concurrency": policies.max_concurrency, "priority": policies.priority,
        "budget": format!("{:?}", policies.budget), "journal": format!("{:?}", policies.journal),
    })
}

fn condition(condition: Option<&Condition>) -> Option<&str> {
    condition.map(Condition::source)
}

fn call(call: &Call) -> Value {
    json!([*call.agent, call.version, call.input.source(), call.config.source()])
}

fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Agent(own) => call(own),
        Kind::Workflow(child) => match &child.which {
            Which::Stored { id, version } => json!([**id, version, child.inputs.source()]),
            Which::Inline(inline) => json!([summary(inline), child.inputs.source()]),
        },
        Kind::Wait(Wait::For(time)) => json!(["for", time.source()]),
        Kind::Wait(Wait::Until(time)) => json!(["until", time.source()]),
        Kind::Wait(Wait::Event { name, key: None, timeout_ms }) => json!([name.source(), timeout_ms]),
        Kind::Wait(Wait::Event { name, key: Some(key), timeout_ms }) => {
            json!([name.source(), key.source(), timeout_ms])
        }
        Kind::Approval(own) => {
            json!([own.message.source(), own.who, own.timeout_ms, format!("{:?}", own.on_timeout), own.form])
        }
        Kind::Switch(switch) => json!([switch.on.source(), switch.cases, switch.default]),
    }
}
