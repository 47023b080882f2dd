//! Reading a plan: its sections, phases, paths and commands. What is wrong with it is for the lint to say.

use crate::limits;

/// The sections of a plan, in their order.
pub const SECTIONS: [&str; 7] = [
    "Plan Metadata",
    "Scope & Constraints",
    "Phase Definitions",
    "Path Allowlist",
    "Verification Gates",
    "Forbidden Actions",
    "Rollback / Failure Policy",
];

/// Lines under a heading, each with its number.
#[derive(Debug, Clone)]
pub struct Section {
    pub name: String,
    pub line: usize,
    pub lines: Vec<(usize, String)>,
}

impl Section {
    /// What stands after a dash, without it.
    pub fn items(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines.iter().filter_map(|(number, line)| Some((*number, item(line)?)))
    }

    /// The value of `- Name: value`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.items().find_map(|(_, item)| field(item, name))
    }
}

/// One phase of the work.
#[derive(Debug, Clone)]
pub struct Phase {
    pub id: String,
    pub line: usize,
    pub objective: Option<String>,
    pub outcome: Option<String>,
    /// Where this phase may write, if that is less than the plan allows.
    pub paths: Vec<(usize, String)>,
}

/// A command that must succeed after every write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub line: usize,
    pub text: String,
    pub limit_ms: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub title: Option<String>,
    pub sections: Vec<Section>,
    pub phases: Vec<Phase>,
    pub paths: Vec<(usize, String)>,
    pub commands: Vec<Command>,
}

impl Plan {
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    pub fn phase(&self, id: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.id == id)
    }
}

/// Reads the text of a plan, without its header comment.
pub fn parse(text: &str) -> Plan {
    let mut plan = Plan::default();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(title) = line.strip_prefix("# ") {
            plan.title.get_or_insert_with(|| title.trim().to_owned());
        } else if let Some(name) = line.strip_prefix("## ") {
            plan.sections.push(Section { name: name.trim().to_owned(), line: number, lines: Vec::new() });
        } else if let Some(section) = plan.sections.last_mut() {
            section.lines.push((number, line.to_owned()));
        }
    }
    plan.phases = plan.section("Phase Definitions").map(phases).unwrap_or_default();
    plan.paths = plan.section("Path Allowlist").map(paths).unwrap_or_default();
    plan.commands = plan.section("Verification Gates").map(commands).unwrap_or_default();
    plan
}

fn phases(section: &Section) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for (number, line) in &section.lines {
        if let Some(id) = line.strip_prefix("### ") {
            if phases.len() >= limits::PLAN_ITEMS {
                break;
            }
            let id = id.trim();
            let id = id.strip_prefix("Phase:").unwrap_or(id).trim().to_owned();
            phases.push(Phase { id, line: *number, objective: None, outcome: None, paths: Vec::new() });
            continue;
        }
        let (Some(phase), Some(item)) = (phases.last_mut(), item(line)) else { continue };
        if let Some(objective) = field(item, "Objective") {
            phase.objective = Some(objective.to_owned());
        } else if let Some(outcome) = field(item, "Expected outcome") {
            phase.outcome = Some(outcome.to_owned());
        } else if let Some(list) = field(item, "Paths") {
            let paths = list.split(',').map(|path| (*number, bare(path.trim()).to_owned()));
            phase.paths.extend(paths.take(limits::PLAN_ITEMS));
        }
    }
    phases
}

fn paths(section: &Section) -> Vec<(usize, String)> {
    let paths = section.items().map(|(number, item)| (number, bare(item).to_owned()));
    paths.take(limits::PLAN_ITEMS).collect()
}

/// Items that are a command in backticks, perhaps with `(limit 30 s)` after it.
fn commands(section: &Section) -> Vec<Command> {
    let command = |(line, item): (usize, &str)| {
        let (text, rest) = item.strip_prefix('`')?.split_once('`')?;
        let limit_ms = match rest.trim() {
            "" => limits::COMMAND_MS,
            limit => {
                let seconds = limit.strip_prefix("(limit ")?.strip_suffix(" s)")?;
                seconds.trim().parse::<u64>().ok()?.checked_mul(1000)?
            }
        };
        (!text.trim().is_empty()).then(|| Command { line, text: text.to_owned(), limit_ms })
    };
    section.items().filter_map(command).take(limits::PLAN_ITEMS).collect()
}

fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).map(str::trim)
}

fn field<'a>(item: &'a str, name: &str) -> Option<&'a str> {
    let item = item.trim_start_matches('*');
    let rest = item.strip_prefix(name)?.trim_start_matches('*');
    let value = rest.strip_prefix(':')?.trim_start_matches('*').trim();
    (!value.is_empty()).then_some(value)
}

/// A path without the backticks it may be in.
fn bare(path: &str) -> &str {
    path.strip_prefix('`').and_then(|path| path.strip_suffix('`')).unwrap_or(path)
}
