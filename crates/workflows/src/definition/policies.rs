//! What holds for a whole execution: times, limits, budgets, and what its journal shows.

use orchestr8_contract::json::kind;
use serde_json::Value;

use super::fields::{Elsewhere, Fields, Known, note};
use super::limits;
use super::model::{
    Budget, CompensateOn, Concurrency, JournalRules, Policies, Rate, RedactionRule, RuleAction, RuleOn,
};
use super::resilience::{self, Wish};
use crate::expression::Template;
use crate::notifications::{NotifyOn, NotifyRule};
use crate::tags::check_key;

pub(super) const POLICIES: &[&str] = &[
    "timeout",
    "maxConcurrency",
    "queueWaitMs",
    "priority",
    "concurrency",
    "rateLimit",
    "budget",
    "journal",
    "compensateOn",
    "tags",
    "notify",
    "retry",
    "circuitBreaker",
];
pub(super) const CONCURRENCY: &[&str] = &["key", "limit"];
pub(super) const RATE: &[&str] = &["key", "limit", "perMs"];
pub(super) const BUDGET: &[&str] = &["wallClockMs", "steps", "tokens", "cost"];
pub(super) const JOURNAL: &[&str] = &["allow", "rules"];
pub(super) const NOTIFY: &[&str] = &["to", "on"];
pub(super) const RULE: &[&str] = &["type", "pattern", "action", "replacement"];

/// The largest whole number JSON carries safely everywhere.
const COUNT: u64 = 9_007_199_254_740_991;
const COST: f64 = 1e12;
const PRIORITY: i64 = 100;

/// The policies, and what they say for every step.
pub(super) fn read(fields: &Fields<'_>, workflow_id: &str) -> (Policies, Wish) {
    let mut policies = Policies {
        timeout_ms: resilience::timeout(fields, "timeout"),
        max_concurrency: max_concurrency(fields),
        queue_wait_ms: fields.ms("queueWaitMs", 1),
        priority: priority(fields),
        compensate_on: compensate_on(fields).unwrap_or_default(),
        ..Policies::default()
    };
    if let Some(own) = fields.object("concurrency", CONCURRENCY) {
        own.need("key", "Add a text; executions for which it is the same share the limit.");
        own.need("limit", "Add how many may run at once.");
        let key = own.text_template("key");
        let limit = own.whole("limit", 1..=limits::STEPS as u64);
        policies.concurrency = key.zip(limit).map(|(key, limit)| Concurrency { key, limit: count(limit) });
    }
    if let Some(own) = fields.object("rateLimit", RATE) {
        own.need("limit", "Add how many may start in that time.");
        own.need("perMs", "Add the time in milliseconds.");
        // Without a key the executions of this workflow share the limit.
        let key = own.text_template("key").unwrap_or_else(|| Template::literal(workflow_id.into()));
        let limit = own.whole("limit", 1..=u64::from(u32::MAX));
        let per_ms = own.ms("perMs", 1);
        policies.rate = limit.zip(per_ms).map(|(limit, per_ms)| Rate {
            key,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            per_ms,
        });
    }
    if let Some(own) = fields.object("budget", BUDGET) {
        policies.budget = Budget {
            wall_clock_ms: own.ms("wallClockMs", 1),
            steps: own.whole("steps", 1..=COUNT),
            tokens: own.whole("tokens", 1..=COUNT),
            cost: own.number("cost", 0.0..=COST),
        };
    }
    policies.tags = tags(fields);
    policies.notify = notify(fields);
    if let Some(own) = fields.object("journal", JOURNAL) {
        policies.journal = journal(&own);
    }
    (policies, Wish::of_workflow_policies(fields))
}

pub(super) fn max_concurrency(fields: &Fields<'_>) -> Option<usize> {
    fields.whole("maxConcurrency", 1..=limits::STEPS as u64).map(count)
}

/// The ends of an execution after which a rollback can run.
pub(super) const COMPENSATE_ON: [&str; 2] = ["failed", "cancelled"];

/// An empty list: there is never a rollback.
pub(super) fn compensate_on(fields: &Fields<'_>) -> Option<CompensateOn> {
    fields.get("compensateOn")?;
    let is_known = |word: &str| COMPENSATE_ON.contains(&word);
    let hint = "Write \"failed\" or \"cancelled\".";
    let words = fields.words("compensateOn", COMPENSATE_ON.len(), is_known, hint);
    if let [(_, one), (_, other)] = words.as_slice()
        && one == other
    {
        fields.wrong("compensateOn", format!("it names {one} twice"), "Name each end once.");
    }
    let has = |wanted: &str| words.iter().any(|(_, word)| *word == wanted);
    Some(CompensateOn { failed: has("failed"), cancelled: has("cancelled") })
}

