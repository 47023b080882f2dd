//! Attacks that were tried from outside, one file per family. Each must fail.

pub mod actors;
mod audit;
mod audit_faces;
mod canaries;
mod capabilities;
mod directory;
mod documents;
mod dynamic_tools;
mod encryption;
mod environment;
mod exec;
mod expressions;
mod files;
mod folders;
mod forged_rows;
mod forks;
mod impostor;
mod inherited_files;
mod load;
mod loopback;
mod matrix;
mod names;
mod other_processes;
mod private_places;
mod provider_key;
mod quotas;
mod record;
mod revocation;
mod rights;
mod roles;
mod rows;
mod sandbox;
mod schemas;
mod scopes;
mod secrets;
mod sessions;
mod tenants;
mod terminal;
mod tls;
mod tokens;
mod trees;
mod triggers;

use std::fs::File;
use std::path::Path;

/// Whether no process holds the lock of a file: programs of these tests hold one while anything of them lives.
fn is_unlocked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}
