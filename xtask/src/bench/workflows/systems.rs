//! The systems that are compared: how each is started, and how the one client calls it.
use super::STEPS;
use crate::node::Packages;
use crate::process;
use crate::server::{Service, free_port};
use crate::workspace;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Long enough for filling a store on a slow machine.
const LOAD_LIMIT: Duration = Duration::from_secs(3600);
pub const DBOS_PINS: &str = "benches/dbos/requirements.txt";
/// More than there are clients, so that no step waits for another execution's.
const STEPS_AT_ONCE: &str = "64";
const OURS_PATH: &str = "/v1/workflows/execute?mode=sync";

#[derive(Clone, Copy, PartialEq)]
pub enum System {
    /// Every step's end is on the disk before the next step begins.
    Ours,
    /// The same steps without a checkpoint: what is pure is worked out at once and written down together.
    OursFused,
    Restate,
    /// As many partitions as suit a machine with few cores.
    RestateTuned,
    Dbos,
}

pub const ALL: [System; 5] =
    [System::Ours, System::OursFused, System::Restate, System::RestateTuned, System::Dbos];
pub const PEERS: [System; 3] = [System::Restate, System::RestateTuned, System::Dbos];

impl System {
    pub fn name(self) -> &'static str {
        match self {
            System::Ours => "ours",
            System::OursFused => "ours, pure steps fused",
            System::Restate => "Restate",
            System::RestateTuned => "Restate, 1 partition",
            System::Dbos => "DBOS",
        }
    }

    /// Where its settings are not the defaults.
    pub fn settings(self) -> &'static str {
        match self {
            System::Ours => "workflows.maxConcurrentSteps = 64; each step has checkpoint: true",
            System::OursFused => "workflows.maxConcurrentSteps = 64",
            System::Restate => "TypeScript SDK, telemetry and logging of each call off",
            System::RestateTuned => "as before, and default-num-partitions = 1",
            System::Dbos => "Python, SQLite with journal_mode = WAL, a thread for each client",
        }
    }

    pub fn version(self, tools: &Tools) -> String {
        let found = match self {
            System::Ours | System::OursFused => Ok(env!("CARGO_PKG_VERSION").to_owned()),
            System::Restate | System::RestateTuned => restate_version(&tools.restate),
            System::Dbos => dbos_version(),
        };
        found.unwrap_or_else(|error| error.to_string())
    }
}

/// What was built or installed for the measurement.
pub struct Tools {
    pub load: PathBuf,
    pub ours: PathBuf,
    pub restate: Packages,
    pub dbos: PathBuf,
    pub show: bool,
}

/// A system that answers; dropping it ends it.
pub struct Running {
    services: Vec<Service>,
    port: u16,
    path: &'static str,
    body: String,
}

