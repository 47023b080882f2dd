//! Our own signed links (KNO-5, Appendix C): for GET only, for a quarter of an hour at most, for one thing of one tenant.

use std::sync::Arc;

use hmac::{Hmac, Mac};
use orchestr8_contract::Fault;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Store};
use orchestr8_secrets::{RecordKind, SecretText, SecretVault};
use sha2::Sha256;
use tokio::sync::OnceCell;

use crate::limits::LINK_MS;
use crate::security::{jose, keys};
use crate::tables;

const SECRET: &str = "links";
const PREFIX: &str = "/artifacts/";

/// What a link leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    /// Something uploaded, by its hash.
    Upload,
    /// The content of a document, by its id.
    Document,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub to: To,
    pub tenant: String,
    pub name: String,
}

/// Why a link leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Signature,
    Late,
}

pub(crate) struct Links {
    store: Arc<dyn Store>,
    given: Option<[u8; 32]>,
    vault: Option<SecretVault>,
    secret: OnceCell<[u8; 32]>,
}

impl To {
    fn as_str(self) -> &'static str {
        match self {
            To::Upload => "upload",
            To::Document => "document",
        }
    }
}

impl Links {
    pub fn new(store: Arc<dyn Store>, given: Option<[u8; 32]>, vault: Option<SecretVault>) -> Self {
        Self { store, given, vault, secret: OnceCell::new() }
    }

    /// The path and query of a link that ends at a time.
    pub async fn sign(&self, link: &Link, now_ms: i64) -> Result<(String, i64), Fault> {
        let expires_s = now_ms.saturating_add(LINK_MS) / 1000;
        let path = path(link);
        let tag = mac(&self.secret().await?, &path, expires_s).finalize().into_bytes();
        Ok((format!("{path}?expires={expires_s}&sig={}", jose::encode(&tag)), expires_s * 1000))
    }

    /// What an address leads to. None: it is not one of ours.
    pub async fn open(&self, uri: &str, now_ms: i64) -> Result<Option<Result<Link, Wrong>>, Fault> {
        let Some(asked) = Asked::read(uri) else { return Ok(None) };
        let secret = self.secret().await?;
        Ok(Some(asked.check(&secret, now_ms)))
    }

    async fn secret(&self) -> Result<[u8; 32], Fault> {
        if let Some(given) = self.given {
            return Ok(given);
        }
        self.secret.get_or_try_init(|| self.load()).await.copied()
    }

    /// The one that is kept in the vault, or a fresh one that is kept from now on. Without a vault it ends with the process,
    /// and so do its links.
    async fn load(&self) -> Result<[u8; 32], Fault> {
        let Some(vault) = &self.vault else { return keys::fresh_seed() };
        vault.load().await?;
        let tenant = Tenant::local();
        let damaged = || Fault::internal("the secret of links does not have 32 bytes");
        if let Some(kept) = vault.internal(RecordKind::Server, tenant.as_str(), SECRET) {
            return jose::decode(kept.expose())
                .ok()
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or_else(damaged);
        }
        let fresh = keys::fresh_seed()?;
        let (record, value) = (
            vault.draft(RecordKind::Server, tenant.as_str(), SECRET, "server"),
            SecretText::new(jose::encode(&fresh)),
        );
        let mut batch = Batch::new();
        batch.then_one(vault.seal(&record, &value).await?).then(tables::secret_delete(SECRET));
        self.store.commit(batch).await.map_err(store_fault)?;
        vault.remember(record, value);
        Ok(fresh)
    }
}

/// A link, read and not yet believed.
struct Asked {
    link: Link,
    expires_s: i64,
    tag: Vec<u8>,
}

