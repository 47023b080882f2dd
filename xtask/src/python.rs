//! Virtual environments with programs of other people, pinned.
use crate::process;
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const INSTALL_LIMIT: Duration = Duration::from_secs(900);

/// Creates the environment once per requirements file; returns its interpreter.
pub fn interpreter(requirements: &str, show: bool) -> Result<PathBuf> {
    let source = workspace::root().join(requirements);
    let pins = std::fs::read_to_string(&source).context(requirements.to_owned())?;
    let folder = workspace::cache()?.join("python").join(workspace::fingerprint(&pins));
    let python = folder.join("bin/python");
    if !folder.join("installed").exists() {
        create(&folder, show)?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(&source);
        process::run(&mut pip, INSTALL_LIMIT, show)?.require("pip install")?;
        std::fs::write(folder.join("installed"), "")?;
    }
    Ok(python)
}

fn create(folder: &Path, show: bool) -> Result<()> {
    if venv(folder, show)? {
        return Ok(());
    }
    // Debian ships Python without its venv module; root on a fresh machine may fetch it.
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", "python3", "python3-venv"]);
    let installed = process::run(&mut install, INSTALL_LIMIT, show).is_ok_and(|done| done.success);
    if installed && venv(folder, show)? {
        return Ok(());
    }
    bail!("Python 3.10 or newer with its venv module is needed; on Debian: apt install python3 python3-venv")
}

fn venv(folder: &Path, show: bool) -> Result<bool> {
    let mut command = Command::new("python3");
    command.args(["-m", "venv", "--clear"]).arg(folder);
    Ok(process::run(&mut command, INSTALL_LIMIT, show).is_ok_and(|done| done.success))
}
