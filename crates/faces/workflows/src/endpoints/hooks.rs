//! `POST /hooks/{name}`: deliveries to webhook triggers. The signature is the credential.

use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, StatusCode};
use orchestr8_contract::Code;
use serde_json::{Map, Value};

use super::Arguments;
use crate::actions::DELIVER;
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;

const TIMED_SIGNATURE: HeaderName = HeaderName::from_static("x-orchestr8-signature-v1");
const HUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");

/// Credentials of other kinds: no expression sees them.
const HIDDEN: [HeaderName; 5] = [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, TIMED_SIGNATURE, HUB_SIGNATURE];

/// Headers and parameters that are passed on; more are left out.
const FIELDS: usize = 64;

pub(crate) async fn deliver(call: Call) -> Outcome {
    let Ok(body) = std::str::from_utf8(call.body()) else {
        return Err(Failure::invalid("", "the body of a delivery is text in UTF-8"));
    };
    let header = |name: &HeaderName| call.headers().get(name).and_then(|value| value.to_str().ok());
    let args = Arguments::of("name", call.hook())
        .with("body", body)
        .with("headers", headers(call.headers()))
        .with("query", query(call.parts.uri.query().unwrap_or_default()))
        .maybe("timedSignature", header(&TIMED_SIGNATURE))
        .maybe("hubSignature", header(&HUB_SIGNATURE));
    let given = call.ask(DELIVER, args.into_map()).await.map_err(counted)?;
    let is_new = given.get("duplicate") != Some(&Value::Bool(true));
    Ok(answer::json(if is_new { StatusCode::ACCEPTED } else { StatusCode::OK }, &given))
}

/// A wrong signature counts as a failed login.
fn counted(failure: Failure) -> Failure {
    match failure.code() {
        Code::Unauthenticated => failure.with_wrong_credentials(),
        _ => failure,
    }
}

/// By name, with `_` for `-`, since expressions have no `-` in a path. The first of several of the same name.
fn headers(headers: &HeaderMap) -> Map<String, Value> {
    let shown = headers.iter().filter(|(name, _)| !HIDDEN.contains(name));
    let mut fields = Map::new();
    for (name, value) in shown.take(FIELDS) {
        if let Ok(text) = value.to_str() {
            fields.entry(name.as_str().replace('-', "_")).or_insert_with(|| text.into());
        }
    }
    fields
}

fn query(query: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()).take(FIELDS) {
        fields.entry(name.into_owned()).or_insert_with(|| value.into_owned().into());
    }
    fields
}
