//! What is written about named secrets and the key that encrypts them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Secrets {
    pub key: KeyConfig,
    #[serde(default)]
    pub named: BTreeMap<String, NamedSecret>,
}

/// Where a key is: at most one of the three.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyConfig {
    pub env: Option<String>,
    pub file: Option<PathBuf>,
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamedSecret {
    pub env: Option<String>,
    pub file: Option<PathBuf>,
    pub tenant: String,
    pub workflows: Vec<String>,
    pub agents: Vec<String>,
    pub to: Vec<String>,
}
