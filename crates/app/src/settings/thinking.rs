//! What the settings of models and sessions mean: who is asked, with which key, and what sessions may do.

use std::path::PathBuf;

use orchestr8_contract::Code;
use orchestr8_kernel::registry::ToolFilter;
use orchestr8_models::settings::{Entry, Key, Kind, Provider};

use orchestr8_models::{Price, Reasoning, Secret};
use orchestr8_sessions as sessions;
use orchestr8_sessions_face as face;

use super::Place;
use orchestr8_secrets::DeclaredSecret;

use super::secrets::provider_key;
use crate::config::{self, Environment, ModelKind, ModelProvider};
use crate::failure::Failure;

/// A model that need not be described.
struct Known {
    id: &'static str,
    context_window: u64,
    max_output: u64,
    price: [f64; 4],
}

const CLAUDE: &[Known] = &[
    Known {
        id: "claude-sonnet-4-5",
        context_window: 200_000,
        max_output: 64_000,
        price: [3.0, 15.0, 0.3, 3.75],
    },
    Known {
        id: "claude-opus-4-1",
        context_window: 200_000,
        max_output: 32_000,
        price: [15.0, 75.0, 1.5, 18.75],
    },
    Known {
        id: "claude-haiku-4-5",
        context_window: 200_000,
        max_output: 64_000,
        price: [1.0, 5.0, 0.1, 1.25],
    },
];

const GPT: &[Known] = &[
    Known { id: "gpt-5", context_window: 400_000, max_output: 128_000, price: [1.25, 10.0, 0.125, 0.0] },
    Known { id: "gpt-5-mini", context_window: 400_000, max_output: 128_000, price: [0.25, 2.0, 0.025, 0.0] },
];

/// Two makers who are there as soon as their key is.
struct Maker {
    name: &'static str,
    kind: ModelKind,
    base_url: &'static str,
    key_variable: &'static str,
    models: &'static [Known],
}

const MAKERS: [Maker; 2] = [
    Maker {
        name: "anthropic",
        kind: ModelKind::Anthropic,
        base_url: "https://api.anthropic.com",
        key_variable: "ANTHROPIC_API_KEY",
        models: CLAUDE,
    },
    Maker {
        name: "openai",
        kind: ModelKind::Openai,
        base_url: "https://api.openai.com/v1",
        key_variable: "OPENAI_API_KEY",
        models: GPT,
    },
];

/// The variables that hold keys of providers whether a setting names them or not.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    MAKERS.iter().map(|maker| maker.key_variable)
}

/// The providers that were written down, then the makers whose key is in the environment.
pub fn models(
    config: &config::Models,
    secrets: &[DeclaredSecret],
    environment: &Environment,
) -> Result<orchestr8_models::Settings, Failure> {
    let mut providers = Vec::new();
    for (name, written) in &config.providers {
        providers.push(provider(name, written, secrets, environment)?);
    }
    for maker in &MAKERS {
        let key = environment.get(maker.key_variable).filter(|key| !key.is_empty());
        if let (Some(key), false) = (key, config.providers.contains_key(maker.name)) {
            let mut made = Provider::new(maker.name, kind(maker.kind), maker.base_url);
            made.key = Key::Given(Secret::new(key));
            made.models = maker.models.iter().map(known).collect();
            providers.push(made);
        }
    }
    let default = config.default.as_deref().map(|text| named("models.default", text)).transpose()?;
    Ok(orchestr8_models::Settings { providers, default })
}

/// The model that writes the answers of knowledge queries.
pub fn answers(config: &config::Models) -> Result<Option<(String, String)>, Failure> {
    config.answers.as_deref().map(|text| named("models.answers", text)).transpose()
}

fn named(key: &str, text: &str) -> Result<(String, String), Failure> {
    let parts = text.split_once('/').filter(|(provider, id)| !provider.is_empty() && !id.is_empty());
    parts.map(|(provider, id)| (provider.to_owned(), id.to_owned())).ok_or_else(|| {
        Failure::new(Code::Configuration, format!("{key}: '{text}' is not provider/id"))
            .hinting("for example anthropic/claude-sonnet-4-5, or offline/echo")
    })
}

fn provider(
    name: &str,
    written: &ModelProvider,
    secrets: &[DeclaredSecret],
    environment: &Environment,
) -> Result<Provider, Failure> {
    let wrong = |part: &str, what: String| {
        Failure::new(Code::Configuration, format!("models.providers.{name}.{part}: {what}"))
    };
    let maker = MAKERS.iter().find(|maker| maker.kind == written.kind && written.base_url.is_none());
    let base_url = match (&written.base_url, maker) {
        (Some(url), _) => url.clone(),
        (None, Some(maker)) => maker.base_url.to_owned(),
        (None, None) => String::new(),
    };
    let variable = written.key_variable.as_deref().or(maker.map(|maker| maker.key_variable));
    let key = match (&written.key_secret, variable) {
        (Some(secret), _) => {
            let key = provider_key(secrets, name, secret).map_err(|what| wrong("keySecret", what))?;
            Key::Given(Secret::new(key.expose()))
        }
        (None, Some(variable)) => {
            environment.get(variable).map_or(Key::Missing, |key| Key::Given(Secret::new(key)))
        }
        (None, None) => Key::Unneeded,
    };
    let models: Vec<Entry> = match (written.models.is_empty(), maker) {
        (true, Some(maker)) => maker.models.iter().map(known).collect(),
        (true, None) if written.kind != ModelKind::Offline => {
            return Err(wrong("models", String::from("is empty; name at least one model")));
        }
        (true, None) => Vec::new(),
        (false, maker) => written.models.iter().map(|id| entry(id, written, maker)).collect(),
    };
    Ok(Provider { key, models, ..Provider::new(name, kind(written.kind), base_url) })
}

