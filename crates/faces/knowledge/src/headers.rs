//! What the headers and the query of a request say.

use std::ops::RangeInclusive;

use http::{HeaderMap, HeaderName, Uri};
use orchestr8_contract::id::Key;
use orchestr8_edge::ask;

use crate::failure::Failure;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TENANT: HeaderName = HeaderName::from_static("x-tenant-id");

/// The one value of a header. An error: it is there more than once, or is no text.
pub(crate) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Failure> {
    Ok(ask::one(headers, name)?)
}

/// The key that makes repeats recognisable. The keys of envelopes have colons, so the header takes what they take.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Key>, Failure> {
    let Some(text) = one(headers, &IDEMPOTENCY_KEY)? else { return Ok(None) };
    match Key::parse(text) {
        Ok(key) => Ok(Some(key)),
        Err(error) => Err(Failure::invalid("Idempotency-Key", error.to_string())),
    }
}

/// The tenant somebody of this machine means.
pub(crate) fn tenant(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    one(headers, &TENANT)
}

/// The parameters of a query: each known, each once.
#[derive(Debug)]
pub(crate) struct Query(ask::Query);

impl Query {
    pub fn read(uri: &Uri, known: &[&str]) -> Result<Self, Failure> {
        Ok(Self(ask::Query::read(uri, known)?))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.text(name)
    }

    pub fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true" | "") => Ok(true),
            Some(_) => Err(Failure::invalid(&format!("?{name}"), "it must be true or false")),
        }
    }

    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        self.within(name, 0..=i64::MAX.unsigned_abs())
    }

    pub fn within(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Failure> {
        Ok(self.0.number(name, range)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn keys_of_envelopes_fit_into_the_header() {
        let mut headers = HeaderMap::new();
        assert!(idempotency_key(&headers).unwrap().is_none());
        headers.append("idempotency-key", HeaderValue::from_static("acme:subject-123:create_document:v1"));
        assert!(idempotency_key(&headers).unwrap().is_some());
        headers.append("idempotency-key", HeaderValue::from_static("b"));
        assert!(idempotency_key(&headers).is_err());
    }

    #[test]
    fn a_query_is_held_to_what_is_known() {
        let read = |text: &'static str| Query::read(&Uri::from_static(text), &["full", "limit"]);
        let query = read("/x?full=true&limit=7").unwrap();
        assert!(query.flag("full").unwrap());
        assert_eq!(query.number("limit").unwrap(), Some(7));
        assert!(read("/x?full=1").unwrap().flag("full").is_err());
        assert!(read("/x?limit=a").unwrap().number("limit").is_err());
        assert!(read("/x?ful=true").is_err() && read("/x?full=true&full=true").is_err());
    }
}
