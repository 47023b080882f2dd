//! The vault: every secret of this installation, decrypted in memory once, handed out only to uses within its binding.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Statement};
use orchestr8_kernel::redact::SecretMask;
use orchestr8_kernel::{Log, Ports};
use parking_lot::RwLock;
use serde_json::json;

use crate::binding::{SecretBinding, SecretUse, denied};
use crate::cipher::{DataKey, MasterKey};
use crate::limits::{RETIRED, SECRETS};
use crate::record::{RecordKind, SecretRecord};
use crate::tables;
use crate::value::SecretText;

/// Where the master key comes from.
pub trait KeySource: Send + Sync + 'static {
    /// The keys that may fit, the likeliest first. Empty: no key is configured and none has been created.
    fn load(&self) -> Result<Vec<MasterKey>, Fault>;

    /// Creates a key where none is configured, or refuses.
    fn create(&self) -> Result<MasterKey, Fault>;

    /// This one of several fits: the others are of no use any more.
    fn confirm(&self, _key: &MasterKey) {}
}

/// A key that ends with the process, for stores that do so as well.
#[derive(Debug)]
pub struct MemoryKey(MasterKey);

impl MemoryKey {
    pub fn new() -> Result<Self, Fault> {
        MasterKey::generate().map(Self)
    }
}

impl KeySource for MemoryKey {
    fn load(&self) -> Result<Vec<MasterKey>, Fault> {
        Ok(vec![self.0.clone()])
    }

    fn create(&self) -> Result<MasterKey, Fault> {
        Ok(self.0.clone())
    }
}

/// A secret that the settings declare: its value comes from a variable or a file.
#[derive(Debug, Clone)]
pub struct DeclaredSecret {
    pub tenant: String,
    pub name: String,
    pub binding: SecretBinding,
    pub value: SecretText,
}

/// Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct SecretVault(Arc<Inner>);

struct Inner {
    ports: Ports,
    keys: Arc<dyn KeySource>,
    state: RwLock<State>,
    loaded: tokio::sync::OnceCell<()>,
    /// One data key is created at a time.
    creating: tokio::sync::Mutex<()>,
}

type Slot = (RecordKind, String, String);

#[derive(Default)]
struct State {
    data_key: Option<DataKey>,
    /// Why stored secrets cannot be used.
    locked: Option<Fault>,
    entries: BTreeMap<Slot, Entry>,
    /// Values that were replaced or deleted while this process runs, with their tenant: a call that is under way may still
    /// bring one back. The oldest first.
    retired: VecDeque<(String, SecretText)>,
    /// Keys and tokens of the settings: no use of them passes the vault, and every tenant's outputs are masked.
    confidential: Vec<SecretText>,
    /// For tenants without secrets of their own.
    base_mask: SecretMask,
    masks: HashMap<String, SecretMask>,
}

impl State {
    fn retire(&mut self, entry: Option<Entry>) {
        let Some(Entry { record, value }) = entry else { return };
        if self.retired.len() >= RETIRED {
            self.retired.pop_front();
        }
        self.retired.push_back((record.tenant, value));
    }
}

#[derive(Clone)]
struct Entry {
    record: SecretRecord,
    value: SecretText,
}

impl SecretVault {
    /// With the secrets of the settings; `load` adds those of the store.
    pub fn new(ports: &Ports, keys: Arc<dyn KeySource>, declared: Vec<DeclaredSecret>) -> Self {
        let mut state = State::default();
        for DeclaredSecret { tenant, name, binding, value } in declared {
            let record = SecretRecord {
                tenant,
                kind: RecordKind::Named,
                name,
                version: 1,
                binding,
                created_ms: 0,
                rotated_ms: 0,
                changed_by: String::from("settings"),
                declared: true,
            };
            state.entries.insert(slot(&record), Entry { record, value });
        }
        let vault = Self(Arc::new(Inner {
            ports: ports.clone(),
            keys,
            state: RwLock::new(state),
            loaded: tokio::sync::OnceCell::new(),
            creating: tokio::sync::Mutex::new(()),
        }));
        vault.remask();
        vault
    }

    /// Masks these values as well, for every tenant and in logs: keys of providers, tokens of the settings.
    pub fn mask_also(&self, values: impl IntoIterator<Item = SecretText>) {
        self.0.state.write().confidential.extend(values);
        self.remask();
    }

    /// Reads and decrypts what is stored, once. Without the right key the vault stays locked: everything else works.
    pub async fn load(&self) -> Result<(), Fault> {
        self.0.loaded.get_or_try_init(|| self.read()).await.map(|_| ())
    }

