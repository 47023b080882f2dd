//! The models of an installation, in the order in which they are gone through. The offline model is always the last.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::Fault;
use orchestr8_kernel::Kernel;
use orchestr8_kernel::ports::{Clock, Random};
use orchestr8_kernel::resilience::Breakers;

use crate::anthropic::Anthropic;
use crate::limits::{MODELS, PROVIDER_NAME_CHARS};
use crate::model::Model;
use crate::offline::{self, Offline};
use crate::openai::OpenAi;
use crate::remote::{self, Client, Remote};
use crate::settings::{Entry, Kind, Provider, Settings, wrong};
use crate::wire::{Spec, Wire};

/// What models use of the outside.
#[derive(Clone)]
pub struct Ports {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub breakers: Arc<Breakers>,
}

/// All models. Cheap to ask; it never changes.
pub struct Catalog {
    models: Vec<Arc<dyn Model>>,
    default: usize,
    unready: Vec<String>,
}

impl Ports {
    /// The ports and the breakers of the kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let ports = kernel.ports();
        Self { clock: ports.clock.clone(), random: ports.random.clone(), breakers: kernel.breakers().clone() }
    }
}

impl Catalog {
    /// Refuses settings that name a model twice, too many, an address that is none, or a default that is not there.
    ///
    /// Models of a provider whose key is missing are left out; when one of them is the default, the first that can be used
    /// takes its place, so that the program starts without keys.
    pub fn new(settings: Settings, ports: Ports) -> Result<Self, Fault> {
        let client = Arc::new(Client::default());
        let mut models: Vec<Arc<dyn Model>> = Vec::new();
        let mut unready = Vec::new();
        let mut default = settings.default;
        for (place, provider) in settings.providers.iter().enumerate() {
            check(provider, &settings.providers[..place])?;
            if provider.is_ready() {
                models.extend(of_provider(provider, &ports, &client)?);
                continue;
            }
            unready.push(provider.name.clone());
            default = default.filter(|(name, id)| {
                *name != provider.name || !provider.models.iter().any(|entry| entry.id == *id)
            });
        }
        models.push(Arc::new(Offline::new(ports.clock)));
        Ok(Self { unready, ..Self::of(models, default)? })
    }

    /// A catalog of these models, the first of which is the default unless one is named.
    pub fn of(models: Vec<Arc<dyn Model>>, default: Option<(String, String)>) -> Result<Self, Fault> {
        if models.is_empty() || models.len() > MODELS {
            return Err(wrong(format!(
                "there must be one to {MODELS} models, and there are {}",
                models.len()
            )));
        }
        for (place, model) in models.iter().enumerate() {
            let (provider, id) = (&model.about().provider, &model.about().id);
            if position(&models[..place], provider, id).is_some() {
                return Err(wrong(format!("the model {provider}/{id} is there twice")));
            }
        }
        let default = match default {
            None => 0,
            Some((provider, id)) => position(&models, &provider, &id)
                .ok_or_else(|| wrong(format!("the default model {provider}/{id} is not among the models")))?,
        };
        Ok(Self { models, default, unready: Vec::new() })
    }

    /// The providers whose key is missing.
    pub fn unready(&self) -> &[String] {
        &self.unready
    }

    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        position(&self.models, provider, id).map(|place| self.models[place].clone())
    }

    /// All models in their order.
    pub fn all(&self) -> &[Arc<dyn Model>] {
        &self.models
    }

    /// The model that new conversations begin with.
    pub fn default(&self) -> Arc<dyn Model> {
        self.models[self.default].clone()
    }

    /// The model after this one; after the last comes the first. One that is not there is followed by the default.
    pub fn next(&self, provider: &str, id: &str) -> Arc<dyn Model> {
        self.beside(provider, id, 1)
    }

    /// The model before this one; before the first comes the last.
    pub fn previous(&self, provider: &str, id: &str) -> Arc<dyn Model> {
        self.beside(provider, id, self.models.len() - 1)
    }

    fn beside(&self, provider: &str, id: &str, steps: usize) -> Arc<dyn Model> {
        match position(&self.models, provider, id) {
            Some(place) => self.models[(place + steps) % self.models.len()].clone(),
            None => self.default(),
        }
    }
}

fn position(models: &[Arc<dyn Model>], provider: &str, id: &str) -> Option<usize> {
    models.iter().position(|model| model.about().provider == provider && model.about().id == id)
}

/// Whether a provider makes sense beside those before it. A name is part of `name/id`, of messages, and of a breaker's key.
fn check(provider: &Provider, before: &[Provider]) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = &provider.name;
    if name.is_empty() || name.len() > PROVIDER_NAME_CHARS || !name.chars().all(plain) {
        return Err(wrong(format!(
            "the name of a provider is 1 to {PROVIDER_NAME_CHARS} letters, digits, dots, `-` and `_`, not {name:?}"
        )));
    }
    if name == offline::PROVIDER {
        return Err(wrong(format!("the name {name} is taken by the model that is always there")));
    }
    if before.iter().any(|other| other.name == *name) {
        return Err(wrong(format!("there are two providers with the name {name}")));
    }
    provider.models.iter().try_for_each(|entry| entry.check(name))
}

fn of_provider(
    provider: &Provider,
    ports: &Ports,
    client: &Arc<Client>,
) -> Result<Vec<Arc<dyn Model>>, Fault> {
    let wire: Box<dyn Wire> = match provider.kind {
        Kind::Anthropic => Box::new(Anthropic),
        Kind::OpenAi => Box::new(OpenAi),
        Kind::Offline => {
            let offline = |entry: &Entry| -> Arc<dyn Model> {
                Arc::new(Offline::with(entry.about(&provider.name), ports.clock.clone()))
            };
            return Ok(provider.models.iter().map(offline).collect());
        }
    };
    let key = provider.secret();
    let headers = wire
        .headers(key)
        .ok_or_else(|| wrong(format!("the key of {} has characters that no key has", provider.name)))?;
    let shared = Arc::new(remote::Provider {
        url: provider.url(&*wire)?,
        headers,
        wire,
        resilience: provider.resilience.clone(),
        idle: Duration::from_millis(provider.idle_timeout_ms.max(1)),
        stream_bytes: provider.max_stream_bytes,
        breaker: remote::breaker_key(&provider.name),
        client: client.clone(),
        ports: ports.clone(),
    });
    let model = |entry: &Entry| -> Arc<dyn Model> {
        let about = entry.about(&provider.name);
        let spec = Spec { about, reasoning: entry.reasoning, key: key.cloned() };
        Arc::new(Remote::new(spec, shared.clone()))
    };
    Ok(provider.models.iter().map(model).collect())
}

#[cfg(test)]
mod tests;
