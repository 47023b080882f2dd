//! A model for tests that needs no file: texts that share words are near each other. It can be told to fail.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_knowledge::retrieval::dense::{Embedder, Purpose};
use orchestr8_knowledge::text::language::Language;

pub const DIMENSIONS: usize = 96;

/// Texts with this word are refused.
pub const POISON: &str = "unspeakable";

#[derive(Clone)]
pub struct Letters(Arc<Shared>);

struct Shared {
    name: String,
    broken: AtomicBool,
    lazy: AtomicBool,
    missing: AtomicBool,
    passages: AtomicUsize,
}

impl Letters {
    pub fn new(name: &str) -> Self {
        Self(Arc::new(Shared {
            name: name.to_owned(),
            broken: AtomicBool::new(false),
            lazy: AtomicBool::new(false),
            missing: AtomicBool::new(false),
            passages: AtomicUsize::new(0),
        }))
    }

    pub fn fail(&self, broken: bool) {
        self.0.broken.store(broken, Ordering::SeqCst);
    }

    /// Fails with passages, and still takes queries.
    pub fn fail_passages(&self, lazy: bool) {
        self.0.lazy.store(lazy, Ordering::SeqCst);
    }

    /// Is not there yet.
    pub fn miss(&self, missing: bool) {
        self.0.missing.store(missing, Ordering::SeqCst);
    }

    /// Passages that it was given so far.
    pub fn passages(&self) -> usize {
        self.0.passages.load(Ordering::SeqCst)
    }
}

/// Every word adds to some members; the name of the model decides which.
pub fn vector(model: &str, text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; DIMENSIONS];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        for turn in 0..3 {
            let mut hasher = DefaultHasher::new();
            (model, word, turn).hash(&mut hasher);
            let place = usize::try_from(hasher.finish() % DIMENSIONS as u64).unwrap();
            vector[place] += 1.0;
        }
    }
    vector
}

impl Embedder for Letters {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn speaks(&self, _language: Language) -> bool {
        true
    }

    fn is_there(&self) -> bool {
        !self.0.missing.load(Ordering::SeqCst)
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, Fault>> {
        let shared = self.0.clone();
        async move {
            let lazy = purpose == Purpose::Passage && shared.lazy.load(Ordering::SeqCst);
            if lazy || shared.broken.load(Ordering::SeqCst) {
                return Err(Fault::new(Code::Unavailable, "the model is gone"));
            }
            if texts.iter().any(|text| text.contains(POISON)) {
                return Err(Fault::invalid("the model does not take this text"));
            }
            if purpose == Purpose::Passage {
                shared.passages.fetch_add(texts.len(), Ordering::SeqCst);
            }
            Ok(texts.iter().map(|text| vector(&shared.name, text)).collect())
        }
        .boxed()
    }
}
