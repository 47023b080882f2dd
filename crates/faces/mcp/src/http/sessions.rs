//! All sessions: bounded in number, ended when nobody uses them, and read back from the store after a restart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::log;
use orchestr8_kernel::ports::ids::{For, Ids};
use orchestr8_kernel::ports::store::{self, Batch};
use orchestr8_kernel::{Principal, Transport};
use parking_lot::RwLock;
use serde_json::json;

use crate::connection::{Connection, Saved};
use crate::face::Face;

use super::Settings;
use super::session::{Beginning, Busy, Session, SessionId};
use super::stream::Budget;
use super::streams::Streams;
use super::tables::{self, SessionKey};

/// The store hears at least this often which sessions are in use.
const SWEEP_EVERY_MS: u64 = 60_000;

/// How many sweeps fit into the idle time, so that a session ends soon after it.
const SWEEPS_PER_IDLE: u64 = 4;

pub(super) struct Sessions {
    face: Face,
    budget: Arc<Budget>,
    quota: Quota,
    idle_ms: u64,
    all: RwLock<HashMap<SessionId, Arc<Session>>>,
    swept: AtomicBool,
}

/// How many sessions there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quota {
    pub total: usize,
    pub per_principal: usize,
}

impl Quota {
    pub fn of(settings: &Settings) -> Self {
        Self { total: settings.max_sessions, per_principal: settings.max_sessions_per_principal }
    }

    /// The idle sessions that must end so that this principal gets one more; none if all that could are in use. A principal
    /// beyond its share makes room among its own. When all places are taken, the tenant with the most sessions makes room, so
    /// that no tenant pays for the load of a larger one.
    fn make_room(self, live: &[&Arc<Session>], owner: &Principal) -> Option<Vec<Arc<Session>>> {
        let own: Vec<_> = live.iter().copied().filter(|session| session.is_of(owner)).collect();
        if own.len() >= self.per_principal {
            return first_idle(own).map(|session| vec![session]);
        }
        if live.len() < self.total {
            return Some(Vec::new());
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for session in live {
            *counts.entry(session.owner.tenant.as_str()).or_default() += 1;
        }
        let largest =
            counts.into_iter().max_by_key(|(tenant, count)| (*count, *tenant == owner.tenant.as_str()));
        let (tenant, _) = largest?;
        let theirs = live.iter().copied().filter(|session| session.owner.tenant.as_str() == tenant).collect();
        first_idle(theirs).map(|session| vec![session])
    }
}

/// The one that was unused for longest, unless all are in use.
fn first_idle(sessions: Vec<&Arc<Session>>) -> Option<Arc<Session>> {
    let idle = sessions.into_iter().filter(|session| !session.is_busy());
    idle.min_by_key(|session| session.used_us()).cloned()
}

/// A session that has got its place, and the idle ones that had to make room: they are closed, but not yet forgotten.
struct Placed {
    session: Arc<Session>,
    over: Vec<Arc<Session>>,
}

impl Sessions {
    pub fn new(face: Face, budget: Arc<Budget>, quota: Quota, idle_ms: u64) -> Arc<Self> {
        Arc::new(Self { face, budget, quota, idle_ms, all: RwLock::default(), swept: AtomicBool::new(false) })
    }

    /// The streams for a conversation that may become a session.
    pub fn streams(&self) -> Arc<Streams> {
        Streams::new(life(&*self.face.kernel().ports().ids), self.budget.clone())
    }

    /// Makes a session of a conversation that has been initialized. Its client hears of it only once it is durable.
    pub async fn open(
        self: Arc<Self>,
        connection: Arc<Connection>,
        streams: Arc<Streams>,
        owner: Arc<Principal>,
        saved: Saved,
    ) -> Result<Arc<Session>, Fault> {
        let ports = self.face.kernel().ports();
        let id = SessionId::fresh(&*ports.ids);
        let session =
            Session::new(Beginning { id, owner, connection, streams, number: 0 }, ports.clock.clone());
        // In use until its client knows of it, so that nobody takes its place before.
        let _busy = Busy::new(&session);
        let text = written(&saved)?;
        let over = self.place(&session)?.over;
        let mut batch = Batch::new();
        batch.then_one(tables::session_insert(
            session.key(),
            &session.owner.name,
            text,
            ports.clock.now_ms(),
        ));
        if let Err(fault) = self.forget(over, batch).await {
            session.close();
            self.all.write().remove(&session.id);
            return Err(fault);
        }
        self.keep_swept();
        Ok(session)
    }

