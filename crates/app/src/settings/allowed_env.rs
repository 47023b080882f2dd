//! Checks the setting `workflows.env`: a variable that holds a credential of the server is never offered to definitions.

use orchestr8_workflows::AllowedEnv;

use super::{Review, embedder, thinking};
use crate::config::{Config, Environment, PREFIX};

const KEY: &str = "workflows.env";

impl Review<'_> {
    /// The variables that definitions may name, with their values. A reserved name is a mistake, not a name to skip.
    pub(super) fn allowed_env(&mut self, environment: &Environment) -> AllowedEnv {
        let config = &self.loaded.config;
        let reserved = reserved(config);
        let keys: Vec<&str> = reserved.iter().filter_map(|(name, _)| environment.get(name)).collect();
        let mut problems = Vec::new();
        for (index, name) in config.workflows.env.iter().enumerate() {
            let value = environment.get(name).filter(|value| !value.is_empty());
            if let Some(why) = refusal(name, value, &reserved, &keys) {
                problems.push((index, format!("lists {name}, {why}; use a named secret instead")));
            }
        }
        for (index, what) in problems {
            self.complain(&format!("{KEY}[{index}]"), what);
        }
        let names = config.workflows.env.iter();
        AllowedEnv::new(names.map(|name| (name.clone(), environment.get(name).map(str::to_owned))))
    }
}

/// Variables that hold a credential, with the setting or the provider that says so.
pub fn reserved(config: &Config) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = thinking::key_variables()
        .chain(embedder::key_variables())
        .map(|name| (name.to_owned(), String::from("which holds the key of a model provider")))
        .collect();
    let mut named = |name: Option<&String>, setting: String| {
        all.extend(name.map(|name| (name.clone(), format!("which {setting} names"))));
    };
    for (provider, written) in &config.models.providers {
        named(written.key_variable.as_ref(), format!("models.providers.{provider}.keyVariable"));
    }
    named(config.knowledge.embedder.key_variable.as_ref(), String::from("knowledge.embedder.keyVariable"));
    named(config.knowledge.vectors.key_variable.as_ref(), String::from("knowledge.vectors.keyVariable"));
    named(config.tools.admin_policy.token_env_var.as_ref(), String::from("tools.adminPolicy.tokenEnvVar"));
    named(Some(&config.workspace.bootstrap_secret_env_var), String::from("workspace.bootstrapSecretEnvVar"));
    named(config.audit.key_env_var.as_ref(), String::from("audit.keyEnvVar"));
    named(config.audit.witness_token_env_var.as_ref(), String::from("audit.witnessTokenEnvVar"));
    named(config.store.key.env.as_ref(), String::from("store.key.env"));
    named(config.secrets.key.env.as_ref(), String::from("secrets.key.env"));
    for (secret, written) in &config.secrets.named {
        named(written.env.as_ref(), format!("secrets.named.{secret}.env"));
    }
    all
}

/// Why a definition must not read the variable.
fn refusal(name: &str, value: Option<&str>, reserved: &[(String, String)], keys: &[&str]) -> Option<String> {
    if name.to_ascii_uppercase().starts_with(PREFIX) {
        return Some(String::from("a variable of this server"));
    }
    if let Some((_, why)) = reserved.iter().find(|(own, _)| own == name) {
        return Some(why.clone());
    }
    let same = value.is_some_and(|value| keys.contains(&value));
    same.then(|| String::from("which holds the same value as a key of this server"))
}
