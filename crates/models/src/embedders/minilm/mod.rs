//! all-MiniLM-L6-v2 in this process: English, 384 numbers a text, no network. Start reading at `network.rs`.

mod file;
mod matrix;
mod network;
mod wordpiece;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::Clock;
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::Semaphore;

use super::{Embedder, Purpose};
use crate::limits::{EMBED_IDLE_MS, EMBED_ROWS, EMBED_THREADS, PIECES};
use network::Network;
use wordpiece::WordPiece;

/// How vectors remember it.
pub const NAME: &str = "all-MiniLM-L6-v2-int8";

/// The model. It is read when it is first needed, and let go when nobody has needed it for a while. Clones share it.
#[derive(Clone)]
pub struct MiniLm(Arc<Shared>);

struct Shared {
    file: PathBuf,
    clock: Arc<dyn Clock>,
    /// One batch at a time: it uses all threads it may have. Batches are short, so that a question never waits long.
    turn: Semaphore,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    loaded: Option<Arc<Loaded>>,
    used_us: u64,
}

struct Loaded {
    words: WordPiece,
    network: Network,
    pool: ThreadPool,
}

impl MiniLm {
    /// From the file `model.onnx` of the int8 export. Nothing is read yet.
    pub fn new(file: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        let (turn, held) = (Semaphore::new(1), Mutex::default());
        Self(Arc::new(Shared { file: file.into(), clock, turn, held }))
    }

    /// Whether it is in memory now.
    pub fn is_loaded(&self) -> bool {
        self.0.held.lock().loaded.is_some()
    }

    /// Lets it go if nobody has used it for a while.
    async fn release(self) {
        loop {
            self.0.clock.sleep(Duration::from_millis(EMBED_IDLE_MS)).await;
            let now_us = self.0.clock.elapsed_us();
            let mut held = self.0.held.lock();
            if now_us.saturating_sub(held.used_us) >= EMBED_IDLE_MS * 1000 {
                held.loaded = None;
                return;
            }
        }
    }

    /// The model in memory, and whether it has just come there.
    fn load(&self) -> Result<(Arc<Loaded>, bool), Fault> {
        let used_us = self.0.clock.elapsed_us();
        let mut held = self.0.held.lock();
        held.used_us = used_us;
        if let Some(loaded) = &held.loaded {
            return Ok((loaded.clone(), false));
        }
        let loaded = Arc::new(Loaded::read(&self.0.file)?);
        held.loaded = Some(loaded.clone());
        Ok((loaded, true))
    }

    async fn embed_all(self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Fault> {
        let stopped = || Fault::new(Code::Unavailable, "the program is stopping");
        let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(texts.len());
        let texts = Arc::<[String]>::from(texts);
        while vectors.len() < texts.len() {
            let _turn = self.0.turn.acquire().await.map_err(|_| stopped())?;
            let (model, texts, done) = (self.clone(), texts.clone(), vectors.len());
            let work = move || {
                let (loaded, fresh) = model.load()?;
                Ok::<_, Fault>((loaded.batch(&texts[done..])?, fresh))
            };
            let (made, fresh) = tokio::task::spawn_blocking(work).await.map_err(|_| stopped())??;
            if fresh {
                tokio::spawn(self.clone().release());
            }
            vectors.extend(made);
        }
        Ok(vectors)
    }
}

impl Embedder for MiniLm {
    fn name(&self) -> &str {
        NAME
    }

    fn dimensions(&self) -> usize {
        network::WIDTH
    }

    fn is_multilingual(&self) -> bool {
        false
    }

    fn embed(&self, texts: Vec<String>, _: Purpose) -> BoxFuture<'static, Result<Vec<Vec<f32>>, Fault>> {
        Box::pin(self.clone().embed_all(texts))
    }
}

impl Loaded {
    fn read(path: &std::path::Path) -> Result<Self, Fault> {
        let shown = path.display();
        let bytes = std::fs::read(path).map_err(|cause| {
            Fault::new(Code::Unavailable, format!("the embedder's file {shown} cannot be read"))
                .because(cause)
        })?;
        let network = Network::read(&bytes).map_err(|wrong| {
            Fault::new(Code::Unavailable, format!("{shown} is not the embedder that is expected: {wrong}"))
        })?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(EMBED_THREADS);
        let named = |number: usize| format!("embedder {number}");
        let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(named).build();
        let pool = pool.map_err(|cause| Fault::new(Code::Unavailable, "no threads").because(cause))?;
        Ok(Self { words: WordPiece::new(), network, pool })
    }

    /// The vectors of as many texts from the beginning as fit into one batch; at least one.
    fn batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Fault> {
        let (mut rows, mut pieces) = (0, Vec::new());
        for text in texts {
            let next = self.words.pieces(text, PIECES);
            rows += next.len();
            if rows > EMBED_ROWS && !pieces.is_empty() {
                break;
            }
            pieces.push(next);
        }
        let made = self.pool.install(|| self.network.vectors(&pieces));
        made.map_err(|cause| Fault::internal("the embedder failed").because(cause))
    }
}

#[cfg(test)]
mod tests;
