//! The sessions of a server reached over HTTP: which have worked, and whether an answer says that one is lost.

use std::collections::VecDeque;
use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;
use rmcp::model::JsonRpcError;
use tokio::sync::Notify;

/// Sessions that have worked and are remembered: calls of an old one may still be refused while the next one works.
const REMEMBERED: usize = 4;

/// Codes with which servers say that they know no such session, or that nothing was initialized.
const CODES: [i32; 3] = [-32_000, -32_001, -32_002];

#[derive(Clone, Default)]
pub struct HttpSessions {
    worked: Arc<Mutex<VecDeque<Arc<str>>>>,
    /// A session was lost, so that the server has restarted and may have other tools.
    lost: Arc<Notify>,
}

impl HttpSessions {
    /// `lost` is notified whenever a session turns out to be lost.
    pub fn new(lost: Arc<Notify>) -> Self {
        Self { worked: Arc::default(), lost }
    }

    /// A request in this session was answered.
    pub fn works(&self, session: &Arc<str>) {
        let mut worked = self.worked.lock();
        if worked.contains(session) {
            return;
        }
        if worked.len() >= REMEMBERED {
            worked.pop_front();
        }
        worked.push_back(session.clone());
    }

    /// Whether a refusal means that the server has lost the session. It does so only for a session that has worked: one that is
    /// refused from the start would be refused again.
    pub fn is_lost(&self, session: &Arc<str>, status: StatusCode, error: Option<&JsonRpcError>) -> bool {
        let says_so = match status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST => {
                error.is_some_and(|error| error.id.is_none() || CODES.contains(&error.error.code.0))
            }
            _ => false,
        };
        let is_lost = says_so && self.worked.lock().contains(session);
        if is_lost {
            self.lost.notify_one();
        }
        is_lost
    }
}
