//! One answer of the model: streamed, tried again when the model is not reachable, and put into the tree.

use std::time::Duration;

use futures::StreamExt;
use orchestr8_contract::error::Retry;
use orchestr8_contract::{Code, Fault};
use orchestr8_models::{Delta, Message, Request, StopReason};
use serde_json::json;

use super::live::Live;
use super::{Answer, Turn};
use crate::limits;
use crate::news::News;
use crate::record::{Body, Header, Place};
use crate::session::Slot;

/// How one attempt went.
enum Attempt {
    Answered(Live),
    Stopped(Live),
    Failed(Live, Fault),
}

impl Turn {
    /// The answer to what was said, in the tree.
    pub(super) async fn answer(&mut self) -> Result<(Answer, Place), Fault> {
        let mut attempt = 0;
        let mut compacted = false;
        loop {
            let header = self.session.header();
            match self.attempt(&header).await? {
                Attempt::Answered(live) => {
                    self.told_retry(attempt, None).await?;
                    return self.keep(live, None).await;
                }
                Attempt::Stopped(mut live) => {
                    live.message.stop_reason = StopReason::Aborted;
                    self.told_retry(attempt, Some("stopped on request")).await?;
                    return self.keep(live, None).await;
                }
                Attempt::Failed(live, fault) => {
                    if too_long(&fault) && header.auto_compaction && !compacted {
                        compacted = true;
                        if self.compact("overflow", true).await? {
                            continue;
                        }
                    }
                    attempt += 1;
                    let again = header.auto_retry
                        && attempt <= self.hub.settings().retries
                        && fault.code.retry() == Retry::Later;
                    if again && self.pause(attempt, &fault).await? {
                        continue;
                    }
                    self.told_retry(attempt - 1, Some(&fault.message)).await?;
                    return self.keep(live, Some(fault)).await;
                }
            }
        }
    }

    async fn attempt(&mut self, header: &Header) -> Result<Attempt, Fault> {
        let model = self.hub.model(header)?;
        let request = Request {
            system: Some(self.system(header)),
            messages: self.tree.context(header.leaf),
            tools: self.tools(),
            thinking: header.thinking,
            tenant: Some(self.session.tenant.clone()),
            ..Request::default()
        };
        let mut live = Live::begin(&self.hub, &self.session, model.about());
        let mut stream = model.stream(request, self.stop.clone());
        while let Some(item) = stream.next().await {
            match item {
                Ok(Delta::Done(message)) => {
                    live.done(message);
                    return Ok(Attempt::Answered(live));
                }
                Ok(delta) => {
                    self.session.reserve(self.hub.kernel()).await?;
                    live.take(delta);
                }
                Err(fault) if fault.code == Code::Cancelled => return Ok(Attempt::Stopped(live)),
                Err(fault) => return Ok(Attempt::Failed(live, fault)),
            }
        }
        if self.stop.is_cancelled() {
            return Ok(Attempt::Stopped(live));
        }
        let fault = Fault::new(Code::Unavailable, "the answer of the model broke off")
            .with("reason", "stream_broken");
        Ok(Attempt::Failed(live, fault))
    }

    /// What the model is told before everything else.
    fn system(&self, header: &Header) -> String {
        let own = header.system.clone().or_else(|| self.hub.settings().system_prompt.clone());
        let own = own.unwrap_or_else(|| {
            String::from("You are a helpful agent. Use the tools you have when they help.")
        });
        format!("{own}\n\nThe working folder is {}.", header.cwd)
    }

    /// Waits before another attempt; false when somebody does not want it.
    async fn pause(&mut self, attempt: u32, fault: &Fault) -> Result<bool, Fault> {
        let ports = self.hub.kernel().ports();
        let settings = self.hub.settings();
        let ceiling = settings.retry_base_ms.saturating_mul(1_u64 << (attempt - 1).min(20));
        let wanted = fault.details.as_ref().and_then(|details| details.get("retryAfterMs")?.as_u64());
        let full = orchestr8_kernel::resilience::retry::Jitter::Full;
        let own_ms = orchestr8_kernel::resilience::retry::delay_ms(
            full,
            ceiling.min(limits::RETRY_CAP_MS),
            ports.random.unit(),
        );
        let delay_ms = wanted.map_or(own_ms, |wanted| wanted.min(limits::RETRY_CAP_MS));
        let held = self.session.doing.begin(Slot::Retry, &self.stop);
        let mut draft = self.draft();
        draft.tell(News::AutoRetryStart {
            attempt,
            max_attempts: settings.retries,
            delay_ms,
            error_message: fault.message.clone().into_owned(),
        });
        draft.commit(self.hub.kernel()).await?;
        tokio::select! {
            biased;
            () = held.token.cancelled() => Ok(false),
            () = ports.clock.sleep(Duration::from_millis(delay_ms)) => Ok(true),
        }
    }

    /// Tells how the attempts after the first ended, if there were any.
    async fn told_retry(&mut self, attempt: u32, failure: Option<&str>) -> Result<(), Fault> {
        if attempt == 0 {
            return Ok(());
        }
        let mut draft = self.draft();
        let final_error = failure.map(str::to_owned);
        draft.tell(News::AutoRetryEnd { success: failure.is_none(), attempt, final_error });
        draft.commit(self.hub.kernel()).await
    }

    /// Puts the answer into the tree, complete or not.
    async fn keep(&mut self, mut live: Live, fault: Option<Fault>) -> Result<(Answer, Place), Fault> {
        live.close(fault.as_ref());
        let message = live.message;
        let mut draft = self.draft();
        let body = Body::Message { message: Message::Assistant(message.clone()) };
        let entry = self.add(&mut draft, body);
        if let Some(seq) = live.started {
            draft.keep(seq, &News::MessageStart { entry });
        }
        draft.tell(News::MessageEnd { entry });
        draft.commit(self.hub.kernel()).await?;
        if let Some(fault) = &fault {
            let fields = json!({"sessionId": &*self.session.id, "model": message.model, "code": fault.code});
            self.hub.kernel().log().warn("the model did not answer", fields);
        }
        Ok((Answer { message, fault }, entry))
    }
}

fn too_long(fault: &Fault) -> bool {
    let reason = fault.details.as_ref().and_then(|details| details.get("reason")?.as_str());
    reason == Some("context_too_long")
}
