//! Inserts secrets into a request, right before it is sent. A secret stands in a header or in the body, never in the address.

use orchestr8_contract::Fault;
use orchestr8_secrets::Sink;
use reqwest::Url;
use reqwest::header::HeaderValue;

use super::super::secrets::{CallSecrets, in_json, plain};
use super::request::Request;
use crate::limits::REQUEST_HEADER_BYTES;

/// Replaces every reference with its value, if the secret is bound to this origin and header, or to its body.
pub async fn insert(request: &mut Request, secrets: &CallSecrets) -> Result<(), Fault> {
    secrets.refuse_in(request.url.as_str(), "an address: send it in a header or in the body")?;
    let (https, host, port) = origin(&request.url);
    for (name, value) in request.headers.iter_mut() {
        let Some(text) = value.to_str().ok().filter(|text| secrets.is_in(text)).map(str::to_owned) else {
            continue;
        };
        let inserted = secrets.insert(&text, &Sink::header(https, &host, port, name.as_str()), plain).await?;
        let mut header = HeaderValue::from_str(&inserted)
            .ok()
            .filter(|value| value.len() <= REQUEST_HEADER_BYTES)
            .ok_or_else(|| {
                Fault::invalid(format!(
                    "with its secret, `headers.{name}` has characters or a length that no header may have"
                ))
            })?;
        header.set_sensitive(true);
        *value = header;
    }
    if let Some(body) = &mut request.body
        && let Ok(text) = std::str::from_utf8(body)
        && secrets.is_in(text)
    {
        let spell = if request.body_is_json { in_json } else { plain };
        let inserted = secrets.insert(text, &Sink::body(https, &host, port), spell).await?;
        *body = inserted.into_bytes();
    }
    Ok(())
}

/// Scheme, host and port of an address.
pub fn origin(url: &Url) -> (bool, String, u16) {
    let https = url.scheme() == "https";
    let port = url.port_or_known_default().unwrap_or(if https { 443 } else { 80 });
    (https, url.host_str().unwrap_or_default().to_owned(), port)
}
