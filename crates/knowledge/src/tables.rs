//! The tables of knowledge, and the statements over documents. Tenant first in every key and every condition.

use orchestr8_kernel::ports::store::{Cell, Statement};

use crate::record::{Document, Op};

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[(
    "knowledge-1",
    "CREATE TABLE knowledge_tree (
        tenant TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, chunks INTEGER NOT NULL, words INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE knowledge_document (
        tenant TEXT NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL, place TEXT NOT NULL, revision INTEGER NOT NULL,
        content_revision INTEGER NOT NULL, title TEXT NOT NULL, mime TEXT NOT NULL, human INTEGER NOT NULL,
        metadata TEXT NOT NULL, chars INTEGER NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,
        hidden_by TEXT, purge_ms INTEGER, delete_ms INTEGER,
        PRIMARY KEY (tenant, id)) STRICT;
     CREATE INDEX knowledge_document_children ON knowledge_document (tenant, parent, place, id);
     CREATE INDEX knowledge_document_hidden ON knowledge_document (tenant, hidden_by) WHERE hidden_by IS NOT NULL;
     CREATE INDEX knowledge_document_purge ON knowledge_document (purge_ms) WHERE purge_ms IS NOT NULL;
     CREATE INDEX knowledge_document_delete ON knowledge_document (delete_ms) WHERE delete_ms IS NOT NULL;
     CREATE TABLE knowledge_revision (
        tenant TEXT NOT NULL, document TEXT NOT NULL, revision INTEGER NOT NULL, at_ms INTEGER NOT NULL, author TEXT NOT NULL,
        op TEXT NOT NULL, note TEXT, title TEXT NOT NULL, mime TEXT NOT NULL, parent TEXT NOT NULL, metadata TEXT NOT NULL,
        content_revision INTEGER NOT NULL, body TEXT,
        PRIMARY KEY (tenant, document, revision)) STRICT;
     CREATE TABLE knowledge_tag (
        tenant TEXT NOT NULL, tag TEXT NOT NULL, document TEXT NOT NULL,
        PRIMARY KEY (tenant, tag, document)) STRICT, WITHOUT ROWID;
     CREATE INDEX knowledge_tag_document ON knowledge_tag (tenant, document);
     CREATE TABLE knowledge_change (
        tenant TEXT NOT NULL, document TEXT NOT NULL, position INTEGER NOT NULL,
        PRIMARY KEY (tenant, document)) STRICT, WITHOUT ROWID;
     CREATE INDEX knowledge_change_position ON knowledge_change (tenant, position);
     CREATE TABLE knowledge_chunk (
        tenant TEXT NOT NULL, document TEXT NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL UNIQUE,
        start_char INTEGER NOT NULL, chars INTEGER NOT NULL, words INTEGER NOT NULL, heading TEXT NOT NULL,
        PRIMARY KEY (tenant, document, place)) STRICT;
     CREATE VIRTUAL TABLE knowledge_lexical USING fts5(
        head, body, fold, content='', contentless_delete=1, tokenize=\"ascii tokenchars '_'\");
     CREATE VIRTUAL TABLE knowledge_term USING fts5vocab(knowledge_lexical, row);
     CREATE VIRTUAL TABLE knowledge_posting USING fts5vocab(knowledge_lexical, instance);
     CREATE TABLE knowledge_webhook (
        tenant TEXT NOT NULL, id TEXT NOT NULL, url TEXT NOT NULL, events TEXT NOT NULL, secret TEXT,
        created_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, id)) STRICT, WITHOUT ROWID;
     CREATE TABLE knowledge_delivery (
        tenant TEXT NOT NULL, id TEXT NOT NULL, webhook TEXT NOT NULL, event TEXT NOT NULL, body TEXT NOT NULL,
        attempts INTEGER NOT NULL, due_ms INTEGER, failed_ms INTEGER, why TEXT,
        PRIMARY KEY (tenant, id, webhook)) STRICT, WITHOUT ROWID;
     CREATE INDEX knowledge_delivery_due ON knowledge_delivery (due_ms) WHERE due_ms IS NOT NULL;
     CREATE INDEX knowledge_delivery_failed ON knowledge_delivery (failed_ms) WHERE failed_ms IS NOT NULL;",
), (
    "knowledge-vectors-1",
    "ALTER TABLE knowledge_chunk ADD COLUMN print BLOB;
     CREATE TABLE knowledge_vector (
        tenant TEXT NOT NULL, document TEXT NOT NULL, print BLOB NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL,
        PRIMARY KEY (tenant, document, print, model)) STRICT;",
), (
    "knowledge-webhooks-1",
    "ALTER TABLE knowledge_webhook ADD COLUMN author TEXT;
     ALTER TABLE knowledge_webhook ADD COLUMN paused TEXT;",
), (
    "knowledge-feed-1",
    "ALTER TABLE knowledge_revision ADD COLUMN correlation TEXT;
     ALTER TABLE knowledge_revision ADD COLUMN position INTEGER;
     CREATE INDEX knowledge_revision_position ON knowledge_revision (tenant, position) WHERE position IS NOT NULL;",
)];

