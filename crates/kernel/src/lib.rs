//! The kernel runs actions. It knows no protocol, socket or file. Start reading at `pipeline.rs`.

pub mod ports;
