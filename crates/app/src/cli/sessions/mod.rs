//! `orchestr8 sessions`: conversations with an agent; and `sessions --stdio`, which speaks their protocol to a client that
//! starts us.

mod delete;
mod export;
mod list;
mod show;
mod tail;

use clap::{Args, Subcommand};
use orchestr8_contract::Code;
use orchestr8_kernel::log::Level;

use super::reaching::{Intent, Reaching};
use super::{Running, Shell};
use crate::failure::Failure;
use crate::runtime::{Purpose, Runtime, WhenHeld, block_on};
use crate::talk::Talk;

pub use export::{Format, export, write};
pub use show::{figures, model};

#[derive(Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct Sessions {
    /// Speak the session protocol on stdin and stdout: one JSON object a line.
    #[arg(long)]
    stdio: bool,
    #[command(flatten)]
    running: Running,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// List the sessions there are.
    List(list::List),
    /// Show one session: how it stands, what it took, and its conversation.
    Show(show::Show),
    /// Write a session to a file or to stdout.
    Export(export::Export),
    /// Delete a session and everything in it.
    Delete(delete::Delete),
    /// Show what was said last, and what happens from now on, until Ctrl-C.
    Tail(tail::Tail),
}

const PURPOSE: Purpose =
    Purpose { when_held: WhenHeld::Refuse, at_least: Level::Debug, lasting: true, starts_servers: true };

impl Sessions {
    pub fn run(self, shell: &Shell) -> Result<u8, Failure> {
        let ok = |()| crate::failure::exit::OK;
        match self.command {
            None if self.stdio => serve(shell, &self.running).map(ok),
            None => Err(Failure::new(Code::InvalidArgument, "nothing to do")
                .hinting("orchestr8 sessions --stdio, or orchestr8 sessions list")),
            Some(Command::List(command)) => command.run(shell).map(ok),
            Some(Command::Show(command)) => command.run(shell).map(ok),
            Some(Command::Export(command)) => command.run(shell).map(ok),
            Some(Command::Delete(command)) => command.run(shell).map(ok),
            Some(Command::Tail(command)) => command.run(shell),
        }
    }
}

/// Opens a conversation with whoever has the sessions, does the work, and closes it.
fn with_talk<T>(
    reaching: &Reaching,
    shell: &Shell,
    work: impl AsyncFnOnce(&mut Talk<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    reaching.run(shell, Intent::Sessions, async |reach| {
        let mut talk = Talk::open(reach).await?;
        let done = work(&mut talk).await;
        talk.close().await;
        done
    })
}

fn serve(shell: &Shell, running: &Running) -> Result<(), Failure> {
    let settings = shell.settings_logged("sessions", running.flags(), running.mode())?;
    block_on(async {
        let runtime = Runtime::build(settings, PURPOSE)?;
        runtime.begin().await?;
        let face = runtime.sessions_face();
        face.serve_stdio(tokio::io::stdin(), tokio::io::stdout(), runtime.stop.clone()).await;
        runtime.close().await;
        Ok(())
    })
}
