//! `orchestr8 version`: what this program is.

use orchestr8_mcp::era::{MODERN, Revision};
use serde_json::{Value, json};

use super::Shell;
use crate::failure::Failure;

/// What `version --json` and `/version` say.
pub fn about(server_name: &str, server_version: &str) -> Value {
    json!({
        "name": "orchestr8",
        "version": env!("CARGO_PKG_VERSION"),
        "server": {"name": server_name, "version": server_version},
        "target": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        "protocols": {"mcp": revisions()},
    })
}

/// Every revision of MCP we speak, oldest first.
fn revisions() -> Vec<&'static str> {
    Revision::ALL.iter().map(|revision| revision.as_str()).chain([MODERN]).collect()
}

pub fn run(shell: &Shell) -> Result<(), Failure> {
    if shell.terminal.json {
        let mut about = about("", "");
        if let Value::Object(about) = &mut about {
            about.remove("server");
        }
        shell.terminal.value(&about);
    } else {
        shell.terminal.data(concat!("orchestr8 ", env!("CARGO_PKG_VERSION")));
    }
    Ok(())
}
