//! `cargo xtask profile`: which code calls run, and how often. It is for the compiler of releases, see `release.rs`.
//!
//! The program is built so that it counts what it runs; then it does each of its jobs for some seconds.
use crate::server::{Service, free_port};
use crate::{Request, llvm, process, release, workspace};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);
const OUT: &str = "LLVM_PROFILE_FILE";

type Job = fn(&Jobs) -> Result<()>;

/// The jobs, and how much each counts for. Short calls, of which many come, count for more: there the waits are.
const JOBS: [(&str, u32, Job); 4] = [
    ("calls", 20, Jobs::calls),
    ("records", 10, Jobs::records),
    ("sessions", 5, Jobs::sessions),
    ("knowledge", 2, Jobs::knowledge),
];

const WORKFLOW: &str = r#"{"workflow":{"id":"w","version":"1.0.0","name":"w","steps":[
    {"id":"a","type":"agent","agentId":"@orchestr8/echo","input":{"x":1},"checkpoint":true},
    {"id":"b","type":"agent","agentId":"@orchestr8/echo","dependsOn":["a"],"input":{"y":"${steps.a.output.x}"},"checkpoint":true},
    {"id":"c","type":"agent","agentId":"@orchestr8/echo","dependsOn":["b"],"input":{"z":1}}]}}"#;

const QUESTIONS: [&str; 5] = [
    "how does the store commit",
    "what is a session",
    "what happens after kill -9",
    "how are messages ordered",
    "which limits are there",
];
const ASKED: usize = 10;

pub fn run(request: &Request) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let jobs = Jobs {
        binary: workspace::given_or(request, || counting(request))?,
        load: workspace::outside("benches/load", request.verbose)?,
        folder: folder.path().to_owned(),
        show: request.verbose,
    };
    let mut seen = Vec::new();
    for (job, weight, run) in JOBS {
        eprintln!("... {job}");
        run(&jobs)?;
        for counted in std::fs::read_dir(jobs.counted(job))? {
            seen.push(format!("--weighted-input={weight},{}", counted?.path().display()));
        }
    }
    let to = workspace::root().join(release::PROFILE);
    let mut command = Command::new(llvm::tools(request.verbose)?.profdata);
    // What was never run is left out: nothing is known of it, which is not the same as never.
    command.args(["merge", "--sparse", "-o"]).arg(&to).args(seen);
    process::run(&mut command, LIMIT, request.verbose)?.require("llvm-profdata")?;
    println!("{} has {} bytes; run `cargo xtask order` next", release::PROFILE, to.metadata()?.len());
    Ok(true)
}

fn counting(request: &Request) -> Result<PathBuf> {
    eprintln!("... a program that counts what it runs; this takes some minutes");
    release::compile(&["-Cprofile-generate".to_owned()], "release-counting", request, &[])
}

struct Jobs {
    binary: PathBuf,
    load: PathBuf,
    folder: PathBuf,
    show: bool,
}

impl Jobs {
    /// Where the processes of a job write down what they counted.
    fn counted(&self, job: &str) -> PathBuf {
        self.folder.join(job)
    }

    fn load(&self, job: &str, words: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.load);
        command.args(words).env(OUT, self.counted(job).join("%p"));
        process::run(&mut command, LIMIT, self.show)?.require(&format!("load for {job}"))?;
        Ok(())
    }

    /// Tools, over both transports, in both eras.
    fn calls(&self) -> Result<()> {
        let binary = self.binary.to_string_lossy();
        for era in ["legacy", "modern"] {
            let data = tempfile::tempdir()?;
            let (http, stdio) = (data.path().join("http"), data.path().join("stdio"));
            let calls = ["--era", era, "--loaded-calls", "20000", "--", &binary];
            let serve =
                ["serve", "--listen", "{address}", "--data-dir", &http.to_string_lossy()].map(str::to_owned);
            let mcp = ["mcp", "--data-dir", &stdio.to_string_lossy()].map(str::to_owned);
            for (transport, words) in [("http", &serve[..]), ("stdio", &mcp[..])] {
                let words = words.iter().map(String::as_str);
                self.load("calls", &[transport].into_iter().chain(calls).chain(words).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// Messages and workflows: what is written down on the way.
    fn records(&self) -> Result<()> {
        self.with_server("records", |service, address| {
            let process = service.id().to_string();
            let counts = ["--warm-up", "100", "--calls", "500", "--loaded-calls", "6000", "--seconds", "10"];
            let at = ["--address", address, "--process", &process];
            self.load("client", &[&["pairs", "ours"], &at[..], &counts].concat())?;
            let path =
                ["--path", "/v1/workflows/execute?mode=sync", "--body", WORKFLOW, "--expect", "completed"];
            self.load("client", &[&["post"], &path[..], &at, &counts].concat())
        })
    }

    fn sessions(&self) -> Result<()> {
        let data = tempfile::tempdir()?;
        let mut command = Command::new(&self.load);
        command.args([
            "sessions",
            "--calls",
            "500",
            "--loaded",
            "10000",
            "--sockets",
            "10",
            "--many",
            "50",
            "--",
        ]);
        command.arg(&self.binary).args(["serve", "--listen", "{address}", "--data-dir"]).arg(data.path());
        command.env(OUT, self.counted("sessions").join("%p"));
        for limit in ["SESSIONS_COMMANDS_PER_MINUTE", "SESSIONS_COMMANDS_PER_MINUTE_OVERALL"] {
            command.env(format!("ORCHESTR8_{limit}"), "1000000000");
        }
        process::run(&mut command, LIMIT, self.show)?.require("load for sessions")?;
        Ok(())
    }

    /// Our own guide is imported, and asked about.
    fn knowledge(&self) -> Result<()> {
        self.with_server("knowledge", |_, address| {
            let url = format!("http://{address}");
            self.client(&[
                "knowledge",
                "import",
                &workspace::root().join("docs").to_string_lossy(),
                "--server",
                &url,
            ])?;
            for round in 0..ASKED {
                for question in QUESTIONS {
                    self.client(&["knowledge", "query", &format!("{question} {round}"), "--server", &url])?;
                }
            }
            Ok(())
        })
    }

    fn client(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.binary);
        // What the command itself runs is of no interest.
        command.args(words).env(OUT, "/dev/null");
        process::run(&mut command, LIMIT, self.show)?.require(words[1])?;
        Ok(())
    }

    fn with_server(&self, job: &str, drive: impl FnOnce(&Service, &str) -> Result<()>) -> Result<()> {
        let data = tempfile::tempdir_in(workspace::target()?)?;
        let (port, mut command) = (free_port()?, Command::new(&self.binary));
        let address = format!("127.0.0.1:{port}");
        command.args(["serve", "--listen", &address, "--data-dir"]).arg(data.path().join("data"));
        command.env(OUT, self.counted(job).join("%p"));
        let service = Service::start(job, command, data.path())?.ready(port, "/readyz")?;
        drive(&service, &address).with_context(|| service.log())
        // Dropped here, it is asked to end, and writes down what it counted.
    }
}
