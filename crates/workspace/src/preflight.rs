//! The commands of a plan, run before a file is put in its place; all of them must succeed. Each sees a private view of the
//! workspace in which the file is there already. What it changes is discarded. See ADR 60.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Thrown;
use orchestr8_kernel::ports::Clock;
use orchestr8_process::sandbox::{
    self, ChangedPaths, CopyLimits, DirectoryView, MissingPath, Sandbox, SandboxLevel, SandboxRun,
    SandboxedCommand, SealedPath, WorkingDirectory,
};
use orchestr8_process::{Ended, Tail, as_one};
use serde_json::{Value, json};

use crate::hub::Settings;
use crate::limits;
use crate::plan::Command;
use crate::refusal::Refusal;
use crate::root::{Inside, Root};

/// The text that is to be verified, before it is in its place.
#[derive(Clone)]
pub struct Candidate {
    pub path: Inside,
    pub bytes: Arc<[u8]>,
    pub mode: u32,
}

/// What a command changed in its view; nothing of it is left.
pub struct Discarded {
    command: String,
    changed: ChangedPaths,
}

impl Discarded {
    /// As it is told to the caller.
    pub fn shown(&self) -> Value {
        json!({"command": self.command, "paths": self.changed.paths, "more": self.changed.is_cut})
    }
}

/// Runs the commands one after the other, each in a fresh view and within its time. Gives back what was discarded, if anything.
pub async fn run(
    root: &Root,
    candidate: &Candidate,
    commands: &[Command],
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<Discarded>, Refusal> {
    let mut discarded = Vec::new();
    for command in commands {
        let gate = Gate { root, candidate, command, settings, clock };
        let changed = gate.run().await?;
        if !changed.paths.is_empty() {
            discarded.push(Discarded { command: command.text.clone(), changed });
        }
    }
    Ok(discarded)
}

/// One command and what it is run with.
struct Gate<'a> {
    root: &'a Root,
    candidate: &'a Candidate,
    command: &'a Command,
    settings: &'a Settings,
    clock: &'a Arc<dyn Clock>,
}

