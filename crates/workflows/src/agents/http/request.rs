//! A request as a step describes it, checked before anything is sent.

use orchestr8_contract::{Code, Fault};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use serde_json::Value;

use super::super::members::{Members, wrong};
use super::host_of;
use crate::limits::{REQUEST_HEADER_BYTES, REQUEST_HEADERS, SECRET_SEARCHED_BYTES, URL_BYTES};

const KNOWN: [&str; 7] = ["url", "method", "headers", "query", "body", "expect", "maxBytes"];

/// What the body of the response must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Json,
    Text,
}

pub struct Request {
    pub url: Url,
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Option<Vec<u8>>,
    pub body_is_json: bool,
    pub expect: Option<Expect>,
    pub max_bytes: usize,
}

/// The connection is ours to lead; these would change where or how a request arrives.
const OURS: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "proxy-authorization",
];

/// Headers that are no secrets, so that a repeat of their values in a message does no harm.
const OPEN: [&str; 6] =
    ["accept", "accept-language", "accept-encoding", "content-type", "user-agent", "cache-control"];

/// Words before a secret that are none themselves.
const SCHEMES: [&str; 4] = ["Bearer", "Basic", "Digest", "Token"];

impl Request {
    /// `most` is the largest body that is read of the answer.
    pub fn read(input: &Value, config: &Value, most: usize) -> Result<Self, Fault> {
        let members = Members::read(input, config, &KNOWN)?;
        let mut url = address(members.needed_text("url")?)?;
        for (name, value) in members.entries("query")? {
            add_query(&mut url, name, value)?;
        }
        if url.as_str().len() > URL_BYTES {
            return Err(Fault::invalid(format!("`url` has more than {URL_BYTES} bytes")).with("path", "url"));
        }
        let mut headers = headers(&members)?;
        let body_is_json = members.get("body").is_some_and(|body| !body.is_string());
        let body = body(members.get("body"), &mut headers);
        let method = match members.text("method")? {
            Some(name) => method(name)?,
            None if body.is_some() => Method::POST,
            None => Method::GET,
        };
        let expect = match members.text("expect")? {
            None => None,
            Some("json") => Some(Expect::Json),
            Some("text") => Some(Expect::Text),
            Some(_) => {
                return Err(Fault::invalid("`expect` must be \"json\" or \"text\"").with("path", "expect"));
            }
        };
        let max_bytes = members.number("maxBytes", 1, most as u64)?;
        let max_bytes = max_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(most);
        Ok(Self { url, method, headers, body, body_is_json, expect, max_bytes })
    }

    /// What it is called in messages: the method and the host, since paths hold secrets, too.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, host_of(&self.url))
    }

    /// Everything in it that must not show up in a message, the longest first.
    pub fn secrets(&self) -> Vec<String> {
        let closed = self.headers.iter().filter(|(name, _)| !OPEN.contains(&name.as_str()));
        let texts = closed.filter_map(|(_, value)| value.to_str().ok());
        let mut secrets: Vec<String> = texts
            .flat_map(|text| std::iter::once(text).chain(text.split([' ', ',', ';', '='])))
            .chain(self.url.password())
            .filter(|text| text.len() >= SECRET_SEARCHED_BYTES && !SCHEMES.contains(text))
            .map(str::to_owned)
            .collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }

    pub async fn send(self, client: &Client) -> Result<Response, reqwest::Error> {
        let mut request = client.request(self.method, self.url).headers(self.headers);
        if let Some(body) = self.body {
            request = request.body(body);
        }
        request.send().await
    }
}

fn address(text: &str) -> Result<Url, Fault> {
    // Neither the text nor the parser's complaint is shown: an address may hold a secret.
    Url::parse(text).map_err(|_| Fault::invalid("`url` is not an absolute address").with("path", "url"))
}

fn add_query(url: &mut Url, name: &str, value: &Value) -> Result<(), Fault> {
    let text = match value {
        Value::Null => return Ok(()),
        Value::Array(items) => return items.iter().try_for_each(|item| add_query(url, name, item)),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Object(_) => {
            return Err(wrong(&format!("query.{name}"), "a text, a number, or a list of them", value));
        }
    };
    url.query_pairs_mut().append_pair(name, &text);
    Ok(())
}

fn headers(members: &Members<'_>) -> Result<HeaderMap, Fault> {
    let entries = members.entries("headers")?;
    if entries.len() > REQUEST_HEADERS {
        return Err(Fault::invalid(format!("`headers` has more than {REQUEST_HEADERS} members"))
            .with("path", "headers"));
    }
    let mut headers = HeaderMap::with_capacity(entries.len());
    for (name, value) in entries {
        if value.is_null() {
            continue;
        }
        let path = format!("headers.{name}");
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Fault::invalid("`headers` has a name that is no header").with("path", "headers"))?;
        if OURS.contains(&parsed.as_str()) {
            return Err(Fault::invalid(format!("`{path}` cannot be set")).with("path", path));
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return Err(wrong(&path, "a text", value)),
        };
        let mut value = HeaderValue::from_str(&text)
            .ok()
            .filter(|value| value.len() <= REQUEST_HEADER_BYTES)
            .ok_or_else(|| {
                Fault::invalid(format!("`{path}` has characters or a length that no header may have"))
                    .with("path", path)
            })?;
        // Whatever prints it prints nothing of it.
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

/// A text is sent as it is, everything else as JSON.
fn body(body: Option<&Value>, headers: &mut HeaderMap) -> Option<Vec<u8>> {
    let (bytes, kind) = match body? {
        Value::String(text) => (text.clone().into_bytes(), "text/plain; charset=utf-8"),
        other => (other.to_string().into_bytes(), "application/json"),
    };
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
    Some(bytes)
}

fn method(name: &str) -> Result<Method, Fault> {
    Ok(match name {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "PATCH" => Method::PATCH,
        "DELETE" => Method::DELETE,
        "OPTIONS" => Method::OPTIONS,
        _ => {
            let wanted = "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS";
            return Err(Fault::new(Code::InvalidArgument, format!("`method` must be {wanted}"))
                .with("path", "method"));
        }
    })
}
