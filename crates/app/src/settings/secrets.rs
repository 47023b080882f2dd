//! What the settings of secrets mean: where their key is, and which secrets the settings themselves declare.

use std::path::{Path, PathBuf};

use orchestr8_contract::Code;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::redact::Redactor;
use orchestr8_secrets::limits::{VALUE_MAX_BYTES, VALUE_MIN_CHARACTERS};
use orchestr8_secrets::{DeclaredSecret, SecretBinding, SecretText, SecretUse, Sink};
use orchestr8_tools::remote::names_in;
use orchestr8_workflows::agents::secrets::ENV_PREFIX;

use super::{Place, Review, allowed_env, read_private};
use crate::config::{self, Config, Environment, NamedSecret};
use crate::failure::Failure;

/// What the vault is opened with.
#[derive(Clone)]
pub struct Secrets {
    pub key: KeyLocation,
    pub declared: Vec<DeclaredSecret>,
    /// Keys and tokens that other settings name: masked in outputs and logs.
    pub confidential: Vec<SecretText>,
}

impl Secrets {
    pub fn new(
        config: &Config,
        declared: Vec<DeclaredSecret>,
        place: &Place,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let key = KeyLocation::new(&config.secrets.key, place, environment)?;
        Ok(Self { key, declared, confidential: confidential(config, environment) })
    }
}

/// Where a key that encrypts stored secrets, or the data file, is.
#[derive(Debug, Clone)]
pub enum KeyLocation {
    /// The value of a variable; none if it is not set.
    Variable {
        name: String,
        value: Option<SecretText>,
    },
    File(PathBuf),
    Command(Vec<String>),
    /// None is configured: this file is created when it is first needed. Without a place for it, secrets are refused.
    Created(Option<PathBuf>),
    /// The store ends with the process, and so does the key.
    Memory,
}

/// The name of the key file in the user's configuration folder.
const KEY_FILE: &str = "secrets.key";

/// The setting that says where the key is.
const SECRETS_KEY: &str = "secrets.key";

impl KeyLocation {
    /// Where the key of the secrets is.
    pub fn new(
        config: &config::KeyConfig,
        place: &Place,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        if let Some(key) = Self::configured(SECRETS_KEY, config, place, environment)? {
            return Ok(key);
        }
        if *place == Place::Memory {
            return Ok(KeyLocation::Memory);
        }
        let created = environment.config_home().map(|home| home.join(KEY_FILE));
        // Data in a home folder has the configuration folder below it.
        let is_beside = |path: &&PathBuf| path.parent() == data_folder(place).as_deref();
        match created.as_ref().filter(is_beside) {
            None => Ok(KeyLocation::Created(created)),
            Some(path) => Err(beside_data(SECRETS_KEY, path)),
        }
    }

    /// Where the settings say that a key is, if they say it.
    pub fn configured(
        setting: &str,
        config: &config::KeyConfig,
        place: &Place,
        environment: &Environment,
    ) -> Result<Option<Self>, Failure> {
        match (&config.env, &config.file, config.command.as_slice()) {
            (None, None, []) => Ok(None),
            (Some(name), None, []) => {
                let value = environment.get(name).filter(|value| !value.is_empty()).map(SecretText::new);
                Ok(Some(KeyLocation::Variable { name: name.clone(), value }))
            }
            (None, Some(file), []) if is_in_data(file, place) => Err(beside_data(setting, file)),
            (None, Some(file), []) => Ok(Some(KeyLocation::File(file.clone()))),
            (None, None, command) => Ok(Some(KeyLocation::Command(command.to_vec()))),
            (Some(_), _, _) | (_, Some(_), _) => {
                let text = format!("{setting}: give one of env, file and command");
                Err(Failure::new(Code::Configuration, text)
                    .hinting("orchestr8 config show prints where each comes from"))
            }
        }
    }
}

fn beside_data(setting: &str, path: &Path) -> Failure {
    let text = format!(
        "{setting}: {} is in the data directory: a backup would hold what is encrypted and its key",
        path.display()
    );
    Failure::new(Code::Configuration, text).hinting("keep the key in another folder")
}

fn is_in_data(key: &Path, place: &Place) -> bool {
    let Some(data) = data_folder(place) else { return false };
    // The folder of the key, and where the key itself leads, if it is a link.
    let places = [key.parent().map(real), key.canonicalize().ok()];
    places.into_iter().flatten().any(|place| place.starts_with(&data))
}

fn data_folder(place: &Place) -> Option<PathBuf> {
    match place {
        Place::File { path, .. } => path.parent().map(real),
        Place::Memory => None,
    }
}

