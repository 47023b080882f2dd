//! What commands about workflows have in common: whom they ask, and what they may do to the store.

use clap::Args;

use super::{Running, Shell};
use crate::failure::Failure;
use crate::reach::{self, Reach, Where};
use crate::runtime::block_on;

pub use crate::reach::Intent;

#[derive(Args, Clone, Default)]
pub struct Reaching {
    /// Ask this server [default: $ORCHESTR8_SERVER, else the one that runs here, else this process does it].
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Work in this process on the embedded store, even if a server runs.
    #[arg(long, conflicts_with = "server")]
    pub embedded: bool,
    #[command(flatten)]
    pub running: Running,
}

impl Reaching {
    /// Finds whom to ask, does the work, and lets go of the store in order.
    pub fn run<T>(
        &self,
        shell: &Shell,
        intent: Intent,
        work: impl AsyncFnOnce(&Reach) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let settings = shell.settings(self.running.flags(), self.running.mode())?;
        let whom = self.whom(shell);
        block_on(async {
            let reach = reach::find(whom, settings, intent).await?;
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
            embedded: self.embedded,
            data_named: self.running.data_dir.is_some(),
        }
    }
}