/// A model by its id: as we know it, or as it was described.
fn entry(id: &str, written: &ModelProvider, maker: Option<&Maker>) -> Entry {
    if let Some(found) = maker.and_then(|maker| maker.models.iter().find(|known| known.id == id)) {
        return known(found);
    }
    Entry {
        id: id.to_owned(),
        name: None,
        context_window: written.context_window,
        max_output: written.max_output,
        reasoning: if written.reasoning { Reasoning::Effort } else { Reasoning::None },
        images: written.images,
        price: Price::default(),
    }
}

fn known(known: &Known) -> Entry {
    let [input, output, cache_read, cache_write] = known.price;
    Entry {
        id: known.id.to_owned(),
        name: None,
        context_window: known.context_window,
        max_output: known.max_output,
        reasoning: if known.id.starts_with("claude") { Reasoning::Budget } else { Reasoning::Effort },
        images: true,
        price: Price { input, output, cache_read, cache_write },
    }
}

fn kind(kind: ModelKind) -> Kind {
    match kind {
        ModelKind::Anthropic => Kind::Anthropic,
        ModelKind::Openai => Kind::OpenAi,
        ModelKind::Offline => Kind::Offline,
    }
}

/// What the face of sessions keeps to.
pub fn face(config: &config::Config) -> face::Settings {
    let own = &config.sessions;
    face::Settings {
        message_bytes: own.max_message_bytes,
        bucket_commands: own.commands_per_minute,
        global_commands: own.commands_per_minute_overall,
        connections: own.max_connections,
        key_ttl_ms: own.key_ttl_ms,
        drain_ms: own.shutdown_timeout_ms,
        ..face::Settings::new(&config.server.version)
    }
}

/// What sessions run with. Their files lie beside the data, or under the working folder where nothing is kept.
pub fn sessions(
    config: &config::Sessions,
    roots: sessions::SessionRoots,
    tools: &ToolFilter,
    place: &Place,
    environment: &Environment,
) -> sessions::Settings {
    let cwd = config.cwd.clone().unwrap_or_else(|| environment.working_directory.clone());
    let beside = match place {
        Place::File { path, .. } => path.parent().map(PathBuf::from),
        Place::Memory => None,
    };
    let folder = config.folder.clone().or_else(|| Some(beside?.join("sessions")));
    let folder = folder.unwrap_or_else(|| environment.working_directory.join(".orchestr8/sessions"));
    sessions::Settings {
        sessions: config.max_sessions,
        system_prompt: config.system_prompt.clone(),
        bash: config.bash,
        bash_env: super::upstreams::base_env(environment).into_iter().collect(),
        sealed: orchestr8_workspace::sealed::in_folder(),
        roots,
        tools: match config.tools.is_empty() {
            true => tools.clone(),
            false => ToolFilter { only: config.tools.clone(), never: tools.never.clone() },
        },
        long_ms: config.long_timeout_ms,
        short_ms: config.short_timeout_ms,
        ..sessions::Settings::new(cwd, folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(value: serde_json::Value) -> config::Models {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_maker_is_there_as_soon_as_its_key_is() {
        let none = models(&written(json!({"default": null})), &[], &Environment::default()).unwrap();
        assert!(none.providers.is_empty());
        let environment = Environment::of(&[("ANTHROPIC_API_KEY", "sk-1")]);
        let found = models(&written(json!({"default": null})), &[], &environment).unwrap();
        assert_eq!(found.providers[0].name, "anthropic");
        assert_eq!(found.providers[0].models.len(), 3);
        assert!(!format!("{found:?}").contains("sk-1"), "a key is never shown");
    }

    #[test]
    fn a_default_must_name_provider_and_model() {
        for (text, right) in [("offline/echo", true), ("echo", false), ("/x", false)] {
            let read = models(&written(json!({"default": text})), &[], &Environment::default());
            assert_eq!(read.is_ok(), right, "{text}");
        }
    }

    #[test]
    fn a_provider_of_ones_own_needs_models_and_no_key() {
        let own = |list: serde_json::Value| {
            json!({"default": null, "providers": {"mine": {"kind": "openai", "baseUrl": "http://localhost:11434/v1",
                "keyVariable": null, "keySecret": null, "models": list, "contextWindow": 1000, "maxOutput": 100,
                "reasoning": false, "images": false}}})
        };
        let environment = Environment::default();
        let found = models(&written(own(json!(["llama"]))), &[], &environment).unwrap();
        assert!(matches!(found.providers[0].key, Key::Unneeded));
        assert!(models(&written(own(json!([]))), &[], &environment).is_err());
    }
}
