//! What we are to another server: a client that hears of changes and progress, and passes questions on.

#![expect(
    deprecated,
    reason = "the library warns of what the protocol will drop; servers of today still ask for it"
)]

use std::sync::Arc;

use orchestr8_kernel::peer::About;
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ListRootsResult, ProgressNotificationParam,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::calls::Calls;
use super::lift::RELATED_TASK;
use super::questions::refused;

pub struct Listener {
    pub config: ClientConfig,
    /// The server says that its list of tools has changed.
    pub changed: Arc<Notify>,
    pub calls: Arc<Calls>,
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

    async fn on_progress(&self, news: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.progressed(news);
    }
}
