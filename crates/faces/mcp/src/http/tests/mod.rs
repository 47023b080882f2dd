//! The endpoint over real sockets, behind the real edge, with a client that sees every byte.

mod client;
mod correlation;
mod eras;
mod hostile;
mod lasting;
mod legacy;
mod modern;
mod quotas;
mod resuming;
mod sse;
mod streaming;
mod world;
