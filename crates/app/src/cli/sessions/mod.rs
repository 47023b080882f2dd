//! `orchestr8 sessions`: conversations with an agent; and `sessions --stdio`, which speaks their protocol to a client that
//! starts us.

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_kernel::log::Level;

use super::{Running, Shell};
use crate::failure::Failure;
use crate::runtime::{Purpose, Runtime, WhenHeld, block_on};

#[derive(Args)]
pub struct Sessions {
    /// Speak the session protocol on stdin and stdout: one JSON object a line.
    #[arg(long)]
    stdio: bool,
    #[command(flatten)]
    running: Running,
}

const PURPOSE: Purpose = Purpose { when_held: WhenHeld::Refuse, at_least: Level::Debug, lasting: true };

impl Sessions {
    pub fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self.stdio {
            true => serve(shell, &self.running),
            false => {
                Err(Failure::new(Code::InvalidArgument, "nothing to do")
                    .hinting("orchestr8 sessions --stdio"))
            }
        }
    }
}

fn serve(shell: &Shell, running: &Running) -> Result<(), Failure> {
    let settings = shell.settings(running.flags(), running.mode())?;
    block_on(async {
        let runtime = Runtime::build(settings, PURPOSE)?;
        runtime.begin().await?;
        let face = runtime.sessions_face();
        face.serve_stdio(tokio::io::stdin(), tokio::io::stdout(), runtime.stop.clone()).await;
        runtime.close().await;
        Ok(())
    })
}
