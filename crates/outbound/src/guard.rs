//! Decides which addresses may be called. A name is resolved here, and what was checked is what is connected to.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt;
use orchestr8_contract::{Code, Fault};
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{Reach, reach};

/// Whom others may have called beside the public internet.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Hosts that may be called wherever they are: `host`, `*.domain`, or an address. Without a port.
    pub hosts: Vec<String>,
    /// Private, loopback and carrier addresses may be called; link-local and metadata addresses still may not.
    pub private: bool,
    /// The settings that say so, for whoever meets a refusal: `workflows.http`.
    pub setting: &'static str,
}

/// Which hosts may be called.
pub struct Guard {
    /// Lower case, without a dot at the end.
    exact: Vec<String>,
    /// Endings with their dot: `.example.com`.
    endings: Vec<String>,
    allow_private: bool,
    setting: &'static str,
}

/// Why a host may not be called.
#[derive(Debug, Clone)]
pub struct Refused {
    host: String,
    what: &'static str,
    hint: String,
}

impl Guard {
    pub fn new(allowed: &Allowed) -> Self {
        let (mut exact, mut endings) = (Vec::new(), Vec::new());
        for host in &allowed.hosts {
            let host = plain(host.trim());
            match host.strip_prefix('*') {
                Some(ending) => endings.push(ending.to_owned()),
                None => exact.push(host),
            }
        }
        Self { exact, endings, allow_private: allowed.private, setting: allowed.setting }
    }

    /// Checks what can be checked before a name is resolved: an address may stand in the place of a name.
    pub fn check_url(&self, url: &Url) -> Result<(), Fault> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Fault::invalid(format!(
                "`url` must begin with http:// or https://, not {}:",
                url.scheme()
            ))
            .with("path", "url"));
        }
        let Some(host) = url.host_str() else {
            return Err(Fault::invalid("`url` names no host").with("path", "url"));
        };
        match address_in(host) {
            Some(address) => self.check(host, address).map_err(|refused| refused.fault()),
            None => Ok(()),
        }
    }

    /// Whether this host may be called at this address.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let refused = |what, hint| Err(Refused { host: host.to_owned(), what, hint });
        let name_it = || format!("name the host in `{}.allowedHosts` if it may be called", self.setting);
        let or_open = || {
            let setting = self.setting;
            format!(
                "name the host in `{setting}.allowedHosts`, or set `{setting}.allowPrivate`, if it may be called"
            )
        };
        match reach(address) {
            Reach::Public => Ok(()),
            Reach::Never(what) => refused(what, String::from("no request can be sent there")),
            Reach::Inside(_) if self.allow_private => Ok(()),
            Reach::Inside(_) | Reach::Closed(_) if self.names(host) => Ok(()),
            Reach::Inside(what) => refused(what, or_open()),
            Reach::Closed(what) => refused(what, name_it()),
        }
    }

    /// The refusal of a name that leads to such an address. It does not say which: whoever writes the name must not learn how
    /// names of the inside resolve.
    fn refused_name(&self, host: &str) -> Refused {
        let setting = self.setting;
        let hint = format!(
            "name the host in `{setting}.allowedHosts`, or set `{setting}.allowPrivate`, if it may be called"
        );
        Refused { host: host.to_owned(), what: "at an address that may not be called", hint }
    }

    fn names(&self, host: &str) -> bool {
        let host = plain(host);
        self.exact.contains(&host)
            || self.endings.iter().any(|ending| host.len() > ending.len() && host.ends_with(ending.as_str()))
    }
}

impl Refused {
    /// FORBIDDEN: another try cannot help, and nothing speaks against the host.
    pub fn fault(&self) -> Fault {
        Fault::new(Code::Unauthorized, self.to_string())
            .with("host", self.host.as_str())
            .with("reason", "address_refused")
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} is {}; {}", self.host, self.what, self.hint)
    }
}

impl std::error::Error for Refused {}

/// Resolves names for the client, and gives it only addresses that passed.
pub struct Resolver(pub Arc<Guard>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            // One bad address among good ones is reason enough: the name is not what it seems.
            for address in &found {
                guard.check(host, address.ip()).map_err(|_| guard.refused_name(host))?;
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        }
        .boxed()
    }
}

/// The address a host is written as, if it is; IPv6 stands in brackets.
fn address_in(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn plain(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(allowed: &[&str], allow_private: bool) -> Guard {
        let hosts = allowed.iter().map(|host| (*host).to_owned()).collect();
        Guard::new(&Allowed { hosts, private: allow_private, setting: "a" })
    }

    fn checked(guard: &Guard, url: &str) -> Result<(), Code> {
        guard.check_url(&Url::parse(url).unwrap()).map_err(|fault| fault.code)
    }

    #[test]
    fn addresses_are_recognised_however_they_are_written() {
        let closed = guard(&[], false);
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "https://[fd00:ec2::254]/",
            "http://169.254.169.254/latest",
            "http://0/",
            "http://user:pw@10.1.1.1/",
            "http://１２７.0.0.1/",
        ] {
            assert_eq!(checked(&closed, url), Err(Code::Unauthorized), "{url}");
        }
        assert_eq!(checked(&closed, "https://93.184.215.14/"), Ok(()));
        for url in ["file:///etc/passwd", "ftp://example.com/", "gopher://example.com/"] {
            assert_eq!(checked(&closed, url), Err(Code::InvalidArgument), "{url}");
        }
    }

    #[test]
    fn what_the_settings_open_is_open_and_no_more() {
        let private = guard(&[], true);
        assert_eq!(checked(&private, "http://10.0.0.1/"), Ok(()));
        assert_eq!(checked(&private, "http://169.254.169.254/"), Err(Code::Unauthorized));
        let named = guard(&["169.254.169.254", "[::1]", "*.Corp.Example", "db.internal."], false);
        assert_eq!(checked(&named, "http://169.254.169.254/"), Ok(()));
        assert_eq!(checked(&named, "http://[::1]:8080/"), Ok(()));
        assert_eq!(checked(&named, "http://127.0.0.1/"), Err(Code::Unauthorized));
        let inside = "10.1.2.3".parse().unwrap();
        for host in ["a.corp.example", "A.B.Corp.Example.", "db.internal"] {
            assert!(named.check(host, inside).is_ok(), "{host}");
        }
        for host in ["corp.example", "notcorp.example", "a.corp.example.evil.com", "xdb.internal"] {
            assert!(named.check(host, inside).is_err(), "{host}");
        }
        assert!(named.check("db.internal", "0.0.0.0".parse().unwrap()).is_err());
    }

    #[tokio::test]
    async fn a_name_is_refused_for_what_it_resolves_to() {
        let refused =
            Resolver(Arc::new(guard(&[], false))).resolve("localhost".parse().unwrap()).await.err().unwrap();
        let refused = refused.downcast_ref::<Refused>().unwrap().fault();
        assert!(
            refused
                .message
                .starts_with("localhost is at an address that may not be called; name the host in"),
            "{refused}"
        );
        let allowed =
            Resolver(Arc::new(guard(&["localhost"], false))).resolve("localhost".parse().unwrap()).await;
        assert!(allowed.unwrap().all(|address| address.ip().is_loopback()));
    }
}
