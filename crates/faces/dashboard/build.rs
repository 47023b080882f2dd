//! Lists the built pages, so that the program carries whatever there is: without Node there is nothing, and that builds too.
#![allow(clippy::disallowed_methods, reason = "a build script learns from its environment where to write")]

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const BUILT: &str = "built";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={BUILT}");
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join(BUILT);
    // By its whole name too: a build folder that another checkout has used before lists that one's files.
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in files.iter().filter(|file| file.extension().is_none_or(|ending| ending != "gz")) {
        let name = file.strip_prefix(&root)?.display();
        let packed = PathBuf::from(format!("{}.gz", file.display()));
        let gzip = match packed.exists() {
            true => format!("Some(include_bytes!({packed:?}))"),
            false => "None".to_owned(),
        };
        writeln!(list, "    File {{ path: \"/{name}\", bytes: include_bytes!({file:?}), gzip: {gzip} }},")?;
    }
    list.push(']');
    fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("files.rs"), list)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        match path.is_dir() {
            true => collect(&path, files)?,
            false if !is_hidden => files.push(path),
            false => {}
        }
    }
    Ok(())
}
