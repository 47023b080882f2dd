//! One file per small group of endpoints.

pub(crate) mod actions;
pub(crate) mod artifacts;
pub(crate) mod documents;
pub(crate) mod program;
pub(crate) mod requests;
pub(crate) mod webhooks;