/// Which document of whom.
#[derive(Clone, Copy)]
pub struct Whose<'a> {
    pub tenant: &'a str,
    pub id: &'a str,
}

impl Whose<'_> {
    pub fn cells(&self) -> Vec<Cell> {
        vec![self.tenant.into(), self.id.into()]
    }

    pub fn and(&self, more: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
        let mut cells = self.cells();
        cells.extend(more);
        cells
    }
}

/// Makes sure that a tenant has a tree.
pub fn tree_open(tenant: &str) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_tree (tenant, version, chunks, words) VALUES (?1, 0, 0, 0) ON CONFLICT DO NOTHING",
        vec![tenant.into()],
    )
}

/// Counts a change. Every write of a tenant changes this row first: in a store that runs transactions side by side, its lock
/// lets the guards that follow see all that came before, so that no two moves together make what neither would.
pub fn tree_bump(tenant: &str) -> Statement {
    Statement::new("UPDATE knowledge_tree SET version = version + 1 WHERE tenant = ?1", vec![tenant.into()])
}

/// Changes one row, or the document is not at this revision any more.
pub fn tree_hold(whose: Whose<'_>, revision: i64) -> Statement {
    Statement::new(
        "UPDATE knowledge_tree SET version = version WHERE tenant = ?1 AND EXISTS (
            SELECT 1 FROM knowledge_document WHERE tenant = ?1 AND id = ?2 AND revision = ?3)",
        whose.and([revision.into()]),
    )
}

/// Changes one row, or it is not time to delete the document, or not any more.
pub fn due_hold(whose: Whose<'_>, now_ms: i64) -> Statement {
    Statement::new(
        "UPDATE knowledge_tree SET version = version WHERE tenant = ?1 AND EXISTS (
            SELECT 1 FROM knowledge_document WHERE tenant = ?1 AND id = ?2 AND delete_ms <= ?3)",
        whose.and([now_ms.into()]),
    )
}

/// Columns: version, chunks, words.
pub fn tree_read(tenant: &str) -> Statement {
    Statement::new("SELECT version, chunks, words FROM knowledge_tree WHERE tenant = ?1", vec![tenant.into()])
}

/// Changes one row, or the id is taken, or its parent is not there any more.
pub fn document_insert(tenant: &str, new: &Document) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_document (tenant, id, parent, place, revision, content_revision, title, mime, human, metadata,
            chars, created_ms, updated_ms)
         SELECT ?1, ?2, ?3, ?4, 1, 1, ?5, ?6, ?7, ?8, ?9, ?10, ?11
         WHERE ?3 = 'root' OR EXISTS (SELECT 1 FROM knowledge_document WHERE tenant = ?1 AND id = ?3 AND hidden_by IS NULL)
         ON CONFLICT DO NOTHING",
        vec![
            tenant.into(),
            new.id.as_str().into(),
            new.parent.as_str().into(),
            new.place.as_str().into(),
            new.title.as_str().into(),
            new.mime.as_str().into(),
            i64::from(new.human).into(),
            metadata(new),
            new.chars.into(),
            new.created_ms.into(),
            new.updated_ms.into(),
        ],
    )
}

/// Changes one row, or the document is not at this revision any more.
pub fn document_update(tenant: &str, new: &Document) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET revision = ?3, content_revision = ?4, title = ?5, mime = ?6, human = ?7, metadata = ?8,
            chars = ?9, updated_ms = ?10
         WHERE tenant = ?1 AND id = ?2 AND revision = ?3 - 1 AND hidden_by IS NULL",
        vec![
            tenant.into(),
            new.id.as_str().into(),
            new.revision.into(),
            new.content_revision.into(),
            new.title.as_str().into(),
            new.mime.as_str().into(),
            i64::from(new.human).into(),
            metadata(new),
            new.chars.into(),
            new.updated_ms.into(),
        ],
    )
}

/// Changes one row, or the document changed, or the new parent is gone or is below it by now.
pub fn document_move(tenant: &str, new: &Document) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET parent = ?3, place = ?4, revision = ?5, updated_ms = ?6
         WHERE tenant = ?1 AND id = ?2 AND revision = ?5 - 1 AND hidden_by IS NULL
           AND (?3 = 'root' OR EXISTS (SELECT 1 FROM knowledge_document WHERE tenant = ?1 AND id = ?3 AND hidden_by IS NULL))
           AND NOT EXISTS (
             WITH RECURSIVE up(id) AS (
               SELECT ?3 UNION SELECT above.parent FROM up CROSS JOIN knowledge_document above WHERE above.tenant = ?1 AND above.id = up.id)
             SELECT 1 FROM up WHERE id = ?2)",
        vec![
            tenant.into(),
            new.id.as_str().into(),
            new.parent.as_str().into(),
            new.place.as_str().into(),
            new.revision.into(),
            new.updated_ms.into(),
        ],
    )
}

