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

/// Whether `sha256=<hex>` is the signature of a body. The comparison takes the same time whatever differs.
pub fn is_signature(header: &str, secret: &str, body: &str) -> bool {
    header.strip_prefix("sha256=").is_some_and(|hex| is_hmac(hex, secret, &[body]))
}

/// Whether `t=<seconds>,v1=<hex>` is the signature of a body, made at most `age_ms` before or after now. A sender that changes its
/// secret sends several `v1`; one of the first few must be right.
pub fn is_timed_signature(header: &str, secret: &str, body: &str, now_ms: i64, age_ms: i64) -> bool {
    let members = || header.split(',').filter_map(|member| member.trim_ascii().split_once('='));
    let Some((_, time)) = members().find(|(name, _)| *name == "t") else { return false };
    let is_recent = time
        .parse::<i64>()
        .ok()
        .and_then(|seconds| seconds.checked_mul(1000))
        .is_some_and(|signed_ms| (signed_ms / 1000 - now_ms / 1000).saturating_abs() <= age_ms / 1000);
    let mut signatures = members().filter(|(name, _)| *name == "v1").take(SIGNATURES);
    is_recent && signatures.any(|(_, hex)| is_hmac(hex, secret, &[time, ".", body]))
}

/// Signatures of one request that are looked at.
const SIGNATURES: usize = 4;

fn is_hmac(hex: &str, secret: &str, parts: &[&str]) -> bool {
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len().min(HEX_BYTES)).step_by(2).map(byte).collect();
    match (mac(secret, parts), bytes) {
        (Ok(mac), Some(bytes)) => hex.len() == HEX_BYTES && mac.verify_slice(&bytes).is_ok(),
        (Ok(_) | Err(_), _) => false,
    }
}

/// The length of a signature in hexadecimal digits.
const HEX_BYTES: usize = 64;

fn hmac(secret: &str, parts: &[&str]) -> Result<String, Fault> {
    Ok(mac(secret, parts)?.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn mac(secret: &str, parts: &[&str]) -> Result<Hmac<Sha256>, Fault> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|_| Fault::internal("the secret of a signature is no key"))?;
    parts.iter().for_each(|part| mac.update(part.as_bytes()));
    Ok(mac)
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

    #[test]
    fn a_signature_is_that_of_one_body_one_secret_and_one_time() {
        let made = signature("Jefe", "body").unwrap();
        assert!(is_signature(&made, "Jefe", "body"));
        assert!(!is_signature(&made, "Jefe", "Body") && !is_signature(&made, "Jeff", "body"));
        for wrong in ["", "sha256=", "sha256=00", &made[7..], &made[..70], &format!("{made}00"), "sha256=é"]
        {
            assert!(!is_signature(wrong, "Jefe", "body"), "{wrong}");
        }
        let now_ms = 1_767_225_600_999;
        let timed = timed_signature("Jefe", "body", now_ms).unwrap();
        let holds =
            |header: &str, body: &str, at_ms: i64| is_timed_signature(header, "Jefe", body, at_ms, 5000);
        assert!(holds(&timed, "body", now_ms) && holds(&timed, "body", now_ms + 5000));
        assert!(holds(&timed, "body", now_ms - 5000), "the clock of a sender may be ahead");
        assert!(!holds(&timed, "body", now_ms + 6000) && !holds(&timed, "body", now_ms - 6000));
        assert!(!holds(&timed, "other", now_ms));
        assert!(!holds(&timed.replace("t=1767225600", "t=1767225601"), "body", now_ms));
        assert!(holds(&timed.replace(",v1=", &format!(",v1={},v1=", "0".repeat(64))), "body", now_ms));
        for wrong in ["", "t=1", "v1=00", "t=x,v1=00", "t=9223372036854775807,v1=00"] {
            assert!(!holds(wrong, "body", now_ms), "{wrong}");
        }
    }
}
