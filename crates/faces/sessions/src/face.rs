//! The face itself: what all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use orchestr8_contract::AccessRole;
use orchestr8_contract::id::Tenant;
use orchestr8_edge::Caller;
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::submission::Scope;
use orchestr8_kernel::{Kernel, Principal};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audience::Audiences;
use crate::buckets::Buckets;
use crate::commands::Commands;
use crate::following::Topics;
use crate::from_wire::ANONYMOUS;
use crate::limits::CLOSE_MS;
use crate::metrics::{Metrics, Now};
use crate::outbox::Weight;
use crate::serve_stdio::{self, Ended};
use crate::settings::Settings;
use crate::{serve_websocket, to_wire};

/// News of sessions that appear or go by another way than this face. The subject is their tenant.
const SESSION_CREATED: &str = "session.created";
const SESSION_DELETED: &str = "session.deleted";

/// The sessions face. Clones share it.
#[derive(Clone)]
pub struct Face(Arc<Inner>);

pub(crate) struct Inner {
    pub kernel: Kernel,
    pub settings: Settings,
    pub commands: Commands,
    pub buckets: Buckets,
    pub metrics: Metrics,
    pub audiences: Audiences,
    pub topics: Topics,
    /// Commands that are answered from a task of their own.
    pub under_way: TaskTracker,
    /// Fires when connections are to be closed.
    pub closing: CancellationToken,
    /// A connection has ended.
    pub gone: Notify,
    local: Arc<Principal>,
    started_ms: i64,
    anonymous: AtomicU64,
    is_shutting_down: AtomicBool,
    listens: AtomicBool,
}

impl Face {
    pub fn new(kernel: Kernel, settings: Settings) -> Self {
        Self(Arc::new(Inner {
            commands: Commands::new(),
            buckets: Buckets::new(settings.bucket_commands, settings.global_commands, settings.ui_responses),
            metrics: Metrics::default(),
            audiences: Audiences::default(),
            topics: Topics::new(kernel.bus().clone()),
            under_way: TaskTracker::new(),
            closing: CancellationToken::new(),
            gone: Notify::new(),
            local: Arc::new(Principal::local()),
            started_ms: kernel.ports().clock.now_ms(),
            anonymous: AtomicU64::new(0),
            is_shutting_down: AtomicBool::new(false),
            listens: AtomicBool::new(false),
            kernel,
            settings,
        }))
    }

    /// The WebSocket on `/` and `/ws/session`.
    pub fn router(&self) -> axum::Router {
        serve_websocket::router(&self.0)
    }

    /// Serves one client over a pair of pipes, as the person at this machine, until it ends, `stop` fires or the face is
    /// shut down; then waits for what is under way.
    pub async fn serve_stdio(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin,
        stop: CancellationToken,
    ) -> Ended {
        serve_stdio::serve(self, &self.0, input, output, stop).await
    }

    /// Tells everybody, takes no more commands, waits for what is under way at most this long, and closes all connections.
    /// False when something was still under way then.
    pub async fn shutdown(&self, reason: &str, limit: Duration) -> bool {
        let face = &self.0;
        let clock = &face.kernel.ports().clock;
        if !face.is_shutting_down.swap(true, Ordering::AcqRel) {
            let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            face.audiences.tell_everybody(&to_wire::shutdown(reason, limit_ms), Weight::Critical);
        }
        face.under_way.close();
        let drained = tokio::select! {
            biased;
            () = face.under_way.wait() => true,
            () = clock.sleep(limit) => false,
        };
        face.closing.cancel();
        tokio::select! {
            biased;
            () = face.everybody_gone() => {}
            () = clock.sleep(Duration::from_millis(CLOSE_MS)) => {}
        }
        drained
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.0.metrics.connections.load(Ordering::Acquire)
    }

