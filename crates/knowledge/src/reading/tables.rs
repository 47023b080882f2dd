//! The statements that only read documents.

use orchestr8_kernel::ports::store::Statement;

use crate::tables::Whose;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, parent, place, revision, content_revision, title, mime, human, metadata, chars, created_ms, updated_ms,
                hidden_by, purge_ms, delete_ms FROM knowledge_document ",
            $rest
        )
    };
}

/// A document, hidden or not. Columns as `Document::of` reads them.
pub fn document(whose: Whose<'_>) -> Statement {
    Statement::new(select!("WHERE tenant = ?1 AND id = ?2"), whose.cells())
}

/// The body of a document at a revision that has one. Columns: body.
pub fn body(whose: Whose<'_>, content_revision: i64) -> Statement {
    Statement::new(
        "SELECT body FROM knowledge_revision WHERE tenant = ?1 AND document = ?2 AND revision = ?3 AND body IS NOT NULL",
        whose.and([content_revision.into()]),
    )
}

/// The beginning of it. Columns: body.
pub fn body_start(whose: Whose<'_>, content_revision: i64, chars: i64) -> Statement {
    Statement::new(
        "SELECT substr(body, 1, ?4) FROM knowledge_revision
         WHERE tenant = ?1 AND document = ?2 AND revision = ?3 AND body IS NOT NULL",
        whose.and([content_revision.into(), chars.into()]),
    )
}

/// A document and those above it, itself first. Columns: id, parent, title, hidden_by.
pub fn ancestors(whose: Whose<'_>, limit: i64) -> Statement {
    Statement::new(
        "WITH RECURSIVE up(id, parent, title, hidden_by, depth) AS (
           SELECT id, parent, title, hidden_by, 0 FROM knowledge_document WHERE tenant = ?1 AND id = ?2
           UNION ALL SELECT above.id, above.parent, above.title, above.hidden_by, up.depth + 1
             FROM up CROSS JOIN knowledge_document above WHERE above.tenant = ?1 AND above.id = up.parent AND up.depth < ?3)
         SELECT id, parent, title, hidden_by FROM up ORDER BY depth",
        whose.and([limit.into()]),
    )
}

/// How many levels are below a document. Columns: depth.
pub fn height(whose: Whose<'_>, limit: i64) -> Statement {
    Statement::new(
        "WITH RECURSIVE below(id, depth) AS (
           SELECT ?2, 0
           UNION ALL SELECT child.id, below.depth + 1 FROM below CROSS JOIN knowledge_document child
             WHERE child.tenant = ?1 AND child.parent = below.id AND below.depth < ?3)
         SELECT MAX(depth) FROM below",
        whose.and([limit.into()]),
    )
}

/// Children after a place, in order. Columns as `Document::of` reads them.
pub fn children(parent: Whose<'_>, place: &str, id: &str, limit: i64) -> Statement {
    Statement::new(
        select!(
            "WHERE tenant = ?1 AND parent = ?2 AND hidden_by IS NULL AND (place, id) > (?3, ?4) ORDER BY place, id LIMIT ?5"
        ),
        parent.and([place.into(), id.into(), limit.into()]),
    )
}

/// The last place below a parent, hidden documents included. Columns: place.
pub fn last_place(parent: Whose<'_>, except: &str) -> Statement {
    Statement::new(
        "SELECT place FROM knowledge_document WHERE tenant = ?1 AND parent = ?2 AND id <> ?3
         ORDER BY place DESC, id DESC LIMIT 1",
        parent.and([except.into()]),
    )
}

/// The sibling at this number, and the one before it. Columns: id, place.
pub fn sibling_at(parent: Whose<'_>, except: &str, number: i64) -> Statement {
    Statement::new(
        "SELECT id, place FROM knowledge_document WHERE tenant = ?1 AND parent = ?2 AND id <> ?3 AND hidden_by IS NULL
         ORDER BY place, id LIMIT 1 OFFSET ?4",
        parent.and([except.into(), number.into()]),
    )
}

/// The place just before a sibling, hidden documents included. Columns: place.
pub fn place_before(parent: Whose<'_>, except: &str, place: &str, id: &str) -> Statement {
    Statement::new(
        "SELECT place FROM knowledge_document WHERE tenant = ?1 AND parent = ?2 AND id <> ?3 AND (place, id) < (?4, ?5)
         ORDER BY place DESC, id DESC LIMIT 1",
        parent.and([except.into(), place.into(), id.into()]),
    )
}

/// How many visible siblings are before a place. Columns: count.
pub fn number_of(parent: Whose<'_>, except: &str, place: &str, id: &str) -> Statement {
    Statement::new(
        "SELECT COUNT(*) FROM knowledge_document
         WHERE tenant = ?1 AND parent = ?2 AND id <> ?3 AND hidden_by IS NULL AND (place, id) < (?4, ?5)",
        parent.and([except.into(), place.into(), id.into()]),
    )
}

