//! A running server, reached over HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use http::{HeaderMap, Method, StatusCode};
use orchestr8_contract::Code;
use orchestr8_outbound::ExtraAuthorities;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::instance::{self, Instance};
use super::signer::{SIGNATURE, Signer};
use super::stream::Events;
use super::{ANSWER_BYTES, Headers, Reply, read_body, refusal, too_large};
use crate::failure::Failure;

/// A server on this machine or in this network is there at once, or it is not there.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Long polls wait up to 30 seconds and synchronous calls up to 120; no answer takes longer.
const ANSWER_LIMIT: Duration = Duration::from_secs(150);

/// A connection is opened at once, or not at all.
const UPGRADE_LIMIT: Duration = Duration::from_secs(10);

/// A proof is good for so long: a server that ends may be followed by another on its address.
const PROOF_LIFE: Duration = Duration::from_secs(1);

/// A server of this machine proves itself within this.
const PROOF_LIMIT: Duration = Duration::from_secs(2);

/// A server that was found and not named: it has to prove that it owns this data file.
struct Ownership {
    data: PathBuf,
    address: SocketAddr,
    proven: Mutex<Option<Instant>>,
}

pub struct Server {
    /// Without a slash at its end.
    base: String,
    token: Option<String>,
    signer: Option<Signer>,
    client: reqwest::Client,
    ownership: Option<Ownership>,
}

/// How the server of this very installation is reached.
pub struct OwnTransport<'a> {
    pub is_tls: bool,
    /// The certificates it is trusted by, besides those of the system.
    pub ca: Option<&'a Path>,
}

