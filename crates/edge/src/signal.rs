//! What one connection is doing, and the word that ends it from outside: eviction, or a token that was revoked.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use futures::task::AtomicWaker;
use orchestr8_kernel::grant::TokenGrant;

use crate::peer_owner::{self, SocketOwner};
use crate::streams::StreamPermit;

/// How far a connection is with its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// No whole request has come yet: nothing is lost if it is closed.
    Receiving = 0,
    /// A request is being answered, or the socket was upgraded.
    Serving = 1,
    /// Between two requests.
    Idle = 2,
}

pub(crate) struct ConnectionSignal {
    pub address: IpAddr,
    stage: AtomicU8,
    upgraded: AtomicBool,
    closing: AtomicBool,
    /// It is closing because its token was revoked.
    revoked: AtomicBool,
    waker: AtomicWaker,
    /// Whether a valid token was shown on this connection before, so that it is noted once.
    authenticated: AtomicBool,
    has_held: AtomicBool,
    held: Mutex<Held>,
    /// The other end and ours, once the connection is set up.
    ends: OnceLock<(SocketAddr, SocketAddr)>,
    is_own_user: OnceLock<bool>,
}

/// What belongs to the present request.
#[derive(Default)]
struct Held {
    grant: Option<Arc<TokenGrant>>,
    stream: Option<StreamPermit>,
    /// A sweep has found its token revoked while it was being answered.
    is_overdue: bool,
}

impl ConnectionSignal {
    pub fn new(address: IpAddr) -> Self {
        Self {
            address,
            stage: AtomicU8::new(Stage::Receiving as u8),
            upgraded: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            authenticated: AtomicBool::new(false),
            has_held: AtomicBool::new(false),
            held: Mutex::default(),
            ends: OnceLock::new(),
            is_own_user: OnceLock::new(),
        }
    }

    pub fn set_ends(&self, peer: SocketAddr, local: SocketAddr) {
        let _ = self.ends.set((peer, local));
    }

    /// Whether the other end belongs to the user who runs this server. Looked up once, by the first request that shows no token.
    pub fn is_own_user(&self, trust_this_process: bool) -> bool {
        let look = || match self.ends.get() {
            Some((peer, local)) if peer.ip().to_canonical().is_loopback() => {
                let user = rustix::process::geteuid().as_raw();
                let owner = peer_owner::owner_of(*peer, *local);
                peer_owner::is_own(owner, user) || (trust_this_process && owner == SocketOwner::ThisProcess)
            }
            Some(_) | None => true,
        };
        *self.is_own_user.get_or_init(look)
    }

    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Receiving,
            1 => Stage::Serving,
            _ => Stage::Idle,
        }
    }

    /// A request has come whole.
    pub fn complete(&self) {
        self.stage.store(Stage::Serving as u8, Ordering::Relaxed);
    }

    /// The head of a request has come; its body has not.
    pub fn receive(&self) {
        self.stage.store(Stage::Receiving as u8, Ordering::Relaxed);
    }

    /// The answer has ended, and with it what the request held; an upgraded socket holds it until it closes.
    pub fn idle(&self) {
        if self.upgraded.load(Ordering::Relaxed) {
            return;
        }
        self.stage.store(Stage::Idle as u8, Ordering::Relaxed);
        if self.has_held.swap(false, Ordering::Relaxed) {
            *self.held() = Held::default();
        }
    }

    pub fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
        self.complete();
    }

    /// Notes whose token the present request shows.
    pub fn hold_grant(&self, grant: Arc<TokenGrant>) {
        self.has_held.store(true, Ordering::Relaxed);
        self.held().grant = Some(grant);
    }

    pub fn hold_stream(&self, permit: StreamPermit) {
        self.has_held.store(true, Ordering::Relaxed);
        self.held().stream = Some(permit);
    }

    /// Closes it if the token of its request is no longer valid: a stream at once, any other request when a second sweep finds it
    /// still unanswered. In between it gets its answer, since it may be the very one that revoked the token.
    pub fn close_revoked(&self, is_sweep: bool) {
        let mut held = self.held();
        if !held.grant.as_ref().is_some_and(|grant| grant.is_revoked()) {
            return;
        }
        if held.stream.is_some() || (is_sweep && std::mem::replace(&mut held.is_overdue, true)) {
            drop(held);
            self.revoked.store(true, Ordering::Release);
            self.close();
        }
    }

    /// Whether it was closed because its token was revoked.
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// True the first time it is called.
    pub fn first_login(&self) -> bool {
        !self.authenticated.swap(true, Ordering::Relaxed)
    }

    /// Ends the connection, whatever it is doing.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Wakes this task when the connection is closed from outside. The last one that asked is woken.
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Waits for the word that ends it.
    pub async fn closed(&self) {
        poll_fn(|cx| {
            self.register(cx.waker());
            if self.is_closing() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
