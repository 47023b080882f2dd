//! Programs of this machine: each in a sandbox, or at least in a process group of its own, that is never left behind.

mod ears;
pub mod limits;
pub mod sandbox;
pub mod tenant_folder;

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::ports::Clock;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

pub use ears::{Tail, as_one};

/// The first file descriptor after stdin, stdout and stderr.
const FIRST_INHERITED: i32 = 3;

/// Keeps files and connections that this process was started with from the programs it starts: a sandbox has no other way to them.
/// Called first, while there is one thread and nothing of our own is open.
pub fn close_inherited_files_on_exec() {
    close_fds::set_fds_cloexec(FIRST_INHERITED, &[]);
}

/// A running program. Dropped before its end, it is asked to end and killed a little later, with everything in its group.
pub struct Child {
    running: Option<Running>,
    clock: Arc<dyn Clock>,
}

struct Running {
    process: tokio::process::Child,
    group: Group,
    /// The process is the supervisor of a sandbox: it ends after everything in it.
    is_supervised: bool,
    /// Dropped when all of it is gone.
    held: Option<Box<dyn Send>>,
}

/// The processes of a program: dropped, they are killed.
struct Group(Option<Pid>);

/// Kills a program from elsewhere while it runs.
#[derive(Clone, Copy)]
pub struct Killer {
    group: Option<Pid>,
    signal: Signal,
}

/// How it came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Itself(ExitStatus),
    /// It was told to; by force if it did not end in time.
    Stopped {
        is_forced: bool,
    },
}

