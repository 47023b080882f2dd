//! The hub: everything of messages between agents, as the actions and other parts of the program use it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use orchestr8_contract::id::{RequestId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Row, Statement};
use orchestr8_kernel::{Cancel, Kernel, Principal};
use orchestr8_outbound::{Allowed, Client, Guard};
use orchestr8_secrets::SecretVault;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::audit::Actor;
use super::desk::{Ack, Done, HandOver, Recipients, Sent, Wish};
use super::envelope::{Envelope, Target};
use super::ledger::{Backoff, Entry, RetryPolicy};
use super::post::{Order, Post};
use super::queue::Queue;
use super::record::Address;
use super::registry::Agents;
use super::rows::{self, Item};
use super::runs::Runs;
use super::tail::Unfiled;
use crate::coordinator::{Coordinator, unknown};
use crate::limits;

/// The news of messages, whose subject is the tenant: one was received, came to its end, failed.
pub const MESSAGE_RECEIVED: &str = "aacp.message_received";
pub const MESSAGE_COMPLETED: &str = "aacp.message_completed";
pub const MESSAGE_FAILED: &str = "aacp.message_failed";

/// A message has its place in an inbox, which is the subject: `inboxSeq`, and its text as `envelope` unless that is long.
pub const MESSAGE_PLACED: &str = "aacp.message_placed";

/// What an installation sets for messages.
#[derive(Clone)]
pub struct Settings {
    /// How long messages and outcomes are kept (`aacp.defaultTtlMs`).
    pub ttl_ms: i64,
    pub timeout_ms: i64,
    pub inbox_messages: usize,
    pub policy: Arc<dyn RetryPolicy>,
    /// Where callbacks may lead.
    pub callbacks: Allowed,
    /// Keeps the secrets that sign callbacks. None: no agent can give one.
    pub vault: Option<SecretVault>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ttl_ms: limits::TTL_MS,
            timeout_ms: limits::REQUEST_TIMEOUT_MS,
            inbox_messages: limits::INBOX_MESSAGES,
            policy: Arc::new(Backoff::default()),
            callbacks: Allowed { setting: "aacp.callbacks", ..Allowed::default() },
            vault: None,
        }
    }
}

/// A handle. Clones share it.
#[derive(Clone)]
pub struct Hub(pub(super) Arc<Shared>);

pub struct Shared {
    pub kernel: Kernel,
    pub coordinator: Coordinator,
    pub agents: Agents,
    pub settings: Arc<Settings>,
    pub guard: Arc<Guard>,
    pub client: Client,
    pub(super) runs: Runs,
    pub(super) queue: Queue,
    unfiled: Arc<Unfiled>,
    pub(super) waiters: Mutex<Waiters>,
    /// When the next request is due, and who wants to know that it is sooner than thought.
    pub(super) next_due_ms: AtomicI64,
    pub(super) sooner: Notify,
}

/// Who waits for the end of a request.
type Waiters = HashMap<(Tenant, RequestId), Vec<oneshot::Sender<Entry>>>;

/// What a store's watchers of one inbox watch.
pub fn topic(address: &Address) -> String {
    orchestr8_contract::topic::inbox(&address.tenant, &address.agent)
}

impl Hub {
    /// Needs a tokio runtime around it.
    pub fn new(kernel: Kernel, coordinator: Coordinator, settings: Settings) -> Self {
        let (settings, guard) = (Arc::new(settings.clone()), Arc::new(Guard::new(&settings.callbacks)));
        let (ports, unfiled) = (kernel.ports().clone(), Arc::<Unfiled>::default());
        let shared = Arc::new_cyclic(|hub| Shared {
            coordinator,
            agents: Agents::default(),
            queue: Queue::of(Post::new(ports, settings.clone(), unfiled.clone(), hub.clone())),
            settings,
            client: Client::guarded(guard.clone()),
            guard,
            runs: Runs::default(),
            unfiled,
            waiters: Mutex::default(),
            next_due_ms: AtomicI64::new(i64::MAX),
            sooner: Notify::new(),
            kernel,
        });
        Self(shared)
    }

    pub async fn ready(&self) -> Result<(), Fault> {
        self.0.agents.ready(&self.0.kernel.ports().store, self.vault()).await
    }

