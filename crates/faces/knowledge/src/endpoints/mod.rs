//! One file per small group of endpoints.

pub(crate) mod actions;
pub(crate) mod admin;
pub(crate) mod artifacts;
pub(crate) mod documents;
pub(crate) mod program;
pub(crate) mod publish;
pub(crate) mod replies;
pub(crate) mod requests;
pub(crate) mod webhooks;
