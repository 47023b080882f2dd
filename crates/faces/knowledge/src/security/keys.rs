//! The keys of agents (KNO-3): made, rotated within 90 days, revoked and listed. We keep only the public half.

use ed25519_dalek::SigningKey;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, canonical};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Cell, Error, Link, Row, Statement, Store};
use orchestr8_kernel::row_seal::RowSeal;
use orchestr8_kernel::{Kernel, Log};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::jose;
use super::roles;
use crate::limits;
use crate::tables;

/// Whom a key speaks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    pub tenant: String,
    pub principal: String,
    pub roles: Vec<String>,
}

/// What we know of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub kid: String,
    pub owner: Owner,
    pub public: [u8; 32],
    pub created_ms: i64,
    /// From then on it signs nothing.
    pub revoked_ms: Option<i64>,
}

/// The stored keys, and what seals their rows: a key is a credential, so one that was made or changed in the data file is none.
#[derive(Clone, Copy)]
pub struct KeyTable<'a> {
    pub store: &'a dyn Store,
    pub seal: &'a RowSeal,
    pub log: &'a Log,
}

impl<'a> KeyTable<'a> {
    pub fn of(kernel: &'a Kernel) -> Self {
        Self { store: &*kernel.ports().store, seal: kernel.row_seal(), log: kernel.log() }
    }
}

const TABLE: &str = "a2a_key";

impl Record {
    fn with_cells<T>(&self, work: impl FnOnce(&[Option<&str>]) -> T) -> T {
        let (roles, public) = (self.owner.roles.join(" "), jose::encode(&self.public));
        let (created, revoked) =
            (self.created_ms.to_string(), self.revoked_ms.map(|at_ms| at_ms.to_string()));
        work(&[
            Some(&self.kid),
            Some(&self.owner.tenant),
            Some(&self.owner.principal),
            Some(&roles),
            Some(&public),
            Some(&created),
            revoked.as_deref(),
        ])
    }

    fn sealed(&self, keys: KeyTable<'_>) -> Result<Option<String>, Fault> {
        self.with_cells(|cells| keys.seal.seal(TABLE, cells))
    }

    /// The statement that ends it at a moment.
    fn revocation(mut self, keys: KeyTable<'_>, at_ms: i64) -> Result<Statement, Fault> {
        self.revoked_ms = Some(at_ms);
        Ok(tables::key_revoke(&self.kid, at_ms, self.sealed(keys)?))
    }
}

/// A key with its secret half. It is shown once, to whoever made it.
#[derive(Clone)]
pub struct Pair {
    pub kid: String,
    pub seed: [u8; 32],
}

impl Pair {
    /// As a JSON Web Key, the form `sign` reads.
    pub fn to_jwk(&self) -> Value {
        let public = SigningKey::from_bytes(&self.seed).verifying_key().to_bytes();
        json!({
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": self.kid,
            "x": jose::encode(&public), "d": jose::encode(&self.seed),
        })
    }

    pub fn from_jwk(jwk: &Value) -> Result<Self, Fault> {
        let wrong = || Fault::invalid("this is no secret key of Ed25519 as a JSON Web Key with kid and d");
        let text = |name: &str| jwk.get(name).and_then(Value::as_str).ok_or_else(wrong);
        let known = text("kty")? == "OKP" && text("crv")? == "Ed25519";
        let seed = jose::decode(text("d")?).ok().and_then(|seed| <[u8; 32]>::try_from(seed).ok());
        match seed.filter(|_| known) {
            Some(seed) => Ok(Self { kid: text("kid")?.to_owned(), seed }),
            None => Err(wrong()),
        }
    }
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Pair({})", self.kid)
    }
}

/// Bytes nobody can guess or replay: a key made from the seeded randomness of a test run would be anybody's key.
pub fn fresh_seed() -> Result<[u8; 32], Fault> {
    let mut seed = [0; 32];
    aws_lc_rs::rand::fill(&mut seed)
        .map(|()| seed)
        .map_err(|_| Fault::internal("the system has no randomness to give"))
}

/// A nonce nobody used before.
pub fn fresh_nonce() -> Result<String, Fault> {
    Ok(jose::encode(&fresh_seed()?[..18]))
}

/// What a key is called that nobody named.
pub fn kid_of(public: &[u8; 32]) -> String {
    format!("k-{}", &canonical::hex(&Sha256::digest(public))[..12])
}

/// A key from a seed; pure.
pub fn make(kid: &str, owner: Owner, seed: [u8; 32], now_ms: i64) -> (Pair, Record) {
    let public = SigningKey::from_bytes(&seed).verifying_key().to_bytes();
    let pair = Pair { kid: kid.to_owned(), seed };
    (pair, Record { kid: kid.to_owned(), owner, public, created_ms: now_ms, revoked_ms: None })
}

