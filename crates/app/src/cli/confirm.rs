//! Asks before something is destroyed: on a terminal with a question, elsewhere only with `--yes`.

use orchestr8_contract::Code;

use super::Shell;
use crate::failure::Failure;

/// Ok to go on. `plan` says what will happen.
pub fn confirm(shell: &Shell, yes: bool, plan: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !shell.terminal.can_ask() {
        return Err(Failure::new(Code::InvalidArgument, format!("{plan}: this needs --yes"))
            .hinting("there is no terminal to ask on; nothing was changed"));
    }
    match shell.terminal.ask(&format!("{plan}. Go on?")) {
        true => Ok(()),
        false => Err(Failure::new(Code::Cancelled, "nothing was changed").hinting("say y, or give --yes")),
    }
}
