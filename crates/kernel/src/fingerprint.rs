//! A fingerprint tells whether two submissions under one key mean the same (SES-8.3).

use std::fmt;

use orchestr8_contract::canonical;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The hash of an action and its arguments. Key order and white space do not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    pub fn of(action: &str, args: &Value) -> Self {
        let mut hash = Sha256::new();
        hash.update(action.as_bytes());
        hash.update([0]);
        hash.update(canonical::text(args).as_bytes());
        Self::finish(hash)
    }

    /// The hash of a whole request, for a face that counts more than the arguments.
    pub fn whole(request: &Value) -> Self {
        Self::finish(Sha256::new_with_prefix(canonical::text(request).as_bytes()))
    }

    fn finish(hash: Sha256) -> Self {
        Self(format!("v2:sha256:{}", canonical::hex(&hash.finalize())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// One that was stored.
    pub fn stored(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_meaning_gives_equal_prints() {
        let print = Fingerprint::of("a", &json!({"x": 1, "y": [1.0]}));
        assert_eq!(print, Fingerprint::of("a", &serde_json::from_str(r#"{ "y":[1], "x":1 }"#).unwrap()));
        assert_ne!(print, Fingerprint::of("b", &json!({"x": 1, "y": [1.0]})));
        assert_ne!(print, Fingerprint::of("a", &json!({"x": 1, "y": [2]})));
    }
}
