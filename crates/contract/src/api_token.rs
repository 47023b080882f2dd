//! The text form of an API token: `o8_<id>_<secret><checksum>`, in letters that need no escaping anywhere.
//!
//! The prefix and the checksum let secret scanners recognise a leaked token without asking the server. The id is public: it
//! names the token in lists, logs and the audit log. Only the SHA-256 of the whole text is ever stored.

use sha2::{Digest, Sha256};

/// What every token begins with.
pub const PREFIX: &str = "o8_";

/// The length of an id, and of the checksum at the end.
pub const ID_CHARS: usize = 12;
const CHECKSUM_CHARS: usize = 6;

/// 43 letters of base 62 hold 256 bits.
const SECRET_CHARS: usize = 43;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The whole token. It is shown once and never stored, so it has no `Debug`.
pub struct ApiToken {
    text: String,
}

impl ApiToken {
    /// The token of an id that exists already, with another secret. `entropy` must come from a secure source.
    pub fn new(id: &str, entropy: &[u8; 32]) -> Self {
        let mut text = format!("{PREFIX}{id}_{}", base62(entropy, SECRET_CHARS));
        text.push_str(&checksum(&text));
        Self { text }
    }

    /// An id for a new token.
    pub fn fresh_id(entropy: &[u8; 16]) -> String {
        base62(entropy, ID_CHARS).to_ascii_lowercase()
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn sha256_hex(&self) -> String {
        crate::canonical::hex(&Sha256::digest(&self.text))
    }
}

/// The id of a text that has the form of a token of ours, checksum included. It says nothing about whether it is valid.
pub fn id_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(PREFIX)?;
    let (id, secret) = rest.split_once('_')?;
    let is_ours = |part: &str| part.bytes().all(|letter| letter.is_ascii_alphanumeric());
    if id.len() != ID_CHARS
        || secret.len() != SECRET_CHARS + CHECKSUM_CHARS
        || !is_ours(id)
        || !is_ours(secret)
    {
        return None;
    }
    let (body, sum) = text.split_at_checked(text.len() - CHECKSUM_CHARS)?;
    (checksum(body) == sum).then_some(id)
}

fn checksum(body: &str) -> String {
    base62(&Sha256::digest(body)[..8], CHECKSUM_CHARS)
}

/// The last `chars` digits of the bytes as one large number in base 62.
fn base62(bytes: &[u8], chars: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::with_capacity(chars);
    for _ in 0..chars {
        let mut remainder = 0u32;
        for byte in &mut number {
            let value = remainder << 8 | u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or_default();
            remainder = value % 62;
        }
        digits.push(ALPHABET[usize::try_from(remainder).unwrap_or_default()]);
    }
    digits.reverse();
    String::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_by_its_form_and_checksum_alone() {
        let id = ApiToken::fresh_id(&[7; 16]);
        let token = ApiToken::new(&id, &[9; 32]);
        let text = token.as_str();
        assert_eq!(text.len(), PREFIX.len() + ID_CHARS + 1 + SECRET_CHARS + CHECKSUM_CHARS);
        assert_eq!(id_of(text), Some(id.as_str()));
        assert_eq!(token.sha256_hex().len(), 64);
        let mut mistyped = text.to_owned();
        let changed = if mistyped.ends_with('0') { "1" } else { "0" };
        mistyped.replace_range(text.len() - 1.., changed);
        let cut = &text[..text.len() - 1];
        let longer = format!("{text}0");
        for wrong in
            ["", "o8_", "o8_a_b", cut, &longer, &mistyped, &text.replace("o8_", "o9_"), &"é".repeat(32)]
        {
            assert_eq!(id_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn secrets_use_all_of_their_entropy() {
        let one = ApiToken::new("0123456789ab", &[0; 32]);
        let mut entropy = [0; 32];
        entropy[0] = 1;
        let other = ApiToken::new("0123456789ab", &entropy);
        assert_ne!(one.as_str(), other.as_str(), "the highest byte counts");
        entropy = [0; 32];
        entropy[31] = 1;
        assert_ne!(one.as_str(), ApiToken::new("0123456789ab", &entropy).as_str(), "the lowest byte counts");
        let most = ApiToken::new("0123456789ab", &[255; 32]);
        assert_eq!(id_of(most.as_str()), Some("0123456789ab"));
    }
}
