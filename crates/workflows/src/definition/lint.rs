//! Likely mistakes in a definition that is valid: warnings for its author, never a refusal.

use orchestr8_contract::Code;

use super::model::{Join, Kind, Step, Workflow};
use super::problems::Problem;
use super::words::nearest;
use crate::engine::join;

/// The agents of this program.
const BUILTIN: [&str; 10] = [
    "@orchestr8/echo",
    "@orchestr8/transform",
    "@orchestr8/http",
    "@orchestr8/tool",
    "@orchestr8/llm",
    "@orchestr8/session",
    "@orchestr8/knowledge",
    "@orchestr8/send",
    "@orchestr8/request",
    "@orchestr8/exec",
];

/// What is probably not meant. `agents` are those of the server, if one is asked; without it, only names of our own are checked.
pub fn warnings(workflow: &Workflow, agents: Option<&[&str]>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (place, step) in workflow.steps.iter().enumerate() {
        let at = format!("$.{}", workflow.path(place));
        found.extend(unlisted_branch(workflow, place, &at));
        found.extend(unread_decision(workflow, place, &at));
        found.extend(race(workflow, place, &at));
        found.extend(shared_key(step, &at));
        found.extend(unknown_agent(step, &at, agents));
    }
    found
}

fn warning(path: String, message: String, hint: String) -> Problem {
    Problem::new(path, Code::InvalidWorkflow, message, hint)
}

/// A step that waits for a switch and is in none of its cases runs whatever is chosen.
fn unlisted_branch(workflow: &Workflow, place: usize, at: &str) -> Option<Problem> {
    let step = &workflow.steps[place];
    let switch = step.dependencies.iter().find(|dependency| match &workflow.steps[**dependency].kind {
        Kind::Switch(switch) => {
            let mut listed = switch.cases.iter().flat_map(|(_, steps)| steps).chain(&switch.default);
            !listed.any(|one| *one == place)
        }
        Kind::Agent(_) | Kind::Workflow(_) | Kind::Wait(_) | Kind::Approval(_) => false,
    })?;
    let switch = &workflow.steps[*switch].id;
    Some(warning(
        format!("{at}.dependsOn"),
        format!(
            "\"{}\" depends on the switch \"{switch}\", and no case lists it: it runs whichever case is chosen",
            step.id
        ),
        format!(
            "List it in a case or in the default of \"{switch}\", or let it depend on the steps before the switch."
        ),
    ))
}

/// A race of one is none, and what else depends on its losers is skipped.
fn race(workflow: &Workflow, place: usize, at: &str) -> Option<Problem> {
    let step = &workflow.steps[place];
    if step.join != Join::Race {
        return None;
    }
    if step.dependencies.len() < 2 {
        return Some(warning(
            format!("{at}.join"),
            format!("\"{}\" is a race of {} dependencies", step.id, step.dependencies.len()),
            String::from("Name at least two steps that race, or remove join."),
        ));
    }
    let needs_racer = |other: &&Step| other.dependencies.iter().any(|one| step.dependencies.contains(one));
    let other = workflow.steps.iter().filter(|other| other.id != step.id).find(needs_racer)?;
    Some(warning(
        format!("{at}.join"),
        format!("\"{}\" depends on a step that \"{}\" cancels if it loses the race", other.id, step.id),
        String::from("A step that lost counts as skipped for those that depend on it."),
    ))
}

/// A key of its own that all items or rounds of a loop share: a service that deduplicates does the first one only.
fn shared_key(step: &Step, at: &str) -> Option<Problem> {
    let key = step.idempotency_key.as_ref().filter(|_| step.each.is_some() || step.repeat.is_some())?;
    let source = key.source().as_str().unwrap_or_default();
    if ["item", "index", "iteration"].iter().any(|name| source.contains(&format!("${{{name}"))) {
        return None;
    }
    let (part, name) = if step.each.is_some() { ("items", "index") } else { ("rounds", "iteration") };
    Some(warning(
        format!("{at}.idempotencyKey"),
        format!("all {part} of \"{}\" have the same idempotency key", step.id),
        format!("Add ${{{name}}} to the key, or remove it: the default key is different for each of them."),
    ))
}

/// An approval whose decision no step looks at: nothing happens when it is rejected.
fn unread_decision(workflow: &Workflow, place: usize, at: &str) -> Option<Problem> {
    let step = &workflow.steps[place];
    if !matches!(step.kind, Kind::Approval(_)) {
        return None;
    }
    if workflow.steps.iter().any(|other| join::tests_decision(other, &step.id)) {
        return None;
    }
    let dependents = || workflow.steps.iter().filter(|other| other.dependencies.contains(&place));
    let skipped: Vec<&str> =
        dependents().filter(|other| other.join != Join::Always).map(|other| &*other.id).collect();
    let message = match skipped.as_slice() {
        [] if dependents().next().is_some() => {
            format!("the steps behind the approval \"{}\" run whatever is decided", step.id)
        }
        [] => format!("no step depends on the approval \"{}\": its decision changes nothing", step.id),
        ids => format!(
            "no step has a condition over the approval \"{}\": if it is rejected, {} will be skipped and nothing else happens",
            step.id,
            ids.join(", ")
        ),
    };
    let hint = format!(
        "Add a step with \"unless\": \"${{steps.{}.output.approved}}\" for what must happen then.",
        step.id
    );
    Some(warning(at.to_owned(), message, hint))
}

