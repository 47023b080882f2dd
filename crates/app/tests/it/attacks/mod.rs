//! Attacks that succeeded once, on every face they apply to. Each must fail for ever.

mod canaries;
mod environment;
mod secrets;
