//! Where a secret may go: a header or the body of requests to one origin, a variable of one program, or a model provider.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::BINDING_CHARACTERS;

/// A place that a binding allows. Its text form is what people write: `api.example.com:Authorization`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Destination {
    Http {
        origin: OriginPattern,
        part: RequestPart,
    },
    /// A variable of a program that `@orchestr8/exec` starts.
    Program {
        program: String,
        variable: String,
    },
    /// The key of a provider in the settings of models.
    Provider {
        name: String,
    },
    /// Proves deliveries to a webhook trigger; it goes nowhere.
    Trigger {
        id: String,
    },
}

/// The part of a request that carries the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestPart {
    /// In lower case.
    Header(String),
    Body,
}

/// Scheme, host and port. `https` and its port unless the pattern says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPattern {
    https: bool,
    /// In lower case; for `*.example.com` the suffix `.example.com`.
    host: String,
    any_subdomain: bool,
    port: u16,
}

/// Where a value is about to be inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    Http { https: bool, host: String, port: u16, part: RequestPart },
    Program { program: String, variable: String },
    Provider { name: String },
    Trigger { id: String },
}

impl Sink {
    pub fn header(https: bool, host: &str, port: u16, name: &str) -> Self {
        let part = RequestPart::Header(name.to_ascii_lowercase());
        Sink::Http { https, host: host.to_ascii_lowercase(), port, part }
    }

    pub fn body(https: bool, host: &str, port: u16) -> Self {
        Sink::Http { https, host: host.to_ascii_lowercase(), port, part: RequestPart::Body }
    }
}

impl Destination {
    pub fn allows(&self, sink: &Sink) -> bool {
        match (self, sink) {
            (Destination::Http { origin, part }, Sink::Http { https, host, port, part: used }) => {
                part == used && origin.matches(*https, host, *port)
            }
            (Destination::Program { program, variable }, Sink::Program { program: used, variable: own }) => {
                program == used && variable == own
            }
            (Destination::Provider { name }, Sink::Provider { name: used }) => name == used,
            (Destination::Trigger { id }, Sink::Trigger { id: used }) => id == used,
            (
                Destination::Http { .. }
                | Destination::Program { .. }
                | Destination::Provider { .. }
                | Destination::Trigger { .. },
                _,
            ) => false,
        }
    }
}

impl OriginPattern {
    fn matches(&self, https: bool, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.');
        let same_host = match self.any_subdomain {
            true => host.len() > self.host.len() && host.ends_with(&self.host),
            false => host == self.host,
        };
        same_host && self.https == https && self.port == port
    }
}

const HINT: &str = "write HOST:HEADER, HOST:body, exec:TEMPLATE:VARIABLE, provider:NAME or trigger:ID; HOST may be *.domain and may have http:// and a port";

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| Err(format!("the destination '{text}' {what}; {HINT}"));
        if text.chars().count() > BINDING_CHARACTERS
            || text.chars().any(|c| c.is_control() || c.is_whitespace())
        {
            return Err(format!("a destination is too long, or has blanks or control characters; {HINT}"));
        }
        if let Some(name) = text.strip_prefix("provider:") {
            return if name.is_empty() {
                wrong("names no provider")
            } else {
                Ok(Destination::Provider { name: name.to_owned() })
            };
        }
        if let Some(id) = text.strip_prefix("trigger:") {
            return match id.is_empty() {
                true => wrong("names no trigger"),
                false => Ok(Destination::Trigger { id: id.to_owned() }),
            };
        }
        if let Some(rest) = text.strip_prefix("exec:") {
            return match rest.rsplit_once(':') {
                Some((program, variable)) if !program.is_empty() && is_variable(variable) => {
                    Ok(Destination::Program { program: program.to_owned(), variable: variable.to_owned() })
                }
                Some(_) | None => wrong("names no program and variable"),
            };
        }
        let Some((origin, part)) = text.rsplit_once(':') else { return wrong("has no header") };
        let part = match part {
            "body" => RequestPart::Body,
            name if is_header(name) => RequestPart::Header(name.to_ascii_lowercase()),
            _ => return wrong("names no header"),
        };
        match OriginPattern::parse(origin) {
            Some(origin) => Ok(Destination::Http { origin, part }),
            None => wrong("has no host"),
        }
    }
}

impl OriginPattern {
    fn parse(text: &str) -> Option<Self> {
        let (https, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => (true, text),
        };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().ok().filter(|port| *port != 0)?)
            }
            Some(_) | None => (rest, if https { 443 } else { 80 }),
        };
        let host = host.to_ascii_lowercase();
        let (any_subdomain, host) = match host.strip_prefix('*') {
            Some(suffix) => (true, suffix.to_owned()),
            None => (false, host),
        };
        let inner = if any_subdomain { host.strip_prefix('.')? } else { host.as_str() };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_ipv6 = inner.starts_with('[')
            && inner.ends_with(']')
            && !any_subdomain
            && inner[1..inner.len() - 1].chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
        // A suffix of one label would be a whole top-level domain.
        let narrow = !any_subdomain || inner.contains('.');
        let sound = is_ipv6
            || (inner.chars().all(plain)
                && !inner.starts_with('.')
                && !inner.ends_with('.')
                && !inner.contains(".."));
        (!inner.is_empty() && sound && narrow).then_some(Self { https, host, any_subdomain, port })
    }
}

