//! A server as a child process, in a process group of its own that is never left behind.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::Log;
use orchestr8_kernel::ports::Clock;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{ChildStdin, ChildStdout, Command};

use super::limits::{CLOSE_MS, EXIT_MS, TERM_MS};
use super::stderr::{self, StderrTail};

/// What to start.
pub struct Program<'a> {
    pub command: &'a str,
    pub args: &'a [String],
    pub base_env: &'a BTreeMap<String, String>,
    pub env: &'a BTreeMap<String, String>,
    pub cwd: Option<&'a PathBuf>,
}

/// A running child. Dropped, it is killed with everything in its group.
pub struct Child {
    process: tokio::process::Child,
    /// None once the group was killed for good.
    group: Option<Pid>,
}

impl Child {
    /// Starts the program. Its environment is only what it is given.
    pub fn start(
        program: &Program<'_>,
        log: &Log,
        clock: &Arc<dyn Clock>,
        tail: &Arc<StderrTail>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut command = Command::new(program.command);
        command
            .args(program.args)
            .env_clear()
            .envs(program.base_env)
            .envs(program.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = program.cwd {
            command.current_dir(cwd);
        }
        let mut process = command.spawn()?;
        // The child leads its group, so the group has the child's id.
        let group = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pipes = (process.stdout.take(), process.stdin.take(), process.stderr.take());
        let child = Self { process, group };
        match pipes {
            (Some(stdout), Some(stdin), Some(stderr)) => {
                tokio::spawn(stderr::tell(stderr, log.clone(), clock.clone(), tail.clone()));
                Ok((child, stdout, stdin))
            }
            _ => Err(io::Error::other("the pipes to the child are missing")),
        }
    }

    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Waits for its end, and at once ends what it has left behind in its group, while the group's id can be nobody else's.
    /// May be dropped while it waits.
    pub async fn exited(&mut self) -> Option<ExitStatus> {
        let status = self.process.wait().await.ok();
        self.kill();
        status
    }

    /// Ends it, its stdin being closed: waits, asks, kills.
    pub async fn end(mut self, clock: &dyn Clock) {
        for (limit_ms, then) in
            [(EXIT_MS, Some(Signal::TERM)), (TERM_MS, Some(Signal::KILL)), (CLOSE_MS, None)]
        {
            let over = tokio::select! {
                biased;
                _ = self.exited() => true,
                () = clock.sleep(Duration::from_millis(limit_ms)) => false,
            };
            match (over, then) {
                (true, _) | (false, None) => return,
                (false, Some(signal)) => self.signal(signal),
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.group = None;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
