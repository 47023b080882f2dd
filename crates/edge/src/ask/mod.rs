//! What a request says, read the same by every face: parameters, headers, bodies of JSON. What is wrong is named with its place,
//! and each face says so in its own words.

mod object;
mod query;

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName};
use orchestr8_contract::id::CorrelationId;

pub use object::{Body, object};
pub use query::{Query, WAIT_LIMIT_MS, digits};

/// Something of a request is wrong at a place: a JSON pointer into the body, `?name` or the name of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub path: String,
    pub message: Cow<'static, str>,
}

impl Wrong {
    pub fn new(path: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.message)
    }
}

/// The one value of a header. An error: it is there more than once, or is no text.
pub fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Wrong> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim_ascii())),
            Err(_) => Err(Wrong::new(name.as_str(), "the header must be visible ASCII")),
        },
        (Some(_), Some(_)) => Err(Wrong::new(name.as_str(), "the header must be given once")),
    }
}

/// The client's own id for this request, if it is fit to be one.
pub fn correlation(headers: &HeaderMap) -> Option<CorrelationId> {
    CorrelationId::parse(crate::correlation::given(headers)?.to_str().ok()?).ok()
}
