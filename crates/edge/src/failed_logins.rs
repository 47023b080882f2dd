//! Rate limit for wrong credentials, per address and per token.
//!
//! An address beyond the limit is answered 429 for the rest of the minute, without a word about whether the token was right.
//! Clients behind the same address keep working: an API token has 256 bits and cannot be guessed, so a right one always passes;
//! a token of the settings, which a person may have chosen, passes if it was shown from that address before.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use orchestr8_contract::{api_token, canonical};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::Caller;

const WINDOW: Duration = Duration::from_secs(60);

/// Addresses and tokens remembered at once; beyond it those whose window is over are forgotten, then all.
const RECORDS: usize = 8192;

/// Principals remembered per address as having logged in from there.
const KNOWN: usize = 64;

/// A face puts it into the extensions of an answer to a request that showed wrong credentials of the face's own.
#[derive(Debug, Clone, Copy)]
pub struct WrongCredentials;

/// One failed login, for the log and the audit log. It never holds the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginFailure {
    pub address: IpAddr,
    /// The id of an API token, or a fingerprint of anything else.
    pub token: String,
    pub path: String,
    /// Whether the limit was reached with this one; further failures within the minute are not reported.
    pub limited: bool,
}

/// What a failure leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Answered 401.
    Counted,
    /// Answered 429; the first one beyond the limit is reported.
    Limited { first: bool },
}

pub(crate) struct FailedLogins {
    limit: u32,
    /// Lets requests pass without a lock while no address is limited.
    limited: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    addresses: HashMap<IpAddr, Record>,
    tokens: HashMap<String, Record>,
}

struct Record {
    since: Instant,
    failures: u32,
    known: Vec<(String, String)>,
}

impl Record {
    fn new() -> Self {
        Self { since: Instant::now(), failures: 0, known: Vec::new() }
    }

    fn is_over(&self) -> bool {
        self.since.elapsed() >= WINDOW
    }

    fn count(&mut self) -> u32 {
        if self.is_over() {
            (self.since, self.failures) = (Instant::now(), 0);
        }
        self.failures = self.failures.saturating_add(1);
        self.failures
    }
}

impl FailedLogins {
    pub fn new(limit: u32) -> Self {
        Self { limit, limited: AtomicUsize::new(0), table: Mutex::default() }
    }

    /// Counts one failure.
    pub fn fail(&self, address: IpAddr, token: &str) -> Verdict {
        let mut table = self.table();
        table.make_room();
        let of_address = table.addresses.entry(network(address)).or_insert_with(Record::new).count();
        let of_token = table.tokens.entry(token.to_owned()).or_insert_with(Record::new).count();
        let failures = of_address.max(of_token);
        if of_address == self.limit + 1 {
            self.limited.fetch_add(1, Ordering::Relaxed);
        }
        match failures > self.limit {
            true => Verdict::Limited { first: failures == self.limit + 1 },
            false => Verdict::Counted,
        }
    }

    /// Remembers that this caller logged in from the address.
    pub fn succeed(&self, address: IpAddr, caller: &Caller) {
        let mut table = self.table();
        table.make_room();
        let record = table.addresses.entry(network(address)).or_insert_with(Record::new);
        let key = (caller.tenant.clone(), caller.name.clone());
        if record.known.len() < KNOWN && !record.known.contains(&key) {
            record.known.push(key);
        }
    }

    /// Whether a right token is refused all the same, because too many wrong ones came from its address.
    pub fn blocks(&self, address: IpAddr, caller: &Caller) -> bool {
        if self.limited.load(Ordering::Relaxed) == 0 || caller.grant.is_some() || !caller.verified {
            return false;
        }
        let mut table = self.table();
        let any = table.addresses.values().any(|record| record.failures > self.limit && !record.is_over());
        if !any {
            self.limited.store(0, Ordering::Relaxed);
            return false;
        }
        let Some(record) = table.addresses.get_mut(&network(address)) else { return false };
        let known =
            record.known.iter().any(|(tenant, name)| *tenant == caller.tenant && *name == caller.name);
        record.failures > self.limit && !record.is_over() && !known
    }

    /// Whether too many wrong credentials came from an address: whatever else it shows is not looked at.
    pub fn blocks_address(&self, address: IpAddr) -> bool {
        if self.limited.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let table = self.table();
        let record = table.addresses.get(&network(address));
        record.is_some_and(|record| record.failures > self.limit && !record.is_over())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn make_room(&mut self) {
        if self.addresses.len() >= RECORDS {
            self.addresses.retain(|_, record| !record.is_over());
        }
        if self.tokens.len() >= RECORDS {
            self.tokens.retain(|_, record| !record.is_over());
        }
        if self.addresses.len() >= RECORDS {
            self.addresses.clear();
        }
        if self.tokens.len() >= RECORDS {
            self.tokens.clear();
        }
    }
}

/// What a presented token is called in logs: its public id, or a fingerprint that gives nothing away.
pub(crate) fn label(presented: &[u8]) -> String {
    let id = std::str::from_utf8(presented).ok().and_then(api_token::id_of);
    match id {
        Some(id) => format!("{}{id}", api_token::PREFIX),
        None => format!("sha256:{}", &canonical::hex(&Sha256::digest(presented))[..12]),
    }
}

/// One subscriber has a whole /64 of IPv6.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        Caller { name: name.into(), tenant: "acme".into(), roles: Vec::new(), verified: true, grant: None }
    }

    #[tokio::test]
    async fn an_address_is_limited_for_a_minute_and_known_clients_behind_it_pass() {
        let logins = FailedLogins::new(3);
        let (near, far): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        logins.succeed(near, &caller("known"));
        for attempt in 0..3 {
            assert_eq!(logins.fail(near, &format!("t{attempt}")), Verdict::Counted);
        }
        assert!(!logins.blocks(near, &caller("new")));
        assert_eq!(logins.fail(near, "t"), Verdict::Limited { first: true });
        assert_eq!(logins.fail(near, "t"), Verdict::Limited { first: false });
        assert!(logins.blocks(near, &caller("new")));
        assert!(!logins.blocks(near, &caller("known")) && !logins.blocks(far, &caller("new")));
        logins.table().addresses.values_mut().for_each(|record| record.since -= WINDOW);
        assert!(!logins.blocks(near, &caller("new")));
        assert_eq!(logins.fail(near, "u"), Verdict::Counted);
    }

    #[tokio::test]
    async fn guesses_at_one_token_from_many_addresses_are_limited_too() {
        let logins = FailedLogins::new(3);
        let from = |last: u8| IpAddr::from([10, 0, 0, last]);
        for last in 1..=3 {
            assert_eq!(logins.fail(from(last), "o8_a"), Verdict::Counted);
        }
        assert_eq!(logins.fail(from(4), "o8_a"), Verdict::Limited { first: true });
        assert_eq!(logins.fail(from(5), "o8_b"), Verdict::Counted);
    }

    #[test]
    fn a_label_never_holds_the_token_and_a_network_is_one_subscriber() {
        let token = api_token::ApiToken::new("abcdefghijkl", &[1; 32]);
        assert_eq!(label(token.as_str().as_bytes()), "o8_abcdefghijkl");
        let other = label(b"hunter2");
        assert!(other.starts_with("sha256:") && !other.contains("hunter2"));
        let same: [IpAddr; 2] = ["2001:db8::1".parse().unwrap(), "2001:db8::ffff".parse().unwrap()];
        assert_eq!(network(same[0]), network(same[1]));
        assert_ne!(network(same[0]), network("2001:db8:0:1::1".parse().unwrap()));
    }
}
