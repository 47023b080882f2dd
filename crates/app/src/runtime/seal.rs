//! The secret that seals what clients keep for us. It is made once and kept in the vault, so that what was sealed before a
//! restart can be opened after it.

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, canonical};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::{Batch, Error};
use orchestr8_kernel::{Kernel, log};
use orchestr8_secrets::{RecordKind, SecretText, SecretVault};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::tables;

const NAME: &str = "seal";

/// Without a key to encrypt it with it is made for this process alone: nothing is ever written in clear.
pub async fn secret(vault: &SecretVault, kernel: &Kernel) -> Result<[u8; 32], Failure> {
    vault.load().await?;
    let tenant = Tenant::local();
    if let Some(kept) = vault.internal(RecordKind::Server, tenant.as_str(), NAME) {
        return bytes(&kept).ok_or_else(|| Failure::new(Code::StoreCorrupt, "the stored seal is not one"));
    }
    let store = &kernel.ports().store;
    let failed = |error: Error| Failure::new(Code::StoreFailed, error.to_string());
    let rows = store.query(tables::secret_find(NAME)).await.map_err(failed)?;
    let text = match rows.first().map(|row| row.blob(0)).transpose().map_err(failed)? {
        Some(clear) => canonical::hex(clear),
        None => canonical::hex(&fresh(kernel)),
    };
    let value = SecretText::new(text);
    let record = vault.draft(RecordKind::Server, tenant.as_str(), NAME, "server");
    match vault.seal(&record, &value).await {
        Ok(statement) => {
            let mut batch = Batch::new();
            batch.then_one(statement).then(tables::secret_delete(NAME));
            store.commit(batch).await.map_err(failed)?;
            vault.remember(record, value.clone());
        }
        Err(fault) => {
            let fields = json!({"error": log::error(&fault)});
            kernel.log().warn(
                "what clients keep for the server is only good until it stops: there is no key for secrets",
                fields,
            );
        }
    }
    bytes(&value).ok_or_else(|| Failure::new(Code::StoreCorrupt, "the stored seal is not one"))
}

/// The key that seals rows which grant rights; none if the vault is locked, so that no row of this process is believed later.
pub async fn row_key(vault: &SecretVault, kernel: &Kernel) -> Result<Option<[u8; 32]>, Failure> {
    if vault.locked().is_some() {
        return Ok(None);
    }
    let mut key = Sha256::new();
    key.update(b"orchestr8 row seal v1");
    key.update(secret(vault, kernel).await?);
    Ok(Some(key.finalize().into()))
}

fn fresh(kernel: &Kernel) -> [u8; 32] {
    let mut fresh = Sha256::new();
    for _ in 0..3 {
        fresh.update(kernel.ports().ids.fresh(For::Record).as_bytes());
    }
    fresh.finalize().into()
}

fn bytes(text: &SecretText) -> Option<[u8; 32]> {
    let text = text.expose();
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let all: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    all?.try_into().ok()
}
