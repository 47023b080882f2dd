//! The limits of this crate, each with its reason.

/// Messages that wait for one agent; beyond it senders are told to come back, so that a slow agent cannot eat the memory.
pub const MAILBOX_MESSAGES: usize = 256;

/// Agents registered at once; each costs a task and a mailbox.
pub const AGENTS: usize = 10_000;

/// Names in the state of one agent.
pub const STATE_ENTRIES: usize = 10_000;

/// Agents in one answer of `agent.list`; a longer list is cut and says so.
pub const LISTED_AGENTS: usize = 1_000;

/// Names in the news of one state change; a longer list is cut.
pub const TOLD_NAMES: usize = 100;
