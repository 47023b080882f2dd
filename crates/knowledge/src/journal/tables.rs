//! The statements over the journal of changes.

use orchestr8_kernel::ports::store::Statement;

/// Tenants after one, with the number of their last change. Columns: tenant, version.
pub fn trees_after(tenant: &str, limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, version FROM knowledge_tree WHERE tenant > ?1 ORDER BY tenant LIMIT ?2",
        vec![tenant.into(), limit.into()],
    )
}

/// The documents that changed after a place in the journal, in order, with the number of their passages that may be found.
/// Columns: document, position, passages.
pub fn changes(tenant: &str, after: (i64, &str), limit: i64) -> Statement {
    Statement::new(
        "SELECT change.document, change.position, (SELECT COUNT(*) FROM knowledge_chunk chunk
            WHERE chunk.tenant = ?1 AND chunk.document = change.document)
         FROM knowledge_change change WHERE change.tenant = ?1 AND (change.position, change.document) > (?2, ?3)
         ORDER BY change.position, change.document LIMIT ?4",
        vec![tenant.into(), after.0.into(), after.1.into(), limit.into()],
    )
}
