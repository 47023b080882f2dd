//! Authenticated encryption of secrets: AES-256-GCM with a random nonce for each record.
//!
//! A data key encrypts the records; the master key, which never enters the store, encrypts the data key. The associated data
//! of a record names its tenant, kind, name, version and bindings, so that no record can be moved, rolled back or widened.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use orchestr8_contract::{Code, Fault, canonical};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;

/// The first byte of every sealed value, so that another cipher can follow.
const FORMAT: u8 = 1;

/// The key that encrypts the data key. It comes from a variable, a file or a command.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; KEY_BYTES]>);

impl MasterKey {
    /// 32 bytes as hexadecimal digits or base64.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        let bytes = Zeroizing::new(match text.len() {
            64 => canonical::unhex(text).unwrap_or_default(),
            _ => STANDARD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).unwrap_or_default(),
        });
        let bytes: [u8; KEY_BYTES] = bytes.as_slice().try_into().map_err(|_| {
            Fault::new(Code::SecretsUnavailable, "the key of the secrets is not 32 bytes in base64 or hexadecimal digits; `openssl rand -base64 32` makes one")
        })?;
        Ok(Self(Zeroizing::new(bytes)))
    }

    pub fn generate() -> Result<Self, Fault> {
        Ok(Self(random()?))
    }

    /// As a key file holds it.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(*self.0))
    }

    pub(crate) fn wrap(&self, key: &DataKey) -> Result<Vec<u8>, Fault> {
        seal(&*self.0, &wrapping(&key.id), &*key.bytes)
    }

    pub(crate) fn unwrap_key(&self, id: &str, wrapped: &[u8]) -> Result<DataKey, Fault> {
        let unfit = || {
            Fault::new(
                Code::SecretsUnavailable,
                "the key of the secrets does not fit this store; give the key that it was written with",
            )
        };
        let opened = open(&*self.0, &wrapping(id), wrapped).map_err(|_| unfit())?;
        let bytes: [u8; KEY_BYTES] = opened.as_slice().try_into().map_err(|_| unfit())?;
        Ok(DataKey { id: id.to_owned(), bytes: Zeroizing::new(bytes) })
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("MasterKey(..)")
    }
}

/// The key of the records of one store.
#[derive(Clone)]
pub(crate) struct DataKey {
    pub id: String,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

impl DataKey {
    pub fn generate() -> Result<Self, Fault> {
        let id = random()?;
        Ok(Self { id: canonical::hex(&id[..8]), bytes: random()? })
    }

    pub fn seal(&self, context: &[u8], plain: &[u8]) -> Result<Vec<u8>, Fault> {
        seal(&*self.bytes, context, plain)
    }

    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Fault> {
        open(&*self.bytes, context, sealed)
    }
}

/// Associated data made of parts that cannot run into each other.
pub(crate) fn context(parts: &[&str]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(&(part.len() as u64).to_be_bytes());
        all.extend_from_slice(part.as_bytes());
    }
    all
}

fn wrapping(id: &str) -> Vec<u8> {
    context(&["orchestr8 data key", id])
}

fn random() -> Result<Zeroizing<[u8; KEY_BYTES]>, Fault> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    aws_lc_rs::rand::fill(&mut *bytes)
        .map_err(|_| Fault::new(Code::SecretsUnavailable, "this machine gives no random numbers"))?;
    Ok(bytes)
}

fn seal(key: &[u8], context: &[u8], plain: &[u8]) -> Result<Vec<u8>, Fault> {
    let broken = |_| Fault::internal("a secret could not be encrypted");
    let key = RandomizedNonceKey::new(&AES_256_GCM, key).map_err(broken)?;
    let mut data = plain.to_vec();
    let nonce = key.seal_in_place_append_tag(Aad::from(context), &mut data).map_err(broken)?;
    let mut sealed = Vec::with_capacity(1 + NONCE_LEN + data.len());
    sealed.push(FORMAT);
    sealed.extend_from_slice(nonce.as_ref());
    sealed.append(&mut data);
    Ok(sealed)
}

fn open(key: &[u8], context: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Fault> {
    let damaged = || Fault::new(Code::StoreCorrupt, "a stored secret fails its check");
    let (format, rest) = sealed.split_first().ok_or_else(damaged)?;
    if *format != FORMAT || rest.len() < NONCE_LEN {
        return Err(damaged());
    }
    let (nonce, data) = rest.split_at(NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
    let key = RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_| damaged())?;
    let mut data = Zeroizing::new(data.to_vec());
    let length = key.open_in_place(nonce, Aad::from(context), &mut data).map_err(|_| damaged())?.len();
    data.truncate(length);
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_read_in_base64_and_hexadecimal() {
        let key = MasterKey::generate().unwrap();
        let again = MasterKey::parse(&format!(" {}\n", key.to_text().as_str())).unwrap();
        assert_eq!(*again.0, *key.0);
        let hex = MasterKey::parse(&canonical::hex(&*key.0)).unwrap();
        assert_eq!(*hex.0, *key.0);
        for wrong in ["", "short", &"z".repeat(64), &STANDARD.encode([1; 31])] {
            assert_eq!(MasterKey::parse(wrong).unwrap_err().code, Code::SecretsUnavailable, "{wrong}");
        }
        assert_eq!(format!("{key:?}"), "MasterKey(..)");
    }

    #[test]
    fn another_master_key_does_not_fit() {
        let (key, data) = (MasterKey::generate().unwrap(), DataKey::generate().unwrap());
        let wrapped = key.wrap(&data).unwrap();
        assert_eq!(*key.unwrap_key(&data.id, &wrapped).unwrap().bytes, *data.bytes);
        let other = MasterKey::generate().unwrap();
        assert_eq!(other.unwrap_key(&data.id, &wrapped).err().unwrap().code, Code::SecretsUnavailable);
        assert!(key.unwrap_key("other", &wrapped).is_err());
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_only_in_its_context(plain in ".{0,80}", part in "[a-z]{1,8}", at in 0_usize..200) {
            let key = DataKey::generate().unwrap();
            let own = context(&["tenant", &part]);
            let sealed = key.seal(&own, plain.as_bytes()).unwrap();
            let opened = key.open(&own, &sealed).unwrap();
            prop_assert_eq!(opened.as_slice(), plain.as_bytes());
            let moved = context(&["tenan", &["t", &part].concat()]);
            prop_assert!(key.open(&moved, &sealed).is_err());
            prop_assert!(sealed != key.seal(&own, plain.as_bytes()).unwrap(), "a nonce is never used again");
            let mut changed = sealed.clone();
            let at = at % changed.len();
            changed[at] ^= 1;
            prop_assert!(key.open(&own, &changed).is_err());
            prop_assert!(key.open(&own, &sealed[..at]).is_err());
        }
    }
}
