//! Versions count the changes of a thing, so that nobody overwrites what they have not seen (SES-10).

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};

use crate::kernel::Core;
use crate::ledger::store_fault;
use crate::submission::Version;
use crate::tables;

/// The current version; an error when the thing is unknown, or not at the version the submitter has seen.
pub async fn guard(core: &Core, tenant: &Tenant, version: &Version) -> Result<Option<u64>, Fault> {
    let found = current(core, tenant, &version.subject).await?;
    match (version.expected, found) {
        (None, found) => Ok(found),
        (Some(expected), None) => Err(Fault::new(
            Code::NotFound,
            format!("'{}' is not there, and version {expected} of it was expected", version.subject),
        )
        .with("subject", &*version.subject)),
        (Some(expected), Some(found)) if expected == found => Ok(Some(found)),
        (Some(expected), Some(found)) => Err(Fault::new(
            Code::VersionMismatch,
            format!("'{}' is at version {found}, and version {expected} was expected", version.subject),
        )
        .with("subject", &*version.subject)
        .with("expected", expected)
        .with("found", found)),
    }
}

pub async fn current(core: &Core, tenant: &Tenant, subject: &str) -> Result<Option<u64>, Fault> {
    let rows =
        core.ports.store.query(tables::version_find(tenant.as_str(), subject)).await.map_err(store_fault)?;
    match rows.first() {
        Some(row) => Ok(Some(u64::try_from(row.int(0).map_err(store_fault)?).unwrap_or(0))),
        None => Ok(None),
    }
}
