//! What is wrong with a plan, all at once: each finding with its code and its line.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::allowlist::{Pattern, Wrong};
use super::gate_proof::{GateFlaw, flaw_of};
use super::markup::hidden_in;
use super::parse::{Plan, SECTIONS, Section, parse};
use super::path_breadth::is_unbounded;
use crate::limits;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: &'static str,
    pub line: usize,
    pub message: String,
}

/// Fields a section must have.
const FIELDS: [(&str, &[&str]); 2] = [
    ("Plan Metadata", &["Plan ID", "Version", "Purpose"]),
    ("Scope & Constraints", &["Objective", "In scope", "Out of scope"]),
];

/// Sections that must say something.
const FILLED: [&str; 2] = ["Forbidden Actions", "Rollback / Failure Policy"];

/// Words that leave open what is to be done.
const AMBIGUOUS: [&str; 16] = [
    "maybe",
    "perhaps",
    "possibly",
    "might",
    "probably",
    "somehow",
    "tbd",
    "etc",
    "as needed",
    "as appropriate",
    "if possible",
    "if necessary",
    "and so on",
    "or similar",
    "where applicable",
    "to be decided",
];

/// Everything that is wrong with the text of a plan, without its header comment.
pub fn lint(text: &str) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    if text.len() > limits::PLAN_BYTES {
        findings.add("PLAN_NOT_AUDITABLE", 1, format!("a plan has at most {} bytes", limits::PLAN_BYTES));
        return findings.0;
    }
    let plan = parse(text);
    structure(&plan, &mut findings);
    fields(&plan, &mut findings);
    phases(&plan, &mut findings);
    paths(&plan, &mut findings);
    gates(&plan, &mut findings);
    words(text, &mut findings);
    hidden(text, &mut findings);
    findings.0.sort_by_key(|finding| finding.line);
    findings.0
}

/// Findings as they are told.
pub fn shown(findings: &[Finding]) -> Value {
    let shown =
        |finding: &Finding| json!({"code": finding.code, "line": finding.line, "message": finding.message});
    findings.iter().map(shown).collect()
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, code: &'static str, line: usize, message: impl Into<String>) {
        if self.0.len() < limits::FINDINGS {
            self.0.push(Finding { code, line, message: message.into() });
        }
    }
}

/// All sections, once each, in their order.
fn structure(plan: &Plan, findings: &mut Findings) {
    if plan.title.is_none() {
        findings.add("PLAN_INVALID_STRUCTURE", 1, "the plan has no title (# …)");
    }
    for name in SECTIONS {
        if plan.section(name).is_none() {
            findings.add("PLAN_MISSING_SECTION", 1, format!("section '## {name}' is missing"));
        }
    }
    let mut next = 0;
    for section in &plan.sections {
        match SECTIONS.iter().position(|name| *name == section.name) {
            None => findings.add(
                "PLAN_INVALID_STRUCTURE",
                section.line,
                format!("'{}' is no section of a plan", section.name),
            ),
            Some(at) if at < next => {
                findings.add(
                    "PLAN_INVALID_STRUCTURE",
                    section.line,
                    format!("'{}' is out of order or there twice", section.name),
                );
            }
            Some(at) => next = at + 1,
        }
    }
}

fn fields(plan: &Plan, findings: &mut Findings) {
    for (name, fields) in FIELDS {
        let Some(section) = plan.section(name) else { continue };
        for field in fields {
            if section.field(field).is_none() {
                findings.add("PLAN_MISSING_FIELD", section.line, format!("'{name}' needs '- {field}: …'"));
            }
        }
    }
    for name in FILLED {
        if let Some(section) = plan.section(name)
            && section.items().next().is_none()
        {
            findings.add("PLAN_MISSING_FIELD", section.line, format!("'{name}' needs at least one '- …'"));
        }
    }
}

fn phases(plan: &Plan, findings: &mut Findings) {
    let Some(section) = plan.section("Phase Definitions") else { return };
    if plan.phases.is_empty() {
        findings.add("PLAN_INVALID_STRUCTURE", section.line, "there is no phase (### PHASE_ID)");
    }
    let mut seen = HashSet::new();
    for phase in &plan.phases {
        if !is_phase_id(&phase.id) {
            let message = "a phase is named by capitals, digits and _ only";
            findings.add("PLAN_INVALID_PHASE_ID", phase.line, message);
        } else if !seen.insert(phase.id.as_str()) {
            findings.add("PLAN_INVALID_PHASE_ID", phase.line, format!("phase {} is there twice", phase.id));
        }
        for (field, value) in [("Objective", &phase.objective), ("Expected outcome", &phase.outcome)] {
            if value.is_none() {
                findings.add(
                    "PLAN_MISSING_FIELD",
                    phase.line,
                    format!("phase {} needs '- {field}: …'", phase.id),
                );
            }
        }
        phase.paths.iter().for_each(|(line, path)| check_path(*line, path, findings));
    }
}

