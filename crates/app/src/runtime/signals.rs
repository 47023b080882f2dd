//! When to stop: the first signal asks for a graceful end, the second gets an end at once. With a certificate to reload, SIGHUP
//! does that instead.

use std::sync::Arc;

use orchestr8_kernel::Log;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::countdown::Countdown;
use crate::failure::exit;

/// Fires the token at the first SIGINT, SIGTERM or SIGHUP; ends the process at the second. With `reload`, SIGHUP only tells that.
///
/// Needs a tokio runtime around it. From this call on the signals no longer end the process by themselves.
pub fn watch(
    stop: &CancellationToken,
    countdown: &Countdown,
    reload: Option<Arc<Notify>>,
    log: &Log,
) -> std::io::Result<()> {
    let mut signals = Signals {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
        hang_up: signal(SignalKind::hangup())?,
        reload,
    };
    let (stop, countdown, log) = (stop.clone(), countdown.clone(), log.clone());
    tokio::spawn(async move {
        let name = signals.next().await;
        log.info("stopping", json!({"signal": name}));
        countdown.begin();
        stop.cancel();
        signals.next().await;
        std::process::exit(i32::from(exit::INTERRUPTED));
    });
    Ok(())
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    reload: Option<Arc<Notify>>,
}

impl Signals {
    async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.hang_up.recv() => match &self.reload {
                    Some(reload) => reload.notify_one(),
                    None => return "SIGHUP",
                },
            }
        }
    }
}
