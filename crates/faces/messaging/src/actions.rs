//! The names of the actions this face submits; what they take and give is the domain's.

pub const SEND: &str = "aacp.send";
pub const MESSAGE: &str = "aacp.message";
pub const REQUEST: &str = "aacp.request_status";
pub const REQUESTS: &str = "aacp.requests";
pub const PAIRS: &str = "aacp.pairs";
pub const PURGE: &str = "aacp.purge_expired";
pub const INBOX: &str = "aacp.inbox";
pub const ACK: &str = "aacp.ack";
pub const REGISTER: &str = "agents.register";
pub const UNREGISTER: &str = "agents.unregister";
pub const HEARTBEAT: &str = "agents.heartbeat";
pub const AGENTS: &str = "agents.list";

/// The news of a message that has its place in an inbox.
pub(crate) const PLACED: &str = "aacp.message_placed";
