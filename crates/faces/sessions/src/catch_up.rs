//! Catching up: the events a client missed, from the record, then those that came meanwhile; without gap or double.

use std::sync::Arc;

use orchestr8_contract::Output;
use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Args, Kernel, Principal, Submission, Transport};
use serde_json::{Map, Value};

use crate::following::{Follower, Released, frame};
use crate::limits::EVENTS_PAGE;
use crate::outbox::Weight;

/// The action that reads the events of a session from its record.
const EVENTS: &str = "session.events";

/// The way to the record of events, for one client.
#[derive(Clone)]
pub struct Record {
    pub kernel: Kernel,
    pub principal: Arc<Principal>,
    pub transport: Transport,
}

/// Some events, and whether they are all there are.
struct Page {
    events: Vec<(u64, Value)>,
    is_last: bool,
}

impl Record {
    /// None when the record cannot be read.
    async fn page(&self, session: &str, after: u64) -> Option<Page> {
        let mut args = Map::new();
        args.insert("sessionId".into(), session.into());
        args.insert("afterSeq".into(), after.into());
        args.insert("limit".into(), EVENTS_PAGE.into());
        let correlation = CorrelationId::from_uuid(self.kernel.ports().ids.fresh(For::Correlation));
        // Without a lane: it must not wait for the work whose events it reads.
        let mut submission = Submission::new(EVENTS, Args::new(args), self.principal.clone(), correlation);
        submission.transport = self.transport;
        let Ok(Output::Json { value }) = self.kernel.submit(submission).await.result else { return None };
        let Value::Object(mut page) = value else { return None };
        let is_last = page.get("complete") == Some(&Value::Bool(true));
        let Some(Value::Array(events)) = page.remove("events") else { return None };
        let read = |mut event: Value| Some((event.get("seq")?.as_u64()?, event.get_mut("event")?.take()));
        Some(Page { events: events.into_iter().filter_map(read).collect(), is_last })
    }
}

/// Sends what comes after this event, as fast as the client takes it, then lets live events go.
pub async fn run(follower: Arc<Follower>, mut after: u64) {
    loop {
        read_on(&follower, &mut after).await;
        loop {
            follower.outbox.room().await;
            if follower.outbox.is_over() {
                return;
            }
            match follower.flush(&mut after) {
                Released::Full => {}
                Released::Again => break,
                Released::Live | Released::Ended => return,
            }
        }
    }
}

/// Sends what the record has after this event.
async fn read_on(follower: &Follower, after: &mut u64) {
    loop {
        follower.outbox.room().await;
        if follower.outbox.is_over() || follower.is_ended() {
            return;
        }
        let Some(page) = follower.record.page(&follower.session, *after).await else {
            return follower.give_up_gap();
        };
        let before = *after;
        for (seq, event) in page.events {
            if seq > *after {
                *after = seq;
                follower.outbox.push(frame(&follower.session, seq, &event), Weight::Critical);
            }
        }
        if page.is_last || *after == before {
            return;
        }
    }
}