impl Server {
    /// With `ca`, the certificates of that PEM file are trusted beside those of the system.
    pub fn at(base: &str, token: Option<&str>, ca: Option<&Path>) -> Result<Self, Failure> {
        let base = base.trim_end_matches('/');
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Failure::new(
                Code::InvalidArgument,
                format!("'{base}' is not the address of a server"),
            )
            .hinting("write it as http://127.0.0.1:8088"));
        }
        let authorities = ca.map(authorities).transpose()?.unwrap_or_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_LIMIT)
            .tls_certs_merge(authorities.certificates().iter().cloned())
            .build()
            .map_err(|error| Failure::new(Code::Internal, format!("no HTTP client: {error}")))?;
        let token = token.map(str::to_owned);
        Ok(Self { base: base.to_owned(), token, signer: None, client, ownership: None })
    }

    /// The server that should own this data file. It is told nothing before it has proven that it does.
    pub fn owning(
        data: &Path,
        address: SocketAddr,
        transport: &OwnTransport<'_>,
        token: Option<&str>,
    ) -> Result<Self, Failure> {
        let ownership = Ownership { data: data.to_owned(), address, proven: Mutex::new(None) };
        let scheme = if transport.is_tls { "https" } else { "http" };
        let server = Self::at(&format!("{scheme}://{address}"), token, transport.ca)?;
        Ok(Self { ownership: Some(ownership), ..server })
    }

    /// Lets the server prove that it owns the data file. One that was named need not.
    pub async fn prove(&self, limit: Duration) -> Result<(), Failure> {
        let Some(ownership) = &self.ownership else { return Ok(()) };
        if ownership.proven.lock().is_some_and(|at| at.elapsed() < PROOF_LIFE) {
            return Ok(());
        }
        let stranger = || {
            let text = format!("the process at {} does not own {}", self.base, ownership.data.display());
            Failure::new(Code::Unavailable, text)
                .hinting("nothing was sent to it; name a server with --server URL to ask it all the same")
        };
        // Read each time: a server that was started again has another secret.
        let instance = Instance::of(&ownership.data).filter(|there| there.address == ownership.address);
        let instance = instance.ok_or_else(stranger)?;
        let nonce = instance::fresh();
        // Without the token, which is what this is about.
        let request = self.client.get(format!("{}{}?nonce={nonce}", self.base, instance::PATH));
        let response = request.timeout(limit).send().await.map_err(|error| self.unreachable(&error))?;
        let bytes = self.bytes(response).await?;
        match instance.is_proven_by(&nonce, &read_body(&bytes).unwrap_or_default()) {
            true => {
                *ownership.proven.lock() = Some(Instant::now());
                Ok(())
            }
            false => Err(stranger()),
        }
    }

    /// Signs every request that has an answer of its own.
    #[must_use]
    pub fn signing(self, signer: Option<Signer>) -> Self {
        Self { signer, ..self }
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: Option<&Value>,
    ) -> Result<Reply, Failure> {
        self.send_within(ANSWER_LIMIT, method, path, headers, body).await
    }

    pub async fn send_within(
        &self,
        limit: Duration,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: Option<&Value>,
    ) -> Result<Reply, Failure> {
        self.prove(PROOF_LIMIT).await?;
        let mut request = self.request(method.clone(), path, headers).timeout(limit);
        let body = body.map(Value::to_string);
        if let Some(signer) = &self.signer {
            let signed = body.as_deref().unwrap_or_default().as_bytes();
            request = request.header(SIGNATURE, signer.sign(&method, path, signed)?);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = self.bytes(response).await?;
        Ok(Reply { status, headers, body: read_body(&bytes)? })
    }

    pub async fn events(&self, path: &str, headers: Headers<'_>) -> Result<Events, Failure> {
        self.prove(PROOF_LIMIT).await?;
        let request = self.request(Method::GET, path, headers);
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(refusal(status, &read_body(&self.bytes(response).await?)?));
        }
        let base = self.base.clone();
        let broken = move |error: reqwest::Error| unreachable(&base, &error);
        Ok(Events::new(response.bytes_stream().map(move |piece| piece.map_err(&broken))))
    }

    /// Opens a connection that both sides then write to as they like: the answer to a request to change the protocol.
    pub async fn upgrade(
        &self,
        path: &str,
        headers: Headers<'_>,
    ) -> Result<(HeaderMap, reqwest::Upgraded), Failure> {
        self.prove(PROOF_LIMIT).await?;
        let request = self.request(Method::GET, path, headers);
        let sent = tokio::time::timeout(UPGRADE_LIMIT, request.send()).await;
        let response = match sent {
            Ok(response) => response.map_err(|error| self.unreachable(&error))?,
            Err(_) => {
                return Err(Failure::new(Code::Timeout, format!("{} did not answer in time", self.base)));
            }
        };
        let (status, headers) = (response.status(), response.headers().clone());
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let upgraded = response.upgrade().await.map_err(|error| self.unreachable(&error))?;
            return Ok((headers, upgraded));
        }
        let bytes = self.bytes(response).await?;
        // Not every refusal comes from where answers are JSON.
        Err(refusal(status, &read_body(&bytes).unwrap_or_default()))
    }

    fn request(&self, method: Method, path: &str, headers: Headers<'_>) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn bytes(&self, response: reqwest::Response) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.unreachable(&error))?;
            if bytes.len() + piece.len() > ANSWER_BYTES {
                return Err(too_large());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        unreachable(&self.base, error)
    }
}

fn authorities(file: &Path) -> Result<ExtraAuthorities, Failure> {
    let wrong = |cause: String| {
        Failure::new(
            Code::InvalidArgument,
            format!("{} cannot be read as certificates: {cause}", file.display()),
        )
        .hinting("--ca and ORCHESTR8_CA_FILE name a PEM file with the certificates to trust")
    };
    let text = std::fs::read(file).map_err(|cause| wrong(cause.to_string()))?;
    ExtraAuthorities::parse(&text).map_err(wrong)
}

fn unreachable(base: &str, error: &reqwest::Error) -> Failure {
    if error.is_timeout() && !error.is_connect() {
        return Failure::new(Code::Timeout, format!("{base} did not answer in time"))
            .hinting("what was asked may still happen: look before you ask again, or use --key");
    }
    // The outermost message only repeats the address.
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Failure::new(Code::Unavailable, format!("{base} cannot be reached: {cause}")).hinting(
        "start it with `orchestr8 serve`, correct --server or ORCHESTR8_SERVER, or work here with --embedded",
    )
}