    async fn read(&self) -> Result<(), Fault> {
        let store = &self.0.ports.store;
        let keys = store.query(tables::data_key()).await.map_err(store_fault)?;
        let Some(row) = keys.first() else { return Ok(()) };
        let (id, wrapped) = (row.text(0).map_err(store_fault)?, row.blob(1).map_err(store_fault)?);
        let key = match self.unwrap_key(id, wrapped) {
            Ok(key) => key,
            Err(fault) => {
                self.log().error(
                    "the secrets cannot be used",
                    json!({"error": orchestr8_kernel::log::error(&fault)}),
                );
                self.0.state.write().locked = Some(fault);
                return Ok(());
            }
        };
        let rows = store.query(tables::records(SECRETS)).await.map_err(store_fault)?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in &rows {
            let (record, sealed) = SecretRecord::read(row).map_err(store_fault)?;
            match self::open(&key, &record, &sealed) {
                Ok(value) => entries.push(Entry { record, value }),
                Err(fault) => {
                    let fields = json!({"secret": record.name, "tenant": record.tenant, "error": orchestr8_kernel::log::error(&fault)});
                    self.log().error("a stored secret was changed from outside and is not used", fields);
                }
            }
        }
        {
            let mut state = self.0.state.write();
            state.data_key = Some(key);
            for entry in entries {
                // What the settings declare comes first.
                state.entries.entry(slot(&entry.record)).or_insert(entry);
            }
        }
        self.remask();
        Ok(())
    }

    /// Opens the data key with the first master key that fits.
    fn unwrap_key(&self, id: &str, wrapped: &[u8]) -> Result<DataKey, Fault> {
        let mut unfit =
            Fault::new(Code::SecretsUnavailable, "this store holds secrets, and their key is missing");
        for (index, master) in self.0.keys.load()?.iter().enumerate() {
            match master.unwrap_key(id, wrapped) {
                Ok(key) => {
                    if index > 0 {
                        self.0.keys.confirm(master);
                    }
                    return Ok(key);
                }
                Err(fault) => unfit = fault,
            }
        }
        Err(unfit)
    }

    /// Why stored secrets cannot be used, if that is so.
    pub fn locked(&self) -> Option<Fault> {
        self.0.state.read().locked.clone()
    }

    /// Whether a tenant has a named secret.
    pub fn has(&self, tenant: &str, name: &str) -> bool {
        self.record(tenant, name).is_some()
    }

    pub fn record(&self, tenant: &str, name: &str) -> Option<SecretRecord> {
        let state = self.0.state.read();
        let slot = (RecordKind::Named, tenant.to_owned(), name.to_owned());
        state.entries.get(&slot).map(|entry| entry.record.clone())
    }

    /// The named secrets of a tenant, by name.
    pub fn list(&self, tenant: &str) -> Vec<SecretRecord> {
        let state = self.0.state.read();
        let own = |entry: &&Entry| entry.record.kind == RecordKind::Named && entry.record.tenant == tenant;
        state.entries.values().filter(own).map(|entry| entry.record.clone()).collect()
    }

    /// The value for one use within the binding of the secret.
    pub fn reveal(&self, usage: &SecretUse<'_>) -> Result<SecretText, Fault> {
        let state = self.0.state.read();
        let slot = (RecordKind::Named, usage.tenant.to_owned(), usage.name.to_owned());
        match (state.entries.get(&slot), &state.locked) {
            (Some(entry), _) => {
                entry.record.binding.authorize(usage)?;
                Ok(entry.value.clone())
            }
            (None, Some(locked)) => Err(locked.clone()),
            (None, None) => {
                let what = String::from(
                    "does not exist in this tenant; `orchestr8 secrets set` creates and binds one",
                );
                Err(denied(usage.name, "unknown", what))
            }
        }
    }

    /// Masks the secrets of one tenant: another tenant must not learn from what is masked.
    pub fn mask(&self, tenant: &str) -> SecretMask {
        let state = self.0.state.read();
        state.masks.get(tenant).unwrap_or(&state.base_mask).clone()
    }

    /// The value of a record that no definition can use.
    pub fn internal(&self, kind: RecordKind, tenant: &str, name: &str) -> Option<SecretText> {
        let state = self.0.state.read();
        state.entries.get(&(kind, tenant.to_owned(), name.to_owned())).map(|entry| entry.value.clone())
    }

    /// The statement that stores a value under a record. `remember` it once that is durable.
    pub async fn seal(&self, record: &SecretRecord, value: &SecretText) -> Result<Statement, Fault> {
        let key = self.data_key().await?;
        let binding = record.binding_text()?;
        let sealed = key.seal(&record.context(&binding), value.expose().as_bytes())?;
        Ok(tables::record_put(record, binding, &key.id, sealed))
    }

    /// The statement that deletes a record. `forget` it once that is durable.
    pub fn removal(&self, kind: RecordKind, tenant: &str, name: &str) -> Statement {
        tables::record_delete(tenant, kind.as_str(), name)
    }

    pub fn remember(&self, record: SecretRecord, value: SecretText) {
        {
            let mut state = self.0.state.write();
            let before = state.entries.insert(slot(&record), Entry { record, value });
            state.retire(before);
        }
        self.remask();
    }