    /// A session in memory: the way of almost every request.
    pub fn known(&self, id: &str, who: &Principal) -> Option<Arc<Session>> {
        let all = self.all.read();
        let session = all.get(id).filter(|session| session.belongs_to(who) && !session.is_over())?;
        session.touch();
        Some(session.clone())
    }

    /// A session that is only in the store, as after a restart.
    pub async fn restore(
        self: &Arc<Self>,
        id: &str,
        who: &Arc<Principal>,
    ) -> Result<Option<Arc<Session>>, Fault> {
        let Some(id) = SessionId::parse(id) else { return Ok(None) };
        if self.all.read().contains_key(&id) {
            // It is somebody else's, or it is just ending.
            return Ok(None);
        }
        let id_hash = id.hash();
        let key = SessionKey { tenant: who.tenant.as_str(), id_hash: &id_hash };
        let Some((number, saved)) = self.read(key, who).await? else { return Ok(None) };
        let streams = self.streams();
        let connection = self.face.restore(saved, who.clone(), Transport::Http, streams.clone());
        let clock = self.face.kernel().ports().clock.clone();
        let beginning = Beginning { id, owner: who.clone(), connection, streams, number };
        let placed = self.place(&Session::new(beginning, clock))?;
        let session = placed.session;
        self.keep_swept();
        self.forget(placed.over, Batch::new()).await?;
        // Somebody may have ended it between our reading it and its being known here.
        if self.read(key, who).await?.is_none() {
            session.close();
            self.all.write().remove(&session.id);
        }
        session.touch();
        Ok(Some(session).filter(|session| !session.is_closed()))
    }

    /// Saves what has changed; done before the client hears that it has.
    pub async fn save(&self, session: &Session) -> Result<(), Fault> {
        let Some(unsaved_state) = session.unsaved() else { return Ok(()) };
        let ports = self.face.kernel().ports();
        let text = written(&unsaved_state.saved)?;
        let mut batch = Batch::new();
        batch.then(tables::session_update(session.key(), unsaved_state.number, text, ports.clock.now_ms()));
        ports.store.commit(batch).await.map_err(unsaved)?;
        session.mark_saved(unsaved_state.revision);
        Ok(())
    }

    /// Ends a session for good.
    pub async fn end(self: Arc<Self>, session: Arc<Session>) -> Result<(), Fault> {
        session.close();
        self.forget(vec![session], Batch::new()).await
    }

    /// Takes closed sessions out of the store, with whatever else is to be written, and only then out of memory: before, a
    /// request that comes at the same moment would find them in the store and bring them back.
    async fn forget(&self, over: Vec<Arc<Session>>, mut batch: Batch) -> Result<(), Fault> {
        for session in &over {
            batch.then(tables::session_delete(session.key()));
        }
        if batch.is_empty() {
            return Ok(());
        }
        let committed = self.face.kernel().ports().store.commit(batch).await;
        let mut all = self.all.write();
        for session in &over {
            all.remove(&session.id);
        }
        committed.map_err(unsaved)
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.all.read().len()
    }

    async fn read(&self, key: SessionKey<'_>, who: &Principal) -> Result<Option<(i64, Saved)>, Fault> {
        let ports = self.face.kernel().ports();
        let since_ms = ports.clock.now_ms().saturating_sub(self.grace_ms());
        let rows = ports.store.query(tables::session_find(key, &who.name, since_ms)).await.map_err(unread)?;
        let Some(row) = rows.first() else { return Ok(None) };
        let number = row.int(0).map_err(unread)?;
        let saved = serde_json::from_str(row.text(1).map_err(unread)?).map_err(|error| {
            Fault::new(Code::StoreCorrupt, "a stored session cannot be read").because(error)
        })?;
        Ok(Some((number, saved)))
    }

