//! The HTTP edge: every HTTP face mounts on it. It owns sockets, time limits, Host and Origin checks and credentials.
//!
//! ```text
//! bind -> serve: accept -> connections (room?) -> connection (TLS, time limits) -> guard (who, from where, how big) -> router
//! ```
//!
//! A face is a plain `axum::Router`. It takes a request in as an [`Arrival`], and answers with what is in [`answer`].

pub mod answer;
mod arrival;
pub mod ask;
mod auth;
pub mod body;
mod connection;
mod connections;
mod correlation;
mod cors;
mod error;
mod failed_logins;
mod goodbye;
mod guard;
pub mod health;
mod hosts;
mod pages;
mod peer_owner;
mod refusal;
pub mod rejections;
mod serve;
pub mod settings;
mod signal;
mod socket;
mod sockets;
mod streams;
pub mod tls;
mod turns;
mod watch;

#[cfg(test)]
mod tests;

pub use arrival::{Arrival, Endpoint, Intake, Params};
pub use auth::{Auth, Caller, LOCAL_NAME, LOCAL_TENANT, Token, check_bind, source};
pub use correlation::{CORRELATION, trace};
pub use error::Error;
pub use failed_logins::{LoginFailure, WrongCredentials};
pub use guard::ScopeRefusal;
pub use health::{Health, mount};
pub use refusal::Refusal;
pub use rejections::{Rejection, RejectionLog, RejectionReason};
pub use serve::{Drained, bind, serve};
pub use settings::{Pages, Settings, Voice};
pub use sockets::SOCKET_PROTOCOL;
pub use tls::{Tls, TlsFiles};
pub use turns::after_others;
