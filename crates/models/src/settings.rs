//! Which models an installation has: filled by the program from its configuration and its environment.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::resilience::Resilience;
use reqwest::Url;

use crate::limits::{BEGIN_BUDGET_MS, BEGIN_TIMEOUT_MS, IDLE_TIMEOUT_MS, MODEL_ID_BYTES, STREAM_BYTES};
use crate::model::{About, Price};
use crate::secret::Secret;
use crate::wire::{Reasoning, Wire};

/// Which models there are.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// In the order in which their models are gone through.
    pub providers: Vec<Provider>,
    /// Provider and id of the model that new conversations begin with. None: the first one that can be used.
    pub default: Option<(String, String)>,
}

/// Somebody who runs models.
#[derive(Debug, Clone)]
pub struct Provider {
    /// What it is called in front of its models: `name/id`.
    pub name: String,
    pub kind: Kind,
    /// `https://api.anthropic.com`, `https://api.openai.com/v1`, `http://localhost:11434/v1`. The offline kind has none.
    pub base_url: String,
    pub key: Key,
    pub models: Vec<Entry>,
    /// How hard to try until an answer begins.
    pub resilience: Resilience,
    /// How long it may be silent before and within an answer.
    pub idle_timeout_ms: u64,
    /// What one answer may have in bytes on the way, wrapping included.
    pub max_stream_bytes: u64,
}

/// What a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Anthropic,
    OpenAi,
    /// The offline model under another name, for trying things out.
    Offline,
}

/// The key of a provider.
#[derive(Debug, Clone, Default)]
pub enum Key {
    /// It needs none, as with a server of one's own.
    #[default]
    Unneeded,
    /// It needs one, and there is none: its models are not offered.
    Missing,
    Given(Secret),
}

/// A model of a provider.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What the provider calls it.
    pub id: String,
    /// What people call it. None: its id.
    pub name: Option<String>,
    pub context_window: u64,
    pub max_output: u64,
    pub reasoning: Reasoning,
    pub images: bool,
    pub price: Price,
}

impl Provider {
    /// With the defaults for everything that need not be said.
    pub fn new(name: impl Into<String>, kind: Kind, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: base_url.into(),
            key: Key::Unneeded,
            models: Vec::new(),
            resilience: Resilience {
                timeout_ms: BEGIN_TIMEOUT_MS,
                total_budget_ms: BEGIN_BUDGET_MS,
                ..Resilience::default()
            },
            idle_timeout_ms: IDLE_TIMEOUT_MS,
            max_stream_bytes: STREAM_BYTES,
        }
    }

    /// The key, if it has one that says something.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        self.key.secret()
    }

    /// Whether its models can be asked.
    pub fn is_ready(&self) -> bool {
        match &self.key {
            Key::Unneeded => true,
            Key::Missing => false,
            Key::Given(secret) => !secret.is_empty(),
        }
    }

    /// Where its requests go.
    pub(crate) fn url(&self, wire: &dyn Wire) -> Result<Url, Fault> {
        address(&self.name, &self.base_url, wire.path())
    }
}

impl Key {
    /// The key, if there is one that says something.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        match self {
            Key::Given(secret) if !secret.is_empty() => Some(secret),
            Key::Given(_) | Key::Missing | Key::Unneeded => None,
        }
    }
}

impl Entry {
    /// Refuses what no model is like.
    pub(crate) fn check(&self, provider: &str) -> Result<(), Fault> {
        let id = &self.id;
        if id.trim().is_empty() || id.len() > MODEL_ID_BYTES || id.chars().any(char::is_control) {
            return Err(wrong(format!(
                "the id of a model of {provider} is 1 to {MODEL_ID_BYTES} bytes without control characters, not {id:?}"
            )));
        }
        if self.context_window == 0 || self.max_output == 0 || self.max_output > self.context_window {
            return Err(wrong(format!(
                "{provider}/{id}: the context window and the output are at least 1 token, and the output fits into the window"
            )));
        }
        let Price { input, output, cache_read, cache_write } = self.price;
        if [input, output, cache_read, cache_write].iter().any(|price| !price.is_finite() || *price < 0.0) {
            return Err(wrong(format!("{provider}/{id}: a price is a number from 0 on")));
        }
        Ok(())
    }

    pub(crate) fn about(&self, provider: &str) -> About {
        About {
            provider: provider.to_owned(),
            id: self.id.clone(),
            name: self.name.clone().unwrap_or_else(|| self.id.clone()),
            context_window: self.context_window,
            max_output: self.max_output,
            thinking: self.reasoning != Reasoning::None,
            images: self.images,
            price: self.price,
        }
    }
}

pub(crate) fn wrong(what: String) -> Fault {
    Fault::new(Code::Configuration, format!("models: {what}"))
}

/// Where somebody is reached: a base that people wrote, and a path of the protocol.
pub(crate) fn address(name: &str, base_url: &str, path: &str) -> Result<Url, Fault> {
    let url = Url::parse(base_url.trim()).ok();
    url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .filter(|url| url.username().is_empty() && url.password().is_none())
        .filter(|url| url.query().is_none() && url.fragment().is_none())
        .map(|mut url| {
            let path = format!("{}{path}", url.path().trim_end_matches('/'));
            url.set_path(&path);
            url
        })
        .ok_or_else(|| {
            // The address itself is not shown: somebody may have written a key into it.
            wrong(format!(
                "the base URL of {name} must be http:// or https:// and a host, without a key or a query"
            ))
        })
}
