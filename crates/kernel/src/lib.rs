//! The kernel runs actions. It knows no protocol, socket or file. Start reading at `pipeline.rs`.

pub mod action;
pub mod audit;
mod authorize;
pub mod bus;
pub mod cancel;
pub mod context;
mod depends;
pub mod fingerprint;
pub mod health;
mod journal;
pub mod kernel;
mod lanes;
pub mod ledger;
pub mod log;
pub mod outcome;
pub mod peer;
pub mod pipeline;
pub mod ports;
pub mod redact;
pub mod registry;
mod reply;
pub mod resilience;
mod run;
pub mod schema;
mod settle;
pub mod slots;
pub mod submission;
pub mod tables;
mod versions;

pub use action::{Action, Halt, Policy, Reply};
pub use cancel::{Cancel, Why};
pub use context::Context;
pub use kernel::{Kernel, Limits, Ports, Started};
pub use log::Log;
pub use outcome::{End, Settled};
pub use submission::{Args, Principal, Submission, Transport};
