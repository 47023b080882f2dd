//! Attacks that were made on a running server; each must fail.

mod quotas;
mod tls;
mod tokens;
