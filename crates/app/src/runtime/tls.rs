//! The certificate of the server: loaded at start-up, and again when its files change or on SIGHUP.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_edge::tls::TLS_RELOAD_INTERVAL;
use orchestr8_edge::{Tls, TlsFiles, tls};
use orchestr8_kernel::Log;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

pub fn load(files: TlsFiles) -> Result<Tls, Failure> {
    Tls::load(files).map_err(|error| {
        let hint = match &error {
            tls::Error::File { .. } => {
                "http.tls.cert and http.tls.key name PEM files that this user can read"
            }
            tls::Error::Pair { .. } => {
                "put the key of this very certificate there, and the certificate of the server first"
            }
            tls::Error::Setup(_) => "this is a defect; please report it",
        };
        Failure::new(Code::Configuration, error.to_string()).hinting(hint)
    })
}

/// Connections that are open go on with the certificate they have.
pub async fn keep_fresh(tls: Tls, reload: Arc<Notify>, log: Log, stop: CancellationToken) {
    loop {
        let asked = tokio::select! {
            () = stop.cancelled() => return,
            () = reload.notified() => true,
            () = tokio::time::sleep(TLS_RELOAD_INTERVAL) => false,
        };
        if !asked && !tls.has_changed() {
            continue;
        }
        match tls.reload() {
            Ok(()) => log.info("the certificate was reloaded", ()),
            Err(error) => log.error(
                "the new certificate cannot be used; the old one stays in use",
                json!({"cause": error.to_string()}),
            ),
        }
    }
}
