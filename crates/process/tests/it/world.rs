//! A sandbox for tests, at a level that is asked for, and programs in it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use orchestr8_kernel::ports::clock::Real;
use orchestr8_process::sandbox::{
    Launcher, PrivatePlaces, Sandbox, SandboxLevel, SandboxLimits, SandboxMode, SandboxRun, SandboxSettings,
    WorkingDirectory,
};
use orchestr8_process::{Ended, Tail, as_one};
use tempfile::TempDir;

pub struct World {
    pub home: TempDir,
    pub settings: SandboxSettings,
}

pub struct Ran {
    pub code: Option<i32>,
    pub output: String,
    pub level: SandboxLevel,
}

impl World {
    /// `/var/tmp`, because a sandbox has a `/tmp` of its own.
    pub fn new() -> Self {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        for folder in ["work", "data", "outside"] {
            std::fs::create_dir(home.path().join(folder)).unwrap();
        }
        std::fs::write(home.path().join("outside/secret"), "s3cret").unwrap();
        std::fs::write(home.path().join("data/orchestr8.sqlite3"), "s3cret").unwrap();
        let launcher = Launcher { program: env!("CARGO_BIN_EXE_confine").into(), args: Vec::new() };
        let settings = SandboxSettings {
            mode: SandboxMode::Required,
            launcher: Some(launcher),
            places: PrivatePlaces { protected: vec![home.path().join("data")], ..PrivatePlaces::default() },
            lock: Some(home.path().join("data/programs.lock")),
            limits: SandboxLimits { memory_bytes: 256 << 20, processes: 64, ..SandboxLimits::default() },
            ..SandboxSettings::default()
        };
        Self { home, settings }
    }

    pub fn at(level: SandboxLevel) -> Self {
        let mut world = Self::new();
        world.settings.level = Some(level);
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn sandbox(&self) -> Sandbox {
        Sandbox::new(self.settings.clone(), Arc::new(Real::new()))
    }

    pub async fn shell(&self, script: &str) -> Ran {
        self.shell_in(&self.path("work"), script).await
    }

    pub async fn shell_in(&self, directory: &Path, script: &str) -> Ran {
        self.run(run(Some(directory), script)).await
    }

    pub async fn run(&self, run: SandboxRun) -> Ran {
        let mut sandboxed = self.sandbox().command(run).await.unwrap();
        sandboxed.command.stdin(Stdio::null()).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let pipe = as_one(&mut sandboxed.command).unwrap();
        let child = sandboxed.start(Arc::new(Real::new())).unwrap();
        let level = sandboxed.level;
        drop(sandboxed);
        let mut tail = Tail::new(100_000);
        let ended = child.finish_unless(tail.listen(pipe), std::future::pending()).await.unwrap();
        let code = match ended {
            Ended::Itself(status) => status.code(),
            Ended::Stopped { .. } => None,
        };
        Ran { code, output: tail.text(), level }
    }
}

pub fn run(directory: Option<&Path>, script: &str) -> SandboxRun {
    SandboxRun {
        program: "/bin/bash".into(),
        args: vec!["-c".into(), script.into()],
        directory: directory.map(|directory| WorkingDirectory::open(directory).unwrap()),
        sealed: Vec::new(),
        identity: None,
    }
}