fn is_header(name: &str) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    // Digits alone are a port whose header was forgotten.
    !name.is_empty() && name.chars().all(token) && !name.chars().all(|c| c.is_ascii_digit())
}

fn is_variable(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit())
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Http { origin, part: RequestPart::Header(name) } => write!(out, "{origin}:{name}"),
            Destination::Http { origin, part: RequestPart::Body } => write!(out, "{origin}:body"),
            Destination::Program { program, variable } => write!(out, "exec:{program}:{variable}"),
            Destination::Provider { name } => write!(out, "provider:{name}"),
            Destination::Trigger { id } => write!(out, "trigger:{id}"),
        }
    }
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.any_subdomain { "*" } else { "" };
        let scheme = if self.https { "" } else { "http://" };
        write!(out, "{scheme}{star}{}", self.host)?;
        match (self.https, self.port) {
            (true, 443) | (false, 80) => Ok(()),
            (_, port) => write!(out, ":{port}"),
        }
    }
}

impl fmt::Display for Sink {
    /// As a binding would have to say it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sink::Http { https, host, port, part } => {
                let origin =
                    OriginPattern { https: *https, host: host.clone(), any_subdomain: false, port: *port };
                Destination::Http { origin, part: part.clone() }.fmt(out)
            }
            Sink::Program { program, variable } => write!(out, "exec:{program}:{variable}"),
            Sink::Provider { name } => write!(out, "provider:{name}"),
            Sink::Trigger { id } => write!(out, "trigger:{id}"),
        }
    }
}

impl TryFrom<String> for Destination {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Destination> for String {
    fn from(destination: Destination) -> Self {
        destination.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(text: &str, sink: &Sink) -> bool {
        text.parse::<Destination>().unwrap_or_else(|wrong| panic!("{wrong}")).allows(sink)
    }

    #[test]
    fn a_destination_is_one_origin_and_one_header() {
        let sink = |host: &str| Sink::header(true, host, 443, "Authorization");
        assert!(allows("api.example.com:authorization", &sink("API.example.com")));
        assert!(allows("https://api.example.com:443:AUTHORIZATION", &sink("api.example.com.")));
        for other in ["example.com", "evil-api.example.com", "api.example.com.evil.net", "xapi.example.com"] {
            assert!(!allows("api.example.com:authorization", &sink(other)), "{other}");
        }
        let own = "api.example.com:authorization";
        assert!(!allows(own, &Sink::header(true, "api.example.com", 443, "x-other")));
        assert!(!allows(own, &Sink::header(false, "api.example.com", 80, "authorization")), "in clear");
        assert!(!allows(own, &Sink::header(true, "api.example.com", 8443, "authorization")));
        assert!(!allows(own, &Sink::body(true, "api.example.com", 443)));
        assert!(allows("http://127.0.0.1:8080:x-key", &Sink::header(false, "127.0.0.1", 8080, "X-Key")));
        assert!(allows("http://[::1]:8080:body", &Sink::body(false, "[::1]", 8080)));
        assert!(allows("[::1]:body", &Sink::body(true, "[::1]", 443)));
    }

    #[test]
    fn a_suffix_matches_subdomains_only() {
        let sink = |host: &str| Sink::body(true, host, 443);
        assert!(allows("*.example.com:body", &sink("a.example.com")));
        assert!(allows("*.example.com:body", &sink("a.b.example.com")));
        for other in ["example.com", "evilexample.com", "a.example.com.evil.net", ".example.com"] {
            assert!(!allows("*.example.com:body", &sink(other)), "{other}");
        }
    }

    #[test]
    fn programs_and_providers_are_named_exactly() {
        let sink = Sink::Program { program: "/usr/bin/deploy".into(), variable: "TOKEN".into() };
        assert!(allows("exec:/usr/bin/deploy:TOKEN", &sink));
        assert!(!allows("exec:/usr/bin/deploy:OTHER", &sink) && !allows("exec:/usr/bin/env:TOKEN", &sink));
        assert!(allows("provider:anthropic", &Sink::Provider { name: "anthropic".into() }));
        assert!(!allows("provider:anthropic", &sink));
        let orders = Sink::Trigger { id: "orders".into() };
        assert!(allows("trigger:orders", &orders) && !allows("trigger:order", &orders));
        assert!(!allows("provider:orders", &orders));
    }

    #[test]
    fn what_is_no_destination_is_refused_and_the_rest_prints_as_it_is_read() {
        for wrong in [
            "",
            ":",
            "host",
            "host:",
            ":header",
            "host:8080",
            "*:body",
            "*.com:body",
            "ho st:body",
            "a/b:body",
            "user@host:body",
            "exec:",
            "exec:/bin/x",
            "exec:/bin/x:1A",
            "provider:",
            "trigger:",
            "ftp://host:body",
            "host:0:body",
            "host:99999:body",
            ".a:body",
            "*.a..b:body",
        ] {
            assert!(wrong.parse::<Destination>().is_err(), "{wrong}");
        }
        for text in [
            "api.example.com:authorization",
            "http://*.example.com:8080:body",
            "exec:/bin/x:A",
            "provider:p",
            "trigger:orders",
            "[::1]:8443:x-key",
        ] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
    }
}
