//! The key with which the server signs statements about workspaces: where a trail ends, and that a plan was decided.

use std::sync::{Arc, OnceLock};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use orchestr8_contract::Code;
use orchestr8_contract::canonical::{self, hex};
use serde_json::Value;

use crate::attest::unhex;
use crate::refusal::Refusal;

/// What a signature is about. A signature of one kind says nothing about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    TrailHead,
    PlanDecision,
}

impl StatementKind {
    fn as_str(self) -> &'static str {
        match self {
            StatementKind::TrailHead => "trail head",
            StatementKind::PlanDecision => "plan decision",
        }
    }

    fn message(self, statement: &Value) -> Vec<u8> {
        format!("orchestr8 workspace {} v1\n{}", self.as_str(), canonical::text(statement)).into_bytes()
    }
}

/// The key; clones share it. It is set once, when the secrets of the installation are opened.
#[derive(Clone, Default)]
pub struct ServerSigningKey(Arc<OnceLock<[u8; 32]>>);

impl ServerSigningKey {
    pub fn of(key: [u8; 32]) -> Self {
        let signing = Self::default();
        signing.set(key);
        signing
    }

    /// Only the first key counts.
    pub fn set(&self, key: [u8; 32]) {
        let _ = self.0.set(key);
    }

    /// The secret half.
    pub fn secret(&self) -> Result<&[u8; 32], Refusal> {
        self.0.get().ok_or_else(|| {
            Refusal::new(Code::SecretsUnavailable, "the key that signs approvals and trails is not open yet")
        })
    }

    /// The public half in hexadecimal digits, as bundles name it.
    pub fn public(&self) -> Result<String, Refusal> {
        Ok(hex(SigningKey::from_bytes(self.secret()?).verifying_key().as_bytes()))
    }

    pub fn sign(&self, kind: StatementKind, statement: &Value) -> Result<String, Refusal> {
        let key = SigningKey::from_bytes(self.secret()?);
        Ok(hex(&key.sign(&kind.message(statement)).to_bytes()))
    }

    /// Whether this server signed the statement.
    pub fn verify(&self, kind: StatementKind, statement: &Value, signature: &str) -> Result<bool, Refusal> {
        let key: VerifyingKey = SigningKey::from_bytes(self.secret()?).verifying_key();
        let signature = unhex(signature).and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        Ok(signature.is_some_and(|bytes| {
            key.verify_strict(&kind.message(statement), &Signature::from_bytes(&bytes)).is_ok()
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signature_is_of_one_statement_of_one_kind_by_one_key() {
        let (key, other) = (ServerSigningKey::of([1; 32]), ServerSigningKey::of([2; 32]));
        let statement = json!({"seq": 3, "head": "a"});
        let signature = key.sign(StatementKind::TrailHead, &statement).unwrap();
        let check = |key: &ServerSigningKey, kind, statement: &Value, signature: &str| {
            key.verify(kind, statement, signature).unwrap()
        };
        assert!(check(&key, StatementKind::TrailHead, &json!({"head": "a", "seq": 3}), &signature));
        assert!(!check(&key, StatementKind::TrailHead, &json!({"seq": 2, "head": "a"}), &signature));
        assert!(!check(&key, StatementKind::PlanDecision, &statement, &signature));
        assert!(!check(&other, StatementKind::TrailHead, &statement, &signature));
        for broken in ["", "zz", "00", &signature[2..]] {
            assert!(!check(&key, StatementKind::TrailHead, &statement, broken), "{broken}");
        }
        assert!(ServerSigningKey::default().sign(StatementKind::TrailHead, &statement).is_err());
    }
}
