//! all-MiniLM-L6-v2 in this process: English, 384 numbers a text, no network. Start reading at `network.rs`.

mod file;
mod matrix;
mod network;
mod rows;
mod wordpiece;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::Clock;
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::Semaphore;

use super::{Embedder, Purpose};
use crate::limits::{EMBED_IDLE_MS, EMBED_ROWS, EMBED_THREADS, PIECES};
use network::{Network, Room};
use wordpiece::WordPiece;

/// How vectors remember it.
pub const NAME: &str = "all-MiniLM-L6-v2-int8";

/// The model. It is read when it is first needed, and let go when nobody has needed it for a while. Clones share it.
#[derive(Clone)]
pub struct MiniLm(Arc<Shared>);

struct Shared {
    file: PathBuf,
    clock: Arc<dyn Clock>,
    /// Whether its file has been seen.
    seen: AtomicBool,
    threads: usize,
    /// Passages and questions have turns of their own, so that no question waits behind the passages of a large import.
    passages: Semaphore,
    questions: Semaphore,
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
    /// Those that nobody works in now.
    lanes: Mutex<Vec<Lane>>,
}

/// Where one batch is worked on: a thread of its own, since batches side by side get further than all threads on one batch.
struct Lane {
    thread: ThreadPool,
    room: Room,
}

/// A text as the numbers of its pieces.
type Pieces = Vec<u32>;

impl MiniLm {
    /// From the file `model.onnx` of the int8 export. Nothing is read yet; it need not even be there.
    pub fn new(file: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(EMBED_THREADS);
        Self(Arc::new(Shared {
            file: file.into(),
            clock,
            seen: AtomicBool::new(false),
            threads,
            passages: Semaphore::new(threads),
            questions: Semaphore::new(threads),
            held: Mutex::default(),
        }))
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

    /// Works with the model where it may take its time, when its turn has come.
    async fn work<T: Send + 'static>(
        &self,
        turns: &Semaphore,
        work: impl FnOnce(&Loaded) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let stopped = || Fault::new(Code::Unavailable, "the program is stopping");
        let _turn = turns.acquire().await.map_err(|_| stopped())?;
        let model = self.clone();
        let work = move || {
            let (loaded, fresh) = model.load()?;
            Ok::<_, Fault>((work(&loaded)?, fresh))
        };
        let (made, fresh) = tokio::task::spawn_blocking(work).await.map_err(|_| stopped())??;
        if fresh {
            tokio::spawn(self.clone().release());
        }
        Ok(made)
    }

    async fn embed_all(self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Vec<f32>>, Fault> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let turns = match purpose {
            Purpose::Query => &self.0.questions,
            Purpose::Passage => &self.0.passages,
        };
        let cut = |texts: Vec<String>| move |loaded: &Loaded| Ok(loaded.batches(&texts));
        let batches = match <[String; 1]>::try_from(texts) {
            // The usual question: one way there and back.
            Ok(text) => return self.work(turns, move |loaded| loaded.all(&text)).await,
            Err(texts) => self.work(turns, cut(texts)).await?,
        };
        let made = stream::iter(batches).map(|batch| self.work(turns, move |loaded| loaded.vectors(&batch)));
        let made: Vec<Vec<Vec<f32>>> = made.buffered(self.0.threads).try_collect().await?;
        Ok(made.into_iter().flatten().collect())
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

    /// Once it was there, it is for good: one that is gone when it is needed is told as a fault.
    fn is_there(&self) -> bool {
        let there = self.0.seen.load(Ordering::Relaxed) || self.0.file.is_file();
        if there {
            self.0.seen.store(true, Ordering::Relaxed);
        }
        there
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: Purpose,
    ) -> BoxFuture<'static, Result<Vec<Vec<f32>>, Fault>> {
        Box::pin(self.clone().embed_all(texts, purpose))
    }
}

impl Loaded {
    fn read(path: &Path) -> Result<Self, Fault> {
        let shown = path.display();
        let bytes = std::fs::read(path).map_err(|cause| {
            Fault::new(Code::Unavailable, format!("the embedder's file {shown} cannot be read"))
                .because(cause)
        })?;
        let network = Network::read(&bytes).map_err(|wrong| {
            Fault::new(Code::Unavailable, format!("{shown} is not the embedder that is expected: {wrong}"))
        })?;
        Ok(Self { words: WordPiece::new(), network, lanes: Mutex::default() })
    }

    /// The texts as pieces, in batches that keep a thread busy for a moment.
    fn batches(&self, texts: &[String]) -> Vec<Vec<Pieces>> {
        let (mut batches, mut rows): (Vec<Vec<Pieces>>, _) = (Vec::new(), 0);
        for text in texts {
            let pieces = self.words.pieces(text, PIECES);
            rows += pieces.len();
            match batches.last_mut() {
                Some(batch) if rows <= EMBED_ROWS => batch.push(pieces),
                Some(_) | None => {
                    rows = pieces.len();
                    batches.push(vec![pieces]);
                }
            }
        }
        batches
    }

    fn all(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Fault> {
        let made = self.batches(texts).into_iter().map(|batch| self.vectors(&batch));
        Ok(made.collect::<Result<Vec<_>, Fault>>()?.concat())
    }

    /// One vector for each text of a batch. There are as many lanes as there were turns at once.
    fn vectors(&self, batch: &[Pieces]) -> Result<Vec<Vec<f32>>, Fault> {
        let free = self.lanes.lock().pop();
        let mut lane = free.map_or_else(Lane::new, Ok)?;
        let Lane { thread, room } = &mut lane;
        let made = thread.install(|| self.network.vectors(batch, room));
        self.lanes.lock().push(lane);
        made.map_err(|cause| Fault::internal("the embedder failed").because(cause))
    }
}

impl Lane {
    fn new() -> Result<Self, Fault> {
        let thread = ThreadPoolBuilder::new().num_threads(1).thread_name(|_| String::from("embedder"));
        let thread =
            thread.build().map_err(|cause| Fault::new(Code::Unavailable, "no threads").because(cause))?;
        Ok(Self { thread, room: Room::default() })
    }
}

#[cfg(test)]
mod tests;
