//! What all sessions share: the settings, who is at work where, and the trails that are open.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Weak};

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Context, Ports, Transport};
use orchestr8_process::sandbox::Sandbox;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::limits;
use crate::refusal::Refusal;
use crate::root::Root;
use crate::roots::WorkspaceRoots;
use crate::session::Session;
use crate::signing::ServerSigningKey;
use crate::trail::{self, Lines, Trail, TrailHeads, prove};

/// What an installation sets for its workspaces.
#[derive(Clone)]
pub struct Settings {
    /// The folders that are workspaces.
    pub roots: WorkspaceRoots,
    /// Whether the principal that proposed a plan may approve it.
    pub self_approval: bool,
    /// What the first plan of a workspace must be signed with.
    pub bootstrap_secret: Option<Arc<str>>,
    /// Signs attestations, approvals and the ends of trails.
    pub signing_key: ServerSigningKey,
    /// What commands of plans find in their environment.
    pub base_env: BTreeMap<String, String>,
    /// What commands of plans run in. None: they do not run.
    pub sandbox: Option<Sandbox>,
    pub debug_stack: bool,
    /// Whether the fixtures of the transcripts are there too.
    pub conformance: bool,
    pub call_ms: u64,
    pub trail: trail::Options,
}

impl Settings {
    pub fn new(signing_key: ServerSigningKey) -> Self {
        Self {
            roots: WorkspaceRoots::default(),
            self_approval: false,
            bootstrap_secret: None,
            signing_key,
            base_env: BTreeMap::new(),
            sandbox: None,
            debug_stack: false,
            conformance: false,
            call_ms: limits::CALL_MS,
            trail: trail::Options::default(),
        }
    }
}

/// What sessions in the same folder share.
struct Place {
    trail: Weak<Trail>,
    turn: Weak<Semaphore>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<Arc<str>, Arc<Session>>,
    /// In the order in which they began.
    order: VecDeque<Arc<str>>,
    places: HashMap<(u64, u64), Place>,
}

struct Shared {
    settings: Settings,
    ports: Ports,
    state: Mutex<State>,
}

#[derive(Clone)]
pub struct Hub(Arc<Shared>);

