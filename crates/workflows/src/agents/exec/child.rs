//! A running program, in a process group of its own that is never left behind.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::ports::Clock;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};

use super::program::Program;
use crate::limits::{OUTPUT_BYTES, PROGRAM_CLOSE_MS, PROGRAM_TERM_MS, STDERR_KEPT_BYTES};

/// How it ended, and what it said.
pub struct Ended {
    pub status: ExitStatus,
    pub said: Said,
}

#[derive(Default)]
pub struct Said {
    pub stdout: Vec<u8>,
    /// There was more on stdout than is taken.
    pub too_long: bool,
    /// The last of it.
    pub stderr: Vec<u8>,
}

/// Dropped before its end, it is asked to end and killed a little later, with everything in its group.
pub struct Child {
    running: Option<(tokio::process::Child, Group)>,
    clock: Arc<dyn Clock>,
}

/// The processes of a program: dropped, they are killed.
struct Group(Option<Pid>);

impl Child {
    /// Its environment is only what it is given.
    pub fn start(program: &Program, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        command
            .args(&program.args)
            .env_clear()
            .envs(&program.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = &program.cwd {
            command.current_dir(cwd);
        }
        let process = command.spawn()?;
        // The child leads its group, so the group has the child's id.
        let group = Group(process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
        Ok(Self { running: Some((process, group)), clock })
    }

    /// Gives it its input and waits for its end. What it leaves behind in its group ends with it.
    pub async fn finish(mut self, input: Vec<u8>) -> io::Result<Ended> {
        let Some((process, group)) = &mut self.running else {
            return Err(io::Error::other("the program was ended before"));
        };
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the pipes to the program are missing"));
        };
        let mut said = Said::default();
        let Said { stdout: out, too_long, stderr: err } = &mut said;
        let mut talking = Box::pin(async {
            tokio::join!(tell(stdin, &input), hear(stdout, out, too_long, group), overhear(stderr, err));
        });
        let status = tokio::select! {
            () = &mut talking => process.wait().await?,
            status = process.wait() => {
                let status = status?;
                // Whoever holds the pipes now was left behind; its words are not waited for.
                group.signal(Signal::KILL);
                tokio::select! {
                    () = &mut talking => {}
                    () = self.clock.sleep(Duration::from_millis(PROGRAM_CLOSE_MS)) => {}
                }
                status
            }
        };
        drop(talking);
        self.running = None;
        Ok(Ended { status, said })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Without a runtime to wait in, dropping the group kills it at once.
        if let (Some((process, group)), Ok(runtime)) =
            (self.running.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(end(process, group, self.clock.clone()));
        }
    }
}

/// Asks all of the group to end; what is still there a little later is killed.
async fn end(mut process: tokio::process::Child, group: Group, clock: Arc<dyn Clock>) {
    group.signal(Signal::TERM);
    tokio::select! {
        _ = process.wait() => {}
        () = clock.sleep(Duration::from_millis(PROGRAM_TERM_MS)) => {}
    }
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The group may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// A program need not read its input, so what it does not take is not missed.
async fn tell(mut stdin: ChildStdin, input: &[u8]) {
    let _ = stdin.write_all(input).await;
}

/// Takes stdout up to the limit; a program that writes more is killed.
async fn hear(stdout: impl AsyncRead + Unpin, out: &mut Vec<u8>, too_long: &mut bool, group: &Group) {
    let mut limited = stdout.take(OUTPUT_BYTES as u64 + 1);
    let _ = limited.read_to_end(out).await;
    if out.len() > OUTPUT_BYTES {
        *too_long = true;
        group.signal(Signal::KILL);
    }
}

/// Keeps the last of stderr.
async fn overhear(mut stderr: impl AsyncRead + Unpin, kept: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        let excess = kept.len().saturating_sub(STDERR_KEPT_BYTES);
        kept.drain(..excess);
    }
}
