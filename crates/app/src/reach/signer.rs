//! Signs requests for servers that ask for a signature: the external profile of knowledge (KNO-3).

use std::path::Path;

use http::Method;
use orchestr8_contract::Code;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use orchestr8_knowledge_face::security::jws::{self, Claims, Form};
use orchestr8_knowledge_face::security::keys::{self, Pair};

use crate::failure::Failure;
use crate::settings::read_private;

/// Names the file with the secret key where no flag does.
pub const KEY_FILE: &str = "ORCHESTR8_KEY_FILE";

/// The header a signature goes into.
pub const SIGNATURE: &str = "x-jws-signature";

/// How long a signature of ours holds: it is sent at once, and clocks differ.
const LIFE_S: i64 = 300;

/// A key that signs one request after another.
pub struct Signer(Pair);

/// Reads a secret key, as `orchestr8 keys new --out` wrote it.
pub fn read_key(file: &Path) -> Result<Pair, Failure> {
    let text = read_private("--key", file)?;
    let wrong = |what: String| {
        Failure::new(Code::InvalidArgument, format!("{}: {what}", file.display()))
            .hinting("make a key with orchestr8 keys new --out FILE")
    };
    let jwk = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    Pair::from_jwk(&jwk).map_err(|fault| wrong(fault.message.into_owned()))
}

impl Signer {
    pub fn read(file: &Path) -> Result<Self, Failure> {
        read_key(file).map(Self)
    }

    /// A signature over exactly these bytes, for one address and for once.
    pub fn sign(&self, method: &Method, target: &str, body: &[u8]) -> Result<String, Failure> {
        let nonce = keys::fresh_nonce()?;
        let iat_s = Real::new().now_ms() / 1000;
        let address = Some((method.as_str(), target));
        let claims = Claims { iat_s, exp_s: iat_s + LIFE_S, nonce: &nonce, address, key: None };
        Ok(jws::sign(&self.0, body, &claims, Form::Detached))
    }
}
