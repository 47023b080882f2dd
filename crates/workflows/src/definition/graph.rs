//! Connects the steps: ids to places, and no step that waits for itself in any way.

use std::collections::HashMap;
use std::sync::Arc;

use super::Place;
use super::fields::{Sink, is_full, note};
use super::model::{Kind, Step, StepSection};
use super::step::Draft;
use super::words::{nearest, quoted};

/// A step named by another.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub id: String,
    /// The JSON path of the name.
    pub at: String,
}

/// For each step, all steps that are settled before it begins.
pub(super) struct Ancestry(Vec<Vec<u64>>);

impl Ancestry {
    pub fn has(&self, step: usize, ancestor: usize) -> bool {
        let word = self.0.get(step).and_then(|set| set.get(ancestor / 64));
        word.is_some_and(|word| word & (1 << (ancestor % 64)) != 0)
    }
}

/// Where each step is, and in which section: steps of different sections do not wait for each other.
type Places = HashMap<Arc<str>, (usize, StepSection)>;

/// Resolves every name and looks for circles. None: there is one, so nothing can be said about what comes before what.
pub(super) fn connect(drafts: &mut [Draft], sink: &Sink) -> Option<Ancestry> {
    let places = places(drafts, sink);
    for draft in drafts.iter_mut() {
        let links = std::mem::take(&mut draft.dependencies);
        let section = draft.step.section;
        draft.step.dependencies =
            links.iter().filter_map(|link| find(&places, link, (section, "depends on"), sink)).collect();
        unique(&mut draft.step.dependencies);
    }
    connect_switches(drafts, &places, sink);
    connect_fallbacks(drafts, &places, sink);
    let edges: Vec<Vec<usize>> = drafts.iter().map(|draft| draft.step.dependencies.clone()).collect();
    let (circles, order) = walk(&edges);
    for circle in &circles {
        let hint = "Remove one of these dependencies; a switch counts as a dependency of the steps it names.";
        let message = format!("Circular dependency detected: {}", chain(drafts, circle));
        note(sink, &Place::named(&drafts[circle[0]].at), message, hint);
    }
    if !circles.is_empty() {
        return None;
    }
    refuse_fallback_circles(drafts, &edges, sink);
    Some(ancestry(&edges, &order))
}

fn places(drafts: &[Draft], sink: &Sink) -> Places {
    let mut places = Places::new();
    for (place, draft) in drafts.iter().enumerate() {
        if let Some((first, _)) = places.get(&draft.step.id) {
            let message = format!("the id {} is used by {} already", draft.step.id, drafts[*first].at);
            let at = Place::named(&draft.at);
            note(sink, &at.field("id"), message, "Give every step an id of its own.");
        } else {
            places.insert(draft.step.id.clone(), (place, draft.step.section));
        }
    }
    places
}

fn find(places: &Places, link: &Link, (from, relation): (StepSection, &str), sink: &Sink) -> Option<usize> {
    let found = places.get(link.id.as_str()).copied();
    if let Some((_, section)) = found.filter(|(_, section)| *section != from) {
        let (here, there) = (from.member(), section.member());
        let message =
            format!("it {relation} {}, which is in {there}, and this step is in {here}", quoted(&link.id));
        let hint = match section < from {
            true => format!("Remove it: every step of {there} has ended when {here} begins."),
            false => format!("Name a step of {here}: {there} begins when {here} has ended."),
        };
        note(sink, &Place::named(&link.at), message, hint);
        return None;
    }
    if found.is_none() && !is_full(sink) {
        let hint = match nearest(&link.id, places.keys().map(|id| &**id)) {
            Some(meant) => format!("Did you mean {meant}?"),
            None => String::from("Name a step of this workflow."),
        };
        let message = format!("it {relation} {}, which is no step of this workflow", quoted(&link.id));
        note(sink, &Place::named(&link.at), message, hint);
    }
    found.map(|(place, _)| place)
}

/// The steps of a branch wait for the switch, whether they say so or not.
fn connect_switches(drafts: &mut [Draft], places: &Places, sink: &Sink) {
    let mut implied = Vec::new();
    for (place, draft) in drafts.iter_mut().enumerate() {
        let branches = std::mem::take(&mut draft.branches);
        let section = draft.step.section;
        let Kind::Switch(switch) = &mut draft.step.kind else { continue };
        let mut resolve = |links: &[Link]| {
            let mut steps: Vec<usize> =
                links.iter().filter_map(|link| find(places, link, (section, "leads to"), sink)).collect();
            unique(&mut steps);
            implied.extend(steps.iter().map(|step| (*step, place)));
            steps
        };
        switch.cases = branches.cases.into_iter().map(|(value, links)| (value, resolve(&links))).collect();
        switch.default = resolve(&branches.default);
    }
    for (step, switch) in implied {
        let dependencies = &mut drafts[step].step.dependencies;
        if !dependencies.contains(&switch) {
            dependencies.push(switch);
        }
    }
}

