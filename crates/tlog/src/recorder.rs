//! Makes heads: at the start, at an interval, at the end. Before the start it compares the store with the newest head.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use orchestr8_contract::merkle::Hash;
use orchestr8_kernel::Log;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::store::{self, Batch, Store as _};
use orchestr8_stores::Sqlite;
use orchestr8_stores::merkle::{LogDifference, LogSource, LogState, PrunedSet};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::anchor::{self, Anchor, AnchorBoard, AnchorContext, AnchorHandle};
use crate::head::{HeadEvent, TreeHead, sign_pruned};
use crate::head_file::{self, HeadFile, HeadLine};
use crate::key::LogKey;
use crate::limits;
use crate::verify::{self, LogVerification};
use crate::witness::{LogProver, Witness, WitnessProblem};

/// What heads are made with.
#[derive(Clone)]
pub struct RecorderSettings {
    pub key: LogKey,
    pub file: HeadFile,
    pub anchors: Vec<Anchor>,
    /// What the origin of a head begins with: `orchestr8/<data file>`.
    pub origin: String,
    pub every: Duration,
    /// A head is also made after so many entries; 0: only after time.
    pub every_entries: u64,
    pub witnesses: WitnessSettings,
    pub sources: Vec<LogSource>,
}

/// The witnesses that a start asks.
#[derive(Debug, Clone, Default)]
pub struct WitnessSettings {
    pub witnesses: Vec<Witness>,
    /// Without one that answers nothing is written.
    pub require: bool,
}

