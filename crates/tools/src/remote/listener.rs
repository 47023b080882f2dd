//! What we are to another server: a client that hears of changes and progress, and passes questions on.

#![expect(
    deprecated,
    reason = "the library warns of what the protocol will drop; servers of today still ask for it"
)]

use std::sync::Arc;

use orchestr8_kernel::peer::{About, Severity};
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::calls::{Calls, Speaker};
use super::lift::RELATED_TASK;
use super::proxy::relay::News;
use super::questions::refused;

pub struct Listener {
    pub config: ClientConfig,
    /// The server says that its list of tools has changed.
    pub changed: Arc<Notify>,
    /// The server says that its list of resources or prompts has changed.
    pub lists_changed: Arc<Notify>,
    pub calls: Arc<Calls>,
    pub news: News,
}

impl Listener {
    async fn ask<T: DeserializeOwned>(
        &self,
        about: About,
        params: impl Serialize,
        context: RequestContext<RoleClient>,
    ) -> Result<T, ErrorData> {
        let origin = context.extensions.get::<InboundStreamOrigin>();
        let task = context.meta.get(RELATED_TASK).and_then(|related| related.get("taskId"));
        let Some(asker) = self.calls.asker(task.and_then(Value::as_str), origin).await else {
            return Err(refused(
                "a question needs a call it belongs to; with none or several nobody can be asked",
            ));
        };
        let params = serde_json::to_value(params).unwrap_or_default();
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(refused("the question was withdrawn")),
            answer = asker.ask(about, params) => answer,
        }
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.ask(About::Sample, params, context).await
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.ask(About::Elicit, params, context).await
    }

    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.ask(About::Roots, json!({}), context).await
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    async fn on_resource_updated(
        &self,
        updated: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.news.updated(&updated.uri);
    }

    /// What belongs to a call is for its client; anything else is for all who want to hear it.
    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        context: NotificationContext<RoleClient>,
    ) {
        let origin = context.extensions.get::<InboundStreamOrigin>();
        let logger = self.news.logger(message.logger.as_deref());
        let level = serde_json::from_value(json!(message.level)).unwrap_or(Severity::Info);
        match self.calls.speaker(origin) {
            Speaker::Call(call) => call.relay_log(level, Some(&logger), message.data),
            Speaker::Unknown(only) => {
                self.news.logged(&message);
                if let Some(call) = only.filter(|call| !call.hears_broadcasts()) {
                    call.relay_log(level, Some(&logger), message.data);
                }
            }
        }
    }

    async fn on_progress(&self, news: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.progressed(news);
    }
}
