//! SQLite: one file, one writer at a time that commits in groups, readers apart.

mod access;
pub mod backup;
mod cells;
mod check;
pub mod conversion;
mod engine;
mod errors;
mod faults;
mod fresh;
mod heads;
mod limits;
mod lock;
mod log;
mod log_check;
mod log_walk;
mod logs;
mod look;
mod open;
mod options;
mod pen;
mod permissions;
mod readers;
pub mod simulated;
#[cfg(test)]
mod tests;
mod upkeep;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::future::BoxFuture;
use orchestr8_kernel::ports::store::{self, Batch, Row, Statement, Store};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

pub use backup::BackupReport;
pub use check::{CheckReport, CheckedChain};
pub use faults::{FailPlan, Fault, NoFaults, Point};
pub use lock::holder;
pub use log_check::Fingerprints;
pub use look::Look;
pub use open::Error;
pub use options::{OnFatal, Options, Place, Sync};
pub use orchestr8_sqlite_vfs::EncryptionKey;
pub use permissions::{Exposure, check_folder, exposed_files};
pub use simulated::Simulated;

use crate::chain::{self, Verified};
use crate::merkle::{KnownHead, LogDifference, LogReport, LogSource, LogState};
use crate::topics::Topics;
use engine::Engine;
use log::Log;
use logs::Logs;
use pen::Pen;
use readers::Readers;
use writer::{Desk, Job, Pending, Writer};

/// An open SQLite database. Cheap to clone; the last clone that goes closes it.
#[derive(Clone)]
pub struct Sqlite(Arc<Shared>);

struct Shared {
    /// `None` only while it is being dropped: without a sender the writer ends.
    queue: Option<mpsc::Sender<Job>>,
    desk: Desk,
    writer: Option<std::thread::JoinHandle<()>>,
    readers: Option<Readers>,
    topics: Arc<Topics>,
    closed: AtomicBool,
    long_work: Arc<Semaphore>,
    file: Option<open::DataFile>,
}

/// Opens the database, brings it to the shape the migrations give it and starts its threads.
pub fn open(options: Options) -> Result<Sqlite, Error> {
    let opened = open::open(&options)?;
    let topics = Arc::new(Topics::default());
    let (queue, jobs) = mpsc::channel(limits::QUEUE_BATCHES_MAX);
    let mut connection = opened.connection;
    let flushed = opened.file.as_ref().filter(|_| options.sync == Sync::Full);
    let flushed = flushed.map(|file| (file.access.path(), file.access.log_frame_bytes()));
    let log = Log::of(&mut connection, flushed).map_err(errors::store_error)?;
    let logs = Logs::load(&connection, &options.logs, options.adopt_logs)?;
    let engine = Engine::new(connection, logs, options.faults.clone());
    let pen = Pen::new(engine, log, topics.clone(), options.on_fatal.clone());
    let desk = Desk { pen: Arc::new(Mutex::new(Some(pen))), waiting: Arc::new(AtomicUsize::new(0)) };
    let writer = Writer { desk: desk.clone(), queue: jobs, on_fatal: options.on_fatal.clone() };
    let thread = std::thread::Builder::new().name(String::from("store-writer"));
    let writer = thread.spawn(move || writer.run()).map_err(no_thread)?;
    let readers = opened.file.as_ref().map(|file| {
        let access = file.access.clone();
        Readers::new(options.readers, move || open::reader(&access).map_err(errors::store_error))
    });
    Ok(Sqlite(Arc::new(Shared {
        queue: Some(queue),
        desk,
        writer: Some(writer),
        readers,
        topics,
        closed: AtomicBool::new(false),
        long_work: Arc::new(Semaphore::new(limits::LONG_WORK_MAX)),
        file: opened.file,
    })))
}

