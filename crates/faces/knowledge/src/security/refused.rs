//! Why a proof was not taken. It names the rule that was broken and nothing of ours.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("this server asks for a bearer token")]
    NoToken,
    #[error("this server asks for a signature: X-JWS-Signature, or a body of application/jose")]
    NoSignature,
    #[error("the token is longer than we take")]
    TooLong,
    #[error("it does not have three parts in base64url without padding")]
    Form,
    #[error("its header is not the JSON we take")]
    Header,
    #[error("its payload is not the JSON we take")]
    Payload,
    #[error("its alg is not one we take for this key")]
    Algorithm,
    #[error("it has crit, b64 or a key of its own, which are not taken")]
    Extension,
    #[error("its kid is missing or not known")]
    Kid,
    #[error("the key is revoked")]
    Revoked,
    #[error("the key is older than 90 days; rotate it")]
    Aged,
    #[error("the signature does not fit")]
    Signature,
    #[error("exp or iat is missing, or is no whole number")]
    Times,
    #[error("it is not valid yet")]
    Early,
    #[error("it has expired")]
    Late,
    #[error("it is valid for longer than 15 minutes")]
    LongLived,
    #[error("its nonce is missing or of a wrong length")]
    Nonce,
    #[error("its nonce was used before")]
    Replayed,
    #[error("it was made for another issuer, audience or subject")]
    Claims,
    #[error(
        "it does not cover the header Idempotency-Key; say idempotency_key in the envelope or in its protected header"
    )]
    Key,
    #[error("it was not signed for this method and address (htm, htu)")]
    Address,
}
