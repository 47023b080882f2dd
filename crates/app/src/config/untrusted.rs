//! A configuration of the working directory that is not trusted: what is left out, what is said about it, and its review.

use std::path::{Path, PathBuf};

use orchestr8_contract::Code;

use super::environment::Environment;
use super::layers::{self, Entry, FileLayer, Given, Origin};
use super::trust::TrustStore;
use super::trust_class::TrustClass;
use super::{Loaded, failure, file, shown, wrong};
use crate::failure::Failure;

/// So many settings are named when some are left out.
const NAMED: usize = 8;

/// What makes an untrusted configuration count.
const HINT: &str = "review the file, then run \"orchestr8 trust\"";

impl Loaded {
    /// What is said when settings are left out, with the hint: the file, and which.
    pub fn notice(&self) -> Option<(String, String)> {
        let file = self.withheld.first().map(|entry| entry.origin.to_string())?;
        let names = names(self.withheld.iter());
        let more = names.len().saturating_sub(NAMED);
        let shown = names[..names.len() - more].join(", ");
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let text = format!("{file} is not trusted, so these settings of it are not in effect: {shown}{more}");
        Some((text, HINT.to_owned()))
    }

    /// Refuses to go on if something of this kind is left out.
    pub fn require(&self, command: &str, is_needed: impl Fn(&Entry) -> bool) -> Result<(), Failure> {
        let missing: Vec<&Entry> = self.withheld.iter().filter(|entry| is_needed(entry)).collect();
        let Some(first) = missing.first().copied() else { return Ok(()) };
        let message =
            format!("{command} does not run without settings of {}, which is not trusted", first.origin);
        Err(Failure::new(Code::UntrustedConfiguration, message)
            .listing(names(missing.into_iter()))
            .hinting(format!("{HINT}; or name it yourself with --config {}", first.origin)))
    }
}

impl Entry {
    /// Whether going on without it would be going on with less protection than was written.
    pub fn is_protective(&self) -> bool {
        match self.setting.trust() {
            TrustClass::Protective | TrustClass::Unclassified => true,
            TrustClass::Free | TrustClass::Guarded => false,
        }
    }
}

/// Keys, those of one item once.
fn names<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        let name = match entry.setting.key.contains(['[', '*']) {
            true => super::place::Place(entry.place.item().to_vec()).to_string(),
            false => entry.place.to_string(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A configuration as it is reviewed before it is trusted.
#[derive(Debug)]
pub struct ReviewedFile {
    /// In full, its folder without links.
    pub path: PathBuf,
    pub sha256: String,
    /// Its settings that need trust.
    pub guarded: Vec<Entry>,
    pub is_trusted: bool,
}

/// Reads a configuration, of a folder or named itself, and checks it as if it were trusted.
pub fn review(path: &Path, environment: &Environment) -> Result<ReviewedFile, Failure> {
    let found = match path.is_dir() {
        true => file::in_folder(path).map_err(wrong)?.ok_or_else(|| {
            Failure::new(
                Code::NotFound,
                format!("there is no orchestr8.json or orchestr8.toml in {}", path.display()),
            )
            .hinting("name the file, or its folder")
        })?,
        false => path.to_owned(),
    };
    let read = file::read(&found).map_err(wrong)?;
    let path = trusted_place(&found)?;
    let is_trusted = is_trusted(&found, &read.sha256, environment)?;
    let layer = FileLayer { path: shown(found, environment), document: read.document, is_trusted: true };
    let given = Given { files: vec![layer], flags: Vec::new() };
    let laid = layers::lay(&given, environment).map_err(|problems| failure(&problems))?;
    let is_guarded =
        |entry: &Entry| matches!(entry.origin, Origin::File(_)) && entry.setting.trust() != TrustClass::Free;
    let guarded = laid.entries.into_iter().filter(is_guarded).collect();
    Ok(ReviewedFile { path, sha256: read.sha256, guarded, is_trusted })
}

/// The place under which a file is trusted.
pub fn trusted_place(path: &Path) -> Result<PathBuf, Failure> {
    let name = path.file_name().unwrap_or_default();
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|cause| {
        Failure::new(Code::NotFound, format!("{}: {cause}", folder.display())).hinting("check the path")
    })?;
    Ok(folder.join(name))
}

pub fn is_trusted(path: &Path, sha256: &str, environment: &Environment) -> Result<bool, Failure> {
    let Some(store) = TrustStore::of(environment) else { return Ok(false) };
    store.is_trusted(&trusted_place(path)?, sha256)
}
