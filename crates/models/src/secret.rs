//! A key of a provider: nothing prints it, and only the request that carries it reads it.

use std::fmt;
use std::sync::Arc;

/// A secret text. It is neither serialized nor shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the header of a request.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it, as with a variable that is set to nothing.
    pub fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debugging_shows_nothing_of_it() {
        let secret = Secret::new("sk-very-secret");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret Some(Secret)");
        assert_eq!(secret.expose(), "sk-very-secret");
        assert!(Secret::new(" ").is_empty() && !secret.is_empty());
    }
}
