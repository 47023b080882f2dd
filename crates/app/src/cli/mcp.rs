//! `orchestr8 mcp`: MCP on stdin and stdout, for a client that starts us; and `mcp install`, which tells it to.

use std::fs::File;
use std::io::{IsTerminal, Read};

use clap::{Args, Subcommand, ValueEnum};
use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use orchestr8_kernel::Principal;
use orchestr8_kernel::log::Level;
use orchestr8_mcp::serve_stdio;
use rustix::stdio;

use super::install::Install;
use super::{Running, Shell};
use crate::failure::Failure;
use crate::runtime::{Countdown, Purpose, Runtime, WhenHeld, block_on};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Mcp {
    #[command(subcommand)]
    command: Option<Command>,
    /// Serve a governed workspace to a planner or an executor, and nothing else.
    #[arg(long, value_enum, value_name = "ROLE")]
    governed: Option<Governed>,
    #[command(flatten)]
    running: Running,
}

/// Who is on the other side of a governed connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Governed {
    Planner,
    Executor,
}

#[derive(Subcommand)]
enum Command {
    /// Write the entry that makes an editor start `orchestr8 mcp`.
    Install(Install),
}

const PURPOSE: Purpose =
    Purpose { when_held: WhenHeld::UseMemory, at_least: Level::Debug, lasting: true, starts_servers: true };

impl Mcp {
    pub fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self.command {
            Some(Command::Install(install)) => install.run(shell),
            None => serve(shell, &self.running, self.governed),
        }
    }
}

/// The person at this machine, or the agent of a governed connection.
fn principal(governed: Option<Governed>) -> Principal {
    match governed {
        None => Principal::local(),
        Some(Governed::Planner) => Principal::governed_agent(Role::Planner),
        Some(Governed::Executor) => Principal::governed_agent(Role::Executor),
    }
}

fn serve(shell: &Shell, running: &Running, governed: Option<Governed>) -> Result<(), Failure> {
    let who = principal(governed);
    // A process without the data knows no approval and no end of a trail.
    let when_held = if governed.is_some() { WhenHeld::Refuse } else { PURPOSE.when_held };
    let settings = shell.settings_logged("mcp", running.flags(), running.mode())?;
    let broken = |cause: std::io::Error| {
        Failure::new(Code::Unavailable, format!("stdin and stdout cannot be used: {cause}"))
            .hinting("start it from an MCP client, or with both open")
    };
    // As plain files: the standard library's own have a buffer and a lock each that we do not need.
    let input = stdio::stdin().try_clone_to_owned().map_err(broken)?;
    let output = stdio::stdout().try_clone_to_owned().map_err(broken)?;
    if input.is_terminal() {
        shell.terminal.note("speaking MCP: one JSON message a line; Ctrl-D ends it. Editors start this themselves: orchestr8 mcp install --help");
    }
    block_on(async {
        let runtime = Runtime::build(settings, Purpose { when_held, ..PURPOSE })?;
        runtime.begin().await?;
        let face = runtime.face().await?;
        let input = Input { file: File::from(input), countdown: runtime.countdown.clone() };
        let (stop, limit) = (runtime.stop.clone(), runtime.settings.shutdown_limit);
        let served = serve_stdio::serve(&face, who.into(), input, File::from(output), stop, limit).await;
        face.wind_down();
        runtime.close().await;
        served.map(|_| ()).map_err(broken)
    })
}

/// Stdin, whose end is the beginning of ours.
struct Input {
    file: File,
    countdown: Countdown,
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(bytes)?;
        if read == 0 {
            self.countdown.begin();
        }
        Ok(read)
    }
}