    /// What this face has counted, in the shape `get_metrics` gives it.
    pub fn figures(&self) -> Value {
        let mut figures = json!({});
        self.0.metrics.add_figures(&mut figures, &self.0.now());
        figures
    }
}

/// Whether a principal may hear of a session: the one it belongs to, and an owner. Without the info, of its end, all may.
pub(crate) fn may_see(info: Option<&Value>) -> impl Fn(&Principal) -> bool {
    let owner = info.and_then(|info| info.get("owner")).and_then(Value::as_str).map(str::to_owned);
    move |principal| {
        principal.has(AccessRole::Owner) || owner.as_deref().is_none_or(|owner| *owner == *principal.name)
    }
}

impl Inner {
    pub fn is_shutting_down(&self) -> bool {
        self.is_shutting_down.load(Ordering::Acquire)
    }

    /// What a command without an id is called in events. Never kept, so that nobody can ask for its outcome.
    pub fn anonymous_id(&self) -> String {
        let number = self.anonymous.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{ANONYMOUS}{}:{number}", self.started_ms)
    }

    /// Whoever the edge has verified, or the person at this machine. None for a tenant that cannot be one.
    pub fn principal(&self, caller: Option<&Caller>) -> Option<Arc<Principal>> {
        let verified = caller.map_or(Ok(None), Caller::principal).ok()?;
        Some(verified.map_or_else(|| self.local.clone(), Arc::new))
    }

    /// The ids and keys of one principal do not meet those of another. Those of the local one have the scope that data files of
    /// earlier versions have.
    pub fn scope_of(&self, scope: &str, principal: &Principal) -> Scope {
        match *principal.name == *self.local.name {
            true => Scope(scope.into()),
            false => Scope(format!("{scope}@{}", principal.name).into()),
        }
    }

    pub fn now(&self) -> Now {
        Now {
            rate_used: self.buckets.used(self.kernel.ports().clock.elapsed_us()),
            rate_limit: self.settings.global_commands,
            connection_limit: self.settings.connections,
            dropped: self.audiences.dropped() + self.metrics.dropped.load(Ordering::Relaxed),
            in_flight: self.kernel.in_flight(),
        }
    }

    /// Hears of sessions that come and go by other ways, from the first client on.
    pub fn listen(self: &Arc<Self>) {
        if self.listens.swap(true, Ordering::AcqRel) {
            return;
        }
        let filter = Filter::names([SESSION_CREATED, SESSION_DELETED]);
        let Ok(mut news) = self.kernel.bus().subscribe(&filter) else {
            // Too many listen; the next client tries again.
            return self.listens.store(false, Ordering::Release);
        };
        let (face, closing) = (Arc::downgrade(self), self.closing.clone());
        tokio::spawn(async move {
            loop {
                let event = tokio::select! {
                    biased;
                    () = closing.cancelled() => return,
                    event = news.next() => event,
                };
                let (Some(event), Some(face)) = (event, face.upgrade()) else { return };
                face.pass_on(event.name, &event.subject, &event.data);
            }
        });
    }

    fn pass_on(&self, name: &str, tenant: &str, data: &Value) {
        let Some(session) = data.get("sessionId").and_then(Value::as_str) else { return };
        let frame = match name == SESSION_CREATED {
            true => to_wire::session_created(session, data.get("sessionInfo")),
            false => to_wire::session_deleted(session),
        };
        if let Some(audience) = self.audiences.present(tenant) {
            audience.tell_those(&frame, Weight::Broadcast, may_see(data.get("sessionInfo")));
        }
        if name == SESSION_DELETED
            && let Ok(tenant) = Tenant::parse(tenant)
        {
            self.topics.end(&tenant, session);
        }
    }

    async fn everybody_gone(&self) {
        loop {
            let gone = self.gone.notified();
            tokio::pin!(gone);
            gone.as_mut().enable();
            if self.metrics.connections.load(Ordering::Acquire) == 0 {
                return;
            }
            gone.await;
        }
    }
}
