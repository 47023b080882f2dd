//! Proof of who sent a body: its HMAC-SHA256 with a secret that both sides know, in a header.

use hmac::{Hmac, Mac};
use orchestr8_contract::Fault;
use sha2::Sha256;

pub const SIGNATURE: &str = "x-orchestr8-signature";

/// `sha256=<hex>` of a body.
pub fn signature(secret: &str, body: &str) -> Result<String, Fault> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|_| Fault::internal("the secret of a signature is no key"))?;
    mac.update(body.as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256={hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_rfc_4231() {
        let known = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", "what do ya want for nothing?").unwrap(), known);
    }
}
