//! Live: the same events as server-sent events and over WebSocket, resumable by id (contract: Live).

mod feed;
mod message;
mod session;
mod sse;
mod ws;

pub(crate) use sse::events;
pub(crate) use ws::socket;
