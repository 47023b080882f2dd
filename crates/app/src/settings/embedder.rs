//! What the settings of the embedder mean: which model turns texts into vectors, and where its weights are.

use std::path::PathBuf;

use orchestr8_contract::Code;
use orchestr8_kernel::resilience::Resilience;
use orchestr8_models::embedders::{self, Kind, dimensions};
use orchestr8_models::{Key, Secret};

use super::Place;
use orchestr8_secrets::DeclaredSecret;

use super::secrets::provider_key;
use crate::config::{EmbedderKind, Environment, KnowledgeEmbedder};
use crate::failure::Failure;
use crate::weights;

/// What turns texts into vectors.
#[derive(Debug, Clone)]
pub enum Embedder {
    /// Nobody wants one.
    None,
    /// The one of this process, whose weights have no place to be.
    Nowhere,
    /// The one of this process, with its file. It may be fetched while the program runs.
    Here(PathBuf),
    Remote(embedders::Settings),
}

/// A maker: its address, the variable with its key, and the model that is taken if none is named.
struct Maker {
    kind: Kind,
    base_url: &'static str,
    key_variable: Option<&'static str>,
    model: &'static str,
}

const OPENAI: Maker = Maker {
    kind: Kind::OpenAi,
    base_url: "https://api.openai.com/v1",
    key_variable: Some("OPENAI_API_KEY"),
    model: "text-embedding-3-small",
};

const VOYAGE: Maker = Maker {
    kind: Kind::Voyage,
    base_url: "https://api.voyageai.com/v1",
    key_variable: Some("VOYAGE_API_KEY"),
    model: "voyage-3.5",
};

const OLLAMA: Maker = Maker {
    kind: Kind::Ollama,
    base_url: "http://127.0.0.1:11434",
    key_variable: None,
    model: "nomic-embed-text",
};

/// The variables that hold keys of these makers.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    [&OPENAI, &VOYAGE, &OLLAMA].into_iter().filter_map(|maker| maker.key_variable)
}

impl Embedder {
    pub fn new(
        config: &KnowledgeEmbedder,
        place: &Place,
        secrets: &[DeclaredSecret],
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let maker = match config.kind {
            EmbedderKind::None => return Ok(Self::None),
            EmbedderKind::Minilm => return here(config, place),
            EmbedderKind::Openai => &OPENAI,
            EmbedderKind::Voyage => &VOYAGE,
            EmbedderKind::Ollama => &OLLAMA,
        };
        let model = config.model.clone().unwrap_or_else(|| maker.model.to_owned());
        let numbers = config.dimensions.or_else(|| dimensions(&model)).ok_or_else(|| {
            wrong(
                "dimensions",
                format!("is missing; how many numbers the vectors of {model} have is not known"),
            )
        })?;
        let base_url = config.base_url.clone().unwrap_or_else(|| maker.base_url.to_owned());
        let own = maker.key_variable.filter(|_| config.base_url.is_none());
        let key = match (&config.key_secret, config.key_variable.as_deref().or(own)) {
            (Some(secret), _) => {
                let key =
                    provider_key(secrets, "embedder", secret).map_err(|what| wrong("keySecret", what))?;
                Key::Given(Secret::new(key.expose()))
            }
            (None, Some(variable)) => match environment.get(variable).filter(|key| !key.trim().is_empty()) {
                Some(key) => Key::Given(Secret::new(key)),
                None => return Err(wrong("keyVariable", format!("the variable {variable} is not set"))),
            },
            (None, None) => Key::Unneeded,
        };
        let known = embedders::Settings::new(maker.kind, base_url, model, numbers);
        Ok(Self::Remote(embedders::Settings {
            key,
            multilingual: config.multilingual,
            batch: config.batch,
            resilience: Resilience { timeout_ms: config.timeout_ms, ..known.resilience },
            ..known
        }))
    }
}

fn here(config: &KnowledgeEmbedder, place: &Place) -> Result<Embedder, Failure> {
    if let Some(file) = &config.file {
        if !file.is_file() {
            let what = format!("there is no file {}", file.display());
            return Err(
                wrong("file", what).hinting("fetch it with orchestr8 models pull, or correct the path")
            );
        }
        return Ok(Embedder::Here(file.clone()));
    }
    let file = model_folder(place).map(|folder| weights::MINILM.file(&folder));
    Ok(file.map_or(Embedder::Nowhere, Embedder::Here))
}

/// Where weights are: beside the data. Data in memory has nothing beside it.
pub fn model_folder(place: &Place) -> Option<PathBuf> {
    match place {
        Place::File { path, .. } => Some(path.parent()?.join("models")),
        Place::Memory => None,
    }
}

fn wrong(part: &str, what: String) -> Failure {
    Failure::new(Code::Configuration, format!("knowledge.embedder.{part}: {what}"))
}
