//! Hashes, the cache, merged resilience, limits, and that reader and published schema know the same members.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault, canonical};
use serde_json::{Map, Value, json};

use super::form::{CANONICAL_TOP, ENGINE_TOP, Form};
use super::limits;
use super::model::{Kind, Which};
use super::step::WORKS;
use super::{
    Cache, Problems, Workflow, call, hash, kinds, policies, read, read_value, resilience, step, workflow,
};

/// A workflow in the engine form with these steps.
pub(super) fn with_steps(steps: &Value) -> Value {
    json!({"id": "demo", "version": "1.0.0", "name": "Demo", "steps": steps})
}

fn one(extra: &Value) -> Value {
    let mut step = json!({"id": "a", "agentId": "echo"});
    step.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    with_steps(&json!([step]))
}

fn messages(problems: &Problems) -> Vec<&str> {
    problems.0.iter().map(|problem| problem.message.as_str()).collect()
}

#[test]
fn the_hash_is_that_of_everything_else() {
    let plain = one(&json!({}));
    let expected = canonical::sha256_hex(&plain);
    assert_eq!(hash(&plain), expected);
    let mut signed = plain.clone();
    signed["schemaHash"] = json!(expected);
    assert_eq!(hash(&signed), expected);
    assert_eq!(&*read_value(&signed).unwrap().hash, expected.as_str());
    signed["schemaHash"] = json!(expected.to_uppercase());
    assert!(read_value(&signed).is_ok());
    signed["name"] = json!("Other");
    assert_eq!(
        messages(&read_value(&signed).unwrap_err()),
        ["Schema hash mismatch: content has been modified"]
    );
}

#[test]
fn a_remembered_definition_is_not_read_again() {
    let cache = Cache::default();
    let value = one(&json!({}));
    let first = cache.get_or_read(&value).unwrap();
    assert!(Arc::ptr_eq(&first, &cache.get_or_read(&value).unwrap()));
    assert!(Arc::ptr_eq(&first, &cache.get(&first.hash).unwrap()));
    let mut signed = value.clone();
    signed["schemaHash"] = json!(*first.hash);
    assert!(Arc::ptr_eq(&first, &cache.get_or_read(&signed).unwrap()));
    signed["schemaHash"] = json!("0".repeat(64));
    assert!(cache.get_or_read(&signed).is_err(), "a wrong hash inside is noticed on a hit too");
    assert!(cache.get_or_read(&json!([])).is_err());
}

#[test]
fn the_least_recently_used_is_forgotten_first() {
    let numbered = |number: usize| one(&json!({"input": {"n": number}}));
    let cache = Cache::new(2, limits::DEFINITIONS_BYTES);
    let hashes: Vec<String> = (0..3).map(|number| hash(&numbered(number))).collect();
    cache.get_or_read(&numbered(0)).unwrap();
    cache.get_or_read(&numbered(1)).unwrap();
    cache.get_or_read(&numbered(0)).unwrap();
    cache.get_or_read(&numbered(2)).unwrap();
    let kept: Vec<bool> = hashes.iter().map(|hash| cache.get(hash).is_some()).collect();
    assert_eq!(kept, [true, false, true]);
    let small = Cache::new(10, 1);
    small.get_or_read(&numbered(0)).unwrap();
    small.get_or_read(&numbered(1)).unwrap();
    assert!(
        small.get(&hashes[0]).is_none() && small.get(&hashes[1]).is_some(),
        "the newest stays, whatever its size"
    );
}

fn resilience_of(workflow: &Value) -> Value {
    json!(read_value(workflow).unwrap().steps[0].resilience)
}

