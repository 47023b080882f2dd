//! The program as it is shipped: compiled with a profile that says which code calls run, and how often.
//!
//! A call runs a little of very many functions. Without the profile that code is spread thin among what calls do not run, and
//! the processor waits for it; with it a call costs half. `cargo xtask profile` makes the profile, and it is kept beside the
//! sources, so that whoever builds gets the same program.
use crate::{Request, process, workspace};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What calls run, as `cargo xtask profile` found it. A function that has changed since is built without it.
pub const PROFILE: &str = "crates/app/release.profdata";

/// Apart from other builds for release, which have no profile.
const FOLDER: &str = "release-shipped";

pub fn run(request: &Request) -> Result<bool> {
    eprintln!("... the program; this takes some minutes");
    println!("{}", build(request, &[])?.display());
    Ok(true)
}

/// Puts it on the path of whoever runs this, under both of its names.
pub fn install(request: &Request) -> Result<bool> {
    eprintln!("... the program; this takes some minutes");
    let mut command = workspace::cargo(&["install", "--path", "crates/app", "--locked", "--force"]);
    flagged(&mut command, &shipped()?, FOLDER)?;
    let done = process::run(&mut command, workspace::BUILD_LIMIT, request.verbose)?;
    let said = done.require("installing orchestr8")?.output;
    // Of what cargo says, where it put them, and whether they are found there.
    let is_news =
        |line: &&str| ["Installed", "Replaced", "be sure to add"].iter().any(|word| line.contains(word));
    said.lines().filter(is_news).for_each(|line| println!("{}", line.trim()));
    Ok(true)
}

/// Builds it and says where it is; the words are for the compiler, when it makes the program itself.
pub fn build(request: &Request, words: &[&str]) -> Result<PathBuf> {
    compile(&shipped()?, FOLDER, request, words)
}

/// Builds the program for release, with flags for the compiler over all that becomes part of it.
pub fn compile(flags: &[String], folder: &str, request: &Request, words: &[&str]) -> Result<PathBuf> {
    let mut command =
        workspace::cargo(&["rustc", "--package", "orchestr8", "--bin", "orchestr8", "--release"]);
    let built = flagged(&mut command, flags, folder)?;
    command.arg("--").args(words);
    process::run(&mut command, workspace::BUILD_LIMIT, request.verbose)?.require("building orchestr8")?;
    Ok(built.join("orchestr8"))
}

fn shipped() -> Result<Vec<String>> {
    let profile = named_by_content(&workspace::root().join(PROFILE))?;
    // What no run has seen is neither warned of nor made small instead of fast.
    let quietly = "-Cllvm-args=-pgo-warn-missing-function=false -no-pgo-warn-mismatch -pgso=false";
    Ok(vec![format!("-Cprofile-use={}", profile.display()), quietly.to_owned()])
}

/// Adds what makes cargo build with these flags, and says in which folder it does.
fn flagged(command: &mut Command, flags: &[String], folder: &str) -> Result<PathBuf> {
    let (target, host) = (workspace::target()?.join(folder), host()?);
    // With a target named, programs that run during the build are built as always.
    command.args(["--target", &host]).arg("--target-dir").arg(&target);
    command.arg("--config").arg(format!("build.rustflags={}", serde_json::to_string(flags)?));
    Ok(target.join(host).join("release"))
}

/// A copy of the profile whose name changes when it does: cargo looks at the flags of the compiler, not at the files they name.
fn named_by_content(profile: &Path) -> Result<PathBuf> {
    let bytes = std::fs::read(profile).with_context(|| profile.display().to_string())?;
    let folder = workspace::cache()?.join("profiles");
    std::fs::create_dir_all(&folder)?;
    let copy = folder.join(workspace::fingerprint(&bytes));
    if !copy.exists() {
        std::fs::write(&copy, bytes)?;
    }
    Ok(copy)
}

fn host() -> Result<String> {
    let said =
        process::run(&mut workspace::rustc(&["-vV"]), workspace::QUICK, false)?.require("rustc -vV")?.stdout;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say for which machine it builds")?.to_owned())
}
