//! The command line: one file per command. What is shared by all of them is here.

mod accept;
mod audit;
mod backup;
mod completions;
mod config;
mod doctor;
mod errors;
mod install;
mod man;
mod mcp;
mod serve;
mod tools;
mod version;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use orchestr8_contract::Code;
use orchestr8_stores::sqlite::Look;

use crate::config::{Environment, Flags, Loaded};
use crate::failure::{Failure, exit};
use crate::settings::{Mode, Place, Settings};
use crate::terminal::{Color, Terminal};

/// Runs AI agents reliably: one program, its own store, MCP on stdio and HTTP.
#[derive(Parser)]
#[command(name = "orchestr8", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 ok, 1 failed, 2 usage or invalid, 3 not found, 4 not allowed, 5 conflict,\n            \
    6 timed out or unknown, 7 unreachable, 130 interrupted.\n\
    Settings come from flags, environment, file and defaults, in this order: orchestr8 config show."
)]
pub struct Cli {
    /// Read this configuration instead of looking for orchestr8.json or orchestr8.toml.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Answer in JSON of a stable shape.
    #[arg(long, global = true)]
    json: bool,
    /// Say nothing on stderr but errors.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// When to use colour.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Speak MCP on stdin and stdout; `mcp install` tells an editor to start it.
    Mcp(mcp::Mcp),
    /// Serve MCP over HTTP.
    Serve(serve::Serve),
    /// List the tools, call one, or accept a changed one.
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Show or check the configuration.
    #[command(subcommand)]
    Config(config::Config),
    /// Check that everything orchestr8 needs is in order.
    Doctor(doctor::Doctor),
    /// Copy the store into a file, while it is in use or not.
    Backup(backup::Backup),
    /// Prove that the audit trail is whole.
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Explain error codes.
    Errors(errors::Errors),
    /// Print the version.
    Version,
    /// Print a completion script for a shell.
    Completions(completions::Completions),
    /// Print the manual page, or write those of all commands to a folder.
    Man(man::Man),
}

/// What commands that run actions have in common.
#[derive(Args, Clone, Default)]
pub struct Running {
    /// Keep data in this folder [default: $ORCHESTR8_DATA_DIR, else the user's data folder].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep data in memory only; it is gone at the end.
    #[arg(long, conflicts_with = "data_dir")]
    pub ephemeral: bool,
    /// Offer only these tools: names, or prefixes such as 'agent.*'.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// Count ids and simulate the clock, so that the same input gives the same output.
    #[arg(long)]
    pub deterministic: bool,
    /// Add the fixtures of the MCP conformance suite. For tests only.
    #[arg(long)]
    pub conformance: bool,
}

impl Running {
    pub fn mode(&self) -> Mode {
        Mode {
            data_dir: self.data_dir.clone(),
            ephemeral: self.ephemeral,
            deterministic: self.deterministic,
            conformance: self.conformance,
        }
    }

    pub fn flags(&self) -> Flags {
        match self.tools.is_empty() {
            true => Flags::new(),
            false => vec![("tools.filter", "--tools", self.tools.clone().into())],
        }
    }
}

/// What a command works with.
pub struct Shell {
    pub terminal: Terminal,
    pub environment: Environment,
    pub config: Option<PathBuf>,
}

impl Shell {
    pub fn load(&self, flags: Flags) -> Result<Loaded, Failure> {
        crate::config::load(self.config.as_deref(), flags, &self.environment)
    }

    /// What the configuration means for this command.
    pub fn settings(&self, flags: Flags, mode: Mode) -> Result<Settings, Failure> {
        Settings::new(self.load(flags)?, mode, &self.environment)
    }
}

/// The data file of this installation, to look at while a server may use it.
fn look(shell: &Shell, data_dir: Option<PathBuf>) -> Result<(PathBuf, Look), Failure> {
    let mode = Mode { data_dir, ..Mode::default() };
    let path = match shell.settings(Flags::new(), mode)?.store.place {
        Place::File { path, .. } => path,
        Place::Memory => return Err(Failure::new(Code::NotFound, "there is no data file")),
    };
    if !path.exists() {
        return Err(Failure::new(Code::NotFound, format!("there is no data file at {}", path.display()))
            .hinting("it is made when orchestr8 first runs; name its folder with --data-dir"));
    }
    let look = Look::at(&path).map_err(crate::runtime::store::failure)?;
    Ok((path, look))
}

/// The whole program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let terminal = Terminal::new(cli.json, cli.quiet, cli.color);
    let shell = Shell { terminal, environment: Environment::of_process(), config: cli.config };
    match run(cli.command, &shell) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            terminal.fail(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The command line as clap knows it, for completions and manual pages.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The page docs/errors.md as the table of codes has it.
pub fn errors_page() -> String {
    errors::markdown()
}

/// The table of docs/guide/configuration.md as the table of settings has it.
pub fn settings_table() -> String {
    config::markdown(&crate::config::SETTINGS.iter().collect::<Vec<_>>())
}

fn run(command: Command, shell: &Shell) -> Result<u8, Failure> {
    match command {
        Command::Mcp(command) => command.run(shell),
        Command::Serve(command) => command.run(shell),
        Command::Tools(command) => command.run(shell),
        Command::Config(command) => command.run(shell),
        Command::Doctor(command) => command.run(shell),
        Command::Backup(command) => command.run(shell),
        Command::Audit(command) => command.run(shell),
        Command::Errors(command) => command.run(shell),
        Command::Version => version::run(shell),
        Command::Completions(command) => command.run(shell),
        Command::Man(command) => command.run(shell),
    }
    .map(|()| exit::OK)
}