impl Running {
    /// Lets the client do what it is told and returns the figures it prints.
    pub fn load(&self, load: &Path, arguments: &[(&str, u32)], show: bool) -> Result<Value> {
        let mut command = Command::new(load);
        command.args(["post", "--address", &format!("127.0.0.1:{}", self.port), "--path", self.path]);
        command.args(["--body", &self.body, "--expect", r#""status":"completed""#]);
        for service in &self.services {
            command.args(["--process", &service.id().to_string()]);
        }
        for (flag, number) in arguments {
            command.args([*flag, &number.to_string()]);
        }
        let logs = || self.services.iter().map(Service::log).collect::<Vec<_>>().join("\n");
        let done = process::run(&mut command, LOAD_LIMIT, show)?.require("load").with_context(logs)?;
        serde_json::from_str(done.stdout.trim()).context("the load client's line")
    }
}

pub fn start(system: System, tools: &Tools, folder: &Path) -> Result<Running> {
    match system {
        System::Ours => ours(&tools.ours, folder, "full", true),
        System::OursFused => ours(&tools.ours, folder, "full", false),
        System::Restate => restate(&tools.restate, folder, None),
        System::RestateTuned => restate(&tools.restate, folder, Some("1")),
        System::Dbos => dbos(&tools.dbos, folder),
    }
}

pub fn ours(binary: &Path, folder: &Path, sync: &str, checkpoint: bool) -> Result<Running> {
    let port = free_port()?;
    let mut command = program(binary, folder);
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(folder.join("data"));
    command.env("ORCHESTR8_WORKFLOWS_MAX_CONCURRENT_STEPS", STEPS_AT_ONCE).env("ORCHESTR8_STORE_SYNC", sync);
    let service = Service::start("orchestr8", command, folder)?.ready(port, "/readyz")?;
    Ok(Running { services: vec![service], port, path: OURS_PATH, body: workflow(checkpoint) })
}

/// Three steps in a row that give back what they are given.
fn workflow(checkpoint: bool) -> String {
    let step = |at: usize| {
        let after: Vec<String> =
            at.checked_sub(1).map(|before| format!("step-{before}")).into_iter().collect();
        json!({
            "id": format!("step-{at}"), "type": "agent", "agentId": "@orchestr8/echo",
            "dependsOn": after, "checkpoint": checkpoint,
        })
    };
    let steps: Vec<Value> = (0..STEPS).map(step).collect();
    json!({"workflow": {"id": "bench", "version": "1.0.0", "name": "bench", "steps": steps}}).to_string()
}

fn restate(packages: &Packages, folder: &Path, partitions: Option<&str>) -> Result<Running> {
    let (ingress, admin, fabric, port) = (free_port()?, free_port()?, free_port()?, free_port()?);
    let mut command = program(&restate_binary(packages), folder);
    command.args(["--no-logo", "--listen-mode", "tcp", "--node-name", "bench", "--log-filter", "warn"]);
    command.arg("--base-dir").arg(folder.join("data"));
    command.args(partitions.map(|number| format!("--default-num-partitions={number}")));
    command
        .env("RESTATE_DISABLE_TELEMETRY", "true")
        .env("RESTATE_BIND_ADDRESS", format!("127.0.0.1:{fabric}"))
        .env("RESTATE_INGRESS__BIND_ADDRESS", format!("127.0.0.1:{ingress}"))
        .env("RESTATE_ADMIN__BIND_ADDRESS", format!("127.0.0.1:{admin}"));
    let server = Service::start("restate-server", command, folder)?;
    let mut command = program(&packages.node, folder);
    command.arg(packages.program("service.mjs")?).args([port.to_string(), admin.to_string()]);
    // The SDK writes a line for every call unless it is told not to.
    command.env("NODE_ENV", "production").env("RESTATE_LOGGING", "WARN");
    let service = Service::start("restate-service", command, folder)?;
    let server = server.ready(admin, "/services/Bench").with_context(|| service.log())?;
    Ok(Running { services: vec![server, service], port: ingress, path: "/Bench/run", body: "{}".to_owned() })
}

fn restate_binary(packages: &Packages) -> PathBuf {
    let machine = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
    packages.module(&format!("@restatedev/restate-server-linux-{machine}/bin/restate-server"))
}

fn restate_version(packages: &Packages) -> Result<String> {
    let text = std::fs::read_to_string(packages.module("@restatedev/restate-server/package.json"))?;
    let about: Value = serde_json::from_str(&text)?;
    Ok(about["version"].as_str().context("no version")?.to_owned())
}

fn dbos(python: &Path, folder: &Path) -> Result<Running> {
    let port = free_port()?;
    let mut command = program(python, folder);
    command.arg(workspace::root().join("benches/dbos/service.py")).arg(port.to_string()).arg(folder);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let service = Service::start("dbos", command, folder)?.ready(port, "/")?;
    Ok(Running { services: vec![service], port, path: "/", body: "{}".to_owned() })
}

fn dbos_version() -> Result<String> {
    let pins = std::fs::read_to_string(workspace::root().join(DBOS_PINS))?;
    let found = pins.lines().find_map(|line| line.strip_prefix("dbos=="));
    Ok(found.context("no version")?.to_owned())
}

/// A program in its own folder and without this machine's settings, which must not decide a measurement.
fn program(path: &Path, folder: &Path) -> Command {
    let mut command = Command::new(path);
    command.current_dir(folder).env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command
}

#[cfg(test)]
mod tests {
    use super::{Value, dbos_version, workflow};

    #[test]
    fn the_workflow_is_a_chain_of_three() {
        let body: Value = serde_json::from_str(&workflow(true)).unwrap();
        let steps = body["workflow"]["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[0]["dependsOn"], serde_json::json!([]));
        assert_eq!(steps[2]["dependsOn"], serde_json::json!(["step-1"]));
        assert!(steps.iter().all(|step| step["checkpoint"] == true));
    }

    #[test]
    fn the_pinned_version_is_found() {
        assert!(dbos_version().unwrap().starts_with(char::is_numeric));
    }
}