#[test]
fn wf_19_1_a_step_goes_over_its_workflow_and_that_over_the_defaults() {
    let defaults = json!({"maxAttempts": 3, "baseDelayMs": 1000, "maxDelayMs": 30_000, "totalBudgetMs": 90_000,
        "timeoutMs": 30_000, "jitter": "full", "breaker": {"failureThreshold": 5, "openDurationMs": 60_000}});
    assert_eq!(resilience_of(&one(&json!({}))), defaults);
    let mut workflow = one(&json!({"maxRetries": 0, "resilience": {"openDurationMs": 7}}));
    workflow["policies"] =
        json!({"retry": {"maxAttempts": 9, "baseDelayMs": 5}, "circuitBreaker": {"failureThreshold": 2}});
    let mut expected = defaults.clone();
    expected["maxAttempts"] = json!(1);
    expected["baseDelayMs"] = json!(5);
    expected["breaker"] = json!({"failureThreshold": 2, "openDurationMs": 7});
    assert_eq!(resilience_of(&workflow), expected);
    workflow["steps"][0] = json!({"id": "a", "agentId": "echo", "resilience": {"circuitBreaker": false}});
    assert_eq!(resilience_of(&workflow)["breaker"], Value::Null);
    assert_eq!(
        resilience_of(&one(&json!({"timeout": 200_000})))["totalBudgetMs"],
        200_000,
        "one whole attempt fits"
    );
    let tight = one(&json!({"timeout": 200_000, "resilience": {"totalBudgetMs": 50}}));
    assert_eq!(resilience_of(&tight)["totalBudgetMs"], 50);
}

#[test]
fn steps_that_call_no_agent_have_no_clock_of_their_own() {
    let workflow =
        with_steps(&json!([{"id": "a", "wait": {"durationMs": 1}}, {"id": "b", "workflow": {"id": "w"}}]));
    for step in &read_value(&workflow).unwrap().steps {
        assert_eq!((step.resilience.max_attempts, step.resilience.timeout_ms), (1, limits::DURATION_MS));
        assert!(step.resilience.breaker.is_none());
    }
}

#[test]
fn steps_named_by_a_switch_wait_for_it() {
    let workflow = read_value(&with_steps(&json!([
        {"id": "b", "agentId": "echo"},
        {"id": "s", "switch": {"on": 1, "cases": [{"value": 1, "steps": ["b", "b"]}], "default": ["c"]}},
        {"id": "c", "agentId": "echo", "dependsOn": ["b", "s", "b"], "input": "${steps.s.output.chosen}"}
    ])))
    .unwrap();
    let dependencies: Vec<&[usize]> = workflow.steps.iter().map(|step| &*step.dependencies).collect();
    assert_eq!(dependencies, [&[1][..], &[], &[0, 1]]);
    let Kind::Switch(switch) = &workflow.steps[1].kind else { panic!("not a switch") };
    assert_eq!((switch.cases.as_slice(), switch.default.as_slice()), (&[(json!(1), vec![0])][..], &[2][..]));
}

#[test]
fn a_child_knows_its_own_hash_and_source() {
    let child = json!({"version": "1.0.0", "metadata": {"id": "inner", "name": "Inner"},
        "steps": [{"id": "x", "agent": {"id": "echo"}}]});
    let workflow = read_value(&with_steps(&json!([{"id": "a", "workflow": child}]))).unwrap();
    let Kind::Workflow(step) = &workflow.steps[0].kind else { panic!("not a child") };
    let Which::Inline(inner) = &step.which else { panic!("not inline") };
    assert_eq!((&*inner.hash, &*inner.source), (hash(&child).as_str(), &child));
}

#[test]
fn size_count_and_depth_are_limited() {
    let long = "x".repeat(limits::DEFINITION_BYTES);
    let expected = "the definition is larger than 1048576 bytes";
    assert_eq!(messages(&read(&one(&json!({"input": long})).to_string()).unwrap_err()), [expected]);
    assert_eq!(messages(&read_value(&one(&json!({"input": long}))).unwrap_err()), [expected]);
    let steps = |count: usize| -> Value {
        (0..count).map(|number| json!({"id": format!("s{number}"), "agentId": "echo"})).collect()
    };
    assert!(read_value(&with_steps(&steps(limits::STEPS))).is_ok());
    let refused = read_value(&with_steps(&steps(limits::STEPS + 1))).unwrap_err();
    assert_eq!(messages(&refused), ["steps has 1001 entries; at most 1000 are allowed"]);
    let mut deep = json!(1);
    for _ in 0..500 {
        deep = json!([deep]);
    }
    let refused = read_value(&one(&json!({"input": deep}))).unwrap_err();
    assert_eq!(messages(&refused), ["the definition is nested deeper than 100 levels"]);
}