/// The pipes to a program that were asked for.
#[derive(Default)]
pub struct Pipes {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

impl Child {
    /// Starts it in a group of its own. What it is, where it works and what it may know is the command's business.
    pub fn start(command: &mut Command, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let process = command.process_group(0).kill_on_drop(true).spawn()?;
        // The child leads its group, so the group has the child's id.
        let group = Group(process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
        Ok(Self { running: Some(Running { process, group, is_supervised: false, held: None }), clock })
    }

    /// The program is the supervisor of a sandbox, which is asked to end the sandbox before it is killed itself.
    pub(crate) fn supervised(mut self) -> Self {
        if let Some(running) = &mut self.running {
            running.is_supervised = true;
        }
        self
    }

    /// Keeps a value until the program and all it has started are gone, however this handle ends.
    pub fn holding(mut self, value: impl Send + 'static) -> Self {
        if let Some(running) = &mut self.running {
            running.held = Some(Box::new(value));
        }
        self
    }

    /// Once; later there are none left.
    pub fn pipes(&mut self) -> Pipes {
        match &mut self.running {
            Some(Running { process, .. }) => Pipes {
                stdin: process.stdin.take(),
                stdout: process.stdout.take(),
                stderr: process.stderr.take(),
            },
            None => Pipes::default(),
        }
    }

    pub fn killer(&self) -> Killer {
        let supervised = self.running.as_ref().is_some_and(|running| running.is_supervised);
        let signal = if supervised { Signal::INT } else { Signal::KILL };
        Killer { group: self.running.as_ref().and_then(|running| running.group.0), signal }
    }

    /// Waits for its end while somebody talks with it. What it leaves behind in its group ends with it.
    pub async fn finish(self, talking: impl Future<Output = ()>) -> io::Result<ExitStatus> {
        match self.finish_unless(talking, std::future::pending()).await? {
            Ended::Itself(status) => Ok(status),
            Ended::Stopped { .. } => Err(io::Error::other("a program that has no stop signal was stopped")),
        }
    }

    /// As `finish`, unless it is to stop before; then it is asked to, and killed if it does not.
    pub async fn finish_unless(
        mut self,
        talking: impl Future<Output = ()>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<Ended> {
        let Some(running) = &mut self.running else {
            return Err(io::Error::other("the program was ended before"));
        };
        let Running { process, group, is_supervised, .. } = running;
        let pause = |ms| self.clock.sleep(Duration::from_millis(ms));
        let mut talking = std::pin::pin!(talking);
        let mut talked = false;
        let mut stop = std::pin::pin!(stop);
        let mut ended = loop {
            tokio::select! {
                biased;
                status = process.wait() => break Ended::Itself(status?),
                () = &mut stop => break Ended::Stopped { is_forced: false },
                () = &mut talking, if !talked => talked = true,
            }
        };
        if let Ended::Stopped { is_forced } = &mut ended {
            group.signal(Signal::TERM);
            let mut grace = pause(limits::TERM_MS);
            loop {
                tokio::select! {
                    biased;
                    _ = process.wait() => break,
                    () = &mut grace => {
                        *is_forced = true;
                        break;
                    }
                    () = &mut talking, if !talked => talked = true,
                }
            }
            if *is_supervised {
                group.end_sandbox(process, &self.clock).await;
            }
        }
        // Whoever holds the pipes now was left behind; its words are not waited for.
        group.signal(Signal::KILL);
        if !talked {
            tokio::select! {
                () = &mut talking => {}
                () = pause(limits::CLOSE_MS) => {}
            }
        }
        process.wait().await?;
        self.running = None;
        Ok(ended)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Without a runtime to wait in, dropping the group kills it at once.
        if let (Some(running), Ok(runtime)) = (self.running.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(end(running, self.clock.clone()));
        }
    }
}

/// Asks all of the group to end; what is still there a little later is killed.
async fn end(mut running: Running, clock: Arc<dyn Clock>) {
    running.group.signal(Signal::TERM);
    tokio::select! {
        _ = running.process.wait() => return,
        () = clock.sleep(Duration::from_millis(limits::TERM_MS)) => {}
    }
    if running.is_supervised {
        running.group.end_sandbox(&mut running.process, &clock).await;
    }
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The group may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Waits until nothing in the sandbox lives, so that nothing overlaps what is started next.
    async fn end_sandbox(&self, supervisor: &mut tokio::process::Child, clock: &Arc<dyn Clock>) {
        self.signal(Signal::INT);
        tokio::select! {
            _ = supervisor.wait() => {}
            () = clock.sleep(Duration::from_millis(limits::END_MS)) => {}
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Killer {
    pub fn kill(self) {
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = kill_process_group(group, self.signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::ports::clock::Real;
    use orchestr8_testing::until;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt};
    use tokio_util::sync::CancellationToken;

    async fn run(script: &str, stop: &CancellationToken) -> (Ended, String) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(std::process::Stdio::null());
        let mut pipe = as_one(&mut command).unwrap();
        let child = Child::start(&mut command, Arc::new(Real::new())).unwrap();
        drop(command);
        let mut tail = Tail::new(100);
        let mut stopped = false;
        let ended = child
            .finish_unless(
                async {
                    let mut buffer = [0; 64];
                    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
                        tail.take(&buffer[..read]);
                        // The script says when it may be stopped.
                        if !stopped && tail.text().contains("ready") {
                            stopped = true;
                            stop.cancel();
                        }
                    }
                },
                stop.cancelled(),
            )
            .await
            .unwrap();
        (ended, tail.text())
    }

    #[tokio::test]
    async fn both_outputs_are_heard_in_order_and_only_the_end_is_kept() {
        let (ended, text) =
            run("echo one; echo two >&2; echo three; exit 3", &CancellationToken::new()).await;
        assert_eq!(text, "one\ntwo\nthree\n");
        assert!(matches!(ended, Ended::Itself(status) if status.code() == Some(3)));
        let (_, text) =
            run("i=0; while [ $i -lt 999 ]; do echo $i; i=$((i+1)); done", &CancellationToken::new()).await;
        assert!(text.ends_with("997\n998\n") && text.len() == 100, "{text}");
    }

    #[tokio::test]
    async fn what_is_stopped_ends_with_all_it_started_also_if_it_does_not_want_to() {
        for (script, is_forced) in [
            ("sleep 600 & echo ready; wait", false),
            ("trap '' TERM; echo ready; while :; do sleep 600; done", true),
        ] {
            let (ended, text) = run(script, &CancellationToken::new()).await;
            assert_eq!((ended, text.as_str()), (Ended::Stopped { is_forced }, "ready\n"), "{script}");
        }
    }

    #[tokio::test]
    async fn what_it_leaves_behind_does_not_hold_up_its_end() {
        let (ended, text) = run("sleep 600 & echo done", &CancellationToken::new()).await;
        assert!(matches!(ended, Ended::Itself(status) if status.success()) && text == "done\n");
    }

    #[test]
    fn with_the_server_everything_it_started_ends() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let pid = runtime.block_on(async {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "sleep 600 & echo $!; wait"]).stdout(std::process::Stdio::piped());
            let mut child = Child::start(&mut command, Arc::new(Real::new())).unwrap();
            let stdout = child.pipes().stdout.unwrap();
            tokio::spawn(child.finish(std::future::pending()));
            let line = tokio::io::BufReader::new(stdout).lines().next_line().await.unwrap().unwrap();
            Pid::from_raw(line.parse().unwrap()).unwrap()
        });
        rustix::process::test_kill_process(pid).unwrap();
        drop(runtime);
        let patient = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        patient.block_on(until("it to end", || rustix::process::test_kill_process(pid).is_err()));
    }
}