impl Hub {
    pub fn new(ports: Ports, settings: Settings) -> Self {
        Self(Arc::new(Shared { settings, ports, state: Mutex::default() }))
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub fn ports(&self) -> &Ports {
        &self.0.ports
    }

    pub fn session(&self, conversation: &str) -> Option<Arc<Session>> {
        self.0.state.lock().sessions.get(conversation).cloned()
    }

    /// Opens a workspace for a conversation. Blocks: the trail is looked at.
    pub fn begin(
        &self,
        conversation: &Arc<str>,
        role: Role,
        context: &Context,
        workspace_root: &str,
    ) -> Result<Arc<Session>, Refusal> {
        if self.session(conversation).is_some() {
            let message = "a session has begun on this connection already";
            return Err(Refusal::startup(Code::SessionInitializationFailed, message));
        }
        let root = self.enter(workspace_root, context.transport, &context.principal.tenant)?;
        let (trail, turn) = self.place(&root)?;
        self_audit(&root)?;
        let id = self.ports().ids.fresh(For::Session).to_string();
        let session = Arc::new(Session::new(id, role, root, trail, turn));
        let mut state = self.0.state.lock();
        if state.sessions.contains_key(conversation) {
            let message = "a session has begun on this connection already";
            return Err(Refusal::startup(Code::SessionInitializationFailed, message));
        }
        while state.order.len() >= limits::SESSIONS {
            if let Some(oldest) = state.order.pop_front() {
                state.sessions.remove(&oldest);
            }
        }
        state.sessions.insert(conversation.clone(), session.clone());
        state.order.push_back(conversation.clone());
        Ok(session)
    }

    /// Takes back a session whose beginning could not be recorded.
    pub fn forget(&self, conversation: &str) {
        let mut state = self.0.state.lock();
        state.sessions.remove(conversation);
        state.order.retain(|known| &**known != conversation);
    }

    /// Opens the folder. Who may not open it is not told whether it is there.
    pub fn enter(&self, text: &str, transport: Transport, tenant: &Tenant) -> Result<Arc<Root>, Refusal> {
        let refused = || {
            let message = "this folder is not a workspace: `workspace.roots` names those, each exactly; over stdio without it, the \
                           folder that orchestr8 was started in is the only one";
            Refusal::new(Code::InsufficientPermissions, message).with("setting", "workspace.roots")
        };
        let admits = |path: &Path| self.settings().roots.admits(path, transport, tenant);
        match Root::open(text) {
            Ok(root) if admits(root.path()) => Ok(Arc::new(root)),
            Ok(_) => Err(refused()),
            // The text alone says that it is no path of a folder.
            Err(refusal) if !text.starts_with('/') || admits(Path::new(text)) => Err(refusal),
            Err(_) => Err(refused()),
        }
    }

    /// Where the trail of a folder ends, as the store knows it.
    pub fn heads(&self, root: &Root) -> TrailHeads {
        TrailHeads::new(self.ports().store.clone(), self.settings().signing_key.clone(), root)
    }

    /// The trail that tells of a call without a session, if it is known which: that of the folder the call names, or of the
    /// only workspace there is. Blocks.
    pub fn trail_without_session(&self, named: Option<&str>, context: &Context) -> Option<Arc<Trail>> {
        let (transport, tenant) = (context.transport, &context.principal.tenant);
        let root = match named {
            Some(text) => self.enter(text, transport, tenant).ok()?,
            None => {
                let only = self.settings().roots.only(tenant)?;
                self.enter(only.to_str()?, transport, tenant).ok()?
            }
        };
        self.place(&root).ok().map(|(trail, _)| trail)
    }

    /// The trail of a folder and the turn to write in it, shared with other sessions there.
    pub fn place(&self, root: &Arc<Root>) -> Result<(Arc<Trail>, Arc<Semaphore>), Refusal> {
        if let Some(shared) = self.shared(root) {
            return Ok(shared);
        }
        // Without the lock, since another process may keep us waiting for the trail.
        let trail = Trail::open(root, self.heads(root), self.settings().trail).map_err(|error| {
            let refusal = error.refusal();
            Refusal { startup: refusal.code == Code::SelfAuditFailure, ..refusal }
        })?;
        if let Some(shared) = self.shared(root) {
            return Ok(shared);
        }
        let (trail, turn) = (Arc::new(trail), Arc::new(Semaphore::new(1)));
        let place = Place { trail: Arc::downgrade(&trail), turn: Arc::downgrade(&turn) };
        self.0.state.lock().places.insert(root.id(), place);
        Ok((trail, turn))
    }

    fn shared(&self, root: &Root) -> Option<(Arc<Trail>, Arc<Semaphore>)> {
        let mut state = self.0.state.lock();
        state.places.retain(|_, place| place.trail.strong_count() > 0);
        let place = state.places.get(&root.id())?;
        Some((place.trail.upgrade()?, place.turn.upgrade()?))
    }
}

/// Proves a trail that is short enough whole before anybody goes on with it.
fn self_audit(root: &Root) -> Result<(), Refusal> {
    let failed = |error: trail::Error| match error {
        trail::Error::Broken { .. } | trail::Error::Tampered { .. } => {
            Refusal { startup: true, ..error.refusal() }
        }
        trail::Error::Locked | trail::Error::Io(_) | trail::Error::Closed => error.refusal(),
    };
    if trail::bytes(root).map_err(failed)? > limits::SELF_AUDIT_BYTES {
        return Ok(());
    }
    let mut lines = Lines::of(root).map_err(failed)?;
    prove(&mut lines, |_| {}).map(|_| ()).map_err(failed)
}
