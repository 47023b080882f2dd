//! One session of the legacy era: a conversation, its streams, and when it was last used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use http::HeaderValue;
use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::Principal;
use orchestr8_kernel::ports::clock::Clock;
use orchestr8_kernel::ports::ids::{For, Ids};
use sha2::{Digest, Sha256};

use crate::connection::{Connection, Saved};

use super::streams::Streams;
use super::tables::SessionKey;

/// From this revision on, clients understand an event without data, and so can be primed.
const PRIMING_SINCE: &str = "2025-11-25";

/// The name of a session, which only its client knows.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionId(Arc<str>);

impl SessionId {
    const LENGTH: usize = 64;

    /// 244 random bits, or counted ones in deterministic mode.
    pub fn fresh(ids: &dyn Ids) -> Self {
        let (one, two) = (ids.fresh(For::Session).simple(), ids.fresh(For::Session).simple());
        Self(format!("{one}{two}").into())
    }

    /// None for what can be no id of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let fits =
            text.len() == Self::LENGTH && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> String {
        Sha256::digest(self.0.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl std::borrow::Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

pub(super) struct Session {
    pub id: SessionId,
    pub id_hash: String,
    /// Whoever made it; nobody else gets to see it.
    pub owner: Arc<Principal>,
    pub connection: Arc<Connection>,
    pub streams: Arc<Streams>,
    /// The id of the connection, as every answer carries it.
    pub correlation: HeaderValue,
    /// Whether its client can be primed.
    pub primed: bool,
    clock: Arc<dyn Clock>,
    used_us: AtomicU64,
    busy: AtomicUsize,
    closed: AtomicBool,
    /// Used since the store was last told.
    fresh: AtomicBool,
    /// The revision of the connection that the store has.
    saved_revision: AtomicU64,
    /// Numbers what is saved, so that the newest wins.
    saves: AtomicI64,
}

/// A state the store does not have yet.
pub(super) struct Unsaved {
    pub revision: u64,
    pub number: i64,
    pub saved: Saved,
}

/// What a session begins with.
pub(super) struct Beginning {
    pub id: SessionId,
    pub owner: Arc<Principal>,
    pub connection: Arc<Connection>,
    pub streams: Arc<Streams>,
    /// The number of the state it was read back from.
    pub number: i64,
}

impl Session {
    pub fn new(beginning: Beginning, clock: Arc<dyn Clock>) -> Arc<Self> {
        let Beginning { id, owner, connection, streams, number } = beginning;
        Arc::new(Self {
            id_hash: id.hash(),
            correlation: header(connection.id()),
            primed: connection.version().is_some_and(|version| version >= PRIMING_SINCE),
            used_us: AtomicU64::new(clock.elapsed_us()),
            busy: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            fresh: AtomicBool::new(false),
            saved_revision: AtomicU64::new(connection.revision()),
            saves: AtomicI64::new(number),
            id,
            owner,
            connection,
            streams,
            clock,
        })
    }

    pub fn key(&self) -> SessionKey<'_> {
        SessionKey { tenant: self.owner.tenant.as_str(), id_hash: &self.id_hash }
    }

    /// Whether it is a session of this principal with the same rights: the conversation keeps those it began with.
    pub fn belongs_to(&self, who: &Principal) -> bool {
        self.is_of(who) && self.owner.roles == who.roles && self.owner.grant == who.grant
    }

    pub fn is_of(&self, who: &Principal) -> bool {
        self.owner.name == who.name && self.owner.tenant == who.tenant
    }

    pub fn touch(&self) {
        self.used_us.store(self.clock.elapsed_us(), Ordering::Relaxed);
        self.fresh.store(true, Ordering::Relaxed);
    }

    /// Whether it was used since this was last asked.
    pub fn take_fresh(&self) -> bool {
        self.fresh.swap(false, Ordering::Relaxed) || self.is_busy()
    }

    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    /// When it was last used, for the least recently used to go first.
    pub fn used_us(&self) -> u64 {
        self.used_us.load(Ordering::Relaxed)
    }

    pub fn is_idle_for(&self, limit_us: u64) -> bool {
        !self.is_busy() && self.clock.elapsed_us().saturating_sub(self.used_us()) >= limit_us
    }

    /// Whether the store is behind; asked after every message, so it is cheap.
    pub fn has_unsaved(&self) -> bool {
        self.saved_revision.load(Ordering::Acquire) < self.connection.revision()
    }

    /// What must be saved before the client hears that it happened; None when the store has it.
    ///
    /// The number is taken before the state is read. Whoever saves a change takes a number after it was made; so of two
    /// states the one with the higher number has at least the changes of the other.
    pub fn unsaved(&self) -> Option<Unsaved> {
        let revision = self.connection.revision();
        if !self.has_unsaved() {
            return None;
        }
        let number = self.saves.fetch_add(1, Ordering::AcqRel) + 1;
        Some(Unsaved { revision, number, saved: self.connection.saved()? })
    }

    /// The store has this revision now.
    pub fn mark_saved(&self, revision: u64) {
        self.saved_revision.fetch_max(revision, Ordering::AcqRel);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closed, or begun with a token that is no longer valid.
    pub fn is_over(&self) -> bool {
        self.is_closed() || self.owner.grant.as_ref().is_some_and(|grant| grant.is_revoked())
    }

    /// From here on no request finds it.
    pub fn mark_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Ends the conversation and its streams; what is in flight hears of the disconnect.
    pub fn close(&self) {
        self.mark_closed();
        self.connection.close();
        self.streams.end();
    }
}

/// The session is in use as long as one of these is there.
pub(super) struct Busy(Arc<Session>);

impl Busy {
    pub fn new(session: &Arc<Session>) -> Self {
        session.busy.fetch_add(1, Ordering::AcqRel);
        Self(session.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connection's id as a header. It is a UUID, so it always fits; the fallback only spares a panic path.
pub(super) fn header(id: &CorrelationId) -> HeaderValue {
    // An id may hold letters that are not ASCII; they travel as the bytes they are.
    HeaderValue::from_bytes(id.as_str().as_bytes()).unwrap_or(HeaderValue::from_static("unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::ports::ids::{Counted, Random};

    #[test]
    fn ids_are_long_visible_and_only_our_own_are_looked_up() {
        let id = SessionId::fresh(&Random);
        assert_eq!(id.as_str().len(), 64);
        assert!(id.as_str().bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        assert!(SessionId::parse(id.as_str()).is_some_and(|parsed| parsed == id));
        assert_ne!(id.hash(), id.as_str());
        let upper = id.as_str().to_uppercase();
        for wrong in
            ["", "abc", &id.as_str()[1..], &format!("{}0", id.as_str()), &"é".repeat(32), &"g".repeat(64)]
        {
            assert!(SessionId::parse(wrong).is_none(), "{wrong}");
        }
        assert!(SessionId::parse(&upper).is_none() || upper == id.as_str());
    }

    #[test]
    fn two_fresh_ids_differ_even_when_counted() {
        let ids = Counted::default();
        assert!(SessionId::fresh(&ids) != SessionId::fresh(&ids));
    }
}
