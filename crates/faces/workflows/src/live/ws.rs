//! `WS /ws`: the feed over a WebSocket. The edge has looked at its Origin as at every request's.

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use http::header::UPGRADE;
use http::{HeaderValue, StatusCode};
use orchestr8_kernel::Transport;

use super::feed::{Feed, Interest};
use super::session;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::settings::FRAME_BYTES;

/// The longest id of an execution.
const ID_BYTES: usize = 256;

/// What may wait to be written on one connection: a page of events and its close.
const WRITE_BYTES: usize = 2 * 1024 * 1024;

pub(crate) async fn socket(mut call: Call) -> Outcome {
    let query = call.query(&["executionId", "lastEventId"])?;
    let interest = Interest::of(query.bounded("executionId", ID_BYTES)?);
    let after = query.number("lastEventId", 0..=i64::MAX.unsigned_abs())?;
    let upgrade = WebSocketUpgrade::from_request_parts(&mut call.parts, &()).await.map_err(|_| {
        Failure::invalid("Upgrade", "this path speaks WebSocket; events over plain HTTP are at /v1/events")
            .status(StatusCode::UPGRADE_REQUIRED)
            .header(UPGRADE, HeaderValue::from_static("websocket"))
    })?;
    let feed = Feed::begin(
        call.face.clone(),
        call.principal.clone(),
        call.correlation.clone(),
        Transport::WebSocket,
        interest,
        after,
    )
    .await?;
    let face = call.face.clone();
    Ok(upgrade
        .protocols([orchestr8_edge::SOCKET_PROTOCOL])
        .max_message_size(FRAME_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_write_buffer_size(WRITE_BYTES)
        .on_upgrade(move |socket| session::run(socket, face, feed)))
}
