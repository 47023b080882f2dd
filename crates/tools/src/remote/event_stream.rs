//! The HTTP transport of revision 2024-11-05, for servers that know no other: messages come as events of one stream, and go to
//! an address that its first event names.
//!
//! It becomes a pair of pipes, as a child has them, so that everything behind it is the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use orchestr8_kernel::ports::Clock;
use reqwest::{RequestBuilder, Url};
use rmcp::service::ClientInitializeError;
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE};
use serde_json::{Value, json};
use sse_stream::Sse;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::http::{Client, Error};

/// The event that names the address for messages.
const ENDPOINT: &str = "endpoint";

/// How long that event may take.
const ENDPOINT_MS: u64 = 10_000;

/// What waits between us and the library.
const PIPE_BYTES: usize = 65_536;

/// Whether a server refused the handshake in a way that says that it may be so old, as the specification has it.
pub fn may_be_older(refused: &ClientInitializeError) -> bool {
    const STATUSES: [StatusCode; 3] =
        [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
    let ClientInitializeError::TransportError { error, .. } = refused else { return false };
    matches!(Error::inside(&*error.error), Some(Error::Refused(refusal)) if STATUSES.contains(&refusal.status))
}

/// Opens the stream of a server. None: it is no such server.
pub async fn open(
    client: Client,
    url: &str,
    headers: &BTreeMap<String, String>,
    clock: Arc<dyn Clock>,
) -> Option<DuplexStream> {
    let base = Url::parse(url).ok()?;
    let request = dress(client.get(base.clone()), headers).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
    let first = async {
        let response = request.send().await.ok().filter(|response| response.status().is_success())?;
        let mut events = client.events_of(response)?;
        let event = events.next().await?.ok()?;
        let is_endpoint = event.event.as_deref() == Some(ENDPOINT);
        let address = base.join(event.data.as_deref().filter(|_| is_endpoint)?.trim()).ok()?;
        // Anywhere else our credentials would go to another server.
        (address.origin() == base.origin()).then_some((events, address))
    };
    let (events, address) = tokio::select! {
        biased;
        opened = first => opened?,
        () = clock.sleep(Duration::from_millis(ENDPOINT_MS)) => return None,
    };
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let bridge = Bridge { client, address, headers: headers.clone() };
    tokio::spawn(bridge.run(events, theirs));
    Some(ours)
}

fn dress(request: RequestBuilder, headers: &BTreeMap<String, String>) -> RequestBuilder {
    headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// Carries messages between the pipes and the server.
struct Bridge {
    client: Client,
    address: Url,
    headers: BTreeMap<String, String>,
}

impl Bridge {
    /// Runs until the stream of the server ends or the other end of the pipes is closed; either ends the connection.
    async fn run<E>(self, mut events: BoxStream<'static, Result<Sse, E>>, pipe: DuplexStream) {
        let (reader, mut writer) = tokio::io::split(pipe);
        let mut lines = BufReader::new(reader).lines();
        loop {
            let heard = tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => event.data,
                    Some(Err(_)) | None => return,
                },
                line = lines.next_line() => match line {
                    Ok(Some(line)) => self.send(line).await,
                    Ok(None) | Err(_) => return,
                },
            };
            let Some(mut message) = heard else { continue };
            message.retain(|letter| !matches!(letter, '\n' | '\r'));
            message.push('\n');
            if writer.write_all(message.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// Sends a message. A request that the server does not take is answered with that.
    async fn send(&self, line: String) -> Option<String> {
        let id = serde_json::from_str::<Value>(&line).ok().and_then(|message| message.get("id").cloned());
        let request = dress(self.client.post(self.address.clone()), &self.headers);
        let refused = match request.header(CONTENT_TYPE, JSON_MIME_TYPE).body(line).send().await {
            Ok(response) if response.status().is_success() => return None,
            Ok(response) => format!("the server answered {}", response.status()),
            Err(error) => format!("the server cannot be reached: {error}"),
        };
        let error = json!({"code": -32603, "message": refused});
        id.map(|id| json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
    }
}
