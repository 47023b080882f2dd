//! The shell beside a conversation: one command in the session's folder, in a sandbox, its output kept within limits.

mod screen;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_process::sandbox::{self, SandboxLevel, SandboxRun, SandboxedCommand, WorkingDirectory};
use orchestr8_process::{Ended, Tail, as_one};
use tokio_util::sync::CancellationToken;

use crate::hub::{Hub, Settings};
use crate::limits;

/// Where shells are looked for, the best first.
const SHELLS: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"];

/// What a command may know if the settings say nothing else.
const PRESET: [(&str, &str); 2] = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8")];

/// How a command ended, and what it said.
pub struct Ran {
    /// None when it was stopped.
    pub exit_code: Option<i32>,
    pub output: String,
    /// Only the end of the output is there.
    pub truncated: bool,
    pub stopped: bool,
    /// How strongly it was confined.
    pub level: SandboxLevel,
}

/// Runs a command until its end, or until it is to stop.
pub async fn run(
    hub: &Hub,
    tenant: &Tenant,
    cwd: &Path,
    line: &str,
    stop: &CancellationToken,
) -> Result<Ran, Fault> {
    let directory = hub.settings().roots.of_tenant(tenant).open(cwd)?;
    let mut sandboxed = command(hub.settings(), directory, line).await?;
    let unstarted = |error: std::io::Error| {
        Fault::new(Code::Unavailable, format!("the shell could not be started: {}", error.kind()))
            .because(error)
    };
    let pipe = as_one(&mut sandboxed.command).map_err(unstarted)?;
    let child = sandboxed.start(hub.kernel().ports().clock.clone()).map_err(unstarted)?;
    let level = sandboxed.level;
    // It holds an end of the pipe.
    drop(sandboxed);
    let mut tail = Tail::new(limits::BASH_OUTPUT_BYTES);
    let ended = child.finish_unless(tail.listen(pipe), stop.cancelled()).await.map_err(unstarted)?;
    let output = screen::readable(&tail.text());
    let (exit_code, stopped) = match ended {
        // As shells count it: a signal is 128 and its number.
        Ended::Itself(status) => {
            (status.code().or_else(|| status.signal().map(|signal| 128 + signal)), false)
        }
        Ended::Stopped { .. } => (None, true),
    };
    Ok(Ran { exit_code, output, truncated: tail.is_cut(), stopped, level })
}

/// The command for a line of the shell.
async fn command(
    settings: &Settings,
    directory: WorkingDirectory,
    line: &str,
) -> Result<SandboxedCommand, Fault> {
    let shell = SHELLS.into_iter().map(Path::new).find(|shell| shell.exists());
    let shell = shell.ok_or_else(|| Fault::new(Code::Unavailable, "there is no shell on this machine"))?;
    let sandbox = settings.sandbox.as_ref();
    let sandbox = sandbox.ok_or_else(|| refusal(sandbox::Error::Unavailable(String::from("no launcher"))))?;
    let run = SandboxRun {
        program: shell.to_owned(),
        args: vec!["-c".into(), line.into()],
        directory: Some(directory),
        sealed: settings.sealed.clone(),
        identity: None,
    };
    let mut sandboxed = sandbox.command(run).await.map_err(refusal)?;
    sandboxed
        .command
        .stdin(Stdio::null())
        .env_clear()
        .envs(PRESET)
        .envs(settings.bash_env.iter().map(|(name, value)| (name, value)))
        .env("TERM", "dumb");
    Ok(sandboxed)
}

/// Why there is no sandbox for a command, as the client is told.
fn refusal(error: sandbox::Error) -> Fault {
    let text = error.to_string();
    match error {
        sandbox::Error::Unavailable(_) => {
            Fault::new(Code::Unauthorized, text).with("setting", "sandbox.mode")
        }
        sandbox::Error::Hidden(_) | sandbox::Error::Home(_) | sandbox::Error::Startup(_) => {
            Fault::new(Code::Unauthorized, text).with("setting", "sessions.roots")
        }
        sandbox::Error::Unsealed(..) => Fault::new(Code::Unauthorized, text),
        sandbox::Error::Setup(..)
        | sandbox::Error::At(..)
        | sandbox::Error::Landlock(_)
        | sandbox::Error::Filter(_)
        | sandbox::Error::Changed(_)
        | sandbox::Error::Program(_)
        | sandbox::Error::TooLarge { .. }
        | sandbox::Error::Busy => {
            Fault::new(Code::Unavailable, "the shell could not be started").because(error)
        }
    }
}