/// Makes a key and takes it up.
pub async fn new(
    keys: KeyTable<'_>,
    kid: &str,
    owner: Owner,
    seed: [u8; 32],
    now_ms: i64,
) -> Result<Pair, Fault> {
    let (pair, record) = make(kid, owner, seed, now_ms);
    add(keys, &record, None).await?;
    Ok(pair)
}

/// Takes up a key that somebody else made.
pub async fn add(keys: KeyTable<'_>, record: &Record, audit: Option<Link>) -> Result<(), Fault> {
    let mut batch = Batch::new();
    batch.then_one(insert(keys, record)?);
    batch.links.extend(audit);
    keys.store.commit(batch).await.map_err(|error| taken(error, &record.kid))
}

/// Makes a new key for whom the old one speaks; the old one signs for one day more.
pub async fn rotate(
    keys: KeyTable<'_>,
    old: &str,
    kid: &str,
    seed: [u8; 32],
    now_ms: i64,
) -> Result<Pair, Fault> {
    let (pair, record) = make(kid, Owner::default(), seed, now_ms);
    replace(keys, old, record, None).await?;
    Ok(pair)
}

/// Puts a key somebody else made in the place of an old one: it speaks for whom that one speaks for.
pub async fn replace(
    keys: KeyTable<'_>,
    old: &str,
    mut record: Record,
    audit: Option<Link>,
) -> Result<Record, Fault> {
    let Some(known) = find(keys, old).await? else { return Err(unknown(old)) };
    if known.revoked_ms.is_some_and(|revoked_ms| revoked_ms <= record.created_ms) {
        return Err(Fault::new(Code::StateConflict, format!("the key {old} is revoked; make a new one")));
    }
    record.owner = known.owner.clone();
    let mut batch = Batch::new();
    batch.then_one(insert(keys, &record)?);
    batch.then(known.revocation(keys, record.created_ms.saturating_add(limits::ROTATION_GRACE_MS))?);
    batch.links.extend(audit);
    keys.store.commit(batch).await.map_err(|error| taken(error, &record.kid))?;
    Ok(record)
}

/// From now on the key signs nothing.
pub async fn revoke(keys: KeyTable<'_>, kid: &str, now_ms: i64, audit: Option<Link>) -> Result<(), Fault> {
    let Some(known) = find(keys, kid).await? else { return Err(unknown(kid)) };
    if known.revoked_ms.is_some_and(|revoked_ms| revoked_ms <= now_ms) {
        return Ok(());
    }
    let mut batch = Batch::new();
    batch.then(known.revocation(keys, now_ms)?);
    batch.links.extend(audit);
    keys.store.commit(batch).await.map_err(store_fault)
}

/// A page of the keys of one tenant, or with none of all, in order of kid, after one.
pub async fn list(store: &dyn Store, tenant: Option<&str>, after: &str) -> Result<Vec<Record>, Fault> {
    let rows = store.query(tables::keys(tenant, after, limits::KEYS)).await.map_err(store_fault)?;
    rows.iter().map(record).collect::<Result<_, _>>().map_err(store_fault)
}

/// Fails with `STORE_CORRUPT` if the row is not the one that this server wrote.
pub async fn find(keys: KeyTable<'_>, kid: &str) -> Result<Option<Record>, Fault> {
    let rows = keys.store.query(tables::key_find(kid)).await.map_err(store_fault)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let found = record(row).map_err(store_fault)?;
    let seal = row.optional_text(7).map_err(store_fault)?;
    if let Err(fault) = found.with_cells(|cells| keys.seal.check(TABLE, cells, seal)) {
        keys.log.error(
            "a key that agents sign with was not written by this server and is refused",
            json!({"kid": kid}),
        );
        return Err(fault);
    }
    Ok(Some(found))
}

fn insert(keys: KeyTable<'_>, record: &Record) -> Result<Statement, Fault> {
    let owner = &record.owner;
    let named = (1..=limits::NAME_BYTES).contains(&record.kid.len())
        && record.kid.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if !named {
        return Err(Fault::invalid("a kid is 1 to 256 of A-Z a-z 0-9 . _ : -"));
    }
    Tenant::parse(&owner.tenant).map_err(|error| Fault::invalid(error.to_string()))?;
    if !(1..=limits::NAME_BYTES).contains(&owner.principal.len()) {
        return Err(Fault::invalid("a key speaks for a principal of 1 to 256 bytes"));
    }
    if let Some(strange) = owner.roles.iter().find(|role| roles::canonical(role).is_none()) {
        let known = roles::names();
        return Err(Fault::invalid(format!("there is no role {strange}; known: {known}")));
    }
    if ed25519_dalek::VerifyingKey::from_bytes(&record.public).map_or(true, |key| key.is_weak()) {
        return Err(Fault::invalid("this is no public key of Ed25519"));
    }
    let whose = (owner.tenant.as_str(), owner.principal.as_str(), owner.roles.join(" "));
    let whose = (whose.0, whose.1, whose.2.as_str());
    let seal = record.sealed(keys)?;
    Ok(tables::key_insert(&record.kid, whose, record.public.to_vec(), record.created_ms, seal))
}

