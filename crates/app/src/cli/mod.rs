//! The command line: one file per command. What is shared by all of them is here.

mod accept;
mod access;
mod agents;
mod aliases;
mod approve;
mod audit;
mod audit_list;
mod backup;
mod bulk;
mod cancel;
mod chat;
mod completions;
mod config;
mod confine;
mod confirm;
mod create;
mod delete;
mod demo;
mod dlq;
mod doctor;
mod errors;
mod events;
mod execution_id;
mod files;
mod follow;
mod fork;
mod going;
mod init;
mod inputs;
mod inspect;
mod install;
mod interrupts;
mod keys;
mod knowledge;
mod limits;
mod list;
mod logs;
mod man;
mod mcp;
mod models;
mod pause;
mod plans;
mod private_file;
mod prove;
mod reaching;
mod resume;
mod retry;
mod run;
mod schedule;
mod secrets;
mod serve;
mod servers;
mod sessions;
mod shell;
mod sign;
mod signal;
mod signed_logs;
mod slo;
mod store;
mod telling;
mod test;
mod tokens;
mod tools;
mod triggers;
mod trust;
mod validate;
mod version;
mod witness;
mod witnessed_heads;
mod words;
mod workflows;
mod workspace_trails;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use orchestr8_contract::visible::visible_line;

use crate::config::{Environment, Flags};
use crate::failure::{Failure, exit};
use crate::settings::{CONFINE, Mode};
use crate::terminal::{Color, Terminal};

pub use shell::{Shell, WhenUntrusted, look};

/// Runs AI agents reliably: durable workflows, tools over MCP, one program with its own store.
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
    /// Run a workflow and show how it gets on.
    Run(Box<run::Run>),
    /// Make a folder with a workflow, a test of it and a configuration.
    Init(init::Init),
    /// Make a file to begin with: an agent or a workflow.
    #[command(subcommand)]
    Create(create::Create),
    /// Check workflow files: everything that is wrong with them, at once.
    Validate(validate::Validate),
    /// Run the tests of workflows: tests/*.test.json.
    Test(test::Test),
    /// List executions.
    List(list::List),
    /// Approve or reject plans of governed workspaces.
    #[command(subcommand)]
    Plans(plans::Plans),
    /// Change limits of queues, agents and tenants while the server runs.
    #[command(subcommand)]
    Limits(limits::Limits),
    /// Show one execution: its steps in time, its errors, what it waits for.
    Inspect(inspect::Inspect),
    /// Print the journal of an execution.
    Logs(logs::Logs),
    /// Stop an execution, or all that match.
    Cancel(Box<cancel::Cancel>),
    /// Delete executions that have ended.
    Delete(Box<delete::Delete>),
    /// Let an execution begin no new steps until it is resumed.
    Pause(pause::Pause),
    /// Go on with an execution that is paused or was left unfinished.
    Resume(resume::Resume),
    /// Go on with failed executions from their failed steps.
    Retry(Box<retry::Retry>),
    /// Run an execution anew from one of its steps.
    Fork(Box<fork::Fork>),
    /// Decide what an execution waits for a person to decide.
    Approve(Box<approve::Approve>),
    /// Tell an execution that something has happened.
    Signal(signal::Signal),
    #[command(hide = true, name = CONFINE)]
    Confine(confine::Confine),
    /// Talk with an agent, or ask it once.
    Chat(Box<chat::Chat>),
    /// Look after sessions, the conversations with agents; or speak their protocol.
    Sessions(Box<sessions::Sessions>),
    /// Look after messages that could not be delivered.
    #[command(subcommand)]
    Dlq(dlq::Dlq),
    /// Look after the keys agents sign with.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Create, list, rotate and revoke API tokens.
    #[command(subcommand)]
    Tokens(tokens::Tokens),
    /// List every action, the roles that may run it and how it is reached.
    Access(access::Access),
    /// Sign a request by hand.
    Sign(sign::Sign),
    /// Show whether the promises to agents are kept.
    Slo(slo::Slo),
    /// Keep documents in a tree, and find the passage that answers a question.
    #[command(subcommand)]
    Knowledge(Box<knowledge::Knowledge>),
    /// Look at agents, send messages to them, read what they get.
    #[command(subcommand)]
    Agents(agents::Agents),
    /// Keep workflows in the store.
    #[command(subcommand)]
    Workflows(workflows::Workflows),
    /// Run stored workflows by the clock.
    #[command(subcommand)]
    Schedule(schedule::Schedule),
    /// Start stored workflows from outside: webhooks.
    #[command(subcommand)]
    Triggers(triggers::Triggers),
    /// Manage named secrets: values that steps send to bound destinations.
    #[command(subcommand)]
    Secrets(secrets::Secrets),
    /// Manage other MCP servers whose tools are offered here.
    #[command(subcommand)]
    Servers(servers::Servers),
    /// Look after the heads of other servers' audit logs that this server remembers.
    #[command(subcommand)]
    Witness(witness::Witness),
    /// Print what happens to executions.
    Events(events::Events),
    /// See a workflow survive being killed.
    Demo(demo::Demo),
    /// A step of the demo.
    #[command(hide = true)]
    DemoStep(demo::Step),
    /// Speak MCP on stdin and stdout; `mcp install` tells an editor to start it.
    Mcp(mcp::Mcp),
    /// Serve everything over HTTP: the dashboard, MCP, workflows, sessions, knowledge, messages.
    Serve(serve::Serve),
    /// Fetch and list the models that run in this process.
    #[command(subcommand)]
    Models(models::Models),
    /// List the tools, call one, or accept a changed one.
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Show or check the configuration.
    #[command(subcommand)]
    Config(config::Config),
    /// Let the configuration of a folder take effect, after it was reviewed.
    Trust(trust::Trust),
    /// Check that everything orchestr8 needs is in order.
    Doctor(doctor::Doctor),
    /// Copy the store into a file, while it is in use or not.
    Backup(backup::Backup),
    /// Encrypt the data file, decrypt it, or change its key.
    #[command(subcommand)]
    Store(store::Store),
    /// Prove that the audit trail is whole.
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Export the proof that an execution, or an entry of the audit trail, is in the signed log.
    Prove(prove::Prove),
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

