//! Which results of an execution a fork of it keeps.

use std::collections::HashSet;
use std::sync::Arc;

use orchestr8_contract::{Fault, Kind as FaultKind};
use serde_json::Value;

use crate::definition::model::{Kind, StepSection, Which, Workflow};
use crate::engine::state::{Outcome, State, Undone};
use crate::limits;
use crate::runtime::Hub;
use crate::stored;

/// Which steps ask a person when they run: approvals, and children that contain one, as those are stored now. A child that is not
/// found counts as asking.
pub async fn steps_that_ask(hub: &Hub, tenant: &str, workflow: &Workflow) -> Result<Vec<bool>, Fault> {
    let mut asking = Vec::with_capacity(workflow.steps.len());
    for step in &workflow.steps {
        asking.push(match &step.kind {
            Kind::Approval(_) => true,
            Kind::Workflow(child) => is_asking(hub, tenant, &child.which).await?,
            Kind::Agent(_) | Kind::Wait(_) | Kind::Switch(_) => false,
        });
    }
    Ok(asking)
}

/// Whether a child, or a child of it at any depth, contains an approval.
async fn is_asking(hub: &Hub, tenant: &str, which: &Which) -> Result<bool, Fault> {
    let mut seen = HashSet::new();
    let mut unread = vec![which.clone()];
    while let Some(which) = unread.pop() {
        let workflow = match which {
            Which::Inline(workflow) => workflow,
            Which::Stored { id, version } => match stored::find(hub, tenant, &id, version.as_deref()).await {
                Ok(found) => found.into_parts().0,
                Err(fault) if fault.code.kind() == FaultKind::NotFound => return Ok(true),
                Err(fault) => return Err(fault),
            },
        };
        if !seen.insert(workflow.hash.clone()) {
            continue;
        }
        if seen.len() > limits::FORK_CHILD_DEFINITIONS {
            return Ok(true);
        }
        for step in &workflow.steps {
            match &step.kind {
                Kind::Approval(_) => return Ok(true),
                Kind::Workflow(child) => unread.push(child.which.clone()),
                Kind::Agent(_) | Kind::Wait(_) | Kind::Switch(_) => {}
            }
        }
    }
    Ok(false)
}

/// Results that still hold: of the steps of the body that neither are the step nor come after it, that were not undone, and that do not
/// depend on such steps unless they could not be undone. An approval decides one execution: it is requested again if anything behind
/// it runs again, with the same inputs too.
pub fn kept(old: &State, new: &Arc<Workflow>, from: usize, asking: &[bool]) -> Vec<(usize, Value)> {
    let was_undone = |step: usize| {
        let place = old.workflow().place(&new.steps[step].id);
        place.is_some_and(|place| old.steps[place].undone.values().any(|undone| !undone.leaves_result()))
    };
    let mut is_after = vec![false; new.steps.len()];
    is_after[from] = true;
    add_dependents(new, &mut is_after, |_| true);
    // What could not be undone: its effect is there, whatever it depends on. Only a fork from a step before it does it again.
    let holds = |step: usize| {
        let place = old.workflow().place(&new.steps[step].id).filter(|_| !is_after[step]);
        place.is_some_and(|place| old.steps[place].undone.values().any(Undone::leaves_result))
    };
    let mut again: Vec<bool> = (0..new.steps.len()).map(|step| step == from || was_undone(step)).collect();
    loop {
        add_dependents(new, &mut again, |step| !holds(step));
        let leads_there = leading_to(new, &again);
        let more: Vec<usize> =
            (0..again.len()).filter(|step| asking[*step] && leads_there[*step] && !again[*step]).collect();
        if more.is_empty() {
            break;
        }
        more.into_iter().for_each(|step| again[step] = true);
    }
    let output = |step: &usize| {
        // Which branch was chosen is no result: it is chosen again from the results that are kept.
        if matches!(new.steps[*step].kind, Kind::Switch(_)) {
            return None;
        }
        let place = old.workflow().place(&new.steps[*step].id)?;
        let own = &old.steps[place];
        (own.outcome == Some(Outcome::Completed)).then(|| own.output.clone()).flatten()
    };
    let body = new.section(StepSection::Body);
    body.filter(|step| !again[*step]).filter_map(|step| Some((step, output(&step)?))).collect()
}

/// Adds every step that depends on one of these, at any distance, as far as it may be added.
fn add_dependents(workflow: &Workflow, chosen: &mut [bool], may_be: impl Fn(usize) -> bool) {
    loop {
        let is_next = |step: &usize| {
            !chosen[*step]
                && may_be(*step)
                && workflow.steps[*step].dependencies.iter().any(|one| chosen[*one])
        };
        let more: Vec<usize> = (0..chosen.len()).filter(is_next).collect();
        if more.is_empty() {
            return;
        }
        more.into_iter().for_each(|step| chosen[step] = true);
    }
}

/// The steps that one of these depends on, at any distance.
fn leading_to(workflow: &Workflow, chosen: &[bool]) -> Vec<bool> {
    let mut leading = vec![false; chosen.len()];
    let mut unread: Vec<usize> = (0..chosen.len()).filter(|step| chosen[*step]).collect();
    while let Some(step) = unread.pop() {
        for dependency in &workflow.steps[step].dependencies {
            if !std::mem::replace(&mut leading[*dependency], true) {
                unread.push(*dependency);
            }
        }
    }
    leading
}
