//! The program as it is shipped: compiled with a profile that says which code calls run, and how often.
//!
//! A call runs a little of very many functions. Without the profile that code is spread thin among what calls do not run, and
//! the processor waits for it; with it a call costs half. `cargo xtask profile` makes the profile, and it is kept beside the
//! sources, so that whoever builds gets the same program.
use crate::{Request, process, workspace};
use anyhow::{Context, Result, bail};
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
    let mut command =
        workspace::cargo(&["install", "--path", "crates/app", "--features", "o8", "--locked", "--force"]);
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
    let built = compile(&shipped()?, FOLDER, request, words)?;
    // With words of its own it is not what is shipped, and may keep the names of files.
    if words.is_empty() {
        reject_build_paths(&built)?;
    }
    Ok(built)
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
    let mut flags = vec![format!("-Cprofile-use={}", profile.display()), quietly.to_owned()];
    flags.extend(replaced_paths()?.iter().map(|(path, word)| format!("--remap-path-prefix={path}={word}")));
    Ok(flags)
}

/// Folders of the builder, and what stands in their place in the program: a build elsewhere gives the same, and a panic
/// names no user. The later wins where several fit.
fn replaced_paths() -> Result<Vec<(String, &'static str)>> {
    let root = workspace::root().canonicalize()?;
    let cargo = cargo_home()?;
    let mut folders = vec![(home(), "/home"), (Some(cargo.clone()), "/cargo")];
    // The name of such a folder says where the sources came from, which differs from builder to builder.
    for registry in std::fs::read_dir(cargo.join("registry/src")).into_iter().flatten() {
        folders.push((Some(registry?.path()), "/crates"));
    }
    folders.push((Some(root), "/orchestr8"));
    let text = |(folder, word): (Option<PathBuf>, &'static str)| Some((folder?.to_str()?.to_owned(), word));
    Ok(folders.into_iter().filter_map(text).filter(|(path, _)| path.len() > 1).collect())
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

/// Where cargo keeps the sources of other crates.
fn cargo_home() -> Result<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    named.or_else(|| Some(home()?.join(".cargo"))).context("neither CARGO_HOME nor HOME is set")
}

/// Fails if the program tells where it was built.
fn reject_build_paths(program: &Path) -> Result<()> {
    let bytes = std::fs::read(program).with_context(|| program.display().to_string())?;
    let mut paths: Vec<String> = replaced_paths()?.into_iter().map(|(path, _)| format!("{path}/")).collect();
    paths.push("registry/src/".to_owned());
    let found = build_paths(&bytes, &paths);
    if let Some(first) = found.first() {
        bail!("{} has {} paths of this machine in it, such as {first}", program.display(), found.len());
    }
    Ok(())
}

/// The texts of a program that have one of these in them, from there on.
fn build_paths(program: &[u8], paths: &[String]) -> Vec<String> {
    const AROUND: usize = 200;
    let is_text = |byte: &u8| (b' '..=b'~').contains(byte);
    let mut found = Vec::new();
    for text in program.split(|byte| !is_text(byte)).filter(|text| text.len() >= 4) {
        let text = String::from_utf8_lossy(text);
        if let Some(at) = paths.iter().find_map(|path| text.find(path.as_str())) {
            found.push(text[at..].chars().take(AROUND).collect());
        }
    }
    found
}

/// Adds what makes cargo build with these flags, and says in which folder it does.
fn flagged(command: &mut Command, flags: &[String], folder: &str) -> Result<PathBuf> {
    let (target, host) = (workspace::target()?.join(folder), host()?);
    // With a target named, programs that run during the build are built as always.
    command.args(["--target", &host]).arg("--target-dir").arg(&target);
    command.arg("--config").arg(format!("build.rustflags={}", serde_json::to_string(flags)?));
    // The compiler of C writes the names of its files down as well.
    let maps = replaced_paths()?.into_iter().map(|(path, word)| format!("-ffile-prefix-map={path}={word}"));
    let given = std::env::var("CFLAGS").ok().filter(|given| !given.is_empty());
    command.env("CFLAGS", given.into_iter().chain(maps).collect::<Vec<_>>().join(" "));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_builder_are_found_among_bytes() {
        let paths = ["/home/ada".to_owned(), "registry/src/".to_owned()];
        let program = b"\x7fELF\0/home/ada/.cargo/x.rs\0fine\0/crates/serde/lib.rs\0/x/registry/src/y\xff";
        assert_eq!(build_paths(program, &paths), ["/home/ada/.cargo/x.rs", "registry/src/y"]);
        assert_eq!(
            build_paths(b"/rustc/abc/library/std.rs\0/orchestr8/crates/app/src/main.rs", &paths),
            Vec::<String>::new()
        );
    }
}
