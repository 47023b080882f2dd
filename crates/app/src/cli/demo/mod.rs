//! `orchestr8 demo`: a workflow is killed in the middle and started again; then everybody can count what was done.

mod notes;
mod step;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use orchestr8_contract::Code;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::Shell;
use crate::failure::{Failure, exit};
use crate::runtime::block_on;
use crate::terminal::{BOLD, DIM, GREEN, PLAIN, RED};
use notes::Notes;
pub use step::Step;

#[derive(Args)]
pub struct Demo {
    /// Keep the folder with the data, to look at it afterwards.
    #[arg(long)]
    keep: bool,
}

/// The steps, in their order. The process dies in the middle of the third.
const STEPS: [&str; 4] = ["reserve-stock", "charge-card", "book-courier", "send-receipt"];
const FATAL: &str = STEPS[2];

/// How long a step pretends to work.
const WORK_MS: u64 = 400;

/// Far more than the whole takes.
const LIMIT: Duration = Duration::from_secs(60);

/// How often the notes of the steps are looked at.
const LOOK: Duration = Duration::from_millis(10);

impl Demo {
    /// 0: every step was done once; 1: it was not.
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let place = Place::make()?;
        let shown = block_on(async {
            match timeout(LIMIT, show(shell, &place)).await {
                Ok(shown) => shown,
                Err(_) => Err(Failure::new(Code::Timeout, format!("the demo took longer than {LIMIT:?}"))),
            }
        });
        match self.keep {
            true => shell.terminal.note(&format!("the data is in {}", place.folder.display())),
            // Left behind it does no harm: it is in the folder for such things.
            false => drop(fs::remove_dir_all(&place.folder)),
        }
        shown
    }
}

/// A folder with everything the demo needs, and nothing of anybody's installation.
struct Place {
    folder: PathBuf,
    program: PathBuf,
    notes: Notes,
}

