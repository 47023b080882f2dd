//! What a client keeps for us between two tries of one request, sealed so that it comes back as it went.
//!
//! It is not hidden: it holds only what the client itself has said.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::Sha256;

use crate::wire::Error;

/// A person may take this long to answer the questions of one round.
pub const LIFETIME_MS: i64 = 3_600_000;

/// What is sealed: the request it belongs to, and the answers so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub method: String,
    pub name: String,
    /// The digest of its arguments.
    pub arguments: String,
    pub tenant: String,
    pub principal: String,
    pub expires_ms: i64,
    pub answers: Map<String, Value>,
}

/// Seals and opens with one secret.
#[derive(Clone)]
pub struct Seal(Hmac<Sha256>);

impl Seal {
    pub fn new(secret: &[u8; 32]) -> Self {
        // HMAC fills a short key up with zeros; doing it here spares a failure that cannot happen.
        let mut key = [0; 64];
        key[..32].copy_from_slice(secret);
        Self(Hmac::new(&key.into()))
    }

    pub fn close(&self, state: &State) -> String {
        let body = URL_SAFE_NO_PAD.encode(crate::body::json(state));
        let mark = URL_SAFE_NO_PAD.encode(self.mark(&body).finalize().into_bytes());
        format!("{body}.{mark}")
    }

    /// The answers so far, if the seal is whole, not expired, and of this very request by this very caller.
    pub fn open(&self, sealed: &str, request: &State, now_ms: i64) -> Result<Map<String, Value>, Error> {
        let refuse = |why: &str| Error::params(format!("requestState {why}; begin the call anew"));
        let (body, mark) = sealed.split_once('.').ok_or_else(|| refuse("is not one of ours"))?;
        let mark = URL_SAFE_NO_PAD.decode(mark).map_err(|_| refuse("is damaged"))?;
        // Compared in constant time, so that a forger learns nothing from how long it takes.
        self.mark(body).verify_slice(&mark).map_err(|_| refuse("is damaged"))?;
        let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| refuse("is damaged"))?;
        let state: State = serde_json::from_slice(&bytes).map_err(|_| refuse("is damaged"))?;
        if state.expires_ms <= now_ms {
            return Err(refuse("has expired"));
        }
        let same = State { expires_ms: state.expires_ms, answers: state.answers.clone(), ..request.clone() };
        if state == same { Ok(state.answers) } else { Err(refuse("belongs to another request")) }
    }

    fn mark(&self, body: &str) -> Hmac<Sha256> {
        let mut mark = self.0.clone();
        mark.update(body.as_bytes());
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state() -> State {
        let answers = json!({"name": {"action": "accept"}}).as_object().unwrap().clone();
        State {
            method: "tools/call".into(),
            name: "greet".into(),
            arguments: "d1".into(),
            tenant: "local".into(),
            principal: "anna".into(),
            expires_ms: 1000,
            answers,
        }
    }

    #[test]
    fn it_comes_back_as_it_went() {
        let seal = Seal::new(&[7; 32]);
        let sealed = seal.close(&state());
        assert_eq!(
            seal.open(&sealed, &State { answers: Map::new(), ..state() }, 999).unwrap(),
            state().answers
        );
    }

    #[test]
    fn anything_else_is_refused() {
        let seal = Seal::new(&[7; 32]);
        let sealed = seal.close(&state());
        assert!(seal.open(&sealed, &state(), 1000).is_err(), "expired");
        assert!(seal.open(&format!("{sealed}-TAMPERED"), &state(), 1).is_err());
        assert!(seal.open(&sealed.replacen('e', "f", 1), &state(), 1).is_err());
        assert!(seal.open("nonsense", &state(), 1).is_err());
        assert!(Seal::new(&[8; 32]).open(&sealed, &state(), 1).is_err(), "another secret");
        for other in [
            State { method: "prompts/get".into(), ..state() },
            State { name: "other".into(), ..state() },
            State { arguments: "d2".into(), ..state() },
            State { principal: "bert".into(), ..state() },
            State { tenant: "else".into(), ..state() },
        ] {
            assert!(seal.open(&sealed, &other, 1).is_err());
        }
    }
}