/// Gives the siblings places of equal width and equal distance, in the order they have.
pub fn siblings_renumber(tenant: &str, parent: &str) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET place = fresh.place FROM (
            SELECT id, substr('00000000' || CAST(30000001 + 50 * ROW_NUMBER() OVER (ORDER BY place, id) AS TEXT), -8) AS place
            FROM knowledge_document WHERE tenant = ?1 AND parent = ?2) AS fresh
         WHERE knowledge_document.tenant = ?1 AND knowledge_document.id = fresh.id",
        vec![tenant.into(), parent.into()],
    )
}

/// Puts a document in front of a sibling that was numbered anew in the same commit.
pub fn place_before(whose: Whose<'_>, before: &str) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET place = (SELECT substr('00000000' || CAST(CAST(place AS INTEGER) - 25 AS TEXT), -8)
            FROM knowledge_document WHERE tenant = ?1 AND id = ?3)
         WHERE tenant = ?1 AND id = ?2",
        whose.and([before.into()]),
    )
}

/// Hides a document; changes one row, or it changed in the meantime. Cells: revision, purge_ms, updated_ms.
pub fn document_hide(tenant: &str, new: &Document) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET hidden_by = ?2, purge_ms = ?4, delete_ms = NULL, revision = ?3, updated_ms = ?5
         WHERE tenant = ?1 AND id = ?2 AND revision = ?3 - 1 AND hidden_by IS NULL",
        vec![
            tenant.into(),
            new.id.as_str().into(),
            new.revision.into(),
            new.purge_ms.into(),
            new.updated_ms.into(),
        ],
    )
}

/// Hides everything below a document, but for what is hidden already.
pub fn below_hide(whose: Whose<'_>) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET hidden_by = ?2 WHERE tenant = ?1 AND hidden_by IS NULL AND id IN (
           WITH RECURSIVE below(id) AS (
             SELECT id FROM knowledge_document WHERE tenant = ?1 AND parent = ?2
             UNION SELECT child.id FROM below CROSS JOIN knowledge_document child WHERE child.tenant = ?1 AND child.parent = below.id)
           SELECT id FROM below)",
        whose.cells(),
    )
}

/// Says when it is to be deleted; changes one row, or it changed in the meantime.
pub fn document_schedule(whose: Whose<'_>, revision: i64, delete_ms: i64) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET delete_ms = ?4 WHERE tenant = ?1 AND id = ?2 AND revision = ?3 AND hidden_by IS NULL",
        whose.and([revision.into(), delete_ms.into()]),
    )
}

/// Shows a document again; changes one row, or it changed, or its parent is not to be seen.
pub fn document_show(tenant: &str, new: &Document) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET hidden_by = NULL, purge_ms = NULL, revision = ?3, updated_ms = ?4
         WHERE tenant = ?1 AND id = ?2 AND revision = ?3 - 1 AND hidden_by = ?2
           AND (parent = 'root' OR EXISTS (SELECT 1 FROM knowledge_document above
             WHERE above.tenant = ?1 AND above.id = knowledge_document.parent AND above.hidden_by IS NULL))",
        vec![tenant.into(), new.id.as_str().into(), new.revision.into(), new.updated_ms.into()],
    )
}

/// Shows everything that a document's deletion hid below it.
pub fn below_show(whose: Whose<'_>) -> Statement {
    Statement::new(
        "UPDATE knowledge_document SET hidden_by = NULL WHERE tenant = ?1 AND hidden_by = ?2",
        whose.cells(),
    )
}

/// One row of a document's history; it must be the next.
pub fn revision_insert(tenant: &str, new: &Document, record: &Record<'_>) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_revision (tenant, document, revision, at_ms, author, op, note, title, mime, parent, metadata,
            content_revision, body, correlation, position)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, (SELECT version FROM knowledge_tree WHERE tenant = ?1)
         WHERE ?3 = 1 + (SELECT COALESCE(MAX(revision), 0) FROM knowledge_revision WHERE tenant = ?1 AND document = ?2)",
        vec![
            tenant.into(),
            new.id.as_str().into(),
            new.revision.into(),
            new.updated_ms.into(),
            record.author.into(),
            record.op.as_str().into(),
            record.note.into(),
            new.title.as_str().into(),
            new.mime.as_str().into(),
            new.parent.as_str().into(),
            metadata(new),
            new.content_revision.into(),
            record.body.into(),
            record.correlation.into(),
        ],
    )
}

