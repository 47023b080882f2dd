//! Puts a call and how it ended on record in the trail of its workspace, then commits what it changed in the store.

use std::sync::Arc;

use orchestr8_contract::envelope::Surroundings;
use orchestr8_contract::{Code, Envelope};
use orchestr8_kernel::Context;

use crate::desk::{Done, Ended, Failed, envelope};
use crate::hub::Hub;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::trail::{Record, Trail};

/// Who asked, and where it is recorded.
pub struct Recorder<'a> {
    pub hub: &'a Hub,
    pub session: Option<&'a Session>,
    pub context: &'a Context,
    /// The folder that a call without a session names.
    pub named: Option<String>,
}

impl Recorder<'_> {
    /// Writes the entry of the call. What cannot be recorded has not happened.
    pub async fn record(
        &self,
        ended: &Ended,
        at: &Surroundings,
        args_hash: String,
    ) -> Result<(), Box<Failed>> {
        let redactor = &self.hub.ports().redactor;
        let record = match ended {
            Ok(done) => {
                let known = Envelope::tool_failure(Code::UnknownToolFailure, "", at.clone());
                Record::success(&known, args_hash, &done.output, done.change.clone())
            }
            Err(failed) => Record::failure(&failed.envelope, args_hash),
        };
        let body = record.body(redactor);
        let now_ms = self.hub.ports().clock.now_ms();
        match self.session {
            Some(session) => {
                let written = session.trail.append(body, now_ms).await;
                written.map(|_| ()).map_err(|error| envelope(self.hub, error.refusal(), at.clone()))
            }
            None => {
                self.record_without_session(body, now_ms).await;
                Ok(())
            }
        }
    }

    /// A failure before a session is in the trail of the workspace, where it is known which (ERR-6). It is refused either way, and
    /// the audit log of the server has it, so a trail that cannot be written does not change the answer.
    async fn record_without_session(&self, body: String, now_ms: i64) {
        let (hub, context, named) = (self.hub.clone(), self.context.clone(), self.named.clone());
        let find = move || hub.trail_without_session(named.as_deref(), &context);
        let trail: Option<Arc<Trail>> = tokio::task::spawn_blocking(find).await.ok().flatten();
        if let Some(trail) = trail
            && let Err(error) = trail.append(body, now_ms).await
        {
            let log = self.context.log();
            log.warn(
                "a refused call is not in the trail of its workspace",
                serde_json::json!({"cause": error.to_string()}),
            );
        }
    }

    /// Commits what the call changes in the store. If that fails the call has failed, and this is recorded too.
    pub async fn commit(&self, mut done: Done, at: &Surroundings, args_hash: String) -> Ended {
        let Some(batch) = done.batch.take() else { return Ok(done) };
        let Err(error) = self.hub.ports().store.commit(batch).await else { return Ok(done) };
        let failed: Ended = Err(envelope(self.hub, Refusal::of_store(error), at.clone()));
        match self.record(&failed, at, args_hash).await {
            Ok(()) => failed,
            Err(unrecorded) => Err(unrecorded),
        }
    }
}
