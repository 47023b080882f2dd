//! Requests that the edge rejects before any face sees them, for the audit log: a foreign Host or Origin, no credentials, a token
//! outside its scope.
//!
//! Anyone can send such requests, so they must not be able to fill the disk: of each source and reason the first one of a minute is
//! reported at once, the others are counted and reported as one number when the minute is over.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::failed_logins::network;

/// How long rejections of one source and reason are counted together.
pub const WINDOW: Duration = Duration::from_secs(60);

/// Sources counted apart within a window; all further ones share one count.
const SOURCES: usize = 64;

/// Characters of a header or path that are repeated.
const TEXT: usize = 128;

/// Why a request was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionReason {
    Host,
    Origin,
    /// A page of a browser that does not show the token of our own pages.
    Page,
    /// No credentials where some are required.
    Credentials,
}

impl RejectionReason {
    /// What the audit log calls it.
    pub fn action(self) -> &'static str {
        match self {
            RejectionReason::Host => "http.reject_host",
            RejectionReason::Origin => "http.reject_origin",
            RejectionReason::Page => "http.reject_page",
            RejectionReason::Credentials => "http.reject_anonymous",
        }
    }
}

/// Rejected requests of one source for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub reason: RejectionReason,
    /// The first of them: the address of its peer; None: many sources together.
    pub address: Option<IpAddr>,
    /// What was wrong with the first: the Host, the Origin, or the name of the token.
    pub value: String,
    pub path: String,
    /// How many, this one included.
    pub count: u64,
}

/// Is told of rejections. It must not block: it is called where requests are read.
pub type OnRejection = Arc<dyn Fn(Rejection) + Send + Sync>;

/// Counts rejections and reports them.
pub struct RejectionLog {
    report: OnRejection,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    began: Option<Instant>,
    sources: HashMap<(IpAddr, RejectionReason), Rejection>,
    /// Those of all sources beyond the limit.
    others: HashMap<RejectionReason, Rejection>,
}

impl RejectionLog {
    pub fn new(report: OnRejection) -> Self {
        Self { report, table: Mutex::default() }
    }

    /// Notes one rejected request.
    pub(crate) fn note(&self, reason: RejectionReason, address: IpAddr, value: &[u8], path: &str) {
        let mut table = self.table();
        let ended = match table.began {
            Some(began) if began.elapsed() < WINDOW => Vec::new(),
            Some(_) | None => table.end(),
        };
        table.began.get_or_insert_with(Instant::now);
        let key = (network(address), reason);
        let cut = |text: &str| text.chars().take(TEXT).collect::<String>();
        let first = |address| Rejection {
            reason,
            address,
            value: cut(&String::from_utf8_lossy(value)),
            path: cut(path),
            count: 0,
        };
        let is_apart = table.sources.contains_key(&key) || table.sources.len() < SOURCES;
        let counted = match is_apart {
            true => table.sources.entry(key).or_insert_with(|| first(Some(address))),
            false => table.others.entry(reason).or_insert_with(|| first(None)),
        };
        counted.count += 1;
        let new = (counted.count == 1).then(|| counted.clone());
        drop(table);
        ended.into_iter().chain(new).for_each(|rejection| (self.report)(rejection));
    }

    /// Reports what was counted beyond the first ones, if the minute is over; with `now` in any case.
    pub fn flush(&self, now: bool) {
        let mut table = self.table();
        let is_over = table.began.is_some_and(|began| now || began.elapsed() >= WINDOW);
        let ended = if is_over { table.end() } else { Vec::new() };
        drop(table);
        ended.into_iter().for_each(|rejection| (self.report)(rejection));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was counted is reported also when the server ends before it is asked for.
impl Drop for RejectionLog {
    fn drop(&mut self) {
        self.flush(true);
    }
}

impl Table {
    /// Ends the window. The first of each was reported already.
    fn end(&mut self) -> Vec<Rejection> {
        self.began = None;
        let all = self.sources.drain().map(|(_, counted)| counted);
        let all = all.chain(self.others.drain().map(|(_, counted)| counted));
        let rest = |counted: Rejection| Rejection { count: counted.count - 1, ..counted };
        all.map(rest).filter(|counted| counted.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (RejectionLog, Arc<Mutex<Vec<Rejection>>>) {
        let heard: Arc<Mutex<Vec<Rejection>>> = Arc::default();
        let hearing = heard.clone();
        let report: OnRejection = Arc::new(move |rejection| hearing.lock().unwrap().push(rejection));
        (RejectionLog::new(report), heard)
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_source_is_two_reports_a_minute() {
        let (log, heard) = log();
        let address: IpAddr = "10.0.0.7".parse().unwrap();
        for _ in 0..10_000 {
            log.note(RejectionReason::Host, address, b"evil.example", "/v1/x");
        }
        log.note(RejectionReason::Origin, address, b"https://evil.example", "/v1/x");
        log.flush(false);
        assert_eq!(heard.lock().unwrap().len(), 2, "the first of each reason");
        tokio::time::advance(WINDOW).await;
        log.flush(false);
        let heard = heard.lock().unwrap();
        assert_eq!(heard.iter().map(|rejection| rejection.count).sum::<u64>(), 10_001);
        assert_eq!(heard.len(), 3);
        assert_eq!((heard[2].count, heard[2].value.as_str()), (9_999, "evil.example"));
    }

    #[tokio::test(start_paused = true)]
    async fn many_sources_share_one_count_and_long_values_are_cut() {
        let (log, heard) = log();
        for n in 0..1_000_u32 {
            log.note(RejectionReason::Host, IpAddr::from(n.to_be_bytes()), &[b'h'; 9_000], "/");
        }
        log.flush(true);
        let heard = heard.lock().unwrap();
        assert_eq!(heard.iter().map(|rejection| rejection.count).sum::<u64>(), 1_000);
        assert_eq!(heard.len(), SOURCES + 2);
        assert!(heard.iter().all(|rejection| rejection.value.len() == TEXT));
        assert_eq!(heard.iter().filter(|rejection| rejection.address.is_none()).count(), 2);
    }
}
