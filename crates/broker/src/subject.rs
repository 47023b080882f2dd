//! What messages are about: `a2a.<tenant>.<action>`, and `a2a.<tenant>.reply.<inbox>` for their answers.

use std::fmt;

use orchestr8_contract::id::{ActionName, Tenant};

use crate::limits::INBOX_CHARS;

const ROOT: &str = "a2a";
const REPLY: &str = "reply";

/// A well-formed subject of one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject(String);

/// Why a text is no subject that can be answered to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong(pub String);

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Subject {
    pub fn of_action(tenant: &Tenant, action: &ActionName) -> Self {
        Self(format!("{ROOT}.{tenant}.{action}"))
    }

    pub fn of_inbox(tenant: &Tenant, inbox: &str) -> Result<Self, Wrong> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
        match (1..=INBOX_CHARS).contains(&inbox.len()) && inbox.chars().all(fits) {
            true => Ok(Self(format!("{ROOT}.{tenant}.{REPLY}.{inbox}"))),
            false => Err(Wrong(format!("an inbox is 1 to {INBOX_CHARS} of A-Z a-z 0-9 _ . -"))),
        }
    }

    /// Where a tenant wants to be answered. Nobody is answered in another's inbox, nor where an answer would be work again.
    pub fn reply(tenant: &Tenant, text: &str) -> Result<Self, Wrong> {
        let prefix = format!("{ROOT}.{tenant}.{REPLY}.");
        match text.strip_prefix(&prefix) {
            Some(inbox) => Self::of_inbox(tenant, inbox),
            None => Err(Wrong(format!("it must be {prefix}<inbox>"))),
        }
    }

    /// One that we wrote down ourselves.
    pub(crate) fn stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_goes_to_an_inbox_of_its_own_tenant_and_to_nothing_else() {
        let acme = Tenant::parse("acme").unwrap();
        let action = ActionName::parse("knowledge.create_document").unwrap();
        assert_eq!(Subject::of_action(&acme, &action).as_str(), "a2a.acme.knowledge.create_document");
        assert_eq!(Subject::reply(&acme, "a2a.acme.reply.me.1").unwrap().as_str(), "a2a.acme.reply.me.1");
        for wrong in [
            "",
            "me",
            "a2a.acme.reply.",
            "a2a.zeta.reply.me",
            "a2a.acme.knowledge.create_document",
            "a2a.acme.reply.a b",
            "a2a.acme.reply.*",
            &format!("a2a.acme.reply.{}", "a".repeat(129)),
        ] {
            assert!(Subject::reply(&acme, wrong).is_err(), "{wrong}");
        }
    }
}
