//! The first process of a sandbox: builds it, starts the program with fewer rights than its own, reaps what the program
//! leaves, keeps the limits that hold for all processes together, and ends everything with the program.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, set_child_subreaper, set_parent_process_death_signal,
    setsid, wait,
};
use tokio::signal::unix::{SignalKind, signal};

use super::filter::Filters;
use super::processes::{SandboxProcesses, SandboxUsage};
use super::restrict::{has_signal_scope, limit, restrict};
use super::sealed::SealedPaths;
use super::spec::{FileIdentity, LaunchSpec, SandboxLevel};
use super::supervisor::{ended, hold, parent};
use super::system::TEMPORARY;
use super::{Error, ProbeReport, rootfs};

/// How often the use of all processes together is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What an exit code is when a limit or the end of the server ended the program: that of SIGKILL.
const KILLED: u8 = 137;

/// Runs the program to its end; gives back its exit code.
pub fn run(spec: &LaunchSpec, program: &[OsString]) -> Result<u8, Error> {
    let _lock = spec.lock.as_deref().map(hold).transpose()?;
    check_hidden(spec)?;
    let (supervisor, sealed) = match spec.level {
        SandboxLevel::Namespaces => {
            end_with_parent(spec.parent)?;
            (None, rootfs::build(spec)?)
        }
        SandboxLevel::Landlock | SandboxLevel::Unconfined => {
            // Out of its own session no process can join the server's process group, nor its terminal.
            setsid().map_err(|error| Error::setup("a session", error))?;
            set_child_subreaper(Some(rustix::process::getpid()))
                .map_err(|error| Error::setup("a subreaper", error))?;
            let sealed = SealedPaths::find(Path::new("."), &spec.sealed)?;
            (Some(parent(spec.parent)?), sealed)
        }
    };
    let filters = Filters::compile(spec.level, spec.scope_signals && has_signal_scope())?;
    limit(spec)?;
    let (Some(path), args) = (program.first(), program.get(1..).unwrap_or_default()) else {
        return Err(Error::Setup("a program", io::ErrorKind::InvalidInput.into()));
    };
    if spec.probe {
        return apart(spec, &sealed, filters, || Ok(())).and_then(|()| report());
    }
    check_identity(spec, Path::new(path))?;
    let mut command = Command::new(path);
    command.args(args);
    let temporary = spec.temporary.as_deref().unwrap_or(Path::new(TEMPORARY));
    command.env("TMPDIR", temporary);
    if spec.directory.is_none() {
        command.current_dir(temporary);
    }
    let runtime = super::runtime()?;
    let ended = runtime.block_on(async {
        // Before there is anything to hear of.
        let children = signal(SignalKind::child()).map_err(|error| Error::Setup("signals", error))?;
        let child = apart(spec, &sealed, filters, move || command.spawn().map_err(Error::Program))?;
        let main = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        InitLoop { spec, processes: SandboxProcesses::of(spec.level), main, supervisor, children }
            .until_end()
            .await
    });
    rootfs::take_away(&sealed);
    ended
}

/// Runs something on a thread that has given up its rights. What it starts has them no more either.
fn apart<T: Send + 'static>(
    spec: &LaunchSpec,
    sealed: &SealedPaths,
    filters: Filters,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (spec, sealed) = (spec.clone(), sealed.paths.clone());
    let thread = std::thread::spawn(move || {
        restrict(&spec, &sealed, &filters)?;
        work()
    });
    thread.join().unwrap_or_else(|_| Err(Error::Setup("a thread", io::ErrorKind::Other.into())))
}

/// In a namespace of its own, a process does not see its parent. The host's table, still mounted, shows it.
fn end_with_parent(expected: u32) -> Result<(), Error> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Error::setup("a parent's death signal", error))?;
    let status =
        fs::read_to_string("/proc/self/status").map_err(|error| Error::Setup("/proc/self/status", error))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
    match parent.is_some_and(|parent| parent.parse() == Ok(expected)) {
        true => Ok(()),
        false => Err(Error::Setup("the supervisor", io::ErrorKind::NotFound.into())),
    }
}