/// What a revision records beside the document.
pub struct Record<'a> {
    pub op: Op,
    pub author: &'a str,
    /// The id of what it is a part of.
    pub correlation: &'a str,
    pub note: Option<&'a str>,
    /// Only where it changed.
    pub body: Option<&'a str>,
}

pub fn tags_delete(whose: Whose<'_>) -> Statement {
    Statement::new("DELETE FROM knowledge_tag WHERE tenant = ?1 AND document = ?2", whose.cells())
}

pub fn tag_insert(whose: Whose<'_>, tag: &str) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_tag (tenant, document, tag) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        whose.and([tag.into()]),
    )
}

/// Notes that a document, and what its deletion hides, is to be looked at by indexes outside of the store.
pub fn change_note(whose: Whose<'_>) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_change (tenant, document, position)
         SELECT ?1, changed.id, tree.version FROM knowledge_tree tree CROSS JOIN (
           SELECT id FROM knowledge_document WHERE tenant = ?1 AND id = ?2
           UNION ALL SELECT id FROM knowledge_document WHERE tenant = ?1 AND hidden_by = ?2 AND id <> ?2) changed
         WHERE tree.tenant = ?1
         ON CONFLICT (tenant, document) DO UPDATE SET position = excluded.position",
        whose.cells(),
    )
}

/// The documents that changed after a position, in order. Columns: document, position.
pub fn changes_after(tenant: &str, position: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT document, position FROM knowledge_change WHERE tenant = ?1 AND position > ?2 ORDER BY position, document LIMIT ?3",
        vec![tenant.into(), position.into(), limit.into()],
    )
}

/// Deletions whose time has come. Columns: tenant, id.
pub fn deletions_due(now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, id FROM knowledge_document
         WHERE delete_ms IS NOT NULL AND delete_ms <= ?1 AND hidden_by IS NULL ORDER BY delete_ms, tenant, id LIMIT ?2",
        vec![now_ms.into(), limit.into()],
    )
}

/// What has been hidden long enough. Columns: tenant, id.
pub fn purges_due(now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, id FROM knowledge_document WHERE purge_ms IS NOT NULL AND purge_ms <= ?1
         ORDER BY purge_ms, tenant, id LIMIT ?2",
        vec![now_ms.into(), limit.into()],
    )
}

/// Everything of a hidden document and of all below it, for good. The last must change at least the document itself.
pub fn purge(whose: Whose<'_>, now_ms: i64) -> Vec<Statement> {
    [
        "DELETE FROM knowledge_lexical WHERE rowid IN (SELECT number FROM knowledge_chunk WHERE tenant = ?1 AND document IN (BELOW))",
        "UPDATE knowledge_tree SET
            chunks = chunks - (SELECT COUNT(*) FROM knowledge_chunk WHERE tenant = ?1 AND document IN (BELOW)),
            words = words - (SELECT COALESCE(SUM(words), 0) FROM knowledge_chunk WHERE tenant = ?1 AND document IN (BELOW))
         WHERE tenant = ?1",
        "DELETE FROM knowledge_chunk WHERE tenant = ?1 AND document IN (BELOW)",
        "DELETE FROM knowledge_vector WHERE tenant = ?1 AND document IN (BELOW)",
        "DELETE FROM knowledge_tag WHERE tenant = ?1 AND document IN (BELOW)",
        "INSERT INTO knowledge_change (tenant, document, position)
         SELECT ?1, gone.id, tree.version FROM knowledge_tree tree JOIN knowledge_document gone ON gone.tenant = tree.tenant
         WHERE tree.tenant = ?1 AND gone.id IN (BELOW)
         ON CONFLICT (tenant, document) DO UPDATE SET position = excluded.position",
        "DELETE FROM knowledge_revision WHERE tenant = ?1 AND document IN (BELOW)",
        "DELETE FROM knowledge_document WHERE tenant = ?1 AND id IN (BELOW)",
    ]
    .map(|sql| Statement { sql: sql.replace("BELOW", BELOW).into(), cells: whose.and([now_ms.into()]) })
    .into()
}

/// A document that may be purged by now, and all below it.
const BELOW: &str = "WITH RECURSIVE below(id) AS (
    SELECT id FROM knowledge_document WHERE tenant = ?1 AND id = ?2 AND hidden_by = ?2 AND purge_ms <= ?3
    UNION SELECT child.id FROM below CROSS JOIN knowledge_document child WHERE child.tenant = ?1 AND child.parent = below.id)
    SELECT id FROM below";

fn metadata(document: &Document) -> Cell {
    Cell::from(serde_json::Value::Object(document.metadata.clone()).to_string())
}
