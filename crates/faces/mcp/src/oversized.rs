//! Messages that are too long to be kept: the same checks in the same order as for any other message, up to the size
//! (MCP-ORDER-1 to MCP-ORDER-4).

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};

use crate::connection::{Connection, Incoming, Phase, Received};
use crate::face::Outlet;
use crate::request::{Answer, Request};
use crate::skeleton::Skeleton;
use crate::wire::{self, Error, Message};
use crate::{call, methods};

impl Connection {
    /// A message of which only the skeleton was kept. A call is answered as one whose arguments are too large, any other request
    /// as an invalid one; before that comes everything that comes before the size.
    pub fn receive_oversized(self: &Arc<Self>, skeleton: &Skeleton, related: Arc<dyn Outlet>) -> Received {
        if self.phase() == Phase::Closed {
            return Received::Nothing;
        }
        let incoming = Incoming { oversized: Some(skeleton.bytes), ..Incoming::default() };
        match skeleton.finish().map(wire::read) {
            Some(Ok(Message::Request { id, method, params })) => {
                self.serve(id, &method, params, &incoming, &related)
            }
            Some(Ok(Message::Response { id, .. })) => {
                self.asks.answered(id.as_ref(), None, None);
                Received::Nothing
            }
            Some(Ok(Message::Notification { .. })) => Received::Nothing,
            Some(Err(refused)) => Received::Reply(self.refuse(refused.id.as_ref(), &refused.error)),
            Some(Ok(Message::Batch(_))) | None => {
                let error = invalid(&too_large(skeleton.bytes, self.face.settings().message_bytes));
                Received::Reply(self.refuse(None, &error))
            }
        }
    }
}

/// The answer to a request whose message had so many bytes.
pub fn answer(request: &Request<'_>, bytes: usize) -> Answer {
    let fault = too_large(bytes, request.settings().message_bytes);
    match request.method.name == methods::TOOLS_CALL {
        true => call::refuse(request, fault),
        false => Err(invalid(&fault)).into(),
    }
}

fn too_large(bytes: usize, limit: usize) -> Fault {
    Fault::new(Code::ResourceExhausted, format!("the message has {bytes} bytes; the limit is {limit}"))
        .with("reason", "payload_too_large")
        .with("bytes", bytes)
        .with("maxMessageBytes", limit)
}

fn invalid(fault: &Fault) -> Error {
    let error = Error::new(wire::INVALID_REQUEST, format!("Invalid Request: {}", fault.message));
    error.with("code", fault.code.as_str())
}