impl Sqlite {
    /// Waits until everything asked for is done and refuses what comes after. The file is free for another process once the
    /// last clone is gone.
    pub async fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        // Closed already is closed too.
        let _ = self.0.ask(Job::Close).await;
    }

    /// Writes a copy of the database as it is at one moment. Nobody who writes waits for it.
    pub async fn backup(&self, to: &Path) -> Result<BackupReport, backup::Error> {
        let to = to.to_owned();
        let key = self.0.file.as_ref().and_then(|file| file.access.key()).cloned();
        self.0.apart(move |connection| backup::run(connection, &to, key.as_ref())).await?
    }

    /// Proves the structure of the file, its references and all its chains. Reads everything there is.
    pub async fn check(&self) -> Result<CheckReport, store::Error> {
        self.0.apart(check::run).await
    }

    /// Proves one chain whole.
    pub async fn verify_chain(&self, name: &str) -> Result<Verified, chain::Error> {
        let name = name.to_owned();
        self.0.apart(move |connection| check::verify(connection, &name)).await?
    }

    /// Stores how far the Merkle logs are, and gives what is to be signed about them. Everything they cover is durable.
    pub async fn checkpoint_logs(&self) -> Result<Vec<LogState>, store::Error> {
        self.0.on_writer(|engine| states(Engine::checkpoint_logs, engine)).await?
    }

    /// The same for the last time: nothing can be committed after it.
    pub async fn seal_logs(&self) -> Result<Vec<LogState>, store::Error> {
        self.0.on_writer(|engine| states(Engine::seal_logs, engine)).await?
    }

    /// Whether a log has grown from what a head says: its root when it had that size, computed from the newest checkpoint on.
    /// Blocks, and waits for the writer: for the start, when there is nothing else to do.
    pub fn compare_log(
        &self,
        log: &'static str,
        head: &KnownHead,
    ) -> Result<Option<LogDifference>, store::Error> {
        let held = self.0.desk.pen.lock();
        let engine = &held.as_ref().ok_or(store::Error::Closed)?.engine;
        let Some(source) = engine.logs.sources().find(|source| source.name == log) else { return Ok(None) };
        let (root, frontier) = match log_check::replay(&engine.connection, source, head.size)? {
            Ok(replayed) => replayed,
            Err(difference) => return Ok(Some(difference)),
        };
        let agrees = root == head.root && engine.logs.frontier(log) == Some(&frontier);
        Ok((!agrees).then(|| LogDifference {
            log,
            number: head.size,
            label: None,
            what: String::from("it or an entry before it is not what the newest signed head covers"),
        }))
    }

    /// Proves that a log has grown from one size to another. None: it cannot be proven from what is stored.
    pub async fn prove_growth(
        &self,
        source: LogSource,
        sizes: (u64, u64),
    ) -> Result<Option<Vec<orchestr8_contract::merkle::Hash>>, store::Error> {
        self.0.apart(move |connection| log_check::prove_growth(connection, &source, sizes)).await?
    }

    /// How many entries all logs have together. Does not wait: None while a commit is under way.
    pub fn log_entries(&self) -> Option<u64> {
        let held = self.0.desk.pen.try_lock()?;
        Some(held.as_ref()?.engine.logs.entries())
    }

    /// The size and root of each log. Blocks, and waits for the writer.
    pub fn log_heads(
        &self,
    ) -> Result<Vec<(&'static str, u64, orchestr8_contract::merkle::Hash)>, store::Error> {
        let held = self.0.desk.pen.lock();
        let logs = &held.as_ref().ok_or(store::Error::Closed)?.engine.logs;
        let head = |source: &LogSource| {
            let frontier = logs.frontier(source.name)?;
            Some((source.name, frontier.size(), frontier.root()))
        };
        Ok(logs.sources().filter_map(head).collect())
    }

    /// Computes a whole log from its rows and compares it with signed heads, in the order of their sizes.
    pub async fn verify_log(
        &self,
        source: LogSource,
        heads: Vec<KnownHead>,
        fingerprints: impl Fn(u64) -> Option<[u8; 8]> + Send + 'static,
    ) -> Result<LogReport, store::Error> {
        self.0.apart(move |connection| log_check::verify(connection, &source, &heads, &fingerprints)).await?
    }

    /// Gives space that was freed by deleting back to the file system, at most this many pages, and tells how many it was.
    ///
    /// A database reuses freed pages but does not shrink by itself. The writer is held up only as long as one call takes.
    pub async fn shrink(&self, pages_max: u32) -> Result<u32, store::Error> {
        self.0.on_writer(move |engine| upkeep::shrink(&engine.connection, pages_max)).await?
    }

    /// The steps by which the rows of a statement are found, in the words of SQLite: through an index, or by looking at all.
    pub async fn plan(&self, sql: &str) -> Result<Vec<String>, store::Error> {
        let sql = sql.to_owned();
        self.0.on_writer(move |engine| upkeep::plan(&engine.connection, &sql)).await?
    }
}