    /// Makes room and adds it, unless another request was quicker; then that one counts.
    fn place(&self, session: &Arc<Session>) -> Result<Placed, Fault> {
        let mut over = Vec::new();
        {
            let mut all = self.all.write();
            if let Some(first) = all.get(&session.id).cloned() {
                drop(all);
                session.close();
                return Ok(Placed { session: first, over });
            }
            let live: Vec<&Arc<Session>> = all.values().filter(|session| !session.is_closed()).collect();
            let Some(ended) = self.quota.make_room(&live, &session.owner) else {
                drop(all);
                session.close();
                return Err(self.full());
            };
            over.extend(ended);
            over.iter().for_each(|session| session.mark_closed());
            all.insert(session.id.clone(), session.clone());
        }
        over.iter().for_each(|session| session.close());
        Ok(Placed { session: session.clone(), over })
    }

    fn full(&self) -> Fault {
        Fault::new(
            Code::ResourceExhausted,
            format!(
                "{} sessions of yours, or {} in all, are open and in use; end one, or try later",
                self.quota.per_principal, self.quota.total
            ),
        )
    }

    /// A session counts as used for as long after its last use as the store may be behind.
    fn grace_ms(&self) -> i64 {
        i64::try_from(self.idle_ms.saturating_add(self.sweep_every_ms())).unwrap_or(i64::MAX)
    }

    fn sweep_every_ms(&self) -> u64 {
        (self.idle_ms / SWEEPS_PER_IDLE).clamp(1, SWEEP_EVERY_MS)
    }

    fn keep_swept(self: &Arc<Self>) {
        if !self.swept.swap(true, Ordering::AcqRel) {
            let every = Duration::from_millis(self.sweep_every_ms());
            tokio::spawn(keep_swept(Arc::downgrade(self), every));
        }
    }

    /// Ends what nobody has used for too long, here and in the store, and tells the store what is in use.
    pub async fn sweep(&self) -> Result<(), Fault> {
        let ports = self.face.kernel().ports();
        let (now_ms, elapsed_us) = (ports.clock.now_ms(), ports.clock.elapsed_us());
        let limit_us = self.idle_ms.saturating_mul(1000);
        let mut batch = Batch::new();
        let mut over = Vec::new();
        let all: Vec<Arc<Session>> = self.all.read().values().cloned().collect();
        for session in all {
            session.streams.sweep(elapsed_us / 1000);
            // A closed one is still here only if whoever closed it could not finish.
            if session.is_over() || session.is_idle_for(limit_us) {
                session.close();
                over.push(session);
            } else if session.take_fresh() {
                batch.then(tables::session_touch(session.key(), now_ms));
            }
        }
        batch.then(tables::sessions_expire(now_ms.saturating_sub(self.grace_ms())));
        self.forget(over, batch).await
    }
}

async fn keep_swept(sessions: Weak<Sessions>, every: Duration) {
    loop {
        // Not the clock port: in deterministic mode waiting would move the time that records show.
        tokio::time::sleep(every).await;
        let Some(sessions) = sessions.upgrade() else { return };
        if let Err(fault) = sessions.sweep().await {
            let log = sessions.face.kernel().log();
            log.warn("idle sessions could not be swept", || json!({"error": log::error(&fault)}));
        }
    }
}

/// Goes on to its end even if the client leaves in the middle, so that memory and store never disagree.
pub(super) async fn whole<T: Send + 'static>(
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|error| Err(Fault::internal("a change of sessions broke off").because(error)))
}

/// Tells the streams of one life of a session from those of another.
fn life(ids: &dyn Ids) -> u32 {
    let [.., a, b, c, d] = *ids.fresh(For::Record).as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

fn written(saved: &Saved) -> Result<String, Fault> {
    serde_json::to_string(saved)
        .map_err(|error| Fault::internal("a session cannot be written").because(error))
}

fn unsaved(error: store::Error) -> Fault {
    Fault::new(Code::StoreFailed, "the session could not be saved").because(error)
}

fn unread(error: store::Error) -> Fault {
    Fault::new(Code::StoreFailed, "the session could not be read").because(error)
}
