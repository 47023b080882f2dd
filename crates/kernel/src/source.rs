//! The source of a submission: through which face it came, and from where. It is part of every audit entry.

use std::fmt;
use std::net::IpAddr;

/// Where a submission comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The face that took it in, such as `mcp` or `workflows`; `kernel` for what the program itself begins.
    pub face: &'static str,
    pub origin: Origin,
}

/// The other end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The address of the peer. Behind a proxy it is the proxy's.
    Address(IpAddr),
    Stdio,
    /// A command that runs the kernel in its own process.
    Cli,
    /// The server itself: schedules, timers, retention, agents inside the process.
    Server,
}

impl Source {
    /// The program itself.
    pub const SERVER: Source = Source { face: "kernel", origin: Origin::Server };

    /// A request of a face over HTTP; without an address it was made inside the process of a command.
    pub fn request(face: &'static str, address: Option<IpAddr>) -> Self {
        Self { face, origin: address.map_or(Origin::Cli, Origin::Address) }
    }

    pub fn stdio(face: &'static str) -> Self {
        Self { face, origin: Origin::Stdio }
    }

    pub fn cli() -> Self {
        Self { face: "cli", origin: Origin::Cli }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // An IPv4 client of a socket that listens on IPv6 is shown as what it is.
            Origin::Address(address) => address.to_canonical().fmt(out),
            Origin::Stdio => out.write_str("stdio"),
            Origin::Cli => out.write_str("cli"),
            Origin::Server => out.write_str("server"),
        }
    }
}