    pub fn forget(&self, kind: RecordKind, tenant: &str, name: &str) {
        {
            let mut state = self.0.state.write();
            let before = state.entries.remove(&(kind, tenant.to_owned(), name.to_owned()));
            state.retire(before);
        }
        self.remask();
    }

    /// The next version of a record that the server itself keeps.
    pub fn draft(&self, kind: RecordKind, tenant: &str, name: &str, changed_by: &str) -> SecretRecord {
        let now_ms = self.0.ports.clock.now_ms();
        let slot = (kind, tenant.to_owned(), name.to_owned());
        let before = self.0.state.read().entries.get(&slot).map(|entry| entry.record.clone());
        SecretRecord {
            tenant: tenant.to_owned(),
            kind,
            name: name.to_owned(),
            version: before.as_ref().map_or(1, |record| record.version + 1),
            binding: SecretBinding::default(),
            created_ms: before.map_or(now_ms, |record| record.created_ms),
            rotated_ms: now_ms,
            changed_by: changed_by.to_owned(),
            declared: false,
        }
    }

    /// Encrypts every record again, under a new data key that the new master key wraps. One commit: either all of it
    /// happened, or nothing. Gives the number of records.
    pub async fn rekey(&self, master: &MasterKey) -> Result<usize, Fault> {
        let old = self.data_key().await?;
        let new = DataKey::generate()?;
        let stored: Vec<Entry> =
            self.0.state.read().entries.values().filter(|entry| !entry.record.declared).cloned().collect();
        let mut batch = Batch::new();
        batch.then_one(tables::data_key_delete(&old.id));
        batch.then_one(tables::data_key_insert(&new.id, master.wrap(&new)?, self.0.ports.clock.now_ms()));
        for Entry { record, value } in &stored {
            let sealed = new.seal(&record.context(&record.binding_text()?), value.expose().as_bytes())?;
            batch.then_one(tables::record_reseal(record, &new.id, sealed));
        }
        batch.link(crate::record::rekeyed(&new.id, stored.len(), self.0.ports.clock.now_ms()));
        self.0.ports.store.commit(batch).await.map_err(store_fault)?;
        self.0.state.write().data_key = Some(new);
        Ok(stored.len())
    }

    /// The key of the records. The first one is created, and with it the master key if none is configured.
    async fn data_key(&self) -> Result<DataKey, Fault> {
        self.load().await?;
        let _one = self.0.creating.lock().await;
        {
            let state = self.0.state.read();
            if let Some(fault) = &state.locked {
                return Err(fault.clone());
            }
            if let Some(key) = &state.data_key {
                return Ok(key.clone());
            }
        }
        let master = match self.0.keys.load()?.into_iter().next() {
            Some(master) => master,
            None => self.0.keys.create()?,
        };
        let key = DataKey::generate()?;
        let mut batch = Batch::new();
        batch.then_one(tables::data_key_insert(&key.id, master.wrap(&key)?, self.0.ports.clock.now_ms()));
        self.0.ports.store.commit(batch).await.map_err(store_fault)?;
        self.0.state.write().data_key = Some(key.clone());
        Ok(key)
    }

    /// Builds the masks again. The redactor of logs knows the values of all tenants.
    fn remask(&self) {
        let mut state = self.0.state.write();
        let mut values: HashMap<String, Vec<SecretText>> = HashMap::new();
        let live = state.entries.values().map(|entry| (&entry.record.tenant, &entry.value));
        for (tenant, value) in live.chain(state.retired.iter().map(|(tenant, value)| (tenant, value))) {
            values.entry(tenant.clone()).or_default().push(value.clone());
        }
        let confidential = state.confidential.clone();
        let mask = |values: &[SecretText]| {
            SecretMask::new(values.iter().chain(&confidential).map(SecretText::expose))
        };
        state.base_mask = mask(&[]);
        state.masks = values.iter().map(|(tenant, values)| (tenant.clone(), mask(values))).collect();
        let all: Vec<SecretText> = values.into_values().flatten().collect();
        self.0.ports.redactor.set_secrets(mask(&all));
    }

    pub(crate) fn count(&self) -> usize {
        self.0.state.read().entries.len()
    }

    fn log(&self) -> &Log {
        &self.0.ports.log
    }
}

impl fmt::Debug for SecretVault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretVault(..)")
    }
}

fn slot(record: &SecretRecord) -> Slot {
    (record.kind, record.tenant.clone(), record.name.clone())
}

fn open(key: &DataKey, record: &SecretRecord, sealed: &[u8]) -> Result<SecretText, Fault> {
    let plain = key.open(&record.context(&record.binding_text()?), sealed)?;
    let text = std::str::from_utf8(&plain)
        .map_err(|_| Fault::new(Code::StoreCorrupt, "a stored secret is not text"))?;
    Ok(SecretText::new(text))
}
