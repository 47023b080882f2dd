//! `orchestr8 init`: a folder with a workflow, a test of it, an agent and a configuration, to begin with.

use std::path::PathBuf;

use clap::Args;

use orchestr8_workflows::definition;

use super::files::Making;
use super::{Shell, create, trust};
use crate::failure::Failure;

#[derive(Args)]
pub struct Init {
    /// The folder.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Say what would be made, and make nothing.
    #[arg(long)]
    dry_run: bool,
}

const FILES: [(&str, &str); 5] = [
    ("orchestr8.json", include_str!("../../templates/orchestr8.json")),
    ("workflows/hello.json", include_str!("../../templates/hello.json")),
    ("workflows/shout.json", include_str!("../../templates/shout.json")),
    ("tests/hello.test.json", include_str!("../../templates/hello.test.json")),
    ("README.md", include_str!("../../templates/README.md")),
];

/// The agent of a new project, which its settings name.
const AGENT: &str = "shout";

impl Init {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut files: Vec<(PathBuf, String)> =
            FILES.iter().map(|(name, text)| (self.dir.join(name), create::agent(text, AGENT))).collect();
        files.push((self.dir.join("agents/shout/agent.py"), create::agent(create::PYTHON, AGENT)));
        // Beside the workflows, where their "$schema" finds it, so that editors can help without a network.
        files
            .push((self.dir.join("workflows/workflow.schema.json"), format!("{:#}\n", definition::schema())));
        let settings = files.first().cloned();
        let made = Making::new(files).make(shell, self.dry_run)?;
        if let (Some((path, text)), Some((_, "created"))) = (settings, made.first()) {
            // What we have just written needs no review.
            trust::trust_written(shell, &path, &text)?;
        }
        let go = match self.dir.to_str() {
            Some(".") => String::new(),
            Some(_) | None => format!("cd {}\n", self.dir.display()),
        };
        shell.terminal.note(&format!("\nnow:\n{go}orchestr8 run workflows/hello.json\norchestr8 test\n\nREADME.md says the rest, among it how to call the agent in agents/{AGENT}"));
        Ok(())
    }
}
