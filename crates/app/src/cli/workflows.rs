//! `orchestr8 workflows apply|list|show|delete`: definitions kept in the store, every version of them.

use clap::Subcommand;
use serde_json::{Value, json};

use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::{cut, moment, text};
use super::{Shell, files};
use crate::failure::Failure;
use crate::reach::{self, escape};
use crate::terminal::columns;

#[derive(Subcommand)]
pub enum Workflows {
    /// Store definitions; a changed one becomes a new revision, an unchanged one changes nothing.
    Apply {
        /// The files; `-` is stdin.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
        #[command(flatten)]
        reaching: Reaching,
    },
    /// List the stored definitions.
    List {
        /// Only those whose id, name or tags contain this.
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// At most so many.
        #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=500))]
        limit: u64,
        /// Go on where an earlier list ended.
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        #[command(flatten)]
        reaching: Reaching,
    },
    /// Print a stored definition.
    Show {
        id: String,
        /// An older one.
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u64>,
        #[command(flatten)]
        reaching: Reaching,
    },
    /// Forget a definition; executions of it go on.
    Delete {
        id: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        reaching: Reaching,
    },
}

const DESCRIPTION_LETTERS: usize = 60;

impl Workflows {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Workflows::Apply { files, reaching } => apply(shell, files, reaching),
            Workflows::List { search, limit, cursor, reaching } => {
                let query = [
                    ("search", search.clone()),
                    ("limit", Some(limit.to_string())),
                    ("cursor", cursor.clone()),
                ];
                list(shell, &reach::path("/v1/workflows", &query), reaching)
            }
            Workflows::Show { id, revision, reaching } => {
                let revision = revision.map_or_else(String::new, |number| format!("/revisions/{number}"));
                show(shell, &format!("/v1/workflows/{}{revision}", escape(id)), reaching)
            }
            Workflows::Delete { id, yes, reaching } => {
                confirm(shell, *yes, &format!("all revisions of the workflow {id} are forgotten"))?;
                let path = format!("/v1/workflows/{}", escape(id));
                let answer = reaching.run(shell, Intent::Record, async |reach| reach.delete(&path).await)?;
                match shell.terminal.json {
                    true => shell.terminal.value(&answer),
                    false => shell.terminal.data(&format!("{id} is forgotten")),
                }
                Ok(())
            }
        }
    }
}

/// All are checked before the first is stored.
fn apply(shell: &Shell, paths: &[String], reaching: &Reaching) -> Result<(), Failure> {
    let mut workflows = Vec::new();
    for path in paths {
        workflows.push(files::workflow(path)?);
    }
    let answers = reaching.run(shell, Intent::Record, async |reach| {
        let mut answers = Vec::new();
        for workflow in &workflows {
            answers.push(reach.post("/v1/workflows", &json!({"workflow": *workflow.source})).await?);
        }
        Ok(answers)
    })?;
    if shell.terminal.json {
        shell.terminal.value(&json!({"workflows": answers}));
        return Ok(());
    }
    for answer in &answers {
        let what = if answer["unchanged"] == true { "unchanged" } else { "applied" };
        shell.terminal.data(&format!(
            "{what} {} {} (revision {})",
            text(answer, "id"),
            text(answer, "version"),
            answer["revision"]
        ));
    }
    Ok(())
}

fn list(shell: &Shell, path: &str, reaching: &Reaching) -> Result<(), Failure> {
    let page = reaching.run(shell, Intent::Record, async |reach| reach.get(path).await)?;
    if shell.terminal.json {
        shell.terminal.value(&page);
        return Ok(());
    }
    let workflows = page["workflows"].as_array().cloned().unwrap_or_default();
    if workflows.is_empty() {
        shell.terminal.note("no workflow is stored; store one with orchestr8 workflows apply FILE");
        return Ok(());
    }
    let row = |workflow: &Value| {
        [
            text(workflow, "id").to_owned(),
            text(workflow, "version").to_owned(),
            workflow["revision"].to_string(),
            workflow["steps"].to_string(),
            moment(&workflow["appliedAt"]),
            cut(text(workflow, "description"), DESCRIPTION_LETTERS),
        ]
    };
    let head = ["WORKFLOW", "VERSION", "REVISION", "STEPS", "APPLIED", "DESCRIPTION"].map(String::from);
    shell
        .terminal
        .data(&columns(&std::iter::once(head).chain(workflows.iter().map(row)).collect::<Vec<_>>()));
    if let Some(cursor) = page["nextCursor"].as_str() {
        shell.terminal.note(&format!("there are more: --cursor {cursor}"));
    }
    Ok(())
}

/// The definition itself on stdout, so that it can be stored and applied again; what is known about it on stderr.
fn show(shell: &Shell, path: &str, reaching: &Reaching) -> Result<(), Failure> {
    let answer = reaching.run(shell, Intent::Record, async |reach| reach.get(path).await)?;
    if shell.terminal.json {
        shell.terminal.value(&answer);
        return Ok(());
    }
    for revision in answer["revisions"].as_array().into_iter().flatten() {
        let (number, at) = (&revision["revision"], moment(&revision["appliedAt"]));
        shell
            .terminal
            .note(&format!("revision {number}: version {}, applied {at}", text(revision, "version")));
    }
    shell.terminal.value(&answer["workflow"]);
    Ok(())
}