/// The whole program.
pub fn main() -> ExitCode {
    orchestr8_process::close_inherited_files_on_exec();
    let args = aliases::spaced(std::env::args_os());
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return refuse(error, &args),
    };
    let environment = Environment::of_process();
    let dumb = environment.get("TERM") == Some("dumb");
    let terminal = Terminal { dumb, ..Terminal::new(cli.json, cli.quiet, cli.color) };
    let shell = Shell::new(terminal, environment, cli.config);
    match run(cli.command, &shell) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            terminal.fail(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Usage, or what is wrong with the command line. The parser repeats arguments as they are, so it is given them with hidden
/// characters shown.
fn refuse(error: clap::Error, args: &[OsString]) -> ExitCode {
    let shown = args.iter().map(|arg| visible_line(&arg.to_string_lossy()).into_owned());
    let error = Cli::try_parse_from(shown).err().unwrap_or(error);
    // A terminal that is gone cannot be told.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::INVALID))
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
    let ok = |()| exit::OK;
    match command {
        Command::Run(command) => command.run(shell),
        Command::Init(command) => command.run(shell).map(ok),
        Command::Create(command) => command.run(shell).map(ok),
        Command::Validate(command) => command.run(shell),
        Command::Test(command) => command.run(shell),
        Command::List(command) => command.run(shell).map(ok),
        Command::Limits(command) => command.run(shell).map(ok),
        Command::Plans(command) => command.run(shell).map(ok),
        Command::Inspect(command) => command.run(shell).map(ok),
        Command::Logs(command) => command.run(shell).map(ok),
        Command::Cancel(command) => command.run(shell),
        Command::Delete(command) => command.run(shell),
        Command::Pause(command) => command.run(shell).map(ok),
        Command::Resume(command) => command.run(shell),
        Command::Retry(command) => command.run(shell),
        Command::Fork(command) => command.run(shell),
        Command::Approve(command) => command.run(shell),
        Command::Signal(command) => command.run(shell),
        Command::Confine(command) => Ok(command.run()),
        Command::Chat(command) => command.run(shell),
        Command::Sessions(command) => command.run(shell),
        Command::Dlq(command) => command.run(shell).map(ok),
        Command::Keys(command) => command.run(shell).map(ok),
        Command::Tokens(command) => command.run(shell).map(ok),
        Command::Access(command) => command.run(shell).map(ok),
        Command::Sign(command) => command.run(shell).map(ok),
        Command::Slo(command) => command.run(shell),
        Command::Knowledge(command) => command.run(shell),
        Command::Agents(command) => command.run(shell),
        Command::Workflows(command) => command.run(shell).map(ok),
        Command::Schedule(command) => command.run(shell),
        Command::Triggers(command) => command.run(shell),
        Command::Secrets(command) => command.run(shell).map(ok),
        Command::Servers(command) => command.run(shell).map(ok),
        Command::Witness(command) => command.run(shell).map(ok),
        Command::Events(command) => command.run(shell).map(ok),
        Command::Demo(command) => command.run(shell),
        Command::DemoStep(command) => command.run(shell).map(ok),
        Command::Mcp(command) => command.run(shell).map(ok),
        Command::Serve(command) => command.run(shell).map(ok),
        Command::Models(command) => command.run(shell).map(ok),
        Command::Tools(command) => command.run(shell).map(ok),
        Command::Config(command) => command.run(shell).map(ok),
        Command::Trust(command) => command.run(shell).map(ok),
        Command::Doctor(command) => command.run(shell).map(ok),
        Command::Backup(command) => command.run(shell).map(ok),
        Command::Store(command) => command.run(shell).map(ok),
        Command::Audit(command) => command.run(shell).map(ok),
        Command::Prove(command) => command.run(shell).map(ok),
        Command::Errors(command) => command.run(shell).map(ok),
        Command::Version => version::run(shell).map(ok),
        Command::Completions(command) => command.run(shell).map(ok),
        Command::Man(command) => command.run(shell).map(ok),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_in_order() {
        Cli::command().debug_assert();
    }
}