impl Gate<'_> {
    fn refuse(&self, why: String, code: Option<String>, output: String) -> Refusal {
        let text = self.command.text.as_str();
        Refusal::new(Code::PreflightFailed, format!("`{text}` {why}; nothing was written"))
            .with("command", text)
            .with("output", output)
            .because(Thrown::error("Preflight", code.as_deref(), why))
    }

    fn not_started(&self, error: &sandbox::Error) -> Refusal {
        let is_too_large = matches!(error, sandbox::Error::TooLarge { .. });
        let code = is_too_large.then(|| String::from("WORKSPACE_TOO_LARGE"));
        self.refuse(format!("could not be started: {error}"), code, String::new())
    }

    async fn run(&self) -> Result<ChangedPaths, Refusal> {
        let io = |error| self.refuse(format!("could not be started: {error}"), None, String::new());
        let view = self.view().await.map_err(|error| self.not_started(&error))?;
        let mut program = self.sandboxed(&view).await.map_err(|error| self.not_started(&error))?;
        let ears = as_one(&mut program.command).map_err(io)?;
        let child = program.start(self.clock.clone()).map_err(io)?.holding(view.clone());
        // The command holds an end of the pipe; without letting go of it there is no end to what it says.
        drop(program);
        let mut tail = Tail::new(limits::OUTPUT_BYTES);
        let is_too_large = AtomicBool::new(false);
        let stop = async {
            tokio::select! {
                () = self.clock.sleep(Duration::from_millis(self.command.limit_ms)) => {}
                () = self.outgrown(&view) => is_too_large.store(true, Ordering::Relaxed),
            }
        };
        let ended = child.finish_unless(tail.listen(ears), stop).await;
        match ended {
            Ok(Ended::Itself(status)) if status.success() => self.inspect(view, tail.text()).await,
            Ok(Ended::Itself(status)) => {
                let code = status.code().map(|code| code.to_string());
                Err(self.refuse(format!("failed with {status}"), code, tail.text()))
            }
            Ok(Ended::Stopped { .. }) if is_too_large.load(Ordering::Relaxed) => {
                let why = format!("wrote more than {} MiB", limits::VIEW_WRITTEN_BYTES >> 20);
                Err(self.refuse(why, Some(String::from("WORKSPACE_TOO_LARGE")), tail.text()))
            }
            Ok(Ended::Stopped { .. }) => {
                let why = format!("took longer than {} ms", self.command.limit_ms);
                Err(self.refuse(why, Some(String::from("TIMEOUT")), tail.text()))
            }
            Err(error) => Err(self.refuse(format!("could not be waited for: {error}"), None, tail.text())),
        }
    }

    /// Returns once the command has written more than it may.
    async fn outgrown(&self, view: &Arc<DirectoryView>) {
        loop {
            self.clock.sleep(Duration::from_millis(limits::VIEW_LOOK_MS)).await;
            let view = view.clone();
            let looked = tokio::task::spawn_blocking(move || view.is_larger_than(limits::VIEW_WRITTEN_BYTES));
            if looked.await.unwrap_or(false) {
                return;
            }
        }
    }

    fn sandbox(&self) -> Result<&Sandbox, sandbox::Error> {
        let sandbox = self.settings.sandbox.as_ref();
        sandbox.ok_or_else(|| sandbox::Error::Unavailable(String::from("no launcher")))
    }

    /// The workspace as it would be after the write.
    async fn view(&self) -> Result<Arc<DirectoryView>, sandbox::Error> {
        let at = |error: std::io::Error| sandbox::Error::At(self.root.path().to_owned(), error);
        let handle = self.root.handle().try_clone().map_err(at)?;
        let directory = WorkingDirectory::of(handle, self.root.path().to_owned());
        let copy = CopyLimits { entries: limits::VIEW_ENTRIES, bytes: limits::VIEW_BYTES };
        let mut view = self.sandbox()?.private_view(&directory, copy).await?;
        let candidate = self.candidate.clone();
        let put = tokio::task::spawn_blocking(move || {
            view.put(Path::new(candidate.path.as_str()), &candidate.bytes, candidate.mode)?;
            Ok(Arc::new(view))
        });
        put.await.map_err(|error| sandbox::Error::Setup("a private view", std::io::Error::other(error)))?
    }

    /// The command in the sandbox. Where the sandbox has its own mounts, the file cannot be changed even for a while.
    async fn sandboxed(&self, view: &DirectoryView) -> Result<SandboxedCommand, sandbox::Error> {
        let at = |error: std::io::Error| sandbox::Error::At(self.root.path().to_owned(), error);
        let sandbox = self.sandbox()?;
        let sealed = match sandbox.level().await? {
            SandboxLevel::Namespaces => {
                vec![SealedPath::new(self.candidate.path.as_str(), MissingPath::Creatable)]
            }
            SandboxLevel::Landlock | SandboxLevel::Unconfined => Vec::new(),
        };
        let run = SandboxRun {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), self.command.text.clone().into()],
            directory: Some(view.working_directory().map_err(at)?),
            sealed,
            identity: None,
        };
        let mut sandboxed = sandbox.command(run).await?;
        sandboxed.command.env_clear().envs(&self.settings.base_env).stdin(std::process::Stdio::null());
        Ok(sandboxed)
    }

    /// What a command that succeeded has changed. The file it was to verify must be none of it.
    async fn inspect(&self, view: Arc<DirectoryView>, output: String) -> Result<ChangedPaths, Refusal> {
        let bytes = self.candidate.bytes.clone();
        let inspected = tokio::task::spawn_blocking(move || {
            let is_whole = view.holds(&bytes);
            (is_whole, view.changes(limits::DISCARDED))
        });
        match inspected.await {
            Ok((true, Ok(changed))) => Ok(changed),
            Ok((false, _)) => {
                let path = &self.candidate.path;
                let why = format!("changed '{path}', which it was to verify; use a command that only checks");
                Err(self.refuse(why, Some(String::from("CANDIDATE_CHANGED")), output))
            }
            Ok((true, Err(error))) => {
                Err(self.refuse(format!("left a workspace that cannot be read: {error}"), None, output))
            }
            Err(error) => Err(self.refuse(format!("could not be inspected: {error}"), None, output)),
        }
    }
}
