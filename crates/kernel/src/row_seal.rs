//! Seals for rows that grant rights (API tokens, approvals, schedules): a MAC whose key is not in the data file, so that a process that
//! can only write the file cannot make or change one. See ADR 44.

use std::sync::{Arc, OnceLock};

use hmac::{Hmac, Mac};
use orchestr8_contract::canonical::hex;
use orchestr8_contract::{Code, Fault};
use sha2::Sha256;

/// Stands for a cell without a value; no cell that is sealed has it as its text.
const ABSENT: &str = "\0";

/// Seals rows and checks seals. Clones share the key. Until a key is set, rows are neither sealed nor checked, which is how stores of
/// tests work.
#[derive(Clone, Default)]
pub struct RowSeal(Arc<OnceLock<Option<[u8; 32]>>>);

impl RowSeal {
    /// Sets the key, once. None: it exists and cannot be read, so nothing is sealed and no seal is believed.
    pub fn set_key(&self, key: Option<[u8; 32]>) {
        let _ = self.0.set(key);
    }

    /// The seal of a row: its table, and the cells that matter.
    pub fn seal(&self, table: &'static str, cells: &[Option<&str>]) -> Result<Option<String>, Fault> {
        match self.0.get() {
            None => Ok(None),
            Some(Some(key)) => Ok(Some(hex(&digest(key, table, cells)?.finalize().into_bytes()))),
            Some(None) => Err(locked()),
        }
    }

    /// Fails with `STORE_CORRUPT` if the row is not the one that was sealed.
    pub fn check(
        &self,
        table: &'static str,
        cells: &[Option<&str>],
        seal: Option<&str>,
    ) -> Result<(), Fault> {
        let Some(key) = self.0.get() else { return Ok(()) };
        let key = key.as_ref().ok_or_else(locked)?;
        let bytes = seal.and_then(unhex).ok_or_else(|| broken(table))?;
        digest(key, table, cells)?.verify_slice(&bytes).map_err(|_| broken(table))
    }
}

fn digest(key: &[u8; 32], table: &str, cells: &[Option<&str>]) -> Result<Hmac<Sha256>, Fault> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key)
        .map_err(|error| Fault::internal("the key of row seals has the wrong length").because(error))?;
    for text in std::iter::once(table).chain(cells.iter().map(|cell| cell.unwrap_or(ABSENT))) {
        mac.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        mac.update(text.as_bytes());
    }
    Ok(mac)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn broken(table: &str) -> Fault {
    Fault::new(
        Code::StoreCorrupt,
        format!("a row of {table} is not the one that this server wrote; it was changed in the data file"),
    )
    .with("reason", "row_seal")
}

fn locked() -> Fault {
    Fault::new(
        Code::SecretsUnavailable,
        "rows that grant rights cannot be sealed or checked: the key of secrets is not the right one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_one_row_of_one_table_under_one_key() {
        let seal = RowSeal::default();
        let row = [Some("a"), None, Some("bc")];
        assert_eq!(seal.seal("t", &row).unwrap(), None);
        assert!(seal.check("t", &row, None).is_ok(), "without a key nothing is checked");
        seal.set_key(Some([1; 32]));
        let made = seal.seal("t", &row).unwrap();
        assert!(seal.check("t", &row, made.as_deref()).is_ok());
        for (table, cells) in [
            ("u", [Some("a"), None, Some("bc")]),
            ("t", [Some("a"), Some(""), Some("bc")]),
            ("t", [Some("ab"), None, Some("c")]),
        ] {
            assert_eq!(seal.check(table, &cells, made.as_deref()).unwrap_err().code, Code::StoreCorrupt);
        }
        for wrong in [None, Some(""), Some("zz"), Some("é"), Some("00")] {
            assert!(seal.check("t", &row, wrong).is_err(), "{wrong:?}");
        }
        let other = RowSeal::default();
        other.set_key(Some([2; 32]));
        assert!(other.check("t", &row, made.as_deref()).is_err());
        let blind = RowSeal::default();
        blind.set_key(None);
        assert_eq!(blind.check("t", &row, made.as_deref()).unwrap_err().code, Code::SecretsUnavailable);
        assert!(blind.seal("t", &row).is_err());
    }
}
