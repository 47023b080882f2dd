//! What holds for every definition, however broken.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::corpus::published;
use super::tests::with_steps;
use super::{Problems, read, read_value};

const EVERYTHING: [&str; 3] = [
    include_str!("../../../../conformance/workflows/definitions/both/everything.canonical.json"),
    include_str!("../../../../conformance/workflows/definitions/both/everything.engine.json"),
    include_str!("../../../../conformance/workflows/definitions/valid/policies.json"),
];

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "",
        "a",
        "fetch",
        "fail",
        "continue",
        "fallback",
        "1.0.0",
        "agent",
        "wait",
        "${item}",
        "${steps.fetch.output}",
        "${variables.limit}",
        "true",
        "@orchestr8/echo",
        "PT5M",
        "full",
        "${",
        "x y",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..200_000).prop_map(Value::from),
        (-1.0..3.0_f64).prop_map(Value::from),
        Just(json!(2.0)),
        word.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "id",
        "version",
        "name",
        "steps",
        "metadata",
        "context",
        "variables",
        "policies",
        "agentId",
        "agent",
        "input",
        "dependsOn",
        "if",
        "wait",
        "durationMs",
        "event",
        "workflow",
        "switch",
        "on",
        "cases",
        "value",
        "forEach",
        "items",
        "retry",
        "tolerate",
        "stranger",
    ]);
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5).prop_map(
                |members: BTreeMap<&str, Value>| {
                    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
                }
            ),
        ]
    })
}

/// Replaces the n-th value inside, counted in depth first order; with nothing, it is taken out.
fn replace(value: &mut Value, place: &mut usize, with: &Option<Value>) -> bool {
    let members: Vec<String> = value.as_object().map(Map::keys).into_iter().flatten().cloned().collect();
    for name in members {
        if *place == 0 {
            match with {
                Some(with) => value[&name] = with.clone(),
                None => drop(value.as_object_mut().and_then(|members| members.remove(&name))),
            }
            return true;
        }
        *place -= 1;
        if replace(&mut value[&name], place, with) {
            return true;
        }
    }
    let length = value.as_array().map_or(0, Vec::len);
    for index in 0..length {
        if *place == 0 {
            match with {
                Some(with) => value[index] = with.clone(),
                None => drop(value.as_array_mut().map(|items| items.remove(index))),
            }
            return true;
        }
        *place -= 1;
        if replace(&mut value[index], place, with) {
            return true;
        }
    }
    false
}

fn check_problems(problems: &Problems) -> Result<(), TestCaseError> {
    prop_assert!(!problems.0.is_empty());
    for problem in &problems.0 {
        prop_assert!(problem.path.starts_with('$'), "{:?}", problem);
        prop_assert!(!problem.message.is_empty() && problem.hint.ends_with(['.', '?']), "{:?}", problem);
    }
    Ok(())
}

/// Whether a graph has a circle, found the slow way: take away what waits for nothing until nothing changes.
fn has_circle(edges: &[Vec<usize>]) -> bool {
    let mut left: Vec<usize> = (0..edges.len()).collect();
    loop {
        let free = |place: &usize| !edges[*place].iter().any(|target| left.contains(target));
        let rest: Vec<usize> = left.iter().copied().filter(|place| !free(place)).collect();
        if rest.len() == left.len() {
            return !rest.is_empty();
        }
        left = rest;
    }
}

fn graph() -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1..9_usize).prop_flat_map(|count| prop::collection::vec(prop::collection::vec(0..count, 0..3), count))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_json_is_accepted_or_refused_with_reasons(value in any_json()) {
        match read_value(&value) {
            Ok(workflow) => prop_assert!(!workflow.steps.is_empty()),
            Err(problems) => {
                check_problems(&problems)?;
                prop_assert_eq!(Err(problems), read_value(&value).map(|_| ()), "the same problems every time");
            }
        }
    }

    #[test]
    fn any_text_is_accepted_or_refused_with_reasons(text in ".{0,300}", cut in 0..3000_usize) {
        for text in [text.as_str(), EVERYTHING[0].get(..cut).unwrap_or_default()] {
            if let Err(problems) = read(text) {
                check_problems(&problems)?;
            }
        }
    }

    #[test]
    fn a_changed_definition_is_judged_alike_by_reader_and_schema(
        source in 0..EVERYTHING.len(),
        changes in prop::collection::vec((0..400_usize, prop::option::weighted(0.7, any_json())), 1..3),
    ) {
        let mut value: Value = serde_json::from_str(EVERYTHING[source]).unwrap();
        for (place, with) in changes {
            replace(&mut value, &mut place.clone(), &with);
        }
        match read_value(&value) {
            Err(problems) => check_problems(&problems)?,
            // What the reader accepts, the published schema accepts.
            Ok(_) => {
                let checked = SCHEMA.with(|schema| schema.check(&value));
                prop_assert!(checked.is_ok(), "{:?} {}", checked, value);
            }
        }
    }

    #[test]
    fn a_circle_is_found_whenever_there_is_one(edges in graph()) {
        let steps: Value = edges
            .iter()
            .enumerate()
            .map(|(place, targets)| {
                let dependencies: Vec<String> = targets.iter().map(|target| format!("s{target}")).collect();
                json!({"id": format!("s{place}"), "agentId": "echo", "dependsOn": dependencies})
            })
            .collect();
        let found = read_value(&with_steps(&steps));
        prop_assert_eq!(found.is_err(), has_circle(&edges));
        for problem in found.err().map(|problems| problems.0).unwrap_or_default() {
            let Some(chain) = problem.message.strip_prefix("Circular dependency detected: ") else {
                return Err(TestCaseError::fail(problem.message));
            };
            let places: Vec<usize> = chain.split(" -> ").map(|id| id[1..].parse().unwrap()).collect();
            prop_assert_eq!(places.first(), places.last());
            for pair in places.windows(2) {
                prop_assert!(edges[pair[0]].contains(&pair[1]), "{} is no circle of {:?}", chain, edges);
            }
        }
    }

    #[test]
    fn what_is_not_a_dependency_cannot_be_referred_to(edges in graph(), user in 0..9_usize, used in 0..9_usize) {
        let (user, used) = (user % edges.len(), used % edges.len());
        // Every step waits only for steps before it, so that there is no circle.
        let edges: Vec<Vec<usize>> = edges
            .into_iter()
            .enumerate()
            .map(|(place, targets)| targets.into_iter().filter(|target| *target < place).collect())
            .collect();
        let mut before = std::collections::BTreeSet::from_iter(edges[user].clone());
        for place in (0..edges.len()).rev().filter(|place| *place < user) {
            if before.contains(&place) {
                before.extend(edges[place].clone());
            }
        }
        let steps: Value = (0..edges.len())
            .map(|place| {
                let dependencies: Vec<String> = edges[place].iter().map(|target| format!("s{target}")).collect();
                let input = if place == user { format!("${{steps.s{used}.output}}") } else { String::new() };
                json!({"id": format!("s{place}"), "agentId": "echo", "dependsOn": dependencies, "input": input})
            })
            .collect();
        prop_assert_eq!(read_value(&with_steps(&steps)).is_ok(), before.contains(&used));
    }
}

thread_local! {
    static SCHEMA: orchestr8_kernel::schema::Schema = published();
}
