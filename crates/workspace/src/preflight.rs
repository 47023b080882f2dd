//! The commands of a plan, run after a write; all of them must succeed.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Thrown;
use orchestr8_kernel::ports::Clock;
use orchestr8_process::sandbox::{self, SandboxRun, SandboxedCommand, WorkingDirectory};
use orchestr8_process::{Ended, Tail, as_one};

use crate::hub::Settings;
use crate::limits;
use crate::plan::Command;
use crate::refusal::Refusal;
use crate::root::Root;
use crate::sealed;

/// Runs the commands one after the other in the workspace, each within its time.
pub async fn run(
    root: &Root,
    commands: &[Command],
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<(), Refusal> {
    for command in commands {
        run_one(root, command, settings, clock).await?;
    }
    Ok(())
}

async fn run_one(
    root: &Root,
    command: &Command,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<(), Refusal> {
    let refuse = |why: String, code: Option<String>, output: String| {
        Refusal::new(Code::PreflightFailed, format!("`{}` {why}; the write was taken back", command.text))
            .with("command", command.text.as_str())
            .with("output", output)
            .because(Thrown::error("Preflight", code.as_deref(), why))
    };
    let not_started =
        |error: std::io::Error| refuse(format!("could not be started: {error}"), None, String::new());
    let mut program = sandboxed(root, command, settings)
        .await
        .map_err(|error| refuse(format!("could not be started: {error}"), None, String::new()))?;
    let ears = as_one(&mut program.command).map_err(not_started)?;
    let child = program.start(clock.clone()).map_err(not_started)?;
    // The command holds an end of the pipe; without letting go of it there is no end to what it says.
    drop(program);
    let mut tail = Tail::new(limits::OUTPUT_BYTES);
    let stop = clock.sleep(Duration::from_millis(command.limit_ms));
    let ended = child.finish_unless(tail.listen(ears), stop).await;
    match ended {
        Ok(Ended::Itself(status)) if status.success() => Ok(()),
        Ok(Ended::Itself(status)) => {
            let code = status.code().map(|code| code.to_string());
            Err(refuse(format!("failed with {status}"), code, tail.text()))
        }
        Ok(Ended::Stopped { .. }) => {
            let why = format!("took longer than {} ms", command.limit_ms);
            Err(refuse(why, Some(String::from("TIMEOUT")), tail.text()))
        }
        Err(error) => Err(refuse(format!("could not be waited for: {error}"), None, tail.text())),
    }
}

/// The command in the sandbox, on the opened folder of the workspace.
async fn sandboxed(
    root: &Root,
    command: &Command,
    settings: &Settings,
) -> Result<SandboxedCommand, sandbox::Error> {
    let sandbox = settings.sandbox.as_ref();
    let sandbox = sandbox.ok_or_else(|| sandbox::Error::Unavailable(String::from("no launcher")))?;
    let at = |error: std::io::Error| sandbox::Error::At(root.path().to_owned(), error);
    let handle = root.handle().try_clone().map_err(at)?;
    let run = SandboxRun {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), command.text.clone().into()],
        directory: Some(WorkingDirectory::of(handle, root.path().to_owned())),
        sealed: sealed::in_workspace(root).map_err(|refusal| at(std::io::Error::other(refusal.message)))?,
        identity: None,
    };
    let mut sandboxed = sandbox.command(run).await?;
    sandboxed.command.env_clear().envs(&settings.base_env).stdin(std::process::Stdio::null());
    Ok(sandboxed)
}