/// The tags of executions: keys are fixed, values may hold expressions.
fn tags(fields: &Fields<'_>) -> Option<Template> {
    let members = fields.map("tags")?;
    let at = fields.at.field("tags");
    if members.len() > crate::limits::TAGS {
        let message = format!("an execution has at most {} tags", crate::limits::TAGS);
        fields.wrong("tags", message, "Keep those that executions are searched by.");
    }
    for (key, value) in members {
        if let Err(what) = check_key(key) {
            note(fields.sink, &at.field(key), what, "Use a short name such as customer.");
        }
        if value.is_array() || value.is_object() {
            let message = format!("a tag's value must be a text, and is {}", kind(value));
            note(fields.sink, &at.field(key), message, "Write a text; it may hold expressions.");
        }
    }
    Some(fields.object_template("tags"))
}

/// Which triggers with `notify` are told of which events; of all if it does not say.
fn notify(fields: &Fields<'_>) -> Vec<NotifyRule> {
    let list = fields.at.field("notify");
    let mut rules = Vec::new();
    for (index, value) in fields.list("notify", limits::NOTIFY).unwrap_or_default().iter().enumerate() {
        let known = Known { names: NOTIFY, elsewhere: Elsewhere::default() };
        let Some(own) = Fields::of(value, list.item(index), known, fields.sink) else { continue };
        own.need("to", "Add the id of a trigger with notify.");
        let is_known = |word: &str| NotifyOn::parse(word).is_some();
        let hint = "Write \"failed\", \"approval\" or \"budget\".";
        let words = own.words("on", NotifyOn::ALL.len(), is_known, hint);
        let on = match own.get("on") {
            None => NotifyOn::ALL.to_vec(),
            Some(_) => words.iter().filter_map(|(_, word)| NotifyOn::parse(word)).collect(),
        };
        rules.extend(own.id("to").map(|to| NotifyRule { to: to.into(), on }));
    }
    rules
}

fn priority(fields: &Fields<'_>) -> i32 {
    let Some(found) = fields.get("priority") else { return 0 };
    let whole = found.as_i64().or_else(|| {
        let number = found.as_f64()?;
        (-PRIORITY..=PRIORITY).find(|whole| (*whole as f64) == number)
    });
    match whole.filter(|priority| (-PRIORITY..=PRIORITY).contains(priority)) {
        Some(priority) => i32::try_from(priority).unwrap_or_default(),
        None => {
            fields.out_of_range("priority", "a whole number from -100 to 100", found);
            0
        }
    }
}

fn journal(fields: &Fields<'_>) -> JournalRules {
    let allow = fields.words("allow", limits::NAMES, is_name, "Write the name of a field to show.");
    let list = fields.at.field("rules");
    let mut rules = Vec::new();
    for (index, value) in fields.list("rules", limits::NAMES).unwrap_or_default().iter().enumerate() {
        let known = Known { names: RULE, elsewhere: Elsewhere::default() };
        rules.extend(Fields::of(value, list.item(index), known, fields.sink).and_then(|own| rule(&own)));
    }
    JournalRules { allow: allow.into_iter().map(|(_, name)| name.to_owned()).collect(), rules }
}

fn rule(fields: &Fields<'_>) -> Option<RedactionRule> {
    fields.need("type", "Add field-name, field-pattern or value-pattern.");
    fields.need("pattern", "Add what to look for; * stands for anything.");
    fields.need("action", "Add redact, hash or remove.");
    let on = fields.choice(
        "type",
        &[
            ("field-name", RuleOn::FieldName),
            ("field-pattern", RuleOn::FieldPattern),
            ("value-pattern", RuleOn::ValuePattern),
        ],
    );
    let pattern = fields.text("pattern", limits::NAME_CHARACTERS);
    let action = fields.choice(
        "action",
        &[("redact", RuleAction::Redact), ("hash", RuleAction::Hash), ("remove", RuleAction::Remove)],
    );
    let replacement = fields.text("replacement", limits::NAME_CHARACTERS).map(str::to_owned);
    if replacement.is_some() && fields.get("action").and_then(Value::as_str) != Some("redact") {
        note(
            fields.sink,
            &fields.at.field("replacement"),
            "a replacement only goes with redact",
            "Remove it, or use \"action\": \"redact\".",
        );
    }
    Some(RedactionRule { on: on?, pattern: pattern?.to_owned(), action: action?, replacement })
}

pub(super) fn is_name(text: &str) -> bool {
    (1..=limits::NAME_CHARACTERS).contains(&text.chars().count())
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