fn taken(error: Error, kid: &str) -> Fault {
    match error {
        Error::Conflict { .. } => Fault::new(Code::StateConflict, format!("there is a key {kid} already")),
        other => store_fault(other),
    }
}

fn unknown(kid: &str) -> Fault {
    Fault::new(Code::NotFound, format!("there is no key {kid}"))
}

fn record(row: &Row) -> Result<Record, Error> {
    let public = <[u8; 32]>::try_from(row.blob(4)?)
        .map_err(|_| Error::Corrupt("a public key does not have 32 bytes".to_owned()))?;
    Ok(Record {
        kid: row.text(0)?.to_owned(),
        owner: Owner {
            tenant: row.text(1)?.to_owned(),
            principal: row.text(2)?.to_owned(),
            roles: row.text(3)?.split_whitespace().map(str::to_owned).collect(),
        },
        public,
        created_ms: row.int(5)?,
        revoked_ms: match row.0.get(6) {
            Some(Cell::Null) | None => None,
            Some(_) => Some(row.int(6)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_testing::memory;

    fn owner() -> Owner {
        Owner { tenant: "acme".into(), principal: "svc:a".into(), roles: vec!["codex".into()] }
    }

    #[tokio::test]
    async fn keys_are_made_rotated_revoked_and_listed() {
        let (store, seal) = (memory(&[tables::MIGRATIONS]), RowSeal::default());
        seal.set_key(Some([1; 32]));
        let log = Log::off();
        let keys = KeyTable { store: &store, seal: &seal, log: &log };
        let pair = new(keys, "k-1", owner(), [1; 32], 1000).await.unwrap();
        assert_eq!(Pair::from_jwk(&pair.to_jwk()).unwrap().seed, pair.seed);
        assert!(!format!("{pair:?}").contains("seed"));
        let twice = new(keys, "k-1", owner(), [2; 32], 1000).await.unwrap_err();
        assert_eq!(twice.code, Code::StateConflict);
        rotate(keys, "k-1", "k-2", [2; 32], 2000).await.unwrap();
        let kept = list(&store, None, "").await.unwrap();
        assert_eq!(kept.iter().map(|key| key.kid.as_str()).collect::<Vec<_>>(), ["k-1", "k-2"]);
        assert_eq!(kept[0].revoked_ms, Some(2000 + limits::ROTATION_GRACE_MS));
        assert_eq!((&kept[1].owner, kept[1].created_ms), (&owner(), 2000));
        revoke(keys, "k-1", 3000, None).await.unwrap();
        revoke(keys, "k-1", 4000, None).await.unwrap();
        assert_eq!(find(keys, "k-1").await.unwrap().unwrap().revoked_ms, Some(3000));
        assert_eq!(revoke(keys, "unknown", 1, None).await.unwrap_err().code, Code::NotFound);
        assert_eq!(rotate(keys, "nobody", "k-3", [3; 32], 1).await.unwrap_err().code, Code::NotFound);
    }

    #[tokio::test]
    async fn a_key_that_makes_no_sense_is_not_taken_up() {
        let (store, seal) = (memory(&[tables::MIGRATIONS]), RowSeal::default());
        seal.set_key(Some([1; 32]));
        let log = Log::off();
        let keys = KeyTable { store: &store, seal: &seal, log: &log };
        let (_, good) = make("k", owner(), [1; 32], 1);
        let with = |change: fn(&mut Record)| {
            let mut record = good.clone();
            change(&mut record);
            record
        };
        for wrong in [
            with(|key| key.kid = "a b".into()),
            with(|key| key.kid = String::new()),
            with(|key| key.owner.tenant = "a b".into()),
            with(|key| key.owner.principal = String::new()),
            with(|key| key.owner.roles = vec!["king".into()]),
            with(|key| key.public = [0; 32]),
        ] {
            assert_eq!(add(keys, &wrong, None).await.unwrap_err().code, Code::InvalidArgument, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn a_key_that_was_made_or_changed_in_the_data_file_is_none() {
        for change in tables::KEY_CHANGES {
            let (store, seal) = (memory(&[tables::MIGRATIONS]), RowSeal::default());
            seal.set_key(Some([1; 32]));
            let log = Log::off();
            let keys = KeyTable { store: &store, seal: &seal, log: &log };
            new(keys, "k-1", owner(), [1; 32], 1000).await.unwrap();
            revoke(keys, "k-1", 5000, None).await.unwrap();
            assert_eq!(find(keys, "k-1").await.unwrap().unwrap().revoked_ms, Some(5000));
            let mut batch = Batch::new();
            batch.then(Statement::new(change, Vec::new()));
            store.commit(batch).await.unwrap();
            assert_eq!(find(keys, "k-1").await.unwrap_err().code, Code::StoreCorrupt, "{change}");
        }
    }
}
