//! Random choices from a seed, and random definitions.

use std::rc::Rc;

use super::definition::{
    Condition, Definition, Gives, Join, Kind, OnError, OnItemError, OnTimeout, OnUnknown, Repeat, Step,
    Subject,
};

/// Random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % count as u64) as usize
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len())]
    }
}

/// The documented limit of items of a `forEach`.
pub const ITEMS: u32 = 10_000;

/// What random definitions may contain.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// Steps of the outermost workflow at most, without its fallbacks.
    pub steps: usize,
    /// Workflows inside workflows.
    pub depth: usize,
    /// Items of the largest loops.
    pub items: u32,
    /// Waits with a timer, which a real clock would let pass by itself.
    pub timers: bool,
    pub workers: bool,
}

pub fn definition(dice: &mut Dice, range: Range) -> Definition {
    let count = 1 + dice.below(range.steps);
    let mut steps: Vec<Step> = Vec::new();
    for place in 0..count {
        let step = step(dice, range, place, &mut steps);
        steps.push(step);
    }
    add_fallbacks(dice, &mut steps, count);
    let mut ends = [steps.len(); 2];
    for (section, is_there) in [(0, dice.once_in(4)), (1, dice.once_in(4))] {
        if is_there {
            add_closing_steps(dice, range, &mut steps, ends[0]);
        }
        if section == 0 {
            ends[1] = steps.len();
        }
    }
    let (on_failed, on_cancelled) =
        dice.one_of(&[(true, false), (true, false), (true, true), (false, true), (false, false)]);
    Definition { steps, ends, on_failed, on_cancelled }
}

fn step(dice: &mut Dice, range: Range, place: usize, before: &mut [Step]) -> Step {
    let mut dependencies: Vec<usize> = (0..place).filter(|_| dice.once_in(3)).collect();
    dependencies.truncate(4);
    let kind = kind(dice, range, before, &dependencies);
    list_in_branches(dice, place, before, &dependencies);
    let condition = match dependencies.last() {
        _ if dice.once_in(12) => Some(Condition::Constant(dice.once_in(2))),
        Some(one) if matches!(before[*one].kind, Kind::Approval { .. }) && dice.once_in(2) => {
            Some(if dice.once_in(2) { Condition::Approved(*one) } else { Condition::Rejected(*one) })
        }
        Some(one) if dice.once_in(8) => Some(Condition::HasError(*one)),
        Some(one) if dice.once_in(4) => Some(Condition::Above(*one, dice.below(2) as i64)),
        Some(_) | None => None,
    };
    let is_call = matches!(kind, Kind::Agent | Kind::Worker);
    let may_repeat = is_call || matches!(kind, Kind::Child(_));
    let join = dice.one_of(&[
        Join::Default,
        Join::Default,
        Join::Default,
        Join::All,
        Join::Any,
        Join::Race,
        Join::Always,
    ]);
    let is_first = matches!(join, Join::Any | Join::Race);
    let needs = dependencies.first().copied().filter(|_| is_call && !is_first && dice.once_in(5));
    let is_detached = matches!(kind, Kind::Child(_)) && dice.once_in(4);
    Step {
        kind,
        dependencies,
        join,
        condition,
        is_unless: dice.once_in(3),
        repeat: if may_repeat { repeat(dice, range) } else { Repeat::Once },
        on_error: if dice.once_in(4) { OnError::Continue } else { OnError::Fail },
        on_unknown: dice.one_of(&[OnUnknown::Retry, OnUnknown::Retry, OnUnknown::Fail, OnUnknown::Ask]),
        compensate: may_repeat && dice.once_in(2),
        attempts: 1 + dice.below(3) as u32,
        needs,
        is_fallback: false,
        is_detached,
        has_own_key: is_call && dice.once_in(6),
        gives: Gives::Scripted,
    }
}

fn kind(dice: &mut Dice, range: Range, before: &[Step], dependencies: &[usize]) -> Kind {
    match dice.below(12) {
        0 => {
            let how = dice.one_of(&[
                None,
                Some(OnTimeout::Fail),
                Some(OnTimeout::Approve),
                Some(OnTimeout::Reject),
            ]);
            Kind::Approval { on_timeout: how.filter(|_| range.timers) }
        }
        1 if !dependencies.is_empty() => {
            let one = dependencies[dice.below(dependencies.len())];
            let is_approval = matches!(before[one].kind, Kind::Approval { .. });
            let on = if is_approval { Subject::Decision(one) } else { Subject::Number(one) };
            Kind::Switch { on, cases: vec![(0, Vec::new()), (1, Vec::new())], default: Vec::new() }
        }
        2 | 3 if range.depth > 0 => {
            let inner = Range { steps: 3, depth: range.depth - 1, items: range.items.min(3), ..range };
            Kind::Child(Rc::new(definition(dice, inner)))
        }
        4 if range.timers => Kind::Timer,
        5 => Kind::Event { timeout: range.timers && dice.once_in(2) },
        6 if range.workers => Kind::Worker,
        _ => Kind::Agent,
    }
}

