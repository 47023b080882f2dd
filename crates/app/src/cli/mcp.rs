//! `orchestr8 mcp`: MCP on stdin and stdout, for a client that starts us; and `mcp install`, which tells it to.
//!
//! The first process on a data directory owns it; those that come later attach to it (see `attach`).

mod attached;

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use orchestr8_contract::Code;
use orchestr8_kernel::Principal;
use orchestr8_kernel::log::Level;
use orchestr8_mcp::serve_stdio;
use rustix::stdio;

use super::install::Install;
use super::{Running, Shell};
use crate::attach::{AttachListener, GovernedRole, Hello, Unattached, attach, principal};
use crate::failure::Failure;
use crate::runtime::{Countdown, Purpose, Runtime, WhenHeld, block_on};
use crate::settings::{Place, Settings};
use attached::AttachedProcess;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Mcp {
    #[command(subcommand)]
    command: Option<Command>,
    /// Serve a governed workspace to a planner or an executor, and nothing else.
    #[arg(long, value_enum, value_name = "ROLE")]
    governed: Option<GovernedRole>,
    #[command(flatten)]
    running: Running,
}

#[derive(Subcommand)]
enum Command {
    /// Write the entry that makes an editor start `orchestr8 mcp`.
    Install(Install),
}

const PURPOSE: Purpose =
    Purpose { when_held: WhenHeld::Refuse, at_least: Level::Debug, lasting: true, starts_servers: true };

/// How long a process that owns the data may begin, or end, before it counts as one that cannot be attached to.
const OWNER_LIMIT: Duration = Duration::from_secs(10);

/// How long until the owner is looked for again; it doubles up to the second. Each attempt costs a thread.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(500);

impl Mcp {
    pub fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self.command {
            Some(Command::Install(install)) => install.run(shell),
            None => serve(shell, &Client { running: self.running, governed: self.governed }),
        }
    }
}

/// The client that started us, and what it wants.
struct Client {
    running: Running,
    governed: Option<GovernedRole>,
}

impl Client {
    fn settings(&self, shell: &Shell) -> Result<Settings, Failure> {
        shell.settings_logged("mcp", self.running.flags(), self.running.mode())
    }

    fn hello(&self, settings: &Settings) -> Hello {
        Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            governed: self.governed,
            server_name: settings.server_name.clone(),
            server_version: settings.server_version.clone(),
            instructions: settings.instructions.clone(),
            tools: settings.tool_filter.only.clone(),
            legacy: settings.eras.legacy,
            modern: settings.eras.modern,
            max_result_bytes: settings.result_bytes,
            settings: settings.fingerprints.clone(),
        }
    }
}

fn serve(shell: &Shell, client: &Client) -> Result<(), Failure> {
    // As plain files: the standard library's own have a buffer and a lock each that we do not need.
    let input = stdio::stdin().try_clone_to_owned().map_err(broken)?;
    let output = stdio::stdout().try_clone_to_owned().map_err(broken)?;
    if input.is_terminal() {
        shell.terminal.note("speaking MCP: one JSON message a line; Ctrl-D ends it. Editors start this themselves: orchestr8 mcp install --help");
    }
    let (input, output) = (File::from(input), File::from(output));
    let (mut patience, mut are_told) = (Patience::new(OWNER_LIMIT), false);
    loop {
        let mut settings = client.settings(shell)?;
        if std::mem::replace(&mut are_told, true) {
            settings.warnings.clear();
        }
        let mut refusal = None;
        if let Some(data) = shared_data(&settings) {
            match attach(&data, &client.hello(&settings)) {
                Ok(owner) => {
                    return AttachedProcess::new(shell, client, &settings, data).run(owner, input, output);
                }
                Err(Unattached::NoOwner) => {}
                Err(Unattached::Refused(reason)) => refusal = Some(reason),
            }
        }
        let (own_input, own_output) =
            (input.try_clone().map_err(broken)?, output.try_clone().map_err(broken)?);
        let owned = block_on(own(settings, client.governed, own_input, own_output, || {}));
        match owned {
            Err(failure) if failure.is_data_held => match refusal {
                None if patience.wait() => {}
                reason => return Err(held(failure, reason)),
            },
            ended => return ended,
        }
    }
}

/// The data file that other processes may own, unless this run must not depend on others.
fn shared_data(settings: &Settings) -> Option<PathBuf> {
    match &settings.store.place {
        Place::File { path, .. } if !settings.mode.deterministic => Some(path.clone()),
        Place::File { .. } | Place::Memory => None,
    }
}

/// Serves a client as the owner of the data, and those that attach. `ready` is called once others can attach.
async fn own(
    settings: Settings,
    governed: Option<GovernedRole>,
    input: impl Read + Send + 'static,
    output: impl Write + AsFd + Send + 'static,
    ready: impl FnOnce(),
) -> Result<(), Failure> {
    let who: Principal = principal(governed);
    let runtime = Runtime::build(settings, PURPOSE)?;
    runtime.begin().await?;
    let face = runtime.face().await?;
    AttachListener::start(&runtime, &face);
    ready();
    let input = Input { from: input, countdown: runtime.countdown.clone() };
    let (stop, limit) = (runtime.stop.clone(), runtime.settings.shutdown_limit);
    let served = serve_stdio::serve(&face, who.into(), input, output, stop, limit).await;
    face.wind_down();
    runtime.close().await;
    served.map(|_| ()).map_err(broken)
}

fn broken(cause: std::io::Error) -> Failure {
    Failure::new(Code::Unavailable, format!("stdin and stdout cannot be used: {cause}"))
        .hinting("start it from an MCP client, or with both open")
}

/// Why this process can neither own the data nor attach to the process that does.
fn held(failure: Failure, reason: Option<String>) -> Failure {
    let reason = reason.unwrap_or_else(|| String::from("that process does not let others attach"));
    Failure { message: format!("{}; {reason}", failure.message), ..failure }.hinting(
        "stop that process, or wait until it ends; --data-dir DIR gives this one data of its own, --ephemeral none that lasts",
    )
}

/// Waits between attempts, up to a limit in all.
struct Patience {
    left: Duration,
    next: Duration,
}

impl Patience {
    fn new(limit: Duration) -> Self {
        Self { left: limit, next: LOOK_AGAIN }
    }

    /// False: the time is over.
    fn wait(&mut self) -> bool {
        let is_left = !self.left.is_zero();
        if is_left {
            // The lock of a data file gives no notice when it is free.
            std::thread::park_timeout(self.next);
            self.left = self.left.saturating_sub(self.next);
            self.next = (self.next * 2).min(LOOK_AGAIN_MAX);
        }
        is_left
    }
}

/// Stdin, whose end is the beginning of ours.
struct Input<R> {
    from: R,
    countdown: Countdown,
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(bytes)?;
        if read == 0 {
            self.countdown.begin();
        }
        Ok(read)
    }
}
