//! The shell beside a conversation: one command in the session's folder, confined to it, stopped whole, heard within limits.

pub mod confine;
mod screen;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use orchestr8_contract::{Code, Fault};
use orchestr8_process::{Child, Ended, Tail, as_one};
use tokio::process::Command;
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
    /// Whether it could write only where it should.
    pub confined: bool,
}

/// Runs a command until its end, or until it is to stop.
pub async fn run(hub: &Hub, cwd: &Path, line: &str, stop: &CancellationToken) -> Result<Ran, Fault> {
    let (mut command, confined) = command(hub.settings(), cwd, line)?;
    let unstarted = |error: std::io::Error| {
        Fault::new(Code::Unavailable, format!("the shell could not be started: {}", error.kind()))
            .because(error)
    };
    let pipe = as_one(&mut command).map_err(unstarted)?;
    let child = Child::start(&mut command, hub.kernel().ports().clock.clone()).map_err(unstarted)?;
    // It holds an end of the pipe.
    drop(command);
    let mut tail = Tail::new(limits::BASH_OUTPUT_BYTES);
    let ended = child.finish_unless(tail.listen(pipe), stop.cancelled()).await.map_err(unstarted)?;
    let output = screen::readable(&tail.text());
    let (exit_code, stopped) = match ended {
        // As shells count it: a signal is 128 and its number.
        Ended::Itself(status) => {
            (status.code().or_else(|| status.signal().map(|signal| 128 + signal)), false)
        }
        Ended::Stopped => (None, true),
    };
    Ok(Ran { exit_code, output, truncated: tail.is_cut(), stopped, confined })
}

/// The command for a line of the shell, and whether it is confined.
fn command(settings: &Settings, cwd: &Path, line: &str) -> Result<(Command, bool), Fault> {
    let shell = SHELLS.into_iter().map(Path::new).find(|shell| shell.exists());
    let shell = shell.ok_or_else(|| Fault::new(Code::Unavailable, "there is no shell on this machine"))?;
    let launcher = settings.launcher.as_ref().filter(|_| confine::available());
    let mut command = match launcher {
        Some((program, args)) => {
            let mut command = Command::new(program);
            command.args(args).arg(cwd).arg("--").arg(shell);
            command
        }
        None if settings.bash_unconfined => Command::new(shell),
        None => return Err(unconfined()),
    };
    let confined = launcher.is_some();
    command.arg("-c").arg(line).current_dir(cwd).stdin(Stdio::null()).env_clear();
    command
        .envs(PRESET)
        .envs(settings.bash_env.iter().map(|(name, value)| (name, value)))
        .env("TERM", "dumb");
    Ok((command, confined))
}

fn unconfined() -> Fault {
    Fault::new(
        Code::Unauthorized,
        "commands cannot be confined to the session's folder here, which takes Linux 6.2 or newer with Landlock; \
         set `sessions.bashUnconfined` to true to run them all the same",
    )
    .with("setting", "sessions.bashUnconfined")
}

/// A program that confines itself and then becomes the program it is given: its path and the arguments before the folder.
pub type Launcher = (PathBuf, Vec<String>);
