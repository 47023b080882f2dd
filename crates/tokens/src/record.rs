//! One token as the store keeps it.

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::grant::{TokenGrant, TokenHash, TokenScope};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{Cell, Row};
use orchestr8_kernel::row_seal::RowSeal;
use serde_json::{Value, json};

const TABLE: &str = "api_tokens";

pub(crate) struct TokenRecord {
    pub id: String,
    pub tenant: Tenant,
    pub name: String,
    pub roles: Vec<String>,
    pub scope: TokenScope,
    pub sha256: String,
    pub created_ms: i64,
    pub created_by: String,
    pub expires_ms: Option<i64>,
    pub rotated_ms: Option<i64>,
    pub old_sha256: Option<String>,
    pub old_until_ms: Option<i64>,
    pub revoked_ms: Option<i64>,
    pub revoked_by: Option<String>,
    pub last_used_ms: Option<i64>,
    pub seal: Option<String>,
}

impl TokenRecord {
    /// Reads what the statements of `tables` give.
    pub fn read(row: &Row) -> Result<Self, Fault> {
        let text = |column| row.text(column).map(str::to_owned).map_err(store_fault);
        let maybe_text =
            |column| row.optional_text(column).map(|text| text.map(str::to_owned)).map_err(store_fault);
        let maybe_int = |column| match row.0.get(column) {
            Some(Cell::Null) => Ok(None),
            _ => row.int(column).map(Some).map_err(store_fault),
        };
        let roles = row.text(3).map_err(store_fault)?;
        let scope: Vec<String> = serde_json::from_str(row.text(4).map_err(store_fault)?).map_err(corrupt)?;
        Ok(Self {
            id: text(0)?,
            tenant: Tenant::parse(&text(1)?).map_err(corrupt)?,
            name: text(2)?,
            roles: serde_json::from_str(roles).map_err(corrupt)?,
            scope: TokenScope::parse(&scope).map_err(|what| Fault::new(Code::StoreCorrupt, what))?,
            sha256: text(5)?,
            created_ms: row.int(6).map_err(store_fault)?,
            created_by: text(7)?,
            expires_ms: maybe_int(8)?,
            rotated_ms: maybe_int(9)?,
            old_sha256: maybe_text(10)?,
            old_until_ms: maybe_int(11)?,
            revoked_ms: maybe_int(12)?,
            revoked_by: maybe_text(13)?,
            last_used_ms: maybe_int(14)?,
            seal: maybe_text(15)?,
        })
    }

    /// The seal of the row as this record says it.
    pub fn sealed(&self, seal: &RowSeal) -> Result<Option<String>, Fault> {
        self.with_cells(|cells| seal.seal(TABLE, cells))
    }

    /// Fails if the row is not the one that this server wrote.
    pub fn check_seal(&self, seal: &RowSeal) -> Result<(), Fault> {
        self.with_cells(|cells| seal.check(TABLE, cells, self.seal.as_deref()))
    }

    /// Everything that says who may do what. When it was used is left out, since each minute changes it.
    fn with_cells<T>(&self, work: impl FnOnce(&[Option<&str>]) -> T) -> T {
        let number = |at_ms: Option<i64>| at_ms.map(|at_ms| at_ms.to_string());
        let (expires, rotated) = (number(self.expires_ms), number(self.rotated_ms));
        let (until, revoked) = (number(self.old_until_ms), number(self.revoked_ms));
        let (roles, scope) = (self.roles.join(","), self.scope.entries().join(","));
        let created = self.created_ms.to_string();
        work(&[
            Some(&self.id),
            Some(self.tenant.as_str()),
            Some(&self.name),
            Some(&roles),
            Some(&scope),
            Some(&self.sha256),
            Some(&created),
            Some(&self.created_by),
            expires.as_deref(),
            rotated.as_deref(),
            self.old_sha256.as_deref(),
            until.as_deref(),
            revoked.as_deref(),
            self.revoked_by.as_deref(),
        ])
    }

    /// What its secrets grant: the present one, and the one before it while its grace lasts.
    pub fn grants(&self) -> Result<Vec<(TokenHash, TokenGrant)>, Fault> {
        let mut grants = vec![(hash(&self.sha256)?, self.grant())];
        if let (Some(old), Some(until_ms)) = (&self.old_sha256, self.old_until_ms) {
            let grant = self.grant();
            grant.end_at(until_ms);
            grants.push((hash(old)?, grant));
        }
        Ok(grants)
    }

    pub fn grant(&self) -> TokenGrant {
        let mut grant = TokenGrant::new(&self.id, &self.name, self.tenant.clone());
        (grant.roles, grant.scope) = (self.roles.clone(), self.scope.clone());
        if let Some(expires_ms) = self.expires_ms {
            grant.end_at(expires_ms);
        }
        grant
    }

    /// As people and programs see it: everything but its hash.
    pub fn shown(&self, last_used_ms: Option<i64>, now_ms: i64) -> Value {
        let moment = |at_ms: Option<i64>| at_ms.map(iso);
        let has_expired = self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms);
        let status = match (self.revoked_ms, has_expired) {
            (Some(_), _) => "revoked",
            (None, true) => "expired",
            (None, false) => "active",
        };
        let grace = self.old_until_ms.filter(|until_ms| self.old_sha256.is_some() && *until_ms > now_ms);
        json!({
            "id": self.id, "name": self.name, "tenant": self.tenant, "roles": self.roles, "scope": self.scope.entries(),
            "status": status, "createdAt": iso(self.created_ms), "createdBy": self.created_by,
            "expiresAt": moment(self.expires_ms), "rotatedAt": moment(self.rotated_ms), "oldSecretUntil": moment(grace),
            "revokedAt": moment(self.revoked_ms), "revokedBy": self.revoked_by,
            "lastUsedAt": moment(self.last_used_ms.max(last_used_ms)),
        })
    }
}

/// The hash of a token from its 64 hexadecimal digits.
pub(crate) fn hash(text: &str) -> Result<TokenHash, Fault> {
    let digit = |letter: u8| char::from(letter).to_digit(16);
    let mut hash = TokenHash::default();
    let wrong = || Fault::invalid("sha256 must be 64 hexadecimal digits");
    if text.len() != 2 * hash.len() {
        return Err(wrong());
    }
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let value = digit(pair[0]).zip(digit(pair[1])).map(|(high, low)| high << 4 | low);
        *byte = value.and_then(|value| u8::try_from(value).ok()).ok_or_else(wrong)?;
    }
    Ok(hash)
}

fn corrupt(cause: impl std::error::Error + Send + Sync + 'static) -> Fault {
    Fault::new(Code::StoreCorrupt, "a stored token cannot be read").because(cause)
}
