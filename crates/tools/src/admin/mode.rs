//! Who may use the tools of admins (seed 000, "Admin Authorization Enforcement"). The messages are the seed's.

use std::sync::Arc;

use orchestr8_contract::{AccessRole, Code, Fault};
use orchestr8_kernel::action::Allow;
use orchestr8_kernel::{Principal, Transport};

/// `tools.adminPolicy.mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nobody.
    DenyAll,
    /// Whoever started the server and talks to it over stdio.
    LocalStdioOnly,
    /// Whoever has a token with the role `admin`; over HTTP only.
    Token,
}

impl Mode {
    pub fn allow(self) -> Allow {
        Arc::new(move |principal, transport| self.check(principal, transport))
    }

    fn check(self, principal: &Principal, transport: Transport) -> Result<(), Fault> {
        match (self, transport) {
            (Mode::DenyAll, _) => refuse("Admin operations are disabled"),
            (Mode::LocalStdioOnly, Transport::Stdio) => Ok(()),
            (Mode::LocalStdioOnly, Transport::Http | Transport::WebSocket | Transport::Internal) => {
                refuse("Admin operations only allowed via stdio")
            }
            (Mode::Token, Transport::Stdio) => refuse("Token mode not supported in v0.1"),
            (Mode::Token, Transport::Http | Transport::WebSocket | Transport::Internal) => {
                match principal.has(AccessRole::Admin) {
                    true => Ok(()),
                    false => refuse("Admin operations need a token with the role admin"),
                }
            }
        }
    }
}

fn refuse(message: &'static str) -> Result<(), Fault> {
    Err(Fault::new(Code::Unauthorized, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(mode: Mode, transport: Transport, roles: &[&str]) -> Option<String> {
        let mut principal = Principal::local();
        principal.roles = roles
            .iter()
            .filter_map(|role| AccessRole::parse(role))
            .fold(principal.roles, |all, role| all.with(role));
        (mode.allow())(&principal, transport).err().map(|fault| {
            assert_eq!(fault.code, Code::Unauthorized);
            fault.message.into_owned()
        })
    }

    #[test]
    fn each_mode_lets_in_whom_the_seed_says() {
        use Transport::{Http, Internal, Stdio, WebSocket};
        for transport in [Stdio, Http, WebSocket, Internal] {
            assert_eq!(
                message(Mode::DenyAll, transport, &["admin"]).unwrap(),
                "Admin operations are disabled"
            );
        }
        assert_eq!(message(Mode::LocalStdioOnly, Stdio, &[]), None);
        for transport in [Http, WebSocket, Internal] {
            let refused = message(Mode::LocalStdioOnly, transport, &["admin"]).unwrap();
            assert_eq!(refused, "Admin operations only allowed via stdio");
        }
        assert_eq!(message(Mode::Token, Stdio, &["admin"]).unwrap(), "Token mode not supported in v0.1");
        assert_eq!(message(Mode::Token, Http, &["admin"]), None);
        assert!(message(Mode::Token, Http, &["reader"]).is_some());
    }
}