/// The server has checked it; here it is certain that what is hidden in the directory can be.
fn check_hidden(spec: &LaunchSpec) -> Result<(), Error> {
    let inside = |hidden: &Path| {
        let is_within = spec.directory.iter().any(|directory| directory.starts_with(hidden));
        let is_around = spec.directory.iter().any(|directory| hidden.starts_with(directory));
        is_within || (is_around && spec.level != SandboxLevel::Namespaces)
    };
    match spec.hidden.iter().find(|hidden| inside(hidden)) {
        Some(hidden) => Err(Error::Hidden(hidden.clone())),
        None => Ok(()),
    }
}

fn check_identity(spec: &LaunchSpec, program: &Path) -> Result<(), Error> {
    let Some(expected) = spec.identity else { return Ok(()) };
    let found = fs::metadata(program).map_err(|error| Error::At(program.to_owned(), error))?;
    match FileIdentity::of(&found) == expected {
        true => Ok(()),
        false => Err(Error::Changed(program.to_owned())),
    }
}

/// What a probe learns, as JSON on stdout.
fn report() -> Result<u8, Error> {
    let report = ProbeReport { processes: Path::new("/proc/self/stat").exists() };
    let text = serde_json::to_string(&report).map_err(|error| Error::Setup("the report", error.into()))?;
    io::Write::write_all(&mut io::stdout(), text.as_bytes())
        .map_err(|error| Error::Setup("the report", error))?;
    Ok(0)
}

struct InitLoop<'a> {
    spec: &'a LaunchSpec,
    processes: SandboxProcesses,
    main: Option<Pid>,
    /// None: the kernel ends this process with it.
    supervisor: Option<std::os::fd::OwnedFd>,
    children: tokio::signal::unix::Signal,
}

impl InitLoop<'_> {
    async fn until_end(mut self) -> Result<u8, Error> {
        let failed = |error: io::Error| Error::Setup("signals", error);
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let supervisor = self.supervisor.take().map(ended);
        let gone = async {
            match supervisor {
                Some(supervisor) => drop(supervisor.await),
                None => std::future::pending().await,
            }
        };
        tokio::pin!(gone);
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let code = loop {
            tokio::select! {
                biased;
                () = &mut gone => break KILLED,
                Some(()) = interrupt.recv() => break KILLED,
                // The program has heard it too.
                Some(()) = terminate.recv() => {}
                Some(()) = self.children.recv() => {
                    if let Some(code) = self.reap() {
                        break code;
                    }
                }
                _ = look.tick() => {
                    if let Some(excess) = self.excess() {
                        super::complain(&format!("killed: {excess}"));
                        break KILLED;
                    }
                }
            }
        };
        self.end_all().await;
        Ok(code)
    }

    /// Takes the status of all that has ended; gives back the code of the program itself.
    fn reap(&self) -> Option<u8> {
        let mut code = None;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if Some(pid) == self.main {
                code = Some(exit_code(status));
            }
        }
        code
    }

    fn excess(&self) -> Option<String> {
        let limits = &self.spec.limits;
        let SandboxUsage { processes, memory_bytes } = self.processes.usage();
        if processes > limits.processes {
            return Some(format!("more than {} processes (sandbox.processes)", limits.processes));
        }
        if memory_bytes <= limits.memory_bytes {
            return None;
        }
        let mib = limits.memory_bytes >> 20;
        let exact = self.processes.proportional_memory_bytes().unwrap_or(memory_bytes);
        (exact > limits.memory_bytes).then(|| format!("more than {mib} MiB of memory (sandbox.memoryMb)"))
    }

    /// In a namespace the kernel does it when this process ends. Elsewhere all that was left became its children.
    async fn end_all(&self) {
        if self.spec.level == SandboxLevel::Namespaces {
            return;
        }
        loop {
            for pid in self.processes.all() {
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    // There is no child any more.
                    Err(_) => return,
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
