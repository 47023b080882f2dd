//! A secret value in memory: erased when it is dropped, and never printed.

use std::fmt;

use zeroize::Zeroizing;

/// The value of a secret. `expose` is called where it is inserted, and nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretText(..)")
    }
}
