//! Sends heads to a witness, and asks it for those it remembers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use orchestr8_outbound::{Client, ExtraAuthorities};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::json;

use crate::head::TreeHead;
use crate::head_file::HeadLine;
use crate::key::LogPublicKey;
use crate::limits;
use crate::witness::prover::LogProver;

/// The token that a witness knows this server by. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct WitnessToken(Arc<str>);

impl WitnessToken {
    pub fn new(token: &str) -> Self {
        Self(token.trim().into())
    }
}

impl fmt::Debug for WitnessToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("WitnessToken(..)")
    }
}

/// Another orchestr8 server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Its address, without a path.
    pub url: Url,
    pub token: Option<WitnessToken>,
    /// Who may have signed its certificate, beside the authorities of the system.
    pub authorities: ExtraAuthorities,
}

/// Why a witness did not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WitnessProblem {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it answered {0}")]
    Answer(String),
    /// It remembers a head that the one that was sent contradicts.
    #[error("it refuses the head: {0}")]
    Conflict(String),
    /// It asks for a proof that cannot be given.
    #[error(
        "it remembers `{0}`, and what proves that the log has grown from it was deleted; see `witness forget`"
    )]
    Unprovable(String),
    /// It shows a head of our log that our key has not signed.
    #[error("it shows a head that is not ours: {0}")]
    Forged(String),
}

#[derive(Deserialize)]
struct Shown {
    heads: Vec<ShownHead>,
}

#[derive(Deserialize)]
struct ShownHead {
    note: String,
}

impl fmt::Display for Witness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "witness {}://{}", self.url.scheme(), self.url.host_str().unwrap_or_default())?;
        self.url.port().map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

impl Witness {
    /// A client that reaches it.
    pub fn client(&self) -> Client {
        Client::trusting(self.authorities.clone())
    }

    /// Sends a line of heads, each with the proof that its log has grown from what the witness remembers. `remembered` has the sizes
    /// that are known to be; of others the witness says from which size it wants a proof.
    pub async fn submit(
        &self,
        client: &Client,
        line: &str,
        logs: &LogProver,
        remembered: &mut BTreeMap<String, u64>,
    ) -> Result<(), WitnessProblem> {
        let line: HeadLine =
            serde_json::from_str(line).map_err(|cause| WitnessProblem::Answer(cause.to_string()))?;
        let heads = logs.open(&line)?;
        let client = client.get().map_err(|fault| WitnessProblem::Unreachable(fault.message.into()))?;
        // At worst it asks for the proof of one log after the other.
        for _ in 0..=heads.len() {
            let proofs = logs.prove_all(&heads, remembered).await?;
            let mut body = json!({"key": logs.key.to_string(), "heads": line.heads});
            if !proofs.is_empty() {
                body["proofs"] = proofs.into();
            }
            let request = client.post(self.heads_url()).header("content-type", "application/json");
            let (status, text) = self.send(request.body(body.to_string()), limits::ANCHOR_TIMEOUT).await?;
            match status {
                status if status.is_success() => {
                    let sizes = heads.iter().map(|head| (head.origin.clone(), head.size));
                    remembered.extend(sizes.filter(|(_, size)| *size > 0));
                    return Ok(());
                }
                StatusCode::CONFLICT => match wanted_proof(&text) {
                    Some((origin, from)) => remembered.insert(origin, from),
                    None => return Err(WitnessProblem::Conflict(said(&text))),
                },
                status => return Err(WitnessProblem::Answer(format!("{status} {}", said(&text)))),
            };
        }
        Err(WitnessProblem::Answer(String::from("that it wants a proof, again and again")))
    }

    /// The heads of one log that the witness remembers, the newest first. Each is verified with our own key: a witness cannot make
    /// one up.
    pub async fn heads(
        &self,
        client: &Client,
        origin: &str,
        key: &LogPublicKey,
    ) -> Result<Vec<TreeHead>, WitnessProblem> {
        let client = client.get().map_err(|fault| WitnessProblem::Unreachable(fault.message.into()))?;
        let mut url = self.heads_url();
        url.query_pairs_mut().append_pair("origin", origin);
        let (status, text) = self.send(client.get(url), limits::WITNESS_ASK_TIMEOUT).await?;
        if !status.is_success() {
            return Err(WitnessProblem::Answer(format!("{status} {}", said(&text))));
        }
        let shown: Shown = serde_json::from_str(&text)
            .map_err(|_| WitnessProblem::Answer(String::from("no list of heads")))?;
        let open = |shown: &ShownHead| match TreeHead::open(&shown.note, key) {
            Ok(head) if head.origin == origin => Ok(head),
            Ok(head) => Err(WitnessProblem::Forged(format!("it is of another log: {}", head.origin))),
            Err(cause) => Err(WitnessProblem::Forged(cause.to_string())),
        };
        shown.heads.iter().map(open).collect()
    }

    fn heads_url(&self) -> Url {
        let mut url = self.url.clone();
        url.set_path("/v1/witness/heads");
        url.set_query(None);
        url
    }

    async fn send(
        &self,
        mut request: reqwest::RequestBuilder,
        limit: Duration,
    ) -> Result<(StatusCode, String), WitnessProblem> {
        let unreachable =
            |cause: reqwest::Error| WitnessProblem::Unreachable(cause.without_url().to_string());
        if let Some(WitnessToken(token)) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.timeout(limit).send().await.map_err(unreachable)?;
        let status = response.status();
        let mut pieces = response.bytes_stream();
        let mut body = Vec::new();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(unreachable)?);
            if body.len() > limits::WITNESS_ANSWER_BYTES {
                return Err(WitnessProblem::Answer(String::from("with more than a list of heads has")));
            }
        }
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// The log that a refusal wants a consistency proof of, and from which size on.
fn wanted_proof(text: &str) -> Option<(String, u64)> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let details = &value["error"]["details"];
    let is_wanted = details["reason"] == super::actions::UNPROVEN;
    let origin = details["origin"].as_str().filter(|_| is_wanted)?;
    Some((origin.to_owned(), details["from"].as_u64()?))
}

/// What an error says, shortened.
fn said(text: &str) -> String {
    const CHARACTERS: usize = 300;
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let message = value["error"]["message"].as_str().or(value["message"].as_str()).unwrap_or_default();
    message.chars().take(CHARACTERS).collect()
}