/// Documents whose path begins so, in order of their paths; only branches that can lead there are walked.
/// Columns: path, then as `Document::of` reads them.
pub fn list(tenant: &str, prefix: &str, after: (&str, &str), limit: i64) -> Statement {
    Statement::new(
        "WITH RECURSIVE walk(id, path) AS (
           SELECT id, '/' || replace(title, '/', '%2F') FROM knowledge_document
             WHERE tenant = ?1 AND parent = 'root' AND hidden_by IS NULL
               AND (substr('/' || replace(title, '/', '%2F'), 1, length(?2)) = ?2
                 OR substr(?2, 1, length(replace(title, '/', '%2F')) + 2) = '/' || replace(title, '/', '%2F') || '/')
           UNION ALL SELECT child.id, walk.path || '/' || replace(child.title, '/', '%2F')
             FROM walk CROSS JOIN knowledge_document child WHERE child.tenant = ?1 AND child.parent = walk.id
             AND child.hidden_by IS NULL
               AND (substr(walk.path || '/' || replace(child.title, '/', '%2F'), 1, length(?2)) = ?2
                 OR substr(?2, 1, length(walk.path || '/' || replace(child.title, '/', '%2F')) + 1)
                      = walk.path || '/' || replace(child.title, '/', '%2F') || '/'))
         SELECT walk.path, d.id, d.parent, d.place, d.revision, d.content_revision, d.title, d.mime, d.human, d.metadata, d.chars,
            d.created_ms, d.updated_ms, d.hidden_by, d.purge_ms, d.delete_ms
         FROM walk JOIN knowledge_document d ON d.tenant = ?1 AND d.id = walk.id
         WHERE substr(walk.path, 1, length(?2)) = ?2 AND (walk.path, walk.id) > (?3, ?4)
         ORDER BY walk.path, walk.id LIMIT ?5",
        vec![tenant.into(), prefix.into(), after.0.into(), after.1.into(), limit.into()],
    )
}

/// All documents after an id, in order of their ids: a page costs a page, however large the tree is, and a document that moves
/// meanwhile is neither missed nor seen twice. Columns as `Document::of` reads them.
pub fn all(tenant: &str, after: &str, limit: i64) -> Statement {
    Statement::new(
        select!("WHERE tenant = ?1 AND id > ?2 AND hidden_by IS NULL ORDER BY id LIMIT ?3"),
        vec![tenant.into(), after.into(), limit.into()],
    )
}

/// These documents, given as a JSON list of ids, without hidden ones, each with the first so many characters of its body.
/// Columns: body, then as `Document::of` reads them.
pub fn many(tenant: &str, ids: String, chars: i64) -> Statement {
    Statement::new(
        "SELECT substr(r.body, 1, ?3), d.id, d.parent, d.place, d.revision, d.content_revision, d.title, d.mime, d.human,
            d.metadata, d.chars, d.created_ms, d.updated_ms, d.hidden_by, d.purge_ms, d.delete_ms
         FROM knowledge_document d JOIN knowledge_revision r
           ON r.tenant = d.tenant AND r.document = d.id AND r.revision = d.content_revision
         WHERE d.tenant = ?1 AND d.id IN (SELECT value FROM json_each(?2)) AND d.hidden_by IS NULL",
        vec![tenant.into(), ids.into(), chars.into()],
    )
}

/// These documents, given as a JSON list of ids, and all above them. Columns: id, parent, title.
pub fn lineages(tenant: &str, ids: String) -> Statement {
    Statement::new(
        "WITH RECURSIVE up(id, parent, title) AS (
           SELECT id, parent, title FROM knowledge_document
             WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?2))
           UNION SELECT above.id, above.parent, above.title FROM up CROSS JOIN knowledge_document above
             WHERE above.tenant = ?1 AND above.id = up.parent)
         SELECT id, parent, title FROM up",
        vec![tenant.into(), ids.into()],
    )
}

/// Deleted documents, without those below them. Columns as `Document::of` reads them.
pub fn deleted(tenant: &str, after: &str, limit: i64) -> Statement {
    Statement::new(
        select!("WHERE tenant = ?1 AND hidden_by = id AND id > ?2 ORDER BY id LIMIT ?3"),
        vec![tenant.into(), after.into(), limit.into()],
    )
}

/// Revisions before one, newest first. Columns: revision, at_ms, author, op, title, note.
pub fn history(whose: Whose<'_>, before: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT revision, at_ms, author, op, title, note FROM knowledge_revision
         WHERE tenant = ?1 AND document = ?2 AND revision < ?3 ORDER BY revision DESC LIMIT ?4",
        whose.and([before.into(), limit.into()]),
    )
}

/// What changed after a position, in order. Columns: position, document, revision, at_ms, author, op, title, parent, correlation.
pub fn feed(tenant: &str, after: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT position, document, revision, at_ms, author, op, title, parent, correlation FROM knowledge_revision
         WHERE tenant = ?1 AND position > ?2 ORDER BY position LIMIT ?3",
        vec![tenant.into(), after.into(), limit.into()],
    )
}

/// Column: the position of the last change.
pub fn feed_end(tenant: &str) -> Statement {
    Statement::new("SELECT version FROM knowledge_tree WHERE tenant = ?1", vec![tenant.into()])
}

/// A document as it was at a revision. Columns: title, mime, parent, metadata, content_revision, at_ms.
pub fn revision(whose: Whose<'_>, revision: i64) -> Statement {
    Statement::new(
        "SELECT title, mime, parent, metadata, content_revision, at_ms FROM knowledge_revision
         WHERE tenant = ?1 AND document = ?2 AND revision = ?3",
        whose.and([revision.into()]),
    )
}