impl Asked {
    /// Whichever host it names: only we can have signed it.
    fn read(uri: &str) -> Option<Self> {
        let (address, query) = uri.split_once('?')?;
        let path = match address.split_once("://") {
            Some((_, rest)) => &rest[rest.find('/')?..],
            None => address,
        };
        let mut parts = path.strip_prefix(PREFIX)?.split('/');
        let (kind, tenant, name) = (parts.next()?, parts.next()?, parts.next()?);
        let to = [To::Upload, To::Document].into_iter().find(|to| to.as_str() == kind)?;
        let mut expires_s = None;
        let mut tag = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "expires" => expires_s = value.parse().ok(),
                "sig" => tag = jose::decode(&value).ok(),
                _ => return None,
            }
        }
        let link = Link { to, tenant: tenant.to_owned(), name: name.to_owned() };
        parts.next().is_none().then_some(Self { link, expires_s: expires_s?, tag: tag? })
    }

    /// Compares in constant time, as the library does it. A life longer than allowed was not signed by us.
    fn check(self, secret: &[u8], now_ms: i64) -> Result<Link, Wrong> {
        let mac = mac(secret, &path(&self.link), self.expires_s);
        mac.verify_slice(&self.tag).map_err(|_| Wrong::Signature)?;
        let left_ms = self.expires_s.saturating_mul(1000).saturating_sub(now_ms);
        match left_ms {
            ..=0 => Err(Wrong::Late),
            left_ms if left_ms > LINK_MS => Err(Wrong::Signature),
            _ => Ok(self.link),
        }
    }
}

fn path(link: &Link) -> String {
    format!("{PREFIX}{}/{}/{}", link.to.as_str(), link.tenant, link.name)
}

fn mac(secret: &[u8], path: &str, expires_s: i64) -> Hmac<Sha256> {
    // HMAC takes keys of any length; an empty one would be seen by every test.
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)
        .unwrap_or_else(|_| Hmac::<Sha256>::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
    mac.update(format!("GET\n{path}\n{expires_s}").as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_secrets::{KeySource, MemoryKey};
    use orchestr8_testing::{Parts, memory};

    const NOW_MS: i64 = 1_767_225_600_000;

    fn link() -> Link {
        Link { to: To::Upload, tenant: "acme".into(), name: "abc".into() }
    }

    #[tokio::test]
    async fn kno_5_a_link_lives_a_quarter_of_an_hour_also_over_a_restart() {
        let parts = Parts::in_memory(&[tables::MIGRATIONS, orchestr8_secrets::tables::MIGRATIONS]);
        let ports = parts.kernel().ports().clone();
        let key: Arc<dyn KeySource> = Arc::new(MemoryKey::new().unwrap());
        let links = || {
            let vault = SecretVault::new(&ports, key.clone(), Vec::new());
            Links::new(ports.store.clone(), None, Some(vault))
        };
        let (signed, expires_ms) = links().sign(&link(), NOW_MS).await.unwrap();
        assert_eq!(expires_ms, NOW_MS + LINK_MS);
        let links = links();
        for uri in [signed.clone(), format!("https://any.host:1{signed}")] {
            assert_eq!(links.open(&uri, NOW_MS).await.unwrap(), Some(Ok(link())));
            assert_eq!(links.open(&uri, expires_ms).await.unwrap(), Some(Err(Wrong::Late)));
        }
    }

    #[tokio::test]
    async fn whatever_is_changed_it_leads_nowhere() {
        let links = Links::new(Arc::new(memory(&[tables::MIGRATIONS])), Some([3; 32]), None);
        let (signed, expires_ms) = links.sign(&link(), NOW_MS).await.unwrap();
        let expires = (expires_ms / 1000).to_string();
        let later = (expires_ms / 1000 + 1).to_string();
        for wrong in [
            signed.replace("acme", "evil"),
            signed.replace("abc", "abd"),
            signed.replace("upload", "document"),
            signed.replace(&expires, &later),
            format!("{}A", &signed[..signed.len() - 1]),
            signed[..signed.len() - 2].to_owned(),
        ] {
            let outcome = links.open(&wrong, NOW_MS).await.unwrap();
            assert!(wrong == signed || !matches!(outcome, Some(Ok(_))), "{wrong}");
        }
        for foreign in
            ["https://bucket/x?expires=1&sig=AA", "/artifacts/upload/acme?expires=1&sig=AA", "nonsense"]
        {
            assert_eq!(links.open(foreign, NOW_MS).await.unwrap(), None, "{foreign}");
        }
    }
}
