//! The dashboard: its packages, its build into the crate that carries it, and its own tests, in Node and in a real browser.
use crate::process;
use crate::report::{Tally, Verdict, tail};
use crate::{Request, node, workspace};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const INSTALL_LIMIT: Duration = Duration::from_secs(900);
const BUILD_LIMIT: Duration = Duration::from_secs(300);
const BROWSER_LIMIT: Duration = Duration::from_secs(1200);
const SHOWN_LINES: usize = 120;

/// Descriptions of APIs, and the types made of them. They are made anew each time, so they cannot fall behind; what no longer
/// fits them is found by the compiler.
const TYPES: [[&str; 2]; 2] = [
    ["../schemas/openapi.json", "generated/openapi.d.ts"],
    ["../schemas/aacp.openapi.json", "generated/aacp.d.ts"],
];

/// What the build reads; a change in any of it is a reason to build again.
const SOURCES: [&str; 8] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "public",
    "scripts",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// Before the program is built, so that it carries the dashboard.
pub fn stages(tally: &mut Tally, show: bool) {
    let mut ready = None;
    tally.stage("dashboard: packages and build", || {
        let dashboard = Dashboard::prepare(show)?;
        let note = dashboard.build(show)?;
        ready = Some(dashboard);
        Ok(Verdict::pass(note))
    });
    let Some(dashboard) = ready else { return };
    tally.stage("dashboard: types of the API", || {
        for [schema, types] in TYPES {
            let args = [schema, "-o", types, "--empty-objects-unknown"];
            let verdict = dashboard.check("openapi-typescript/bin/cli.js", &args, show)?;
            if verdict.failed > 0 {
                return Ok(verdict);
            }
        }
        Ok(Verdict::pass(""))
    });
    tally.stage("dashboard: types", || dashboard.check("typescript/bin/tsc", &["--noEmit"], show));
    tally.stage("dashboard: unit tests", || dashboard.check("vitest/vitest.mjs", &["run"], show));
}

/// Real Chromium against the real server.
pub fn browser(tally: &mut Tally, request: &Request) {
    tally.stage("dashboard: in a browser", || {
        let dashboard = Dashboard::prepare(request.verbose)?;
        dashboard.build(request.verbose)?;
        let binary = workspace::orchestr8(workspace::TESTS, request)?;
        let shots = workspace::target()?.join("screenshots");
        let mut command = Command::new(&dashboard.node);
        command
            .args(["--test", "--test-reporter=spec", "--test-concurrency=1"])
            .arg(dashboard.folder.join("browser"));
        command.current_dir(&dashboard.folder).env("O8_BINARY", binary).env("O8_SHOTS", &shots);
        command.env("O8_CHROMIUM", chromium(request.verbose)?);
        let done = process::run(&mut command, BROWSER_LIMIT, request.verbose)?;
        let passed = counted(&done.output, "ℹ pass ");
        let failed = counted(&done.output, "ℹ fail ").max(usize::from(!done.success));
        let note = format!("{passed} passed; pictures of every page in {}", shots.display());
        Ok(Verdict { passed, failed, note, detail: tail(&done.output, SHOWN_LINES) })
    });
}

/// The number after a word that begins a line.
fn counted(output: &str, word: &str) -> usize {
    output.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok()).unwrap_or(0)
}

/// Its folder, with everything installed, and a Node to run it.
pub struct Dashboard {
    folder: PathBuf,
    node: PathBuf,
}

impl Dashboard {
    pub fn prepare(show: bool) -> Result<Dashboard> {
        let folder = workspace::root().join("dashboard");
        let lock = std::fs::read_to_string(folder.join("package-lock.json")).context("package-lock.json")?;
        let mark = folder.join("node_modules").join(format!(".orchestr8-{}", workspace::fingerprint(&lock)));
        if !mark.exists() {
            let mut command = Command::new("npm");
            command.args(["ci", "--ignore-scripts"]).current_dir(&folder);
            process::run(&mut command, INSTALL_LIMIT, show)?.require("npm ci")?;
            std::fs::write(&mark, "")?;
        }
        Ok(Dashboard { folder, node: node::of_at_least(20, show)? })
    }

    /// Builds it unless what is built is of the same sources: a fresh build would make cargo build the program again.
    pub fn build(&self, show: bool) -> Result<String> {
        let built = workspace::root().join("crates/faces/dashboard/built");
        let mark = built.join(".sources");
        let sources = fingerprint(&self.folder)?;
        if std::fs::read_to_string(&mark).is_ok_and(|kept| kept == sources)
            && built.join("index.html").exists()
        {
            return Ok("as it was built before".into());
        }
        self.run("scripts/clean.mjs", &[], show)?;
        self.run("node_modules/vite/bin/vite.js", &["build"], show)?;
        let said = self.run("scripts/compress.mjs", &[], show)?;
        std::fs::write(&mark, sources)?;
        Ok(said.trim().split(" (").next().unwrap_or_default().to_owned())
    }

    fn run(&self, program: &str, args: &[&str], show: bool) -> Result<String> {
        let mut command = Command::new(&self.node);
        command.arg(self.folder.join(program)).args(args).current_dir(&self.folder);
        Ok(process::run(&mut command, BUILD_LIMIT, show)?.require(program)?.stdout)
    }

    fn check(&self, module: &str, args: &[&str], show: bool) -> Result<Verdict> {
        let mut command = Command::new(&self.node);
        command.arg(self.folder.join("node_modules").join(module)).args(args).current_dir(&self.folder);
        let done = process::run(&mut command, BUILD_LIMIT, show)?;
        Ok(Verdict::of(done.success, tail(&done.output, SHOWN_LINES)))
    }
}

fn fingerprint(folder: &Path) -> Result<String> {
    let mut files = Vec::new();
    for name in SOURCES {
        collect(&folder.join(name), &mut files)?;
    }
    files.sort();
    let mut text = String::new();
    for file in files {
        let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
        text.push_str(&format!("{}\n{}\n", file.display(), String::from_utf8_lossy(&bytes)));
    }
    Ok(workspace::fingerprint(&text))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).with_context(|| path.display().to_string())? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// A Chromium of this machine; installed from the system's packages where there is none and we may.
fn chromium(show: bool) -> Result<PathBuf> {
    let find = || CHROMIUM.iter().find_map(|name| on_path(name));
    if let Some(found) = find() {
        return Ok(found);
    }
    for args in
        [&["update", "--quiet"][..], &["install", "--yes", "--quiet", "--no-install-recommends", "chromium"]]
    {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        let done = process::run(&mut command, INSTALL_LIMIT, show);
        if !done.is_ok_and(|done| done.success) {
            bail!("the browser tests need Chromium; on Debian: apt install chromium");
        }
    }
    find().context("Chromium was installed and is not found")
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn totals_are_read_from_the_report() {
        let report = "▶ pages\nℹ tests 5\nℹ pass 4\nℹ fail 1\n";
        assert_eq!(
            (counted(report, "ℹ pass "), counted(report, "ℹ fail "), counted("", "ℹ pass ")),
            (4, 1, 0)
        );
    }
}