fn unknown_agent(step: &Step, at: &str, agents: Option<&[&str]>) -> Option<Problem> {
    let Kind::Agent(call) = &step.kind else { return None };
    let name = &*call.agent;
    // Names of worker queues are free.
    let is_worker = name.starts_with("@worker/");
    let is_known = match agents {
        Some(agents) => agents.contains(&name),
        None => !name.starts_with("@orchestr8/") || BUILTIN.contains(&name),
    };
    if is_worker || is_known {
        return None;
    }
    let known = agents.unwrap_or(&BUILTIN).iter().copied();
    let hint = match nearest(name, known) {
        Some(meant) => format!("Did you mean {meant}?"),
        None => String::from("Run \"orchestr8 agents list\", or configure the agent under workflows.agents."),
    };
    Some(warning(format!("{at}.agentId"), format!("no agent is called {name}"), hint))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::read_value;

    fn messages(steps: Value) -> Vec<String> {
        let workflow = json!({"id": "w", "version": "1.0.0", "name": "W", "steps": steps});
        let workflow = read_value(&workflow).unwrap();
        warnings(&workflow, None).into_iter().map(|one| format!("{}: {}", one.path, one.message)).collect()
    }

    #[test]
    fn a_step_behind_a_switch_that_no_case_lists() {
        let switch = json!({"id": "s", "switch": {"on": 1, "cases": [{"value": 1, "steps": ["a"]}]}});
        let agent =
            |id: &str, after: &str| json!({"id": id, "agentId": "@orchestr8/echo", "dependsOn": [after]});
        let found = messages(json!([switch, agent("a", "s"), agent("b", "s"), agent("c", "a")]));
        assert_eq!(
            found,
            [
                "$.steps[2].dependsOn: \"b\" depends on the switch \"s\", and no case lists it: it runs whichever case is chosen"
            ]
        );
    }

    #[test]
    fn a_race_of_one_and_a_race_whose_losers_are_needed() {
        let step = |id: &str, after: &[&str], join: &str| json!({"id": id, "agentId": "@orchestr8/echo", "dependsOn": after, "join": join});
        let (a, b) = (step("a", &[], "all"), step("b", &[], "all"));
        assert!(messages(json!([a, step("r", &["a"], "race")]))[0].contains("a race of 1 dependencies"));
        let needed = json!([a, b, step("r", &["a", "b"], "race"), step("x", &["b"], "all")]);
        assert!(messages(needed)[0].contains("\"x\" depends on a step that \"r\" cancels"));
        assert_eq!(messages(json!([a, b, step("r", &["a", "b"], "race")])), Vec::<String>::new());
    }

    #[test]
    fn an_approval_whose_decision_no_step_reads() {
        let approval = json!({"id": "ok", "approval": {"message": "?"}});
        let step = json!({"id": "a", "agentId": "@orchestr8/echo", "dependsOn": ["ok"]});
        assert!(messages(json!([approval]))[0].contains("its decision changes nothing"));
        let always = json!({"id": "a", "agentId": "@orchestr8/echo", "dependsOn": ["ok"], "join": "always"});
        assert!(messages(json!([approval, always]))[0].contains("run whatever is decided"));
        assert!(messages(json!([approval, step]))[0].contains("if it is rejected, a will be skipped"));
        let excuse = json!({"id": "b", "agentId": "@orchestr8/echo", "dependsOn": ["ok"],
                            "unless": "${steps.ok.output.approved}"});
        assert_eq!(messages(json!([approval, step, excuse])), Vec::<String>::new());
    }

    #[test]
    fn a_key_that_all_parts_of_a_loop_share() {
        let each = |key: &str| json!([{"id": "a", "agentId": "@orchestr8/echo", "forEach": {"items": [1, 2]}, "idempotencyKey": key}]);
        assert_eq!(
            messages(each("order-9")),
            ["$.steps[0].idempotencyKey: all items of \"a\" have the same idempotency key"]
        );
        assert_eq!(messages(each("order-${item}")), Vec::<String>::new());
        assert_eq!(messages(each("order-${index}")), Vec::<String>::new());
    }

    #[test]
    fn an_agent_of_ours_that_there_is_not() {
        let agent = |id: &str| json!([{"id": "a", "agentId": id}]);
        assert_eq!(
            messages(agent("@orchestr8/ehco")),
            ["$.steps[0].agentId: no agent is called @orchestr8/ehco"]
        );
        assert_eq!(messages(agent("@worker/any")), Vec::<String>::new());
        assert_eq!(messages(agent("@mine/agent")), Vec::<String>::new(), "only a server knows");
    }
}
