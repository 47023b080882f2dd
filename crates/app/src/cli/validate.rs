//! `orchestr8 validate`: everything that is wrong with workflow files, without a server and without a store.

use std::path::Path;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_workflows::definition::{self, HASH, Problem, Problems, Workflow, lint};
use serde_json::{Value, json};

use super::install::{self, Document};
use super::{Shell, files};
use crate::failure::{Failure, exit};
use crate::reach::problem_lines;

#[derive(Args)]
pub struct Validate {
    /// The files; `-` is stdin.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Write the hash of the definition into each file, so that any later change is noticed.
    #[arg(long)]
    write_hash: bool,
}

impl Validate {
    /// Valid: 0. Invalid: 2, and every mistake is told.
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let mut results = Vec::new();
        let mut is_valid = true;
        for file in &self.files {
            let checked = match self.write_hash {
                true => write_hash(file)?,
                false => definition::read(&files::read(file)?),
            };
            is_valid &= checked.is_ok();
            match (&checked, shell.terminal.json) {
                (_, true) => results.push(describe(file, &checked)),
                (Ok(workflow), false) => {
                    shell.terminal.data(&format!(
                        "{file}: valid ({} {}, {} steps, {})",
                        workflow.id,
                        workflow.version,
                        workflow.steps.len(),
                        &workflow.hash[..12.min(workflow.hash.len())],
                    ));
                    for warning in lint::warnings(workflow, None) {
                        shell.terminal.warn(&format!("{file}: {}: {}", warning.path, warning.message));
                        shell.terminal.note(&format!("hint: {}", warning.hint));
                    }
                }
                (Err(problems), false) => shell.terminal.fail(&files::invalid(file, problems)),
            }
        }
        if shell.terminal.json {
            shell.terminal.value(&json!({"valid": is_valid, "files": results}));
        }
        Ok(if is_valid { exit::OK } else { exit::INVALID })
    }
}

type Checked = Result<std::sync::Arc<Workflow>, Problems>;

fn describe(file: &str, checked: &Checked) -> Value {
    match checked {
        Ok(workflow) => json!({
            "file": file, "valid": true, "problems": [],
            "warnings": lint::warnings(workflow, None).iter().map(Problem::to_value).collect::<Vec<_>>(), "id": *workflow.id, "name": *workflow.name,
            "version": *workflow.version, "hash": *workflow.hash, "steps": workflow.steps.len(),
        }),
        Err(problems) => {
            json!({"file": file, "valid": false, "problems": problems.to_value(), "warnings": [], "lines": problem_lines(&problems.to_value())})
        }
    }
}

/// Checks a definition as if it had no hash, then writes the one it has. Everything else of the file stays as it is.
fn write_hash(file: &str) -> Result<Checked, Failure> {
    if file == "-" {
        return Err(Failure::new(Code::InvalidArgument, "there is no file to write the hash to")
            .hinting("name a file"));
    }
    let text = files::read(file)?;
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return Ok(definition::read(&text)) };
    let hash = definition::hash(&value);
    if let Some(members) = value.as_object_mut() {
        members.remove(HASH);
    }
    let checked = definition::read_value(&value);
    if checked.is_err() {
        return Ok(checked);
    }
    let document = Document::parse(&text)
        .map_err(|error| Failure::new(Code::InvalidWorkflow, format!("{file}: {error}")))?;
    let after = document.with_text(HASH, &hash);
    if after != text {
        install::write(Path::new(file), "", &after).map_err(|cause| {
            Failure::new(Code::StoreFailed, format!("{file}: {cause}"))
                .hinting("nothing was changed; check that the file can be written")
        })?;
    }
    Ok(checked)
}
