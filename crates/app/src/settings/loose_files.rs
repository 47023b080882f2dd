//! Warnings about files that others can read or change and that decide what the server does: its configuration and its TLS key.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use orchestr8_edge::TlsFiles;

use super::secrets;
use crate::config::{Environment, Loaded};

/// Bits of group and others.
const READ_OR_WRITE: u32 = 0o066;
const WRITE: u32 = 0o022;

/// All warnings about the settings.
pub fn all_warnings(loaded: &Loaded, tls: Option<&TlsFiles>, environment: &Environment) -> Vec<String> {
    let mut all = secrets::warnings(&loaded.config.secrets, environment);
    all.extend(warnings(loaded.file.as_deref(), tls));
    all
}

/// What is wrong with them, with the command that mends it.
fn warnings(configuration: Option<&Path>, tls: Option<&TlsFiles>) -> Vec<String> {
    let configuration = configuration.filter(|path| has_bits(path, WRITE)).map(|path| {
        let path = path.display();
        format!("{path} can be changed by other users, and decides what this server does; chmod go-w {path}")
    });
    let key = tls.map(|files| files.key.as_path()).filter(|path| has_bits(path, READ_OR_WRITE)).map(|path| {
        let path = path.display();
        format!("http.tls.key: {path} can be read or changed by other users; chmod 600 {path}")
    });
    configuration.into_iter().chain(key).collect()
}

fn has_bits(path: &Path, bits: u32) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.permissions().mode() & bits != 0)
}