impl Place {
    fn make() -> Result<Self, Failure> {
        let failed = |cause: std::io::Error| {
            Failure::new(Code::StoreFailed, format!("there is no place for the demo: {cause}"))
                .hinting("set TMPDIR to a folder that can be written")
        };
        let program = std::env::current_exe().and_then(fs::canonicalize).map_err(failed)?;
        let folder = std::env::temp_dir().join(format!("orchestr8-demo-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        fs::create_dir(folder.join(WORK)).map_err(failed)?;
        let notes = Notes::at(folder.join(WORK).join("notes.txt"));
        let place = Self { folder, program, notes };
        fs::write(place.config(), place.configuration().to_string()).map_err(failed)?;
        fs::write(place.workflow(), format!("{:#}", place.definition())).map_err(failed)?;
        Ok(place)
    }

    fn config(&self) -> PathBuf {
        self.folder.join("orchestr8.json")
    }

    fn workflow(&self) -> PathBuf {
        self.folder.join("order.json")
    }

    /// Workflows may start one program, this one, for one purpose.
    fn configuration(&self) -> Value {
        let args = json!([
            "demo-step",
            "{name}",
            "--notes",
            self.notes.path(),
            "--key",
            "{key}",
            "--work-ms",
            WORK_MS.to_string()
        ]);
        let step = json!({"program": self.program, "args": args, "directory": self.folder.join(WORK),
            "holes": {"name": "pattern:[a-z-]+", "key": "text"}});
        json!({"workflows": {"exec": {"templates": {"step": step}}}, "sandbox": {"mode": "best-effort"},
            "logging": {"level": "error"}})
    }

    fn definition(&self) -> Value {
        let step = |(index, name): (usize, &&str)| {
            let values = json!({"name": name, "key": format!("${{execution.id}}:{name}")});
            let before: Vec<&str> = STEPS[..index].last().into_iter().copied().collect();
            json!({"id": name, "agentId": "@orchestr8/exec", "dependencies": before,
                "config": {"template": "step", "values": values}})
        };
        json!({"id": "order", "version": "1.0.0", "name": "Order",
            "steps": STEPS.iter().enumerate().map(step).collect::<Vec<_>>()})
    }

    /// The command a person would type, run where nothing but the demo is found.
    fn start(&self, shell: &Shell) -> Result<Child, Failure> {
        let mut command = Command::new(&self.program);
        // The folder for such things may be shared, so that its configuration is named rather than found.
        command.arg("--config").arg(self.config());
        command.args(["run", "order.json", "--key", "order-1", "--embedded", "--data-dir"]).arg(self.data());
        for name in shell.environment.names().filter(|name| name.starts_with("ORCHESTR8_")) {
            command.env_remove(name);
        }
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().map_err(|cause| {
            Failure::new(Code::Unavailable, format!("{} cannot be started: {cause}", self.program.display()))
        })
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

/// Where the steps work, apart from the data.
const WORK: &str = "work";

const COMMAND: &str = "orchestr8 run order.json --key order-1";

async fn show(shell: &Shell, place: &Place) -> Result<u8, Failure> {
    let say = |text: &str| {
        if !shell.terminal.json {
            shell.terminal.data(text);
        }
    };
    say(&format!(
        "{BOLD}An order has four steps, and none of them may happen twice:{PLAIN} {}.\n",
        STEPS.join(", ")
    ));
    say(&format!("{BOLD}1.{PLAIN} Start it: {COMMAND}"));
    let mut first = place.start(shell)?;
    let pid = first.id().unwrap_or_default();
    let has_ended = watch(shell, &mut first, until_begun(place)).await?;
    if has_ended {
        return Err(broken(&format!("it ended before '{FATAL}'")));
    }
    first.kill().await.map_err(|cause| broken(&cause.to_string()))?;
    say(&format!(
        "\n{BOLD}2.{PLAIN} {RED}kill -9 {pid}{PLAIN}, in the middle of '{FATAL}'. It had no time to save anything.\n"
    ));
    say(&format!("{BOLD}3.{PLAIN} Start the same command again."));
    let mut second = place.start(shell)?;
    watch(shell, &mut second, std::future::pending()).await?;
    let ended = second.wait().await.map_err(|cause| broken(&cause.to_string()))?;
    if !ended.success() {
        return Err(broken(&format!("the second run ended with {ended}")));
    }
    Ok(count(shell, place))
}

fn broken(what: &str) -> Failure {
    Failure::new(Code::Internal, format!("the demo did not go as it should: {what}"))
        .hinting("orchestr8 demo --keep leaves its data for a look")
}

/// Repeats what the run says, until its end (true) or until the moment comes (false).
async fn watch(shell: &Shell, run: &mut Child, moment: impl Future<Output = ()>) -> Result<bool, Failure> {
    let Some(stderr) = run.stderr.take() else { return Err(broken("it cannot be heard")) };
    let mut lines = BufReader::new(stderr).lines();
    tokio::pin!(moment);
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line.map_err(|cause| broken(&cause.to_string()))?,
            () = &mut moment => return Ok(false),
        };
        let Some(line) = line else { return Ok(true) };
        if !shell.terminal.json {
            shell.terminal.data(&format!("   {DIM}|{PLAIN} {line}"));
        }
    }
}

/// The step has noted that it began: its work is under way, and nobody has recorded its end.
async fn until_begun(place: &Place) {
    while place.notes.count("begun", FATAL) == 0 {
        sleep(LOOK).await;
    }
}

fn count(shell: &Shell, place: &Place) -> u8 {
    let counts = STEPS.map(|step| (step, place.notes.count("begun", step), place.notes.count("done", step)));
    let is_once = counts.iter().all(|(_, _, done)| *done == 1);
    let is_unrepeated = counts.iter().all(|(step, begun, _)| *begun == 1 || *step == FATAL);
    if shell.terminal.json {
        let steps: Vec<Value> = counts
            .iter()
            .map(|(step, begun, done)| json!({"step": step, "begun": begun, "done": done}))
            .collect();
        shell.terminal.value(&json!({"once": is_once && is_unrepeated, "steps": steps}));
    } else {
        shell.terminal.data(&table(&counts));
        let verdict = match is_once && is_unrepeated {
            true => format!("{GREEN}Nothing that was finished ran again, and nothing was lost.{PLAIN}"),
            false => format!("{RED}This is not as it should be.{PLAIN}"),
        };
        shell.terminal.data(&verdict);
    }
    if is_once && is_unrepeated { exit::OK } else { exit::FAILED }
}

fn table(counts: &[(&str, usize, usize)]) -> String {
    let mut text =
        format!("\n{BOLD}4.{PLAIN} What the steps themselves have noted:\n\n   {:16} begun  done\n", "step");
    for (step, begun, done) in counts {
        let remark = match (*step == FATAL, begun) {
            (true, 2..) => "   was under way at the kill: tried again with the same key, so it was done once",
            (true | false, _) => "",
        };
        text.push_str(&format!("   {step:16} {begun:>5}  {done:>4}{DIM}{remark}{PLAIN}\n"));
    }
    text
}

/// The text of a file, or nothing.
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
