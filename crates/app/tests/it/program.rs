//! The binary, run in a folder of its own with nothing of this machine's environment but what a test gives it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Long enough for a busy machine; a wait that takes it has failed.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A home and a working directory for one test.
pub struct Place {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// Gives every program started here one more environment variable.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Whether programs started here are given this variable.
    pub fn has(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == name)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where data is kept unless a test says otherwise.
    pub fn data_file(&self) -> PathBuf {
        self.path().join("home/.local/share/orchestr8/orchestr8.sqlite3")
    }

    /// Writes a file; a configuration of this folder is trusted, as its author would.
    pub fn write(&self, name: &str, text: &str) {
        self.plant(name, text);
        if matches!(name, "orchestr8.json" | "orchestr8.toml") {
            self.run(&["trust"]);
        }
    }

    /// Writes a file as another would who can write to the folder.
    pub fn plant(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orchestr8"));
        let home = self.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        command.args(args).current_dir(self.path()).env_clear().env("HOME", home);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        self.run_with(args, "")
    }

    /// Runs a command to its end, with this on stdin.
    pub fn run_with(&self, args: &[&str], input: &str) -> Said {
        let mut child = self.command(args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        // From a thread of its own: a program that answers before it has read everything must not block both sides.
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said {
            code: output.status.code(),
            out: text(output.stdout),
            err: self.anonymous(&text(output.stderr)),
        }
    }

    /// The text without what differs from run to run.
    pub fn anonymous(&self, text: &str) -> String {
        let folder = std::fs::canonicalize(self.path()).unwrap();
        text.replace(folder.to_str().unwrap(), "$PLACE").replace(self.path().to_str().unwrap(), "$PLACE")
    }
}

/// Sends a signal to a process that was started here.
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Waits for the end of a process, and ends it if that takes too long.
pub fn wait(mut child: Child) -> ExitStatus {
    let (done, ended) = std::sync::mpsc::channel();
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let waiter = std::thread::spawn(move || {
        let status = child.wait().unwrap();
        let _ = done.send(());
        status
    });
    if ended.recv_timeout(PATIENCE).is_err() {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        panic!("the process did not end");
    }
    waiter.join().unwrap()
}
