//! Arranges the program's file for release, so that an idle server holds little of it in memory.
//!
//! The system brings code into memory in pieces of 64 KiB. What start-up and a first call run is about a tenth of the
//! program, but spread over all of it, so that they bring in more than half. `startup.order` names those functions, and the
//! linker puts them side by side. `cargo xtask order` writes it; a name that is no longer there does no harm.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a build script is told what to do by the environment, and speaks to cargo"
)]

use std::path::Path;
use std::process::Command;

const ORDER: &str = "startup.order";

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed={ORDER}");
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    // Builds with debug information are for those who work on the program, and should link quickly.
    let for_release = told("PROFILE") == "release" && told("DEBUG") == "false";
    if !for_release || told("CARGO_CFG_TARGET_OS") != "linux" {
        return Ok(());
    }
    let script = Path::new(&told("OUT_DIR")).join("startup.ld");
    std::fs::write(&script, linker_script(&std::fs::read_to_string(ORDER)?))?;
    println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    if told("HOST") == told("TARGET") && has_relative_relocations() {
        // A megabyte of tables that start-up would read becomes a few kilobytes.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

/// One line per function; each has a section of its own. What the compiler was told that calls run often comes first (see
/// `xtask/src/release.rs`), then what start-up runs, and everything else follows as always.
fn linker_script(order: &str) -> String {
    let names = order.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let often: String = names.clone().map(|name| format!("    *(.text.hot.{name})\n")).collect();
    let once: String = names.map(|name| format!("    *(.text.{name} .text.unlikely.{name})\n")).collect();
    format!("SECTIONS {{\n  .text.first : {{\n{often}{once}  }}\n}}\nINSERT BEFORE .text;\n")
}

/// The C library loads such programs from 2.36 on; `getconf` says `glibc 2.36`.
fn has_relative_relocations() -> bool {
    let Ok(said) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let said = String::from_utf8_lossy(&said.stdout);
    let numbers = said.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    numbers
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)))
        .is_some_and(|version| version >= (2, 36))
}
