//! Fetches artifacts from servers the installation names, and from no other: nobody may send us around the network.

use std::sync::OnceLock;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use orchestr8_contract::{Code, Fault};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::{Body, media, too_large};
use crate::failure::Failure;
use crate::limits::{FETCH_TIMEOUT_MS, LINK_MS};
use crate::settings::Settings;

pub(crate) struct Fetcher {
    /// In lower case.
    hosts: Vec<String>,
    limit_bytes: usize,
    /// Made when it is first needed: most installations never do.
    client: OnceLock<Option<Client>>,
}

/// How signed links of others say how long they live, in seconds.
const LIVES: [&str; 2] = ["X-Goog-Expires", "X-Amz-Expires"];

impl Fetcher {
    pub fn new(settings: &Settings) -> Self {
        let hosts = settings.artifact_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { hosts, limit_bytes: settings.artifact_bytes, client: OnceLock::new() }
    }

    pub async fn fetch(&self, uri: &str) -> Result<Body, Failure> {
        let url = self.check(uri)?;
        let client = self.client.get_or_init(|| {
            let builder = Client::builder().redirect(Policy::none()).no_proxy();
            builder.timeout(Duration::from_millis(FETCH_TIMEOUT_MS)).build().ok()
        });
        let Some(client) = client else {
            return Err(Fault::internal("no HTTP client can be made").into());
        };
        let mut response = client.get(url).send().await.map_err(unreachable_now)?;
        if !response.status().is_success() {
            let message = format!("the artifact's server answered {}", response.status().as_u16());
            return Err(Fault::new(Code::Unavailable, message).into());
        }
        let mime_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(media);
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(unreachable_now)? {
            if piece.len() > self.limit_bytes.saturating_sub(bytes.len()) {
                return Err(too_large(self.limit_bytes));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Body { mime_type: mime_type.unwrap_or_default(), bytes })
    }

    /// Only named hosts, only encrypted unless it is this machine, and no link that lives too long (KNO-5).
    fn check(&self, uri: &str) -> Result<Url, Failure> {
        let Ok(url) = Url::parse(uri) else {
            return Err(Failure::of_action(Fault::invalid("artifact_uri is no address")));
        };
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        let is_here = plain == "localhost"
            || plain.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let is_named = self.hosts.iter().any(|named| *named == host || *named == plain);
        if !is_named || !(url.scheme() == "https" || url.scheme() == "http" && is_here) {
            return Err(Failure::forbidden("artifacts are not fetched from there").with("host", host).with(
                "hint",
                "upload it to /artifacts, or name the host in the artifact hosts of this server",
            ));
        }
        let limit_s = u64::try_from(LINK_MS / 1000).unwrap_or(0);
        let lives_long = url.query_pairs().any(|(name, value)| {
            LIVES.iter().any(|known| name.eq_ignore_ascii_case(known))
                && value.parse::<u64>().map_or(true, |seconds| seconds > limit_s)
        });
        match lives_long {
            true => {
                let fault = Fault::invalid("the signed link lives longer than 15 minutes");
                Err(Failure::of_action(fault))
            }
            false => Ok(url),
        }
    }
}

fn unreachable_now(error: reqwest::Error) -> Failure {
    // The address may carry a signature: it stays out of what the client and the log see.
    Fault::new(Code::Unavailable, "the artifact could not be fetched").because(error.without_url()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_hosts_are_asked() {
        let hosts = ["storage.example.com", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        let fetcher = Fetcher::new(&Settings { artifact_hosts: hosts, ..Settings::default() });
        let word = |uri: &str| fetcher.check(uri).map(|_| "ok").unwrap_or_else(|failure| failure.word());
        for (uri, outcome) in [
            ("https://storage.example.com/a?X-Goog-Expires=900", "ok"),
            ("https://STORAGE.example.com:444/a", "ok"),
            ("http://127.0.0.1:1/a", "ok"),
            ("http://[::1]:1/a", "ok"),
            ("https://storage.example.com/a?X-Goog-Expires=901", "UNPROCESSABLE_ENTITY"),
            ("https://storage.example.com/a?x-amz-expires=forever", "UNPROCESSABLE_ENTITY"),
            ("http://storage.example.com/a", "FORBIDDEN"),
            ("https://storage.example.com.evil.com/a", "FORBIDDEN"),
            ("https://evil.com/storage.example.com", "FORBIDDEN"),
            ("https://storage.example.com@evil.com/a", "FORBIDDEN"),
            ("http://169.254.169.254/latest", "FORBIDDEN"),
            ("http://2130706434/", "FORBIDDEN"),
            ("file:///etc/passwd", "FORBIDDEN"),
            ("nonsense", "UNPROCESSABLE_ENTITY"),
        ] {
            assert_eq!(word(uri), outcome, "{uri}");
        }
        assert!(Fetcher::new(&Settings::default()).check("https://storage.example.com/a").is_err());
    }
}
