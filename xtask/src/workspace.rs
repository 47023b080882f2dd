//! Where things are: the repository, the build folder, the user's cache, the built binary.
use crate::{Request, process, release};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Long enough for a cold build of everything on a small machine.
pub const BUILD_LIMIT: Duration = Duration::from_secs(3600);
pub const QUICK: Duration = Duration::from_secs(120);

/// The repository's root folder.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().unwrap_or(&here).to_path_buf()
}

/// A `cargo` command in the repository's root, with the cargo that runs us.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// A `rustc` command there, with the compiler that builds the repository.
pub fn rustc(args: &[&str]) -> Command {
    let mut command = Command::new("rustc");
    command.args(args).current_dir(root());
    command
}

/// The program named on the command line, or else the one that is made.
pub fn given_or(request: &Request, make: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
    match &request.binary {
        Some(path) => std::fs::canonicalize(path).with_context(|| format!("--binary {}", path.display())),
        None => make(),
    }
}

/// Where installed tools and packages live between runs: never inside the repository.
pub fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?)
            .join(".cache"),
    };
    let folder = base.join("orchestr8");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// `cargo metadata` of the workspace members.
pub fn metadata() -> Result<Value> {
    let done = process::run(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]), QUICK, false)?;
    let done = done.require("cargo metadata")?;
    serde_json::from_str(&done.stdout).context("cargo metadata: not JSON")
}

/// The folder cargo builds into.
pub fn target() -> Result<PathBuf> {
    let metadata = metadata()?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata: no target_directory")?;
    Ok(PathBuf::from(folder))
}

/// The profile that tests are built with, quick to compile.
pub const TESTS: &str = "testing";

/// The profile that two builds are compared with: nearly as fast as a release, compiled in a fraction of the time.
pub const CI: &str = "ci";

/// The profile of what is shipped, which is also what benchmarks measure.
pub const RELEASE: &str = "release";

/// Lets the program be built with what tests add to its dependencies, so that tests and program share one build.
pub const AS_TESTED: [&str; 2] = ["--features", "orchestr8/as-tested"];

/// Builds our binary with the given profile and says where it is, unless one was given.
pub fn orchestr8(profile: &str, request: &Request) -> Result<PathBuf> {
    given_or(request, || match profile {
        RELEASE => release::build(request, &[]),
        _ => built(profile, request),
    })
}

/// The same with the profile of tests, and with cargo's progress on stderr.
pub fn orchestr8_in_sight(request: &Request) -> Result<PathBuf> {
    given_or(request, || {
        process::watch(&mut build(TESTS), BUILD_LIMIT, BUILDING)?;
        path_of(TESTS)
    })
}

const BUILDING: &str = "building orchestr8";

fn built(profile: &str, request: &Request) -> Result<PathBuf> {
    process::run(&mut build(profile), BUILD_LIMIT, request.verbose)?.require(BUILDING)?;
    path_of(profile)
}

fn build(profile: &str) -> Command {
    let mut command = cargo(&["build", "--package", "orchestr8", "--bin", "orchestr8", "--profile", profile]);
    if profile != RELEASE {
        command.args(AS_TESTED);
    }
    command
}

fn path_of(profile: &str) -> Result<PathBuf> {
    Ok(target()?.join(profile).join("orchestr8"))
}

/// Builds a crate that lives outside the workspace, with its own lock file, in release.
pub fn outside(folder: &str, show: bool) -> Result<PathBuf> {
    let target = target()?.join("outside");
    let manifest = root().join(folder).join("Cargo.toml");
    let mut command = cargo(&["build", "--locked", "--release", "--manifest-path"]);
    command.arg(&manifest).arg("--target-dir").arg(&target);
    process::run(&mut command, BUILD_LIMIT, show)?.require(&format!("building {folder}"))?;
    let name = Path::new(folder).file_name().context("a crate folder has a name")?;
    Ok(target.join("release").join(name))
}

/// A short stable name for a content, so that a changed lock file gets a fresh install folder.
pub fn fingerprint(content: impl AsRef<[u8]>) -> String {
    // FNV-1a: this names a folder in a cache, it protects nothing.
    let hash = content.as_ref().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn fingerprint_is_fnv_1a() {
        assert_eq!(fingerprint(""), "cbf29ce484222325");
        assert_eq!(fingerprint("a"), "af63dc4c8601ec8c");
    }
}
