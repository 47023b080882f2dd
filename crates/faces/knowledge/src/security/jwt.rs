//! Bearer tokens of the basic profile (KNO-3): JWT by RS256, ES256 or EdDSA, checked against a configured key set.

use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use ed25519_dalek::{Signature, VerifyingKey};
use orchestr8_contract::Fault;
use serde_json::{Map, Value};

use super::Refused;
use super::jose::{self, Parts};
use super::who::Proven;
use crate::from_wire;
use crate::limits::{ROLES, SKEW_MS};

/// Whose tokens are believed, and where in them it says what we ask.
#[derive(Debug, Clone)]
pub struct Trust {
    keys: Vec<Key>,
    pub issuer: String,
    pub audience: String,
    /// The claim that names the tenant.
    pub tenant_claim: String,
    /// The claim that lists the roles.
    pub roles_claim: String,
}

/// One key; it is good for one algorithm only, whatever a token says.
#[derive(Debug, Clone)]
struct Key {
    kid: Option<String>,
    public: Public,
}

#[derive(Debug, Clone)]
enum Public {
    Rs256 { n: Vec<u8>, e: Vec<u8> },
    Es256 { point: Vec<u8> },
    EdDsa { public: [u8; 32] },
}

impl Trust {
    /// Reads a JSON Web Key Set. A key of a kind we do not take is an error: somebody believes it works.
    pub fn read(jwks: &str, issuer: &str, audience: &str) -> Result<Self, Fault> {
        let wrong = |why: String| Fault::invalid(format!("the key set: {why}"));
        let set = from_wire::object(jwks.as_bytes()).map_err(|error| wrong(error.0))?;
        let list = set.get("keys").and_then(Value::as_array).ok_or_else(|| wrong("it has no keys".into()))?;
        let keys: Option<Vec<Key>> = list.iter().map(Key::read).collect();
        let Some(keys) = keys.filter(|keys| !keys.is_empty()) else {
            return Err(wrong("each key must be RSA, EC P-256 or OKP Ed25519, and there must be one".into()));
        };
        let kids = keys.iter().filter_map(|key| key.kid.as_deref());
        if kids.clone().collect::<std::collections::BTreeSet<_>>().len() != kids.count() {
            return Err(wrong("two keys have one kid".into()));
        }
        if issuer.is_empty() || audience.is_empty() {
            return Err(Fault::invalid(
                "tokens are believed from one issuer and for one audience: name both",
            ));
        }
        Ok(Self {
            keys,
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            tenant_claim: "tenant_id".to_owned(),
            roles_claim: "roles".to_owned(),
        })
    }

    /// Whom a token proves.
    pub(crate) fn check(&self, token: &str, now_ms: i64) -> Result<Proven, Refused> {
        let parts = Parts::compact(token)?;
        let key = self.key(&parts)?;
        key.public.check(&parts)?;
        let claims = from_wire::object(&parts.payload).map_err(|_| Refused::Payload)?;
        self.times(&claims, now_ms)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let audience = match claims.get("aud") {
            Some(Value::String(one)) => *one == self.audience,
            Some(Value::Array(many)) => many.iter().any(|one| one.as_str() == Some(&self.audience)),
            Some(_) | None => false,
        };
        if text("iss") != Some(&self.issuer) || !audience {
            return Err(Refused::Claims);
        }
        let (Some(sub), Some(tenant)) = (text("sub"), text(&self.tenant_claim)) else {
            return Err(Refused::Claims);
        };
        let roles = roles(claims.get(&self.roles_claim)).ok_or(Refused::Claims)?;
        let roles = super::roles::all(&roles);
        Ok(Proven { sub: sub.to_owned(), tenant: tenant.to_owned(), roles, grant: None })
    }

    fn times(&self, claims: &Map<String, Value>, now_ms: i64) -> Result<(), Refused> {
        if now_ms > jose::seconds(claims.get("exp"))? * 1000 + SKEW_MS {
            return Err(Refused::Late);
        }
        for name in ["nbf", "iat"] {
            if claims.contains_key(name) && jose::seconds(claims.get(name))? * 1000 > now_ms + SKEW_MS {
                return Err(Refused::Early);
            }
        }
        Ok(())
    }

    /// The key a token names. One that names none fits only where there is one to fit.
    fn key(&self, parts: &Parts) -> Result<&Key, Refused> {
        let alg = parts.text("alg").ok_or(Refused::Algorithm)?;
        let key = match (parts.header.get("kid"), &self.keys[..]) {
            (Some(kid), keys) => {
                let kid = kid.as_str().ok_or(Refused::Kid)?;
                keys.iter().find(|key| key.kid.as_deref() == Some(kid)).ok_or(Refused::Kid)?
            }
            (None, [only]) => only,
            (None, _) => return Err(Refused::Kid),
        };
        if key.public.takes(alg) { Ok(key) } else { Err(Refused::Algorithm) }
    }
}

impl Key {
    fn read(jwk: &Value) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| jose::decode(text(name)?).ok();
        let public = match (text("kty")?, text("crv")) {
            ("RSA", None) => Public::Rs256 { n: bytes("n")?, e: bytes("e")? },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                (x.len() == 32 && y.len() == 32)
                    .then(|| Public::Es256 { point: [&[4][..], &x, &y].concat() })?
            }
            ("OKP", Some("Ed25519")) => Public::EdDsa { public: bytes("x")?.try_into().ok()? },
            (_, _) => return None,
        };
        if text("alg").is_some_and(|alg| !public.takes(alg)) {
            return None;
        }
        Some(Self { kid: text("kid").map(str::to_owned), public })
    }
}

impl Public {
    fn takes(&self, alg: &str) -> bool {
        match self {
            Public::Rs256 { .. } => alg == "RS256",
            Public::Es256 { .. } => alg == "ES256",
            Public::EdDsa { .. } => matches!(alg, "EdDSA" | "Ed25519"),
        }
    }

    fn check(&self, parts: &Parts) -> Result<(), Refused> {
        let fits = match self {
            Public::Rs256 { n, e } => PublicKeyComponents { n: &n[..], e: &e[..] }
                .verify(&RSA_PKCS1_2048_8192_SHA256, &parts.signed, &parts.signature)
                .is_ok(),
            Public::Es256 { point } => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(&parts.signed, &parts.signature)
                .is_ok(),
            Public::EdDsa { public } => VerifyingKey::from_bytes(public)
                .ok()
                .zip(Signature::from_slice(&parts.signature).ok())
                .is_some_and(|(key, signature)| key.verify_strict(&parts.signed, &signature).is_ok()),
        };
        if fits { Ok(()) } else { Err(Refused::Signature) }
    }
}

/// A list of texts, or one text with blanks between, as scopes are written.
fn roles(claim: Option<&Value>) -> Option<Vec<String>> {
    let roles: Vec<String> = match claim {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(list)) => {
            list.iter().map(|role| role.as_str().map(str::to_owned)).collect::<Option<_>>()?
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => return None,
    };
    (roles.len() <= ROLES).then_some(roles)
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