/// Why the store must not be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store is not what was signed.
    #[error("the data does not agree with the newest signed head of {at}: {difference}")]
    Tampered { at: String, difference: LogDifference },
    /// The store is not what a witness remembers.
    #[error("the data does not agree with the head of {at} that the {witness} remembers: {difference}")]
    Rewound { witness: String, at: String, difference: LogDifference },
    #[error("the {witness} is not accepted: {cause}")]
    Witness { witness: String, cause: WitnessProblem },
    #[error(transparent)]
    Heads(#[from] head_file::Error),
    #[error("the head cannot be written to {path}: {cause}")]
    Write { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Signs and anchors the heads of a store. Cheap to clone.
#[derive(Clone)]
pub struct HeadRecorder(Arc<Recorder>);

struct Recorder {
    settings: RecorderSettings,
    store: Sqlite,
    context: AnchorContext,
    anchors: Vec<AnchorHandle>,
    last: Mutex<LastHead>,
    /// There were no heads before this start.
    is_new: bool,
    /// One head at a time.
    turn: tokio::sync::Mutex<()>,
    /// What is done before each head.
    before: OnceLock<BeforeHead>,
}

/// Brings what waits elsewhere into the logs before a head is made.
pub type BeforeHead = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

#[derive(Default)]
struct LastHead {
    sizes: Vec<u64>,
    /// What the newest check of all rows has found.
    verification: Option<LogVerification>,
}

impl HeadRecorder {
    /// Compares the store with the newest head, and writes one that says that the store is in use. Nothing may have been written to
    /// the store since it was opened. Needs a tokio runtime around it.
    pub fn start(
        store: &Sqlite,
        settings: RecorderSettings,
        clock: Arc<dyn Clock>,
        log: Log,
        stop: CancellationToken,
    ) -> Result<Self, Error> {
        let heads = settings.file.newest(settings.key.public())?;
        let states = store.log_heads()?;
        for (log, size, _) in &states {
            compare(store, &heads, log, *size)?;
        }
        let board = AnchorBoard::new(settings.file.status_path());
        let key = settings.key.public().clone();
        let logs = LogProver { store: store.clone(), sources: settings.sources.clone(), key };
        let context = AnchorContext { clock, log, board, stop, logs };
        let anchors =
            settings.anchors.iter().map(|anchor| anchor::start(anchor.clone(), context.clone())).collect();
        let recorder = Recorder {
            settings,
            store: store.clone(),
            context,
            anchors,
            last: Mutex::default(),
            is_new: heads.is_empty(),
            turn: tokio::sync::Mutex::default(),
            before: OnceLock::new(),
        };
        // Where nothing was ever written there is nothing to vouch for.
        if !heads.is_empty() || states.iter().any(|(_, size, _)| *size > 0) {
            let notes =
                states.iter().map(|(log, size, root)| recorder.sign(log, *size, *root, HeadEvent::Start));
            let path = recorder.settings.file.path().to_owned();
            let written = recorder.settings.file.append(notes.collect());
            written.map_err(|cause| Error::Write { path, cause })?;
        }
        Ok(Self(Arc::new(recorder)))
    }

    /// Sets what is done before each head; the first one set counts.
    pub fn before_each(&self, before: BeforeHead) {
        let _ = self.0.before.set(before);
    }

    /// Makes heads at an interval, and checks all rows once, until the server stops.
    pub fn run(&self) {
        let recorder = self.clone();
        tokio::spawn(async move {
            recorder.check_rows().await;
            let context = &recorder.0.context;
            loop {
                tokio::select! {
                    () = context.stop.cancelled() => return,
                    () = context.clock.sleep(recorder.0.settings.every) => {}
                    () = recorder.many_entries() => {}
                }
                recorder.head(HeadEvent::Interval).await;
                recorder.check_witnesses();
            }
        });
    }

    /// Returns once so many entries were added since the newest head that another one is due.
    async fn many_entries(&self) {
        let (recorder, limit) = (&self.0, self.0.settings.every_entries);
        if limit == 0 {
            return std::future::pending().await;
        }
        loop {
            recorder.context.clock.sleep(limits::SIZE_CHECK).await;
            let signed: u64 = recorder.last.lock().sizes.iter().sum();
            let entries = recorder.store.log_entries().unwrap_or(signed);
            if entries.saturating_sub(signed) >= limit {
                return;
            }
        }
    }

    /// A server that requires a witness stops when none has taken its heads for too long.
    fn check_witnesses(&self) {
        let recorder = &self.0;
        let witnesses = &recorder.settings.witnesses;
        if !witnesses.require {
            return;
        }
        let since_ms = recorder.context.clock.now_ms() - limits::WITNESS_GRACE_MS;
        let is_lost = |witness: &Witness| recorder.context.board.fails_since(&witness.to_string(), since_ms);
        if witnesses.witnesses.iter().all(is_lost) {
            recorder.context.log.error("no witness takes the heads of the audit log; the server stops", ());
            recorder.context.stop.cancel();
        }
    }

    /// The last head: nothing can be committed after it.
    pub async fn close(&self) {
        self.head(HeadEvent::Shutdown).await;
    }

    /// Makes a head if there is something new, and gives how many entries of a log it covers.
    pub async fn covered(&self, log: &str) -> u64 {
        self.head(HeadEvent::Interval).await;
        let index = self.0.settings.sources.iter().position(|source| source.name == log);
        let last = self.0.last.lock();
        index.and_then(|index| last.sizes.get(index).copied()).unwrap_or(0)
    }

    /// The signed statement about entries of a log that are deleted for their age.
    pub fn sign_pruned(&self, log: &str, digest: Hash) -> String {
        let recorder = &self.0;
        let origin = recorder.origin(log);
        sign_pruned(&origin, digest, recorder.context.clock.now_ms(), &recorder.settings.key)
    }

    /// Compares all rows with the heads.
    pub async fn verify(&self) -> Result<LogVerification, Error> {
        let settings = &self.0.settings;
        // Thousands of signatures: not on a thread that others wait for.
        let (file, key) = (settings.file.clone(), settings.key.public().clone());
        let heads = tokio::task::spawn_blocking(move || file.heads(&key))
            .await
            .map_err(|_| store::Error::Closed)??;
        let mut found = LogVerification::default();
        for source in &settings.sources {
            let known = verify::heads_of(&heads, source.name);
            let fingerprints = settings.file.fingerprints(source.name);
            let report = self.0.store.verify_log(*source, known, fingerprints).await?;
            found.add(report, &settings.origin, settings.key.public());
        }
        Ok(found)
    }

    /// What the newest check of all rows has found, if one was made.
    pub fn newest_verification(&self) -> Option<LogVerification> {
        self.0.last.lock().verification.clone()
    }

    /// Anchors that do not have the newest head, and why.
    pub fn failing_anchors(&self) -> std::collections::BTreeMap<String, String> {
        self.0.context.board.failing()
    }

    /// Reads every row once: what was changed long ago is not seen by the comparison at the start.
    async fn check_rows(&self) {
        let log = &self.0.context.log;
        if let Err(error) = self.sign_adopted().await {
            log.warn("the log of deleted entries could not be signed", json!({"cause": error.to_string()}));
        }
        match self.verify().await {
            Ok(found) => {
                if let Some(difference) = &found.difference {
                    log.error(
                        "the data was changed from outside; see `orchestr8 audit verify`",
                        json!({"log": difference.log, "entry": difference.number, "what": difference.to_string()}),
                    );
                }
                self.0.last.lock().verification = Some(found);
            }
            Err(error) => log.warn("the audit log could not be checked", json!({"cause": error.to_string()})),
        }
    }

    /// Signs what a log that is new has found missing. A log that has heads already signs what it deletes itself.
    async fn sign_adopted(&self) -> Result<(), store::Error> {
        let recorder = &self.0;
        for source in recorder.settings.sources.iter().filter(|_| recorder.is_new) {
            let set = PrunedSet::load(&recorder.store, source).await?;
            if !set.is_empty() {
                let mut batch = Batch::new();
                batch.then(set.note(source, &|digest| self.sign_pruned(source.name, digest)));
                recorder.store.commit(batch).await?;
            }
        }
        Ok(())
    }

    async fn head(&self, event: HeadEvent) {
        let recorder = &self.0;
        let _turn = recorder.turn.lock().await;
        if let Some(before) = recorder.before.get() {
            before().await;
        }
        let states = match event {
            HeadEvent::Shutdown => recorder.store.seal_logs().await,
            HeadEvent::Start | HeadEvent::Interval | HeadEvent::Accepted => {
                recorder.store.checkpoint_logs().await
            }
        };
        let states = match states {
            Ok(states) => states,
            Err(error) => {
                recorder.context.tell("the store", &Err(error.to_string()));
                return;
            }
        };
        let sizes: Vec<u64> = states.iter().map(|state| state.size).collect();
        let is_empty = sizes.iter().all(|size| *size == 0);
        if is_empty || (event == HeadEvent::Interval && recorder.last.lock().sizes == sizes) {
            return;
        }
        let notes: Vec<String> =
            states.iter().map(|state| recorder.sign(state.log, state.size, state.root, event)).collect();
        let line = serde_json::to_string(&HeadLine { heads: notes.clone() }).unwrap_or_default();
        let name = recorder.settings.file.path().display().to_string();
        let written = recorder.write(states, notes).await.map_err(|cause| cause.to_string());
        recorder.context.tell(&name, &written);
        if written.is_ok() {
            recorder.last.lock().sizes = sizes;
        }
        let line: Arc<str> = line.into();
        recorder.anchors.iter().for_each(|anchor| drop(anchor.heads.send(line.clone())));
        if event == HeadEvent::Shutdown {
            let all =
                futures::future::join_all(recorder.anchors.iter().map(|anchor| anchor.delivered(&line)));
            // Whatever comes first: the server has to end.
            futures::future::select(all, recorder.context.clock.sleep(limits::SHUTDOWN_WAIT)).await;
        }
    }
}

impl Recorder {
    fn origin(&self, log: &str) -> String {
        format!("{}/{log}", self.settings.origin)
    }

    fn sign(&self, log: &str, size: u64, root: Hash, event: HeadEvent) -> String {
        let at_ms = self.context.clock.now_ms();
        TreeHead { origin: self.origin(log), size, root, at_ms, event }.sign(&self.settings.key)
    }

    async fn write(&self, states: Vec<LogState>, notes: Vec<String>) -> io::Result<()> {
        let file = self.settings.file.clone();
        let write = move || {
            file.append(notes)?;
            states.iter().try_for_each(|state| file.append_fingerprints(state))
        };
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

/// The log must have grown from the newest head, and not at all since a shutdown.
fn compare(store: &Sqlite, heads: &[TreeHead], log: &'static str, size: u64) -> Result<(), Error> {
    let Some(newest) = heads.iter().rev().find(|head| head.log() == log) else { return Ok(()) };
    let mut difference = store.compare_log(log, &newest.known())?;
    if difference.is_none() && newest.event == HeadEvent::Shutdown && size > newest.size {
        difference = Some(LogDifference {
            log,
            number: newest.size + 1,
            label: None,
            what: String::from("it was put in while the server was stopped"),
        });
    }
    match difference {
        None => Ok(()),
        Some(difference) => {
            Err(Error::Tampered { at: orchestr8_kernel::ports::clock::iso(newest.at_ms), difference })
        }
    }
}
