//! What one live connection reads of the feed of events, and where it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::{Args, Principal, Submission, Transport};
use serde_json::{Map, Value};

use crate::actions::EVENTS;
use crate::endpoints::{Arguments, text};
use crate::face::Face;
use crate::failure::Failure;
use crate::settings::EVENTS_PAGE;
use crate::to_wire;

/// Which events a connection wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Interest {
    All,
    Only(BTreeSet<String>),
    Nothing,
}

impl Interest {
    pub fn of(execution: Option<&str>) -> Self {
        match execution {
            Some(id) => Self::Only(BTreeSet::from([id.to_owned()])),
            None => Self::All,
        }
    }

    fn wants(&self, event: &Value) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Only(ids) => {
                event.as_object().is_some_and(|event| ids.contains(text(event, "executionId")))
            }
        }
    }

    /// The one execution to ask for, where it is one.
    fn single(&self) -> Option<&str> {
        match self {
            Self::Only(ids) if ids.len() == 1 => ids.first().map(String::as_str),
            Self::Only(_) | Self::All | Self::Nothing => None,
        }
    }
}

/// Some events, and the place after them.
pub(crate) struct Page {
    pub events: Vec<Value>,
    pub last: u64,
}

/// A place in the feed. It reads from the store, so a slow reader holds nothing in memory and loses nothing.
pub(crate) struct Feed {
    face: Arc<Face>,
    principal: Arc<Principal>,
    correlation: CorrelationId,
    transport: Transport,
    pub interest: Interest,
    pub last: u64,
}

impl Feed {
    /// Begins after the given id, or with what happens from here on.
    pub async fn begin(
        face: Arc<Face>,
        principal: Arc<Principal>,
        correlation: CorrelationId,
        transport: Transport,
        interest: Interest,
        after: Option<u64>,
    ) -> Result<Self, Failure> {
        let mut feed = Self { face, principal, correlation, transport, interest, last: 0 };
        // Asked in any case: a caller without the right is refused before its connection is one of events.
        let newest = feed.ask(Arguments::default()).await?.last;
        feed.last = after.unwrap_or(newest);
        Ok(feed)
    }

    /// The events that follow, or none when the time is over. The future stands alone, so that it can be kept while other
    /// things happen on the connection.
    pub fn next(&self, wait_ms: u64) -> BoxFuture<'static, Result<Page, Failure>> {
        let args = Arguments::of("after", self.last)
            .with("limit", EVENTS_PAGE)
            .with("waitMs", wait_ms)
            .maybe("executionId", self.interest.single());
        let interest = self.interest.clone();
        let asked = self.ask(args);
        async move {
            let mut page = asked.await?;
            page.events.retain(|event| interest.wants(event));
            for data in page.events.iter_mut().filter_map(|event| event.get_mut("data")) {
                to_wire::inner_error(data);
            }
            Ok(page)
        }
        .boxed()
    }

    /// The figures of the whole, or why there are none.
    pub async fn metrics(&self) -> Result<Map<String, Value>, Failure> {
        let submission = self.submission(crate::actions::METRICS, Arguments::default());
        Ok(self.face.wait(submission).await?.value)
    }

    fn ask(&self, args: Arguments) -> impl Future<Output = Result<Page, Failure>> + Send + 'static {
        let (face, submission, before) = (self.face.clone(), self.submission(EVENTS, args), self.last);
        async move {
            let mut value = face.wait(submission).await?.value;
            let last = value.get("last").and_then(Value::as_u64).unwrap_or(before);
            let events = match value.remove("events") {
                Some(Value::Array(events)) => events,
                Some(_) | None => Vec::new(),
            };
            Ok(Page { events, last })
        }
    }

    fn submission(&self, action: &'static str, args: Arguments) -> Submission {
        let args = Args::new(args.into_map());
        let mut submission = Submission::new(action, args, self.principal.clone(), self.correlation.clone());
        submission.transport = self.transport;
        submission
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_interest_takes_what_it_names() {
        let event = json!({"executionId": "a"});
        assert!(Interest::of(None).wants(&event));
        assert!(Interest::of(Some("a")).wants(&event));
        assert!(!Interest::of(Some("b")).wants(&event));
        assert!(!Interest::Nothing.wants(&event));
        assert_eq!(Interest::of(Some("a")).single(), Some("a"));
        assert_eq!(Interest::Only(BTreeSet::from(["a".into(), "b".into()])).single(), None);
    }
}
