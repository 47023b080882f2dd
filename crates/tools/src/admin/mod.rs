//! The tools of admins: registering tools at run time, and taking them away again (seed 000, "Administrative Operations").
//!
//! A tool registered this way is a definition only: what it does is one of a few kinds the server knows. Such tools live in
//! memory and are gone after a restart.

mod kind;
mod mode;
mod register_tool;
mod unregister_tool;

use std::sync::Arc;

use orchestr8_kernel::{Action, schema};
use parking_lot::Mutex;

pub use mode::Mode;

use crate::Settings;

/// What the two tools share. The lock makes "look, then change" one step.
struct Desk {
    settings: Settings,
    changing: Mutex<()>,
}

/// The tools of admins, for servers where both flags are on.
pub fn all(mode: Mode, settings: &Settings) -> Result<Vec<Action>, schema::Error> {
    let desk = Arc::new(Desk { settings: settings.clone(), changing: Mutex::new(()) });
    Ok(vec![
        register_tool::action(desk.clone())?.allowing(mode.allow()),
        unregister_tool::action(desk)?.allowing(mode.allow()),
    ])
}