    pub fn vault(&self) -> Option<&SecretVault> {
        self.0.settings.vault.as_ref()
    }

    pub fn agents(&self) -> &Agents {
        &self.0.agents
    }

    pub fn coordinator(&self) -> &Coordinator {
        &self.0.coordinator
    }

    /// Whether messages may be brought there, as far as that can be told before a name is resolved.
    pub fn check_callback(&self, url: &str) -> Result<(), Fault> {
        let url = reqwest::Url::parse(url).map_err(|_| {
            super::envelope::wrong("/callbackUrl", "must be an address such as https://host/path")
        })?;
        self.0.guard.check_url(&url)
    }

    /// Reads the tables, with everything in them that was answered for.
    pub async fn query(&self, statement: Statement) -> Result<Vec<Row>, Fault> {
        self.filed().await?;
        self.0.kernel.ports().store.query(statement).await.map_err(store_fault)
    }

    /// The last place of an inbox, and the one up to which everything was acknowledged.
    pub async fn bounds(&self, address: &Address) -> Result<(u64, u64), Fault> {
        self.filed().await?;
        rows::bounds(&self.0.kernel.ports().store, address).await.map_err(store_fault)
    }

    pub fn now_ms(&self) -> i64 {
        self.0.kernel.ports().clock.now_ms()
    }

    /// Sends a message on behalf of a principal; durable when it returns.
    pub async fn send(&self, principal: &Principal, by: Actor, envelope: Envelope) -> Result<Sent, Fault> {
        self.ready().await?;
        let tenant = &principal.tenant;
        let source = Address { tenant: tenant.clone(), agent: envelope.source.clone() };
        match self.0.agents.get(&source) {
            Some(agent) => agent.check(&source.agent, principal)?,
            None if self.0.coordinator.has(&source.agent) => {
                let text = format!("'{}' is an agent of this server, and speaks for itself", source.agent);
                return Err(Fault::new(Code::Unauthorized, text).with("agentId", source.agent.as_str()));
            }
            None => {}
        }
        envelope.expiry(self.now_ms(), self.0.settings.ttl_ms)?;
        self.0.agents.saw(&source, None, self.now_ms());
        self.send_unchecked(tenant, by, envelope).await
    }

    /// The same for agents of our own.
    pub(super) async fn send_unchecked(
        &self,
        tenant: &Tenant,
        by: Actor,
        envelope: Envelope,
    ) -> Result<Sent, Fault> {
        let to = self.recipients(tenant, &envelope)?;
        let wish = Wish::Send { tenant: tenant.clone(), envelope: Box::new(envelope), to, by };
        match self.wish(wish).await? {
            Done::Sent(sent) => Ok(*sent),
            Done::Acknowledged { .. } | Done::Noted => Err(Fault::internal("a message got another answer")),
        }
    }

    /// Who gets it. A response also goes to whoever has no inbox: the ledger keeps it for them.
    fn recipients(&self, tenant: &Tenant, envelope: &Envelope) -> Result<Recipients, Fault> {
        let agents = &self.0.agents;
        let mut copies = match &envelope.target {
            Target::Agent(target) => {
                let address = Address { tenant: tenant.clone(), agent: target.clone() };
                let has_inbox = agents.get(&address).is_some() || self.0.coordinator.has(target);
                return match has_inbox || envelope.kind == super::Kind::Response {
                    true => Ok(Recipients::One { has_inbox }),
                    false => Err(unknown(target)),
                };
            }
            Target::Topic(topic) => agents.listeners(tenant, Some(topic)),
            Target::Everyone => agents.listeners(tenant, None),
        };
        copies.retain(|agent| *agent != envelope.source);
        if copies.len() > limits::COPIES {
            let text =
                format!("{} agents listen; a message goes to {} at most", copies.len(), limits::COPIES);
            return Err(Fault::new(Code::ResourceExhausted, text).with("reason", "too_many_listeners"));
        }
        Ok(Recipients::Copies(copies))
    }

    /// Notes what an agent has, and says how much still waits for it.
    pub async fn acknowledge(&self, address: &Address, by: Actor, what: Ack) -> Result<usize, Fault> {
        let (tenant, agent) = (address.tenant.clone(), address.agent.clone());
        match self.wish(Wish::Acknowledge { tenant, agent, what, by }).await? {
            Done::Acknowledged { waiting } => Ok(waiting),
            Done::Sent(_) | Done::Noted => Err(Fault::internal("an acknowledgement got another answer")),
        }
    }