/// The folder itself, whatever leads to it; an empty path is the working directory.
fn real(folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

impl Review<'_> {
    /// The secrets that the settings declare. One without a binding is a mistake.
    pub(super) fn named_secrets(&mut self, environment: &Environment) -> Vec<DeclaredSecret> {
        let mut declared = Vec::new();
        let mut problems = Vec::new();
        for (name, written) in &self.loaded.config.secrets.named {
            match read(name, written, environment) {
                Ok(secret) => declared.push(secret),
                Err((part, what)) => problems.push((format!("secrets.named.{name}.{part}"), what)),
            }
        }
        for (key, what) in problems {
            self.complain(&key, what);
        }
        declared
    }
}

type Wrong = (&'static str, String);

fn read(name: &str, written: &NamedSecret, environment: &Environment) -> Result<DeclaredSecret, Wrong> {
    let to: Result<Vec<_>, String> = written.to.iter().map(|text| text.parse()).collect();
    let binding = SecretBinding {
        workflows: written.workflows.clone(),
        agents: written.agents.clone(),
        to: to.map_err(|what| ("to", what))?,
    };
    binding.check().map_err(|fault| ("to", fault.message.into_owned()))?;
    Tenant::parse(&written.tenant).map_err(|wrong| ("tenant", wrong.to_string()))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(("to", String::from("the name of a secret is made of A-Z a-z 0-9 _ -")));
    }
    let value = value(name, written, environment)?;
    let value = value.strip_suffix('\n').unwrap_or(&value);
    if !(VALUE_MIN_CHARACTERS..=VALUE_MAX_BYTES).contains(&value.len()) {
        return Err(("to", format!("the value must have {VALUE_MIN_CHARACTERS} to {VALUE_MAX_BYTES} bytes")));
    }
    Ok(DeclaredSecret {
        tenant: written.tenant.clone(),
        name: name.to_owned(),
        binding,
        value: SecretText::new(value),
    })
}

fn value(name: &str, written: &NamedSecret, environment: &Environment) -> Result<String, Wrong> {
    let variable = match (&written.env, &written.file) {
        (Some(_), Some(_)) => return Err(("file", String::from("stands beside env; give one of them"))),
        (None, Some(file)) => {
            return read_private(&format!("secrets.named.{name}.file"), file)
                .map_err(|failure| ("file", failure.message.clone()));
        }
        (Some(variable), None) => variable.clone(),
        (None, None) => format!("{ENV_PREFIX}{name}"),
    };
    let value = environment.get(&variable).map(str::to_owned);
    value.ok_or_else(|| ("env", format!("the environment variable {variable} is not set")))
}

/// Variables of ours that mean nothing, and those that hold a secret which nothing binds: they are not used.
pub fn warnings(config: &config::Secrets, environment: &Environment) -> Vec<String> {
    let names = environment.names().filter_map(|name| name.strip_prefix(ENV_PREFIX));
    let unbound = names.filter(|name| !config.named.contains_key(*name)).map(|name| {
        format!(
            "{ENV_PREFIX}{name} is not used: a secret needs bindings; declare secrets.named.{name}, or run orchestr8 secrets set \
             {name} --from-env {ENV_PREFIX}{name} --workflow ID --to HOST:HEADER"
        )
    });
    config::strangers(environment).iter().map(config::Stranger::to_string).chain(unbound).collect()
}

/// The values of variables that hold keys, and of headers that carry credentials.
fn confidential(config: &Config, environment: &Environment) -> Vec<SecretText> {
    let redactor = Redactor::new(&config.logging.redact_keys);
    let of_agents = config.workflows.agents.values().flat_map(|agent| &agent.headers);
    let of_servers = config.mcp_servers.values().flat_map(|server| &server.headers);
    let headers = of_agents.chain(of_servers).filter(|(name, _)| redactor.is_secret(name));
    // A header holds the scheme beside the credential.
    // `${NAME}` in one of another MCP server is not a credential itself, but what it stands for may be.
    let words = headers.flat_map(|(_, value)| {
        let named = names_in(value).into_iter().filter_map(|name| environment.get(name).map(str::to_owned));
        let literal = value.split_whitespace().filter(|word| names_in(word).is_empty()).map(str::to_owned);
        literal.chain(named).collect::<Vec<_>>()
    });
    let keys = allowed_env::reserved(config).into_iter();
    let keys = keys.filter_map(|(name, _)| environment.get(&name).map(str::to_owned));
    let long = |value: &String| value.len() >= VALUE_MIN_CHARACTERS;
    keys.chain(words).filter(long).map(SecretText::new).collect()
}

/// The key of a provider that names a secret.
pub fn provider_key<'s>(
    secrets: &'s [DeclaredSecret],
    provider: &str,
    name: &str,
) -> Result<&'s SecretText, String> {
    let Some(secret) = secrets.iter().find(|secret| secret.name == name) else {
        return Err(format!("there is no secret named '{name}' in secrets.named"));
    };
    let sink = Sink::Provider { name: provider.to_owned() };
    let usage =
        SecretUse { tenant: &secret.tenant, name, workflow: None, hash: None, agent: None, sink: &sink };
    secret.binding.authorize(&usage).map_err(|fault| fault.message.into_owned())?;
    Ok(&secret.value)
}
