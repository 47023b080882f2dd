//! Attestations: what the trail proves at one moment, signed, so that others can check it later.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use orchestr8_contract::canonical::{self, hex};
use serde_json::{Map, Value, json};

/// The version of the form of a bundle.
const VERSION: u64 = 1;

/// Adds the hash of a bundle and the signature of that hash.
pub fn seal(mut bundle: Map<String, Value>, key: &[u8; 32]) -> Value {
    bundle.insert("bundle_version".into(), VERSION.into());
    let hash = canonical::sha256_hex(&Value::Object(bundle.clone()));
    let key = SigningKey::from_bytes(key);
    let signature = key.sign(hash.as_bytes());
    bundle.insert("bundle_hash".into(), hash.into());
    let signed = json!({
        "alg": "Ed25519", "public_key": hex(key.verifying_key().as_bytes()), "value": hex(&signature.to_bytes()),
    });
    bundle.insert("signature".into(), signed);
    Value::Object(bundle)
}

/// What is wrong with a bundle, by itself.
pub fn problems(bundle: &Map<String, Value>) -> Vec<String> {
    let mut open = bundle.clone();
    let signature = open.remove("signature");
    let claimed = open.remove("bundle_hash");
    let hash = canonical::sha256_hex(&Value::Object(open));
    let mut problems = Vec::new();
    if claimed.as_ref().and_then(Value::as_str) != Some(hash.as_str()) {
        problems.push(String::from("bundle_hash is not the hash of the bundle"));
    }
    match signature.as_ref().and_then(|signature| is_signed(signature, &hash)) {
        Some(true) => {}
        Some(false) => problems.push(String::from("the signature is not that of this bundle")),
        None => problems.push(String::from("there is no signature that can be read")),
    }
    problems
}

fn is_signed(signature: &Value, hash: &str) -> Option<bool> {
    (signature.get("alg")?.as_str()? == "Ed25519").then_some(())?;
    let key: [u8; 32] = unhex(signature.get("public_key")?.as_str()?)?.try_into().ok()?;
    let value: [u8; 64] = unhex(signature.get("value")?.as_str()?)?.try_into().ok()?;
    let key = VerifyingKey::from_bytes(&key).ok()?;
    Some(key.verify_strict(hash.as_bytes(), &Signature::from_bytes(&value)).is_ok())
}

pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = text.as_bytes();
    bytes.len().is_multiple_of(2).then_some(())?;
    bytes.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}
