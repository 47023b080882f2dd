//! Which names are ours. A page that rebinds its own name to our address is told by the name it calls us.

use std::net::SocketAddr;

use crate::Error;

const LOOPBACK: [&[u8]; 3] = [b"127.0.0.1", b"localhost", b"[::1]"];

/// The loopback names on any port, the address we listen on, and what is configured.
pub(crate) struct Hosts {
    configured: Vec<(Vec<u8>, Option<u16>)>,
}

impl Hosts {
    pub fn new(listen: SocketAddr, names: &[String]) -> Result<Self, Error> {
        let mut configured = Vec::with_capacity(names.len() + 1);
        for name in names {
            let plain = !name.bytes().any(|byte| byte.is_ascii_whitespace() || b"/@*?#,".contains(&byte));
            let (host, port) = split(name.as_bytes())
                .filter(|_| plain)
                .ok_or_else(|| Error::Host { value: name.clone() })?;
            configured.push((host.to_vec(), port));
        }
        // An address cannot be rebound, so calling us by the one we listen on is always honest.
        if !listen.ip().is_unspecified() && !listen.ip().is_loopback() {
            let host = if listen.is_ipv6() { format!("[{}]", listen.ip()) } else { listen.ip().to_string() };
            configured.push((host.into_bytes(), None));
        }
        Ok(Self { configured })
    }

    /// Whether `authority`, as in a Host header, names us.
    pub fn admits(&self, authority: &[u8]) -> bool {
        let is_loopback = |(host, _)| LOOPBACK.iter().any(|name: &&[u8]| name.eq_ignore_ascii_case(host));
        split(authority).is_some_and(is_loopback) || self.is_configured(authority)
    }

    /// Whether it is a name of this server alone, not one that every program of this machine has.
    pub fn is_configured(&self, authority: &[u8]) -> bool {
        let Some((host, port)) = split(authority) else { return false };
        self.configured
            .iter()
            .any(|(name, only)| (only.is_none() || *only == port) && name.eq_ignore_ascii_case(host))
    }
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`; None for anything else.
fn split(authority: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let end = match authority.first()? {
        b'[' => authority.iter().position(|byte| *byte == b']')? + 1,
        _ => authority.iter().position(|byte| *byte == b':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end);
    match rest {
        _ if host.is_empty() => None,
        [] => Some((host, None)),
        [b':', digits @ ..] => {
            let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            let port = std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()?;
            Some((host, Some(port)))
        }
        [..] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listen: &str, names: &[&str]) -> Hosts {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        Hosts::new(listen.parse().unwrap(), &names).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn loopback_names_pass_on_any_port_and_nothing_else_does() {
        let hosts = hosts("127.0.0.1:8088", &[]);
        for good in ["localhost", "LocalHost:8088", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535"] {
            assert!(hosts.admits(good.as_bytes()), "{good}");
        }
        for evil in [
            "",
            ":80",
            "evil.example.com",
            "localhost.evil.example.com",
            "evil.example.com:8088",
            "localhost:evil",
            "localhost:",
            "localhost:99999",
            "localhost:+80",
            "localhost:80:80",
            "localhost@evil.example.com",
            "evil@localhost",
            "localhost.",
            "localhost ",
            "127.0.0.1.nip.io",
            "127.0.0.2",
            "0.0.0.0",
            "::1",
            "[::1",
            "[::1]evil",
            "[::1]:",
            "[]",
            "localhost\u{0}",
        ] {
            assert!(!hosts.admits(evil.as_bytes()), "{evil:?}");
        }
        assert!(!hosts.admits(b"\xff\xfe"));
    }

    #[test]
    fn configured_names_pass_with_their_port_if_they_have_one() {
        let hosts = hosts("0.0.0.0:80", &["api.example.org", "Other.example.org:8443"]);
        for good in ["api.example.org", "API.example.org:1234", "other.example.org:8443", "localhost"] {
            assert!(hosts.admits(good.as_bytes()), "{good}");
        }
        for evil in ["other.example.org", "other.example.org:8444", "xapi.example.org", "0.0.0.0"] {
            assert!(!hosts.admits(evil.as_bytes()), "{evil}");
        }
    }

    #[test]
    fn the_address_we_listen_on_is_ours() {
        assert!(hosts("10.1.2.3:80", &[]).admits(b"10.1.2.3:80"));
        assert!(hosts("[2001:db8::1]:80", &[]).admits(b"[2001:db8::1]"));
        assert!(!hosts("10.1.2.3:80", &[]).admits(b"10.1.2.4"));
    }

    #[test]
    fn a_senseless_name_is_refused_at_start() {
        for bad in ["", "http://a", "a b", "*", "a:port", "a/b"] {
            let error = Hosts::new("127.0.0.1:1".parse().unwrap(), &[bad.to_owned()]).err().unwrap();
            assert!(matches!(&error, Error::Host { value } if value == bad), "{bad}");
        }
    }
}
