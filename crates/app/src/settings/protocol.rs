//! What the settings of MCP mean: its eras, and who may register tools at run time.

use orchestr8_mcp::Eras;
use orchestr8_tools::AdminMode;

use crate::config::{self, Config};

pub fn eras(config: &config::Protocol) -> Eras {
    Eras {
        legacy: config.eras.contains(&config::Era::Legacy),
        modern: config.eras.contains(&config::Era::Modern),
    }
}

/// Who may register tools at run time; none unless both switches are on.
pub fn admin(config: &Config) -> Option<AdminMode> {
    let is_on = config.tools.admin_registration_enabled && config.security.dynamic_registration_enabled;
    is_on.then(|| admin_mode(config.tools.admin_policy.mode))
}

fn admin_mode(mode: config::AdminMode) -> AdminMode {
    match mode {
        config::AdminMode::DenyAll => AdminMode::DenyAll,
        config::AdminMode::LocalStdioOnly => AdminMode::LocalStdioOnly,
        config::AdminMode::Token => AdminMode::Token,
    }
}
