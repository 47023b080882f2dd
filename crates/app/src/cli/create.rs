//! `orchestr8 create agent|workflow`: a file to begin with.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::Shell;
use super::files::{self, Making};
use crate::failure::Failure;

#[derive(Subcommand)]
pub enum Create {
    /// A small HTTP agent that steps can call: POST /process.
    Agent {
        /// Its name, under which workflows call it.
        name: String,
        /// The language to write it in.
        #[arg(long, value_enum, default_value_t)]
        lang: Language,
        /// The folder to put it in.
        #[arg(long, value_name = "DIR", default_value = "agents")]
        dir: PathBuf,
        /// Say what would be made, and make nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// A workflow file.
    Workflow {
        /// Its id.
        name: String,
        /// The folder to put it in.
        #[arg(long, value_name = "DIR", default_value = "workflows")]
        dir: PathBuf,
        /// Say what would be made, and make nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Language {
    #[default]
    Python,
    Typescript,
}

pub const PYTHON: &str = include_str!("../../templates/agent.py");
const TYPESCRIPT: &str = include_str!("../../templates/agent.ts");
const WORKFLOW: &str = include_str!("../../templates/workflow.json");

/// Where a new agent listens unless PORT says otherwise.
const PORT: &str = "8090";

/// The text of an agent of this name.
pub fn agent(template: &str, name: &str) -> String {
    template.replace("{{name}}", name).replace("{{port}}", PORT)
}

impl Create {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Create::Agent { name, lang, dir, dry_run } => {
                let name = files::name(name)?;
                let (file, text, start) = match lang {
                    Language::Python => ("agent.py", PYTHON, "python3"),
                    Language::Typescript => ("agent.ts", TYPESCRIPT, "node"),
                };
                let path = dir.join(name).join(file);
                let text = agent(text, name);
                Making::new(vec![(path.clone(), text)]).make(shell, *dry_run)?;
                shell.terminal.note(&format!(
                    "start it:   {start} {}\nname it:    workflows.agents.{name}.url = \"http://127.0.0.1:{PORT}\" in orchestr8.json, then orchestr8 trust\n\
                     call it:    {{\"id\": \"step\", \"type\": \"agent\", \"agentId\": \"{name}\", \"input\": {{\"text\": \"hello\"}}}}",
                    path.display()
                ));
                Ok(())
            }
            Create::Workflow { name, dir, dry_run } => {
                let name = files::name(name)?;
                let path = dir.join(format!("{name}.json"));
                let text = WORKFLOW.replace("{{name}}", name);
                Making::new(vec![(path.clone(), text)]).make(shell, *dry_run)?;
                shell.terminal.note(&format!("run it: orchestr8 run {}", path.display()));
                Ok(())
            }
        }
    }
}
