//! Child processes, each in its own process group and under a time limit, so that none is left behind.
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a group has to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(10);

static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// What a finished command left behind.
pub struct Finished {
    pub success: bool,
    pub timed_out: bool,
    /// Standard output alone, for parsing.
    pub stdout: String,
    /// Both streams in the order they arrived, for people.
    pub output: String,
}

impl Finished {
    /// Turns a failed command into an error that carries its output.
    pub fn require(self, what: &str) -> Result<Finished> {
        if self.timed_out {
            bail!("{what}: took too long\n{}", self.output);
        }
        if !self.success {
            bail!("{what}: failed\n{}", self.output);
        }
        Ok(self)
    }
}

/// A running child; dropping it ends its whole group.
pub struct Group {
    child: Child,
    pid: Pid,
}

impl Group {
    pub fn spawn(command: &mut Command) -> Result<Group> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.process_group(0).spawn().with_context(|| format!("cannot start {name}"))?;
        let pid = Pid::from_child(&child);
        groups().push(pid);
        Ok(Group { child, pid })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// As Ctrl-C in a terminal would.
    pub fn ask_to_end(&self) {
        // It may have ended by itself.
        let _ = kill_process_group(self.pid, Signal::INT);
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Waits for its end, however long that takes; true if it ended well.
    pub fn wait(&mut self) -> bool {
        self.child.wait().is_ok_and(|status| status.success())
    }

    fn wait_until(&mut self, deadline: Instant) -> Option<bool> {
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status.success());
            }
            thread::sleep(POLL);
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The leader may be gone while something it started is not, so the group is signalled either way.
        let _ = kill_process_group(self.pid, Signal::TERM);
        self.wait_until(Instant::now() + GRACE);
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = self.child.wait();
        groups().retain(|pid| *pid != self.pid);
    }
}

/// Runs a command to its end and keeps its output; `show` also prints it as it comes.
pub fn run(command: &mut Command, limit: Duration, show: bool) -> Result<Finished> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = Group::spawn(command)?;
    let (lines, arrived) = std::sync::mpsc::channel();
    let out = group.child.stdout.take().context("no stdout")?;
    let err = group.child.stderr.take().context("no stderr")?;
    let readers = [read_lines(out, true, lines.clone()), read_lines(err, false, lines)];
    let printer = thread::spawn(move || {
        let (mut stdout, mut output) = (String::new(), String::new());
        for (is_stdout, line) in arrived {
            if show {
                eprintln!("{line}");
            }
            output.push_str(&line);
            output.push('\n');
            if is_stdout {
                stdout.push_str(&line);
                stdout.push('\n');
            }
        }
        (stdout, output)
    });
    let verdict = group.wait_until(Instant::now() + limit);
    drop(group);
    for reader in readers {
        let _ = reader.join();
    }
    let (stdout, output) = printer.join().unwrap_or_default();
    Ok(Finished { success: verdict == Some(true), timed_out: verdict.is_none(), stdout, output })
}

/// Runs a command to its end with our own stderr, so that a terminal shows its progress bar.
pub fn watch(command: &mut Command, limit: Duration, what: &str) -> Result<()> {
    let mut group = Group::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()))?;
    match group.wait_until(Instant::now() + limit) {
        Some(true) => Ok(()),
        Some(false) => bail!("{what}: failed; the reason is above"),
        None => bail!("{what}: took longer than {} minutes", limit.as_secs() / 60),
    }
}

/// Ends every group before the tool itself ends on Ctrl-C, a closed terminal or a plain kill.
pub fn kill_children_on_interrupt() {
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            for pid in groups().iter() {
                let _ = kill_process_group(*pid, Signal::KILL);
            }
            std::process::exit(130);
        }
    });
}

fn groups() -> std::sync::MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

type Lines = std::sync::mpsc::Sender<(bool, String)>;

fn read_lines(from: impl Read + Send + 'static, is_stdout: bool, to: Lines) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n') {
            let Ok(line) = line else { return };
            if to.send((is_stdout, String::from_utf8_lossy(&line).into_owned())).is_err() {
                return;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Group, run, watch};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn keeps_stdout_apart_and_reports_the_exit() {
        let done = run(&mut shell("echo out; echo err >&2; exit 3"), Duration::from_secs(10), false).unwrap();
        assert!(!done.success && !done.timed_out);
        assert_eq!(done.stdout, "out\n");
        assert!(done.output.contains("err"));
    }

    #[test]
    fn a_command_over_its_limit_ends_with_its_children() {
        let done = run(&mut shell("sleep 600 & sleep 600"), Duration::from_millis(200), false).unwrap();
        assert!(done.timed_out);
    }

    #[test]
    fn watching_reports_a_failure_and_a_timeout() {
        let limit = Duration::from_secs(10);
        assert!(watch(&mut shell("exit 0"), limit, "a build").is_ok());
        let failed = watch(&mut shell("exit 3"), limit, "a build").unwrap_err();
        assert_eq!(failed.to_string(), "a build: failed; the reason is above");
        assert!(watch(&mut shell("sleep 600"), Duration::from_millis(50), "a build").is_err());
    }

    #[test]
    fn dropping_a_group_ends_it() {
        let group = Group::spawn(shell("sleep 600").stdout(Stdio::null())).unwrap();
        let proc = std::path::PathBuf::from(format!("/proc/{}", group.child.id()));
        assert!(proc.exists());
        drop(group);
        assert!(!proc.exists());
    }
}