fn connect_fallbacks(drafts: &mut [Draft], places: &Places, sink: &Sink) {
    for place in 0..drafts.len() {
        let Some(link) = drafts[place].fallback.take() else { continue };
        let section = drafts[place].step.section;
        let Some(fallback) = find(places, &link, (section, "falls back to"), sink) else { continue };
        if fallback == place {
            note(
                sink,
                &Place::named(&link.at),
                "a step cannot be its own fallback",
                "Name another step, or use retries.",
            );
            continue;
        }
        drafts[place].step.fallback = Some(fallback);
        drafts[fallback].step.is_fallback = true;
    }
}

/// A failed step is settled by its fallback, and a fallback begins after the step has failed: seen from either side, nothing
/// may wait for itself.
fn refuse_fallback_circles(drafts: &[Draft], edges: &[Vec<usize>], sink: &Sink) {
    let fallbacks: Vec<(usize, usize)> = drafts
        .iter()
        .enumerate()
        .filter_map(|(place, draft)| draft.step.fallback.map(|fallback| (place, fallback)))
        .collect();
    let mut settled_by = edges.to_vec();
    let mut begins_after = edges.to_vec();
    for (place, fallback) in fallbacks {
        settled_by[place].push(fallback);
        begins_after[fallback].push(place);
    }
    let (mut circles, _) = walk(&settled_by);
    if circles.is_empty() {
        (circles, _) = walk(&begins_after);
    }
    for circle in &circles {
        let first = circle.iter().find(|place| drafts[**place].step.fallback.is_some()).unwrap_or(&circle[0]);
        let message = format!("Circular fallback detected: {}", chain(drafts, circle));
        let hint = "A step and its fallback must not wait for each other; the fallback runs after the failure anyway.";
        let at = Place::named(&drafts[*first].at);
        note(sink, &at.field("fallbackStepId"), message, hint);
    }
}

fn chain(drafts: &[Draft], circle: &[usize]) -> String {
    const SHOWN: usize = 50;
    let mut ids: Vec<&str> = circle.iter().take(SHOWN).map(|place| &*drafts[*place].step.id).collect();
    if circle.len() > SHOWN {
        ids.push("…");
    }
    ids.extend(circle.first().map(|place| &*drafts[*place].step.id));
    ids.join(" -> ")
}

/// Goes through the graph in the order of the definition, without calling itself. Gives one circle for each edge that closes
/// one, and the steps so that each comes after all it depends on.
fn walk(edges: &[Vec<usize>]) -> (Vec<Vec<usize>>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Open,
        Done,
    }
    let mut seen = vec![Seen::Not; edges.len()];
    let (mut circles, mut order) = (Vec::new(), Vec::new());
    for start in 0..edges.len() {
        if seen[start] != Seen::Not {
            continue;
        }
        let mut path = vec![(start, 0)];
        seen[start] = Seen::Open;
        while let Some((place, next)) = path.last_mut() {
            let Some(target) = edges[*place].get(*next).copied() else {
                seen[*place] = Seen::Done;
                order.push(*place);
                path.pop();
                continue;
            };
            *next += 1;
            match seen[target] {
                Seen::Done => {}
                Seen::Not => {
                    seen[target] = Seen::Open;
                    path.push((target, 0));
                }
                Seen::Open => {
                    let from = path.iter().position(|(place, _)| *place == target).unwrap_or(0);
                    circles.push(path[from..].iter().map(|(place, _)| *place).collect());
                }
            }
        }
    }
    (circles, order)
}

fn ancestry(edges: &[Vec<usize>], order: &[usize]) -> Ancestry {
    let mut sets = vec![vec![0_u64; edges.len().div_ceil(64)]; edges.len()];
    for place in order {
        let mut own = std::mem::take(&mut sets[*place]);
        for ancestor in &edges[*place] {
            for (word, inherited) in own.iter_mut().zip(&sets[*ancestor]) {
                *word |= inherited;
            }
            own[ancestor / 64] |= 1 << (ancestor % 64);
        }
        sets[*place] = own;
    }
    Ancestry(sets)
}

/// Keeps the first of each.
fn unique(places: &mut Vec<usize>) {
    let mut seen = std::collections::HashSet::new();
    places.retain(|place| seen.insert(*place));
}

/// The steps as the model has them.
pub(super) fn steps(drafts: Vec<Draft>) -> Vec<Step> {
    drafts.into_iter().map(|draft| draft.step).collect()
}
