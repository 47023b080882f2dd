//! Language models and embedders behind two small traits. Start reading at `model.rs` and `embedders/mod.rs`.

mod anthropic;
pub mod catalog;
mod draft;
pub mod embedders;
#[cfg(test)]
mod fixtures;
mod history;
mod key_mask;
pub mod limits;
pub mod message;
pub mod model;
mod names;
pub mod offline;
mod openai;
mod refusal;
mod remote;
pub mod secret;
pub mod settings;
mod sse;
pub mod tokens;
mod wire;

pub use catalog::{Catalog, Ports};
pub use message::{Assistant, BashExecution, Block, Message, StopReason, ToolResult, Usage, User};
pub use model::{About, Delta, Model, Price, Request, Thinking, Tool};
pub use secret::Secret;
pub use settings::{Entry, Key, Kind, Provider, Settings};
pub use wire::Reasoning;
