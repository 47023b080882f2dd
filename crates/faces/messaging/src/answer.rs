//! Answers as HTTP responses.

pub(crate) use orchestr8_edge::answer::{correlate, json};
