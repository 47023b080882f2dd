//! Which web pages may call us, and what a browser must hear so that a configured one can.

use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::hosts::Hosts;
use crate::{Error, Refusal};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// Ten minutes: one preflight for a sitting, and a changed configuration is noticed soon.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const EVERY: HeaderValue = HeaderValue::from_static("*");
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Mcp-Session-Id, MCP-Protocol-Version, X-Correlation-ID, ETag, Location, Retry-After",
);

/// The origins configured by hand. Pages of our own names pass as well, but need no CORS headers.
pub(crate) struct Origins {
    configured: Vec<HeaderValue>,
}

impl Origins {
    pub fn new(origins: &[String]) -> Result<Self, Error> {
        let parse = |value: &String| {
            let sound = authority(value.as_bytes())
                .is_some_and(|rest| !rest.is_empty() && !rest.iter().any(|byte| b"/?#@* ".contains(byte)));
            let text = HeaderValue::try_from(value.to_ascii_lowercase()).ok().filter(|_| sound);
            text.ok_or_else(|| Error::Origin { value: value.clone() })
        };
        Ok(Self { configured: origins.iter().map(parse).collect::<Result<_, _>>()? })
    }

    /// Nothing for a request without Origin or from our own pages; for a configured page, its origin.
    pub fn check(&self, headers: &HeaderMap, hosts: &Hosts) -> Result<Option<HeaderValue>, Refusal> {
        let mut values = headers.get_all(ORIGIN).iter();
        let Some(origin) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Refusal::origin());
        }
        if self.configured.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes())) {
            return Ok(Some(origin.clone()));
        }
        match authority(origin.as_bytes()) {
            Some(host) if hosts.admits(host) => Ok(None),
            Some(_) | None => Err(Refusal::origin()),
        }
    }
}

/// What follows `http://` or `https://`.
pub(crate) fn authority(origin: &[u8]) -> Option<&[u8]> {
    [&b"http://"[..], b"https://"].iter().find_map(|scheme| {
        let (head, rest) = origin.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a browser that asks first. It carries no credentials, so it comes before they are checked.
pub(crate) fn preflight(headers: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    // The asked headers are repeated because `*` does not cover Authorization.
    let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned().unwrap_or(EVERY);
    let answer = response.headers_mut();
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked);
    answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Lets the page of `origin` read the answer.
pub(crate) fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(origin: &str) -> Result<Option<HeaderValue>, Refusal> {
        let hosts = Hosts::new("127.0.0.1:8088".parse().unwrap(), &["api.example.org".into()]).unwrap();
        let origins = Origins::new(&["https://app.example.org".into()]).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        origins.check(&headers, &hosts)
    }

    #[test]
    fn our_own_pages_pass_and_a_configured_page_is_named() {
        for own in
            ["http://localhost:3000", "https://127.0.0.1", "HTTP://[::1]:8088", "https://api.example.org"]
        {
            assert_eq!(check(own), Ok(None), "{own}");
        }
        let named = check("https://app.example.org").unwrap().unwrap();
        assert_eq!(named, "https://app.example.org");
    }

    #[test]
    fn every_other_page_is_refused() {
        for evil in [
            "null",
            "",
            "http://evil.example.com",
            "http://app.example.org",
            "https://app.example.org:444",
            "https://app.example.org.evil.com",
            "http://localhost.evil.com",
            "http://localhost@evil.com",
            "localhost",
            "file://localhost",
            "http://",
        ] {
            assert_eq!(check(evil), Err(Refusal::origin()), "{evil}");
        }
    }

    #[test]
    fn a_senseless_origin_is_refused_at_start() {
        for bad in ["*", "", "app.example.org", "https://", "https://a/b", "https://*.example.org", "ftp://a"]
        {
            assert!(
                matches!(Origins::new(&[bad.into()]), Err(Error::Origin { value }) if value == bad),
                "{bad}"
            );
        }
    }
}
