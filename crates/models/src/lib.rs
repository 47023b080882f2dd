//! Language models behind one small trait. Start reading at `model.rs`.

pub mod catalog;
pub mod limits;
pub mod message;
pub mod model;
pub mod offline;
pub mod secret;
pub mod tokens;

pub use catalog::{Catalog, Ports, Settings};
pub use message::{Assistant, BashExecution, Block, Message, StopReason, ToolResult, Usage, User};
pub use model::{About, Delta, Model, Price, Request, Thinking, Tool};
pub use secret::Secret;
