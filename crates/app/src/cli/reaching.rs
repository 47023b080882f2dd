//! What commands about workflows have in common: whom they ask, and what they may do to the store.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Running, Shell, WhenUntrusted};
use crate::failure::Failure;
use crate::reach::{self, KEY_FILE, Reach, Signer, Where};
use crate::runtime::block_on;

pub use crate::reach::Intent;

#[derive(Args, Clone, Default)]
pub struct Reaching {
    /// Ask this server [default: $ORCHESTR8_SERVER, else the one that owns the data, else this process does it].
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Work in this process on the embedded store, even if a server runs.
    #[arg(long, conflicts_with = "server")]
    pub embedded: bool,
    /// Trust the certificates in this PEM file too when calling a server over HTTPS [default: $ORCHESTR8_CA_FILE].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    #[command(flatten)]
    pub running: Running,
}

/// The file with the secret key: what a flag says, else the environment.
pub fn key_file(given: Option<&Path>, shell: &Shell) -> Option<PathBuf> {
    let named = shell.environment.get(KEY_FILE).filter(|file| !file.is_empty());
    given.map(Path::to_owned).or_else(|| named.map(PathBuf::from))
}

impl Reaching {
    /// Finds whom to ask, does the work, and lets go of the store in order.
    pub fn run<T>(
        &self,
        shell: &Shell,
        intent: Intent,
        work: impl AsyncFnOnce(&Reach) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.run_signed(shell, intent, None, work)
    }

    /// The same with a key, for servers that ask for signatures.
    pub fn run_signed<T>(
        &self,
        shell: &Shell,
        intent: Intent,
        signer: Option<Signer>,
        work: impl AsyncFnOnce(&Reach) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let whom = self.whom(shell);
        let when = match intent {
            Intent::Record | Intent::Sessions => WhenUntrusted::GoOn,
            // A server that was named has settings of its own.
            Intent::Execute | Intent::Converse if whom.server.is_some() => WhenUntrusted::GoOn,
            Intent::Execute | Intent::Converse => WhenUntrusted::KeepProtection,
        };
        let settings = shell.settings_for("this command", self.running.flags(), self.running.mode(), when)?;
        block_on(async {
            let reach = reach::find(whom, settings, intent).await?.signing(signer);
            let done = work(&reach).await;
            reach.close().await;
            done
        })
    }

    fn whom(&self, shell: &Shell) -> Where {
        let named = shell.environment.get("ORCHESTR8_SERVER").filter(|url| !url.is_empty());
        // A flag that asks for this process or for certain data says more than the environment.
        let here = self.embedded || self.running.ephemeral || self.running.data_dir.is_some();
        Where {
            server: self.server.clone().or_else(|| named.filter(|_| !here).map(str::to_owned)),
            token: shell
                .environment
                .get("ORCHESTR8_TOKEN")
                .filter(|token| !token.is_empty())
                .map(str::to_owned),
            ca: self.ca.clone().or_else(|| shell.environment.path("ORCHESTR8_CA_FILE")),
            embedded: self.embedded,
            data_named: self.running.data_dir.is_some(),
            terminal: shell.terminal,
        }
    }
}