#[test]
fn many_mistakes_are_found_quickly_and_cut_off() {
    let strangers: Map<String, Value> = (0..50_000).map(|number| (format!("x{number}"), json!(1))).collect();
    let problems = read_value(&one(&Value::Object(strangers))).unwrap_err();
    assert_eq!(problems.0.len(), super::problems::LISTED);
    let fault = Fault::from(problems);
    assert_eq!(fault.code, Code::InvalidWorkflow);
}

#[test]
fn a_byte_order_mark_is_skipped_and_doubles_are_told_with_the_rest() {
    assert!(read(&format!("\u{feff}{}", one(&json!({})))).is_ok());
    let problems = read(r#"{"id": "a", "id": "b", "version": "1.0.0", "steps": []}"#).unwrap_err();
    assert_eq!(
        messages(&problems),
        ["id is written twice", "name is missing", "a workflow needs a step at least"]
    );
}

fn names(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

fn sorted<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

#[test]
fn the_reader_and_the_published_schema_know_the_same_members() {
    let schema = super::schema();
    let part =
        |path: &str| schema.pointer(&format!("/$defs/{path}")).unwrap_or_else(|| panic!("{path}")).clone();
    let parts: [(&str, &[&str]); 23] = [
        ("canonical", CANONICAL_TOP),
        ("engine", ENGINE_TOP),
        ("canonical/properties/metadata", workflow::METADATA),
        ("canonical/properties/context", workflow::CONTEXT),
        ("workflowPolicies", policies::POLICIES),
        ("workflowPolicies/properties/concurrency", policies::CONCURRENCY),
        ("workflowPolicies/properties/rateLimit", policies::RATE),
        ("workflowPolicies/properties/budget", policies::BUDGET),
        ("workflowPolicies/properties/journal", policies::JOURNAL),
        ("workflowPolicies/properties/notify/items", policies::NOTIFY),
        ("workflowPolicies/properties/journal/properties/rules/items", policies::RULE),
        ("retry", resilience::RETRY),
        ("circuitBreaker/anyOf/1", resilience::BREAKER),
        ("resilience", resilience::RESILIENCE),
        ("stepPolicies", step::POLICIES),
        ("forEach", step::EACH),
        ("while", step::WHILE),
        ("wait", kinds::WAIT),
        ("approval", kinds::APPROVAL),
        ("switch", kinds::SWITCH),
        ("switch/properties/cases/items", kinds::CASE),
        ("agent", call::AGENT),
        ("compensate", call::COMPENSATE),
    ];
    for (path, known) in parts {
        assert_eq!(names(&part(path)), sorted(known), "{path}");
    }
    assert_eq!(names(&part("childWorkflow/anyOf/0")), sorted(kinds::STORED));
    assert_eq!(names(&part("canonicalAgentStep/properties/condition")), sorted(step::CONDITION));
    for (form, form_name) in [(Form::Canonical, "canonical"), (Form::Engine, "engine")] {
        for (name, work) in WORKS {
            let known: Vec<&str> =
                form.step().names.iter().copied().filter(|member| work.may_have(member)).collect();
            let title = format!("{form_name}{}{}Step", name[..1].to_uppercase(), &name[1..]);
            assert_eq!(names(&part(&title)), sorted(&known), "{title}");
        }
    }
}

#[test]
fn everything_in_the_published_schema_is_described() {
    fn look(value: &Value, at: &str, missing: &mut Vec<String>) {
        let Some(members) = value.as_object() else { return };
        for group in ["properties", "$defs"] {
            for (name, part) in members.get(group).and_then(Value::as_object).into_iter().flatten() {
                let told = part.get("description").is_some()
                    || part.get("$ref").is_some()
                    || part.get("const").is_some();
                if !told && at != "then" {
                    missing.push(format!("{at}.{name}"));
                }
            }
        }
        for (name, member) in
            members.iter().filter(|(name, _)| !["then", "if", "not", "jsonSchema"].contains(&name.as_str()))
        {
            look(member, name, missing);
        }
    }
    let mut missing = Vec::new();
    look(&super::schema(), "$", &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn a_workflow_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared::<Arc<Workflow>>(&read_value(&one(&json!({}))).unwrap());
    shared(&Cache::default());
}