/// `^[A-Z0-9_]+$`
pub fn is_phase_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 64
        && id.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}

fn paths(plan: &Plan, findings: &mut Findings) {
    let Some(section) = plan.section("Path Allowlist") else { return };
    if plan.paths.is_empty() {
        findings.add("PLAN_NOT_ENFORCEABLE", section.line, "the allow-list has no path");
    }
    plan.paths.iter().for_each(|(line, path)| check_path(*line, path, findings));
    check_breadth(section.line, &plan.paths, findings);
}

/// Patterns that leave something out each may leave out nothing together.
fn check_breadth(line: usize, paths: &[(usize, String)], findings: &mut Findings) {
    let patterns: Vec<Pattern> = paths.iter().filter_map(|(_, path)| Pattern::parse(path).ok()).collect();
    let alone = paths.iter().find(|(_, path)| {
        Pattern::parse(path).is_ok_and(|pattern| is_unbounded(std::slice::from_ref(&pattern)))
    });
    match alone {
        Some((line, _)) => findings.add("PLAN_NOT_ENFORCEABLE", *line, "the path allows everything"),
        None if is_unbounded(&patterns) => {
            findings.add("PLAN_NOT_ENFORCEABLE", line, "the paths together allow everything");
        }
        None => {}
    }
}

fn check_path(line: usize, path: &str, findings: &mut Findings) {
    match Pattern::parse(path) {
        Ok(_) => {}
        Err(Wrong::Escape) => findings.add("PLAN_PATH_ESCAPE", line, "the path leads out of the workspace"),
        Err(Wrong::Invalid) => {
            findings.add("PLAN_INVALID_PATH", line, "this is no path within the workspace")
        }
        Err(Wrong::Unbounded) => findings.add("PLAN_NOT_ENFORCEABLE", line, "the path allows everything"),
    }
}

fn gates(plan: &Plan, findings: &mut Findings) {
    let Some(section) = plan.section("Verification Gates") else { return };
    if plan.commands.is_empty() {
        let message = "there is no command that proves the work (- `command` (limit 60 s))";
        findings.add("PLAN_NOT_ENFORCEABLE", section.line, message);
    }
    for command in &plan.commands {
        if command.limit_ms == 0 || command.limit_ms > limits::COMMAND_MAX_MS {
            let message = format!("a command may take 1 to {} s", limits::COMMAND_MAX_MS / 1000);
            findings.add("PLAN_NOT_ENFORCEABLE", command.line, message);
        }
        match flaw_of(&command.text) {
            Some(GateFlaw::CannotFail) => {
                let message = "the command succeeds whatever is in the workspace, so it proves nothing";
                findings.add("PLAN_NOT_ENFORCEABLE", command.line, message);
            }
            Some(GateFlaw::Unreadable) => {
                let message = "the command cannot be followed (syntax, alias, trap, set +e, a name in a variable); put it in a script";
                findings.add("PLAN_NOT_ENFORCEABLE", command.line, message);
            }
            None => {}
        }
    }
    unclear_gates(section, plan, findings);
}

fn unclear_gates(section: &Section, plan: &Plan, findings: &mut Findings) {
    for (line, item) in section.items() {
        if item.starts_with('`') && !plan.commands.iter().any(|command| command.line == line) {
            findings.add(
                "PLAN_INVALID_STRUCTURE",
                line,
                "a command is written - `command` or - `command` (limit 60 s)",
            );
        }
    }
}

fn words(text: &str, findings: &mut Findings) {
    for (number, line) in (1..).zip(text.lines()) {
        let plain: String =
            line.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        let plain = format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "));
        // A command may contain any word.
        if line.trim_start().starts_with("- `") {
            continue;
        }
        for word in AMBIGUOUS {
            if plain.contains(&format!(" {word} ")) {
                findings.add(
                    "PLAN_AMBIGUOUS_LANGUAGE",
                    number,
                    format!("'{word}' leaves open what is to be done"),
                );
            }
        }
    }
}

/// What a person who reviews the plan would not see.
fn hidden(text: &str, findings: &mut Findings) {
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(why) = hidden_in(line) {
            findings.add("PLAN_NOT_AUDITABLE", number, why);
        }
    }
}
