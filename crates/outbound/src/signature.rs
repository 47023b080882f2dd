//! Proof of who sent a body: its HMAC-SHA256 with a secret that both sides know, in a header.

use hmac::{Hmac, Mac};
use orchestr8_contract::Fault;
use sha2::Sha256;

pub const SIGNATURE: &str = "x-orchestr8-signature";

/// The header with the time that was signed, so that a receiver can refuse what was recorded and sent again.
pub const TIMED_SIGNATURE: &str = "x-orchestr8-signature-v1";

/// `sha256=<hex>` of a body.
pub fn signature(secret: &str, body: &str) -> Result<String, Fault> {
    Ok(format!("sha256={}", hmac(secret, &[body])?))
}

/// `t=<seconds>,v1=<hex>`: the HMAC of `<seconds>.<body>`, as Stripe has it.
pub fn timed_signature(secret: &str, body: &str, now_ms: i64) -> Result<String, Fault> {
    let time = (now_ms / 1000).to_string();
    Ok(format!("t={time},v1={}", hmac(secret, &[&time, ".", body])?))
}

fn hmac(secret: &str, parts: &[&str]) -> Result<String, Fault> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|_| Fault::internal("the secret of a signature is no key"))?;
    parts.iter().for_each(|part| mac.update(part.as_bytes()));
    Ok(mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_rfc_4231() {
        let known = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", "what do ya want for nothing?").unwrap(), known);
    }

    #[test]
    fn a_timed_signature_covers_the_time_and_the_body() {
        let timed = timed_signature("Jefe", "body", 1_767_225_600_999).unwrap();
        let plain = signature("Jefe", "1767225600.body").unwrap();
        assert_eq!(timed, plain.replace("sha256=", "t=1767225600,v1="));
    }
}
