//! Models that turn texts into vectors, behind one small trait: one in this process, and those of others on the network.

mod known;
pub mod minilm;
mod remote;

use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::Fault;
use orchestr8_kernel::resilience::Resilience;

use crate::catalog::Ports;
use crate::limits::{EMBED_BATCH, EMBED_TIMEOUT_MS};
use crate::settings::Key;

pub use known::dimensions;
pub use minilm::MiniLm;
pub use remote::Remote;

/// What a text is to the model: some treat questions and passages differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Query,
    Passage,
}

/// Turns texts into vectors of length one.
pub trait Embedder: Send + Sync + 'static {
    /// The model, as vectors remember it.
    fn name(&self) -> &str;

    fn dimensions(&self) -> usize;

    /// Whether it has learned more than English.
    fn is_multilingual(&self) -> bool;

    /// Whether it can be asked now. One whose weights have yet to be fetched cannot; asking this costs next to nothing.
    fn is_there(&self) -> bool {
        true
    }

    /// One vector for each text, in order.
    fn embed(&self, texts: Vec<String>, purpose: Purpose)
    -> BoxFuture<'static, Result<Vec<Vec<f32>>, Fault>>;
}

/// What somebody who makes vectors speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    OpenAi,
    Voyage,
    Ollama,
}

/// A model on the network.
#[derive(Debug, Clone)]
pub struct Settings {
    pub kind: Kind,
    /// `https://api.openai.com/v1`, `https://api.voyageai.com/v1`, `http://localhost:11434`.
    pub base_url: String,
    pub model: String,
    pub dimensions: usize,
    pub multilingual: bool,
    pub key: Key,
    /// Texts of one request.
    pub batch: usize,
    /// How hard to try one request.
    pub resilience: Resilience,
}

impl Settings {
    /// With the defaults for everything that need not be said.
    pub fn new(kind: Kind, base_url: impl Into<String>, model: impl Into<String>, dimensions: usize) -> Self {
        Self {
            kind,
            base_url: base_url.into(),
            model: model.into(),
            dimensions,
            multilingual: true,
            key: Key::Unneeded,
            batch: EMBED_BATCH,
            resilience: Resilience { timeout_ms: EMBED_TIMEOUT_MS, ..Resilience::default() },
        }
    }
}

/// The embedder that these settings mean.
pub fn remote(settings: Settings, ports: Ports) -> Result<Arc<dyn Embedder>, Fault> {
    Ok(Arc::new(Remote::new(settings, ports)?))
}

/// Brings a vector to length one, so that nearness is one product. All zeros stay as they are.
pub fn to_length_one(vector: &mut [f32]) {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    }
}
