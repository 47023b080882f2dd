//! How many long-lived streams (WebSockets, server-sent events) each principal has open, so that one leaves room for others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::ACCEPT;
use http::{HeaderMap, Method};

use crate::{Caller, sockets};

type PrincipalKey = (String, String);

pub(crate) struct StreamTable {
    limit: usize,
    /// Bounded by the connections that are open: a principal without streams has no entry.
    open: Mutex<HashMap<PrincipalKey, usize>>,
}

/// One open stream; dropped, it no longer counts.
pub(crate) struct StreamPermit {
    table: Arc<StreamTable>,
    key: PrincipalKey,
}

impl StreamTable {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, open: Mutex::default() })
    }

    /// None when this principal has as many as it may have.
    pub fn open(self: &Arc<Self>, caller: &Caller) -> Option<StreamPermit> {
        let key = (caller.tenant.clone(), caller.name.clone());
        let mut open = self.table();
        let count = open.entry(key.clone()).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(StreamPermit { table: self.clone(), key })
    }

    fn table(&self) -> MutexGuard<'_, HashMap<PrincipalKey, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.table.table();
        if let Some(count) = open.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.key);
            }
        }
    }
}

/// Whether a request asks for a stream that has no end of its own. Answers to POST end by themselves.
pub(crate) fn asks_for_stream(method: &Method, headers: &HeaderMap) -> bool {
    let wants_events = || {
        headers.get_all(ACCEPT).iter().any(|value| {
            value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains("text/event-stream"))
        })
    };
    method == Method::GET && (sockets::is_handshake(headers) || wants_events())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_principal_has_a_limit_of_its_own() {
        let caller = |name: &str, tenant: &str| Caller {
            name: name.into(),
            tenant: tenant.into(),
            roles: Vec::new(),
            verified: true,
            grant: None,
        };
        let table = StreamTable::new(2);
        let (ann, bob) = (caller("ann", "acme"), caller("ann", "rival"));
        let first = table.open(&ann);
        let _second = table.open(&ann);
        assert!(first.is_some() && table.open(&ann).is_none());
        let other = table.open(&bob);
        assert!(other.is_some(), "the same name in another tenant is another principal");
        drop(first);
        assert!(table.open(&ann).is_some());
        drop(other);
        assert_eq!(table.table().len(), 1);
    }

    #[test]
    fn sockets_and_event_streams_are_long_lived_and_posts_are_not() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect::<HeaderMap>()
        };
        assert!(asks_for_stream(&Method::GET, &headers(&[("accept", "Text/Event-Stream")])));
        assert!(asks_for_stream(&Method::GET, &headers(&[("upgrade", "websocket")])));
        assert!(!asks_for_stream(&Method::GET, &headers(&[("accept", "*/*")])));
        assert!(!asks_for_stream(
            &Method::POST,
            &headers(&[("accept", "application/json, text/event-stream")])
        ));
    }
}
