//! What commands do once they have made an execution go on: show it to its end, or leave it to the server.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::Shell;
use super::follow::{Follow, conclude};
use super::words::{read_duration, text};
use crate::failure::{Failure, exit};
use crate::reach::Reach;

#[derive(Args, Clone, Default)]
pub struct Going {
    /// Do not wait for the end.
    #[arg(long, short)]
    pub detach: bool,
    /// Wait at most this long, such as 30s or 5m; the execution is not stopped by it.
    #[arg(long, value_name = "TIME", value_parser = read_duration)]
    pub timeout: Option<Duration>,
}

impl Going {
    /// Shows the execution to its end and tells how it ended; or says that it goes on. `after` is how far its journal had come
    /// before it was told what it was told.
    pub async fn go_on(
        &self,
        shell: &Shell,
        reach: &Reach,
        id: &str,
        answer: &Value,
        after: u64,
    ) -> Result<u8, Failure> {
        if !self.detach {
            let followed = Follow { shell, reach, limit: self.timeout, after }.to_the_end(id).await?;
            return Ok(conclude(shell, reach, &followed));
        }
        match shell.terminal.json {
            true => shell.terminal.value(answer),
            false => shell.terminal.data(id),
        }
        let status = text(answer, "status");
        shell.terminal.note(&match reach.is_embedded() {
            true => format!("it is stored; without a server it goes on with orchestr8 resume {id}"),
            false => format!("it is {status}; see it with orchestr8 inspect {id}"),
        });
        Ok(exit::OK)
    }
}
