//! What the settings of vectors mean: where the index over them is.

use orchestr8_contract::Code;
use orchestr8_knowledge::vectors::qdrant;

use crate::config::{Environment, KnowledgeVectors, VectorEngine};
use crate::failure::Failure;

/// Characters of the name that collections begin with.
const COLLECTION_CHARS: usize = 64;

/// Where the index over vectors is.
#[derive(Clone)]
pub enum Vectors {
    Embedded { memory_bytes: usize },
    Qdrant(qdrant::Settings),
}

impl Vectors {
    pub fn new(config: &KnowledgeVectors, environment: &Environment) -> Result<Self, Failure> {
        let wrong = |part: &str, what: String| {
            Failure::new(Code::Configuration, format!("knowledge.vectors.{part}: {what}"))
        };
        if config.engine == VectorEngine::Embedded {
            let bytes = config.memory_mb.saturating_mul(1024 * 1024);
            return Ok(Vectors::Embedded { memory_bytes: usize::try_from(bytes).unwrap_or(usize::MAX) });
        }
        let url = qdrant::address(&config.url).ok_or_else(|| {
            wrong("url", format!("'{}' is not an address", config.url))
                .hinting("for example http://127.0.0.1:6333")
        })?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if config.collection.len() > COLLECTION_CHARS || !config.collection.chars().all(plain) {
            let what = format!(
                "'{}' is not made of up to {COLLECTION_CHARS} letters, digits, - and _",
                config.collection
            );
            return Err(wrong("collection", what));
        }
        let key = match &config.key_variable {
            None => None,
            Some(name) => match environment.get(name).filter(|key| !key.is_empty()) {
                Some(key) => Some(key.to_owned()),
                None => return Err(wrong("keyVariable", format!("the variable {name} is not set"))),
            },
        };
        Ok(Vectors::Qdrant(qdrant::Settings { url, key, collection: config.collection.clone() }))
    }
}
