//! A WebSocket to a running server, opened with the same client, token and limits as every other request to it.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use orchestr8_contract::Code;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::line::{End, Line, read};
use crate::failure::Failure;
use crate::reach::Server;

const PATH: &str = "/ws/session";

/// A message larger than this is not read.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// A server asks every 30 seconds whether we are there. One that is silent for longer than twice that is gone.
const SILENCE_LIMIT: Duration = Duration::from_secs(75);

/// A server says goodbye within this, or is left without.
const GOODBYE_LIMIT: Duration = Duration::from_secs(2);

/// A write is taken within this.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<reqwest::Upgraded>;

/// Why a socket ended, for whoever listens.
struct Lost(String);

pub async fn open(server: &Server) -> Result<Line, Failure> {
    let key = generate_key();
    let wanted = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", key.as_str()),
    ];
    let (headers, upgraded) = server.upgrade(PATH, &wanted).await?;
    let accept = headers.get("sec-websocket-accept").and_then(|value| value.to_str().ok());
    if accept != Some(derive_accept_key(key.as_bytes()).as_str()) {
        let text = format!("{} does not speak WebSocket at {PATH}", server.base());
        return Err(Failure::new(Code::Unavailable, text).hinting("correct --server or ORCHESTR8_SERVER"));
    }
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES)).max_frame_size(Some(MESSAGE_BYTES));
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    let base = server.base().to_owned();
    Ok(Line::new(|end| carry(socket, end, base)))
}

async fn carry(mut socket: Socket, end: End, base: String) {
    let End { mut outgoing, incoming } = end;
    let lost = loop {
        tokio::select! {
            text = outgoing.recv() => match text {
                Some(text) => match timeout(WRITE_LIMIT, socket.send(Message::text(text))).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => break Lost(error.to_string()),
                    Err(_) => break Lost(String::from("it takes nothing any more")),
                },
                None => return goodbye(socket).await,
            },
            heard = timeout(SILENCE_LIMIT, socket.next()) => match hear(heard) {
                Ok(Some(text)) => if let Some(message) = read(&text) && incoming.send(message).await.is_err() {
                    return goodbye(socket).await;
                },
                Ok(None) => {}
                Err(lost) => break lost,
            },
        }
    };
    let failure = Failure::new(Code::Unavailable, format!("the connection to {base} was lost: {}", lost.0))
        .hinting("what was asked may have happened: look with orchestr8 sessions show");
    let _ = incoming.send(Err(failure)).await;
}

type Heard =
    Result<Option<Result<Message, tokio_tungstenite::tungstenite::Error>>, tokio::time::error::Elapsed>;

/// A text, or something that is answered by the socket itself.
fn hear(heard: Heard) -> Result<Option<String>, Lost> {
    match heard {
        Err(_) => Err(Lost(String::from("it is silent"))),
        Ok(None) => Err(Lost(String::from("it was closed"))),
        Ok(Some(Err(error))) => Err(Lost(error.to_string())),
        Ok(Some(Ok(Message::Text(text)))) => Ok(Some(text.as_str().to_owned())),
        Ok(Some(Ok(Message::Close(frame)))) => Err(Lost(reason(frame))),
        Ok(Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)))) => {
            Ok(None)
        }
    }
}

fn reason(frame: Option<CloseFrame>) -> String {
    match frame {
        Some(frame) if !frame.reason.is_empty() => frame.reason.as_str().to_owned(),
        Some(frame) => format!("closed with {}", frame.code),
        None => String::from("it was closed"),
    }
}

async fn goodbye(mut socket: Socket) {
    let last = async {
        if socket.close(None).await.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    };
    // Nobody is left who could be told that it did not answer.
    let _ = timeout(GOODBYE_LIMIT, last).await;
}