impl Store for Sqlite {
    /// Once it was polled the batch is on its way: dropping the future then does not take it back.
    fn commit(&self, batch: Batch) -> BoxFuture<'static, Result<(), store::Error>> {
        let shared = self.0.clone();
        Box::pin(async move {
            if let Some(answer) = shared.commit_now(&batch) {
                // Whoever commits in a loop lets others have their turn.
                tokio::task::coop::consume_budget().await;
                return answer;
            }
            let (answer, _batch) = shared.ask(|answer| Job::Commit(Pending { batch, answer })).await?;
            answer
        })
    }

    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, store::Error>> {
        let shared = self.0.clone();
        Box::pin(async move {
            if shared.closed.load(Ordering::SeqCst) {
                return Err(store::Error::Closed);
            }
            match &shared.readers {
                Some(readers) => readers.query(statement).await,
                None => shared.on_writer(move |engine| cells::read(&engine.connection, &statement)).await?,
            }
        })
    }

    fn watch(&self, topic: &str) -> watch::Receiver<u64> {
        self.0.topics.watch(topic)
    }
}

impl Shared {
    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T, store::Error> {
        let (sender, receiver) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or(store::Error::Closed)?;
        let place = queue.reserve().await.map_err(|_| store::Error::Closed)?;
        self.desk.waiting.fetch_add(1, Ordering::SeqCst);
        place.send(job(sender));
        receiver.await.map_err(|_| store::Error::Closed)
    }

    /// Commits a small batch on the thread that asks, if nobody else writes or waits to. Nothing if it is the writer's.
    fn commit_now(&self, batch: &Batch) -> Option<Result<(), store::Error>> {
        let is_free = self.desk.waiting.load(Ordering::SeqCst) == 0 && !self.closed.load(Ordering::SeqCst);
        if !is_free || !tokio::task::coop::has_budget_remaining() {
            return None;
        }
        let mut held = self.desk.pen.try_lock()?;
        let pen = held.as_mut().filter(|pen| pen.is_quick(batch))?;
        let Ok(answer) = pen.commit_alone(batch) else {
            drop(held.take());
            return Some(Err(store::Error::Closed));
        };
        if pen.is_log_due()
            && let Some(place) = self.queue.as_ref().and_then(|queue| queue.try_reserve().ok())
        {
            self.desk.waiting.fetch_add(1, Ordering::SeqCst);
            place.send(Job::Tend);
        }
        Some(answer)
    }

    async fn on_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Result<T, store::Error> {
        self.ask(|answer| Job::Task(Box::new(move |engine| drop(answer.send(work(engine)))))).await
    }

    /// Long work on a thread and a connection of its own. In memory there is only the writer's.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> T + Send + 'static,
    ) -> Result<T, store::Error> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(store::Error::Closed);
        }
        let Some(file) = &self.file else {
            return self.on_writer(move |engine| work(&engine.connection)).await;
        };
        let permit = self.long_work.clone().acquire_owned().await.map_err(|_| store::Error::Closed)?;
        let (answer, receiver) = oneshot::channel();
        let access = file.access.clone();
        let thread = std::thread::Builder::new().name(String::from("store-long-work"));
        let run = move || {
            let _ = answer
                .send(open::reader(&access).map_err(errors::store_error).map(|connection| work(&connection)));
            drop(permit);
        };
        thread.spawn(run).map_err(no_thread)?;
        receiver.await.map_err(|_| store::Error::Closed)?
    }
}

fn states(
    checkpoint: fn(&mut Engine) -> Result<engine::Answer, engine::Stop>,
    engine: &mut Engine,
) -> Result<Vec<LogState>, store::Error> {
    match checkpoint(engine) {
        Ok(answer) => answer.map(|()| engine.logs.take_states()),
        Err(_) => Err(store::Error::Closed),
    }
}

fn no_thread(cause: std::io::Error) -> store::Error {
    store::Error::Full(format!("a thread could not be started: {cause}"))
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.queue.take());
        drop(self.readers.take());
        if let Some(writer) = self.writer.take()
            && writer.thread().id() != std::thread::current().id()
        {
            // A writer that panicked has said so; there is nothing to add.
            let _ = writer.join();
        }
    }
}
