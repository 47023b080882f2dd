//! Why the edge does not start. Once it runs, nothing a client does ends it.

use std::io;
use std::net::SocketAddr;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("refusing to listen on {addr}: it is not a loopback address and no credentials are configured")]
    OpenBind { addr: SocketAddr },
    #[error("the sha256 of token `{name}` is not 64 hexadecimal digits")]
    Token { name: String },
    #[error("allowed host `{value}` is not a name or name:port")]
    Host { value: String },
    #[error("allowed origin `{value}` is not scheme://host or scheme://host:port")]
    Origin { value: String },
    #[error("{name} is 0, which would refuse every client")]
    Zero { name: &'static str },
    #[error("cannot listen on {addr}: {cause}")]
    Listen { addr: SocketAddr, cause: io::Error },
    #[error("the listener has no address: {0}")]
    Listener(io::Error),
}

impl Error {
    /// What the person who started us can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OpenBind { .. } => {
                "create a token with `orchestr8 tokens create --name NAME --role owner`, so that every caller must show one; or listen on 127.0.0.1 or [::1]"
            }
            Self::Token { .. } => {
                "put the output of `printf %s \"$TOKEN\" | sha256sum` there, without the trailing dash"
            }
            Self::Host { .. } => {
                "write it as clients do in their Host header, for example api.example.org or api.example.org:8443"
            }
            Self::Origin { .. } => {
                "write it as browsers do in their Origin header, for example https://app.example.org"
            }
            Self::Zero { .. } => "give a positive number, or leave it out for the default",
            Self::Listen { cause, .. } => match cause.kind() {
                io::ErrorKind::AddrInUse => {
                    "another process has that port: stop it, or choose another port (0 takes any free one)"
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege: choose a higher one",
                io::ErrorKind::AddrNotAvailable => "no network interface of this machine has that address",
                _ => "check the address and the network",
            },
            Self::Listener(_) => "bind the listener before serving on it",
        }
    }
}