/// Puts the step behind branches of the switches that it waits for.
fn list_in_branches(dice: &mut Dice, place: usize, before: &mut [Step], dependencies: &[usize]) {
    for switch in dependencies {
        let Kind::Switch { cases, default, .. } = &mut before[*switch].kind else { continue };
        match dice.below(5) {
            0 => cases[0].1.push(place),
            1 => cases[1].1.push(place),
            2 => default.push(place),
            3 => cases.iter_mut().for_each(|(_, steps)| steps.push(place)),
            _ => {}
        }
    }
}

fn repeat(dice: &mut Dice, range: Range) -> Repeat {
    match dice.below(6) {
        // One beyond the limit of items: refused before any of them runs.
        0 if dice.once_in(100) => {
            Repeat::Each { items: ITEMS + 1, concurrency: 1, on_item_error: OnItemError::Continue }
        }
        0 => Repeat::Each {
            items: dice.below(range.items as usize + 1) as u32,
            concurrency: 1 + dice.below(3),
            on_item_error: dice.one_of(&[
                OnItemError::Fail,
                OnItemError::Continue,
                OnItemError::TolerateHalf,
            ]),
        },
        1 => Repeat::While {
            rounds: dice.below(4) as u32,
            until: dice.once_in(3).then_some(2),
            most: 1 + dice.below(4) as u32,
            delay: range.timers && dice.once_in(3),
        },
        _ => Repeat::Once,
    }
}

/// Steps of `onFailure` or `finally`: they depend on those of their own list, and may need what the body gave.
fn add_closing_steps(dice: &mut Dice, range: Range, steps: &mut Vec<Step>, body: usize) {
    let first = steps.len();
    for place in first..=first + dice.below(2) {
        let dependencies: Vec<usize> = (first..place).filter(|_| dice.once_in(2)).collect();
        let kind = match dice.below(8) {
            0 if range.timers => Kind::Timer,
            1 => Kind::Event { timeout: false },
            2 if range.depth > 0 => {
                Kind::Child(Rc::new(definition(dice, Range { steps: 2, depth: range.depth - 1, ..range })))
            }
            3 if range.workers => Kind::Worker,
            _ => Kind::Agent,
        };
        let condition = match dice.below(6) {
            0 => Some(Condition::Status(dice.one_of(&["completed", "failed", "cancelled", "compensated"]))),
            1 => Some(Condition::HasFailure),
            2 => Some(Condition::HasError(dice.below(body))),
            _ => None,
        };
        let is_call = matches!(kind, Kind::Agent | Kind::Worker);
        let may_repeat = is_call && dice.once_in(2);
        steps.push(Step {
            dependencies,
            join: dice.one_of(&[Join::Default, Join::All, Join::Any, Join::Always]),
            condition,
            is_unless: dice.once_in(4),
            repeat: if may_repeat { repeat(dice, range) } else { Repeat::Once },
            on_error: if dice.once_in(3) { OnError::Continue } else { OnError::Fail },
            on_unknown: dice.one_of(&[OnUnknown::Retry, OnUnknown::Fail, OnUnknown::Ask]),
            compensate: false,
            attempts: 1 + dice.below(2) as u32,
            needs: (is_call && dice.once_in(4)).then(|| dice.below(body)),
            is_fallback: false,
            is_detached: false,
            has_own_key: is_call && dice.once_in(6),
            gives: Gives::Scripted,
            kind,
        });
    }
}

/// Fallbacks are calls at the end, each for one step; a fallback may have one itself.
fn add_fallbacks(dice: &mut Dice, steps: &mut Vec<Step>, count: usize) {
    let mut place = 0;
    // What a step may wait for, its fallback and the fallback of that may too.
    let mut before: Vec<usize> = (0..count).collect();
    while place < steps.len() {
        let may = steps[place].is_call() || matches!(steps[place].kind, Kind::Child(_));
        if may && steps.len() < 2 * count && dice.once_in(5) {
            let dependencies: Vec<usize> = (0..before[place]).filter(|_| dice.once_in(5)).collect();
            before.push(before[place]);
            steps[place].on_error = OnError::Fallback(steps.len());
            steps.push(Step {
                kind: Kind::Agent,
                dependencies,
                join: Join::Default,
                condition: dice.once_in(6).then_some(Condition::Constant(false)),
                is_unless: false,
                repeat: Repeat::Once,
                on_error: if dice.once_in(4) { OnError::Continue } else { OnError::Fail },
                on_unknown: dice.one_of(&[OnUnknown::Retry, OnUnknown::Fail]),
                compensate: dice.once_in(2),
                attempts: 1 + dice.below(2) as u32,
                needs: None,
                is_fallback: true,
                is_detached: false,
                has_own_key: dice.once_in(6),
                gives: Gives::Scripted,
            });
        }
        place += 1;
    }
}
