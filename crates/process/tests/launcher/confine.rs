//! The launcher as a program of its own, for tests: `confine SPEC -- PROGRAM ARGS`. And a server to be killed:
//! `confine serve LEVEL DATA DIRECTORY SCRIPT` runs a script in a sandbox as the server would.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use orchestr8_kernel::ports::clock::Real;
use orchestr8_process::sandbox::{
    Launcher, PrivatePlaces, Sandbox, SandboxLevel, SandboxRun, SandboxSettings, WorkingDirectory, launch,
};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.as_slice() {
        [word, level, data, directory, script] if word == "serve" => {
            ExitCode::from(u8::from(serve(level, Path::new(data), Path::new(directory), script).is_none()))
        }
        [spec, _, program @ ..] => ExitCode::from(launch(spec, program)),
        _ => ExitCode::from(2),
    }
}

fn serve(level: &OsStr, data: &Path, directory: &Path, script: &OsStr) -> Option<()> {
    let level = if level == "landlock" { SandboxLevel::Landlock } else { SandboxLevel::Namespaces };
    let settings = SandboxSettings {
        level: Some(level),
        launcher: Some(Launcher { program: std::env::current_exe().ok()?, args: Vec::new() }),
        places: PrivatePlaces { protected: vec![data.to_owned()], ..PrivatePlaces::default() },
        lock: Some(data.join("programs.lock")),
        ..SandboxSettings::default()
    };
    let run = SandboxRun {
        program: "/bin/bash".into(),
        args: vec!["-c".into(), script.into()],
        directory: Some(WorkingDirectory::open(directory).ok()?),
        sealed: Vec::new(),
        identity: None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let clock = Arc::new(Real::new());
        let mut command = Sandbox::new(settings, clock.clone()).command(run).await.ok()?;
        let child = command.start(clock).ok()?;
        child.finish(std::future::pending()).await.ok().map(drop)
    })
}
