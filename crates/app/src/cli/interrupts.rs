//! Ctrl-C, as commands hear it that have something to tidy up first.

use orchestr8_contract::Code;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, exit};

/// Ctrl-C and a polite request to end, which from now on do not end the process by themselves.
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Needs a tokio runtime around it.
    pub fn watch() -> Result<Self, Failure> {
        let failed = |cause: std::io::Error| {
            Failure::new(Code::Unavailable, format!("signals cannot be watched: {cause}"))
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Closing the store may take a moment; whoever cannot wait for it is not held up.
    pub fn leave_at_the_next(mut self) {
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(i32::from(exit::INTERRUPTED));
        });
    }
}