    /// Counts an attempt of each request in a page of an inbox that its agent reads for the first time.
    pub async fn count_read(&self, address: &Address, page: &[Item]) -> Result<(), Fault> {
        let unread = page.iter().filter(|item| item.is_unread);
        let requests: Vec<RequestId> = unread.filter_map(|item| item.request.clone()).collect();
        if requests.is_empty() {
            return Ok(());
        }
        let tenant = address.tenant.clone();
        self.wish(Wish::HandedOver { tenant, requests, how: HandOver::Read }).await.map(|_| ())
    }

    pub(super) async fn wish(&self, wish: Wish) -> Result<Done, Fault> {
        let (answer, answered) = oneshot::channel();
        self.0.hand_in(Order { wish, answer })?;
        answered.await.unwrap_or_else(|_| Err(Fault::internal("the message could not be worked on")))
    }

    /// Returns once everything that was answered for is in the tables, and its audit records are in the chain.
    pub async fn filed(&self) -> Result<(), Fault> {
        match self.0.unfiled.is_none() {
            true => Ok(()),
            false => self.wish(Wish::File).await.map(|_| ()),
        }
    }

    /// What the ledger says of a request, until it expires.
    pub async fn request(&self, tenant: &Tenant, id: &RequestId) -> Result<Option<Entry>, Fault> {
        let entry = self.recorded_request(tenant, id).await?;
        Ok(entry.filter(|entry| !entry.has_expired(self.now_ms())))
    }

    async fn recorded_request(&self, tenant: &Tenant, id: &RequestId) -> Result<Option<Entry>, Fault> {
        if !self.0.unfiled.is_known() {
            self.filed().await?;
        }
        // Looked for before the table: what leaves the tail meanwhile is there.
        if let Some(entry) = self.0.unfiled.request(tenant, id) {
            return Ok(Some(entry));
        }
        rows::request(&self.0.kernel.ports().store, tenant, id).await.map_err(store_fault)
    }

    /// The request once it has ended, or as it is when the time is over or nobody waits any more.
    pub async fn wait(
        &self,
        tenant: &Tenant,
        id: &RequestId,
        wait_ms: u64,
        cancel: &Cancel,
    ) -> Result<Option<Entry>, Fault> {
        if wait_ms == 0 {
            return self.request(tenant, id).await;
        }
        // Whoever listens first and looks then misses nothing.
        let ended = self.listen(tenant, id);
        let found = self.request(tenant, id).await?;
        if found.as_ref().is_none_or(|entry| entry.status.is_final()) {
            drop(ended);
            self.hush(tenant, id);
            return Ok(found);
        }
        self.until(tenant, id, ended, wait_ms, cancel).await
    }

    /// Waits for what is listened for.
    pub async fn until(
        &self,
        tenant: &Tenant,
        id: &RequestId,
        ended: oneshot::Receiver<Entry>,
        wait_ms: u64,
        cancel: &Cancel,
    ) -> Result<Option<Entry>, Fault> {
        let over = self.0.kernel.ports().clock.sleep(Duration::from_millis(wait_ms));
        let ended = tokio::select! {
            biased;
            ended = ended => ended.ok(),
            () = over => None,
            () = cancel.fired() => None,
        };
        match ended {
            Some(entry) => Ok(Some(entry)),
            None => {
                self.hush(tenant, id);
                self.request(tenant, id).await
            }
        }
    }

    /// Listens for the end of a request.
    pub fn listen(&self, tenant: &Tenant, id: &RequestId) -> oneshot::Receiver<Entry> {
        let (tell, told) = oneshot::channel();
        self.0.waiters.lock().entry((tenant.clone(), id.clone())).or_default().push(tell);
        told
    }

    /// Forgets listeners that are gone.
    pub fn hush(&self, tenant: &Tenant, id: &RequestId) {
        let mut waiters = self.0.waiters.lock();
        let key = (tenant.clone(), id.clone());
        if let Some(waiting) = waiters.get_mut(&key) {
            waiting.retain(|tell| !tell.is_closed());
            if waiting.is_empty() {
                waiters.remove(&key);
            }
        }
    }
}
