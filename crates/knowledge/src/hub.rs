//! Knowledge of this process: its settings, and what its actions share.

use std::sync::Arc;

use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::Store;
use orchestr8_kernel::{Context, Kernel};
use orchestr8_outbound::{Allowed, Client, Guard};
use orchestr8_secrets::SecretVault;
use uuid::Uuid;

use crate::journal::progress::Progress;
use crate::retrieval::dense::{Dense, Embedder};
use crate::retrieval::passing::Passing;
use crate::turns::Turns;
use crate::words::{self, Words};

/// What an installation says about its knowledge.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Lets `routing.noop_qdrant` skip the search (KNO-8.5).
    pub test_mode: bool,
    /// Where people read documents: `<base>/documents/<id>` is a document's `web_uri`.
    pub web_base: Option<String>,
    /// Whom webhooks may reach beside the public internet.
    pub webhooks: Allowed,
    /// The model that writes answers: its provider and id. None: answers are made of sentences of the passages.
    pub answers: Option<(String, String)>,
    /// What of the search by words is kept in memory.
    pub words: words::Settings,
    /// Keeps the secrets that sign deliveries to webhooks. None: no webhook can have one.
    pub vault: Option<SecretVault>,
}

/// A handle to knowledge. Clones share it.
#[derive(Clone)]
pub struct Hub(Arc<Shared>);

struct Shared {
    kernel: Kernel,
    settings: Settings,
    turns: Turns,
    meaning: Option<Meaning>,
    progress: Progress,
    passing: Passing,
    words: Words,
    guard: Arc<Guard>,
    client: Client,
}

/// The side of the search that goes by meaning.
#[derive(Clone)]
pub struct Meaning {
    pub embedder: Arc<dyn Embedder>,
    pub dense: Arc<dyn Dense>,
}

impl Hub {
    pub fn new(kernel: Kernel, settings: Settings) -> Self {
        Self::make(kernel, settings, None)
    }

    /// With a search by meaning beside the one by words.
    pub fn with_meaning(kernel: Kernel, settings: Settings, meaning: Meaning) -> Self {
        Self::make(kernel, settings, Some(meaning))
    }

    fn make(kernel: Kernel, settings: Settings, meaning: Option<Meaning>) -> Self {
        let guard = Arc::new(Guard::new(&settings.webhooks));
        let client = Client::guarded(guard.clone());
        let (turns, progress, passing) = (Turns::default(), Progress::default(), Passing::default());
        let words = Words::new(settings.words);
        Self(Arc::new(Shared { kernel, settings, turns, meaning, progress, passing, words, guard, client }))
    }

    /// Where the secrets of webhooks are.
    pub(crate) fn vault(&self) -> Option<&SecretVault> {
        self.0.settings.vault.as_ref()
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.0.guard
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    pub fn kernel(&self) -> &Kernel {
        &self.0.kernel
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The search by meaning, as soon as its model is there.
    pub fn meaning(&self) -> Option<&Meaning> {
        self.0.meaning.as_ref().filter(|meaning| meaning.embedder.is_there())
    }

    /// Whether there is, or will be, a search by meaning.
    pub(crate) fn expects_meaning(&self) -> bool {
        self.0.meaning.is_some()
    }

    /// How far the index over vectors has come.
    pub(crate) fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// The passages that pass filters, as far as they are known.
    pub(crate) fn passing(&self) -> &Passing {
        &self.0.passing
    }

    /// The words in memory.
    pub(crate) fn words(&self) -> &Words {
        &self.0.words
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.0.kernel.ports().store
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.0.kernel.ports().clock.now_ms()
    }

    pub(crate) fn fresh(&self) -> Uuid {
        self.0.kernel.ports().ids.fresh(For::Record)
    }

    /// Where people read a document, if they can.
    pub(crate) fn web_uri(&self, id: &str, human: bool) -> Option<String> {
        let base = self.0.settings.web_base.as_deref().filter(|_| human)?;
        Some(format!("{}/documents/{id}", base.trim_end_matches('/')))
    }
}

/// The tenant of whoever asks.
pub fn tenant(context: &Context) -> &str {
    context.principal.tenant.as_str()
}
