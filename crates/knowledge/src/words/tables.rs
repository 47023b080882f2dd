//! The statements that the words in memory are made of.

use orchestr8_kernel::ports::store::Statement;

/// The passages of these documents, hidden ones included, each document's in order; the text comes with the first. One
/// statement, so that what is read belongs together. Takes a JSON list.
/// Columns: document, title, type, hidden, revision of the text, number, start_char, chars, heading, print, text or null.
pub fn taken(tenant: &str, documents: String) -> Statement {
    Statement::new(
        "SELECT document.id, document.title, document.mime, document.hidden_by IS NOT NULL, document.content_revision,
            chunk.number, chunk.start_char, chunk.chars, chunk.heading, chunk.print,
            CASE chunk.place WHEN 0 THEN content.body END
         FROM json_each(?2) wanted CROSS JOIN knowledge_document document ON document.tenant = ?1 AND document.id = wanted.value
         JOIN knowledge_chunk chunk ON chunk.tenant = ?1 AND chunk.document = document.id
         JOIN knowledge_revision content ON content.tenant = ?1 AND content.document = document.id
            AND content.revision = document.content_revision
         ORDER BY wanted.key, chunk.place",
        vec![tenant.into(), documents.into()],
    )
}
