//! Keeps the catalog of a connected server up to date, asks it for what clients want to hear of, and passes on what it tells.

#![expect(
    deprecated,
    reason = "the library warns of what the protocol will drop; servers of today still have it"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Event, Priority};
use orchestr8_kernel::peer::{LOG_MESSAGE, Severity};
use orchestr8_kernel::registry::RESOURCE_UPDATED;
use orchestr8_kernel::{Kernel, Log};
use rmcp::model::{
    ClientRequest, LoggingMessageNotificationParam, ServerNotification, SetLevelRequest,
    SetLevelRequestParams, SubscribeRequest, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequest,
    UnsubscribeRequestParams,
};
use rmcp::service::Subscription;
use rmcp::{Peer, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::super::Server;
use super::super::limits::{LIST_MS, REFRESH_MS, REFRESH_PAUSE_MS, RESTART_MS};
use super::super::pins::ACCEPTED;
use super::address::{ours, prefix, theirs};
use super::catalog::{Abilities, CatalogCell, CatalogOwner, learn};
use crate::listing::announce;

/// What a server tells without being asked, on its way to clients.
#[derive(Clone)]
pub struct News {
    kernel: Kernel,
    server: Arc<str>,
    /// Whose instance it is. None: that of all tenants.
    tenant: Option<Tenant>,
}

impl News {
    pub fn of(kernel: &Kernel, server: &Server, tenant: Option<Tenant>) -> Self {
        Self { kernel: kernel.clone(), server: server.name.as_str().into(), tenant }
    }

    /// A resource of the server has changed.
    pub fn updated(&self, uri: &str) {
        self.publish(RESOURCE_UPDATED, &ours(&self.server, uri), json!({}));
    }

    /// A log message that belongs to no call.
    pub fn logged(&self, message: &LoggingMessageNotificationParam) {
        let data = json!({
            "level": message.level, "logger": self.logger(message.logger.as_deref()),
            "data": self.kernel.ports().redactor.value(&message.data),
        });
        self.publish(LOG_MESSAGE, &self.server, data);
    }

    /// Says who speaks: the server, and its own logger if it names one.
    pub fn logger(&self, own: Option<&str>) -> String {
        own.map_or_else(|| self.server.to_string(), |own| format!("{}/{own}", self.server))
    }

    fn publish(&self, name: &'static str, subject: &str, mut data: Value) {
        if let Some(tenant) = &self.tenant {
            data["tenant"] = tenant.as_str().into();
        }
        self.kernel.bus().publish(Event {
            name,
            subject: subject.into(),
            priority: Priority::Normal,
            at_ms: self.kernel.ports().clock.now_ms(),
            data: Arc::new(data),
        });
    }
}

/// One connection of a server, as its relay sees it.
pub struct Relay {
    pub news: News,
    pub server: Arc<Server>,
    pub catalog: Arc<CatalogCell>,
    pub owner: CatalogOwner,
    pub peer: Peer<RoleClient>,
    pub modern: bool,
    /// Its list of tools has changed.
    pub tools_changed: Arc<Notify>,
    /// Its lists of resources or prompts have changed.
    pub lists_changed: Arc<Notify>,
    pub log: Log,
    /// Fires once calls reach the server: what is listed before that could not be read.
    pub serving: CancellationToken,
}

/// What the server has been asked for.
#[derive(Default)]
struct Asked {
    followed: BTreeSet<String>,
    level: Option<Severity>,
}

impl Relay {
    /// Runs until it is dropped with its connection.
    pub async fn run(self) {
        self.serving.cancelled().await;
        let kernel = self.news.kernel.clone();
        let (mut interests, mut accepted) =
            (kernel.interests().watch(), kernel.ports().store.watch(ACCEPTED));
        let mut asked = Asked::default();
        let mut stream: Option<Subscription> = None;
        loop {
            accepted.mark_unchanged();
            self.refresh().await;
            loop {
                interests.mark_unchanged();
                self.ask(&mut asked, &mut stream).await;
                tokio::select! {
                    _ = interests.changed() => {}
                    told = next(&mut stream), if self.modern => match told {
                        Some(told) => self.hear(told),
                        None => {
                            stream = None;
                            self.pause(RESTART_MS).await;
                            // A change may have gone unheard meanwhile.
                            self.tools_changed.notify_one();
                            break;
                        }
                    },
                    () = self.lists_changed.notified() => break,
                    _ = accepted.changed() => break,
                    () = self.pause(REFRESH_MS) => break,
                }
            }
            self.pause(REFRESH_PAUSE_MS).await;
        }
    }

    async fn refresh(&self) {
        let kernel = &self.news.kernel;
        let catalog = learn(kernel.ports(), &self.server, &self.owner, &self.peer, &self.log).await;
        let (resources, prompts) = self.catalog.replace(catalog);
        for (_, list) in [(resources, "resources"), (prompts, "prompts")].into_iter().filter(|(is, _)| *is) {
            announce(kernel, list);
        }
    }

    /// Asks for what clients want to hear of now, as far as the server tells of such things.
    async fn ask(&self, asked: &mut Asked, stream: &mut Option<Subscription>) {
        let can = Abilities::of(&self.peer);
        let (interests, tenant) = (self.news.kernel.interests(), self.news.tenant.as_ref());
        let own = interests.followed(tenant, &prefix(&self.server.name));
        let wanted: BTreeSet<String> =
            own.iter().filter_map(|uri| theirs(uri)).map(|(_, own)| own.to_owned()).collect();
        let wanted = if can.subscribe { wanted } else { BTreeSet::new() };
        match self.modern {
            true if stream.is_none() || wanted != asked.followed => {
                *stream = self.within(self.peer.listen(filter(&wanted))).await;
                asked.followed = wanted;
            }
            true => {}
            false => self.subscribe(&mut asked.followed, wanted).await,
        }
        let level = interests.lowest_level(tenant).filter(|_| can.logging && !self.modern);
        if let Some(level) = level.filter(|level| asked.level != Some(*level))
            && let Ok(named) = serde_json::from_value(json!(level))
        {
            asked.level = Some(level);
            let request = SetLevelRequest::new(SetLevelRequestParams::new(named));
            self.send(ClientRequest::SetLevelRequest(request), "logging/setLevel").await;
        }
    }

    async fn subscribe(&self, followed: &mut BTreeSet<String>, wanted: BTreeSet<String>) {
        for uri in followed.difference(&wanted) {
            let request = UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri));
            self.send(ClientRequest::UnsubscribeRequest(request), "resources/unsubscribe").await;
        }
        for uri in wanted.difference(followed) {
            let request = SubscribeRequest::new(SubscribeRequestParams::new(uri));
            self.send(ClientRequest::SubscribeRequest(request), "resources/subscribe").await;
        }
        *followed = wanted;
    }

    /// What the server answers to this changes nothing for us; that it does not may explain why nothing is heard.
    async fn send(&self, request: ClientRequest, what: &str) {
        if self.within(self.peer.send_request(request)).await.is_none() {
            self.log.warn("an MCP server did not do as it was asked", json!({"request": what}));
        }
    }

    async fn within<T, E>(&self, asked: impl Future<Output = Result<T, E>>) -> Option<T> {
        tokio::select! {
            biased;
            answer = asked => answer.ok(),
            () = self.pause(LIST_MS) => None,
        }
    }

    fn hear(&self, told: ServerNotification) {
        match told {
            ServerNotification::ToolListChangedNotification(_) => self.tools_changed.notify_one(),
            ServerNotification::PromptListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_) => self.lists_changed.notify_one(),
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.news.updated(&updated.params.uri)
            }
            // The stream was asked for no more than these.
            _ => {}
        }
    }

    async fn pause(&self, ms: u64) {
        self.news.kernel.ports().clock.sleep(Duration::from_millis(ms)).await;
    }
}

/// The next word of the stream; none when it has ended or there is none.
async fn next(stream: &mut Option<Subscription>) -> Option<ServerNotification> {
    match stream {
        Some(stream) => stream.next().await.ok().flatten(),
        None => None,
    }
}

fn filter(followed: &BTreeSet<String>) -> SubscriptionFilter {
    let filter =
        SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().resources_list_changed();
    match followed.is_empty() {
        true => filter.build(),
        false => filter.resource_subscriptions(followed.iter().cloned()).build(),
    }
}
