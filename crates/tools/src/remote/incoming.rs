//! Texts that another server sends, as the library should read them: credentials of ours are masked, tasks are lifted.
//!
//! A server knows the credentials that the settings give it, and may repeat them in results, descriptions and errors. Those are
//! shown to every tenant, so the values are masked before anything else reads them.

use std::borrow::Cow;
use std::sync::Arc;

use orchestr8_kernel::redact::{Redactor, SecretMask};
use orchestr8_secrets::SecretText;

use super::Link;
use super::lift::lift;

/// Shorter values of headers and variables are words rather than credentials.
const CREDENTIAL_BYTES: usize = 8;

#[derive(Clone, Default)]
pub struct IncomingText {
    mask: Arc<SecretMask>,
}

impl IncomingText {
    /// Of the server behind a link. Headers are credentials; variables are if their name says so.
    pub fn of(link: &Link) -> Self {
        Self::with(link, &[])
    }

    /// The same, with further values that the server was given.
    pub fn with(link: &Link, secrets: &[SecretText]) -> Self {
        let values: Vec<&str> = match link {
            Link::Stdio { env, .. } => {
                let names = Redactor::default();
                env.iter()
                    .filter(|(name, _)| names.is_secret(name))
                    .map(|(_, value)| value.as_str())
                    .collect()
            }
            Link::Http { headers, .. } => headers.values().flat_map(|value| spelled(value)).collect(),
        };
        let values = values
            .into_iter()
            .chain(secrets.iter().map(SecretText::expose))
            .filter(|value| value.len() >= CREDENTIAL_BYTES);
        Self { mask: Arc::new(SecretMask::new(values)) }
    }

    /// The message, if anything of it must change.
    pub fn change(&self, text: &str) -> Option<String> {
        let masked = self.mask(text);
        match (lift(&masked), masked) {
            (Some(lifted), _) => Some(lifted),
            (None, Cow::Owned(masked)) => Some(masked),
            (None, Cow::Borrowed(_)) => None,
        }
    }

    /// The text without credentials.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.mask.text(text)
    }
}

/// The value of a header, and what follows its scheme: `Bearer abc` and `abc`.
fn spelled(value: &str) -> impl Iterator<Item = &str> {
    let bare = value.split_once(' ').map(|(_, rest)| rest.trim());
    std::iter::once(value).chain(bare)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn map(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn credentials_that_a_server_repeats_are_masked() {
        let http =
            Link::Http { url: String::new(), headers: map("Authorization", "Bearer canary-of-a-header") };
        let incoming = IncomingText::of(&http);
        for text in ["you sent Bearer canary-of-a-header", "your key is canary-of-a-header"] {
            let masked = incoming.change(text).unwrap();
            assert!(masked.contains("[REDACTED]") && !masked.contains("canary"), "{masked}");
        }
        assert_eq!(incoming.change("{\"result\":{}}"), None);
        let stdio = |name: &str, value: &str| {
            let env = map(name, value);
            IncomingText::of(&Link::Stdio { command: String::new(), args: Vec::new(), env, cwd: None })
        };
        assert_eq!(
            stdio("API_TOKEN", "canary-of-a-variable").mask("is canary-of-a-variable"),
            "is [REDACTED]"
        );
        assert_eq!(stdio("NODE_ENV", "production").mask("in production"), "in production");
    }
}
