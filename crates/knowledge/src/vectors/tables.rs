//! The statements over vectors: the truth that every index over them is made of.

use orchestr8_kernel::ports::store::Statement;

use crate::tables::Whose;

/// The passages of these documents that may be found, with their vectors of a model. Takes a JSON list.
/// Columns: document, number, vector or null.
pub fn standing(tenant: &str, model: &str, documents: String) -> Statement {
    Statement::new(
        "SELECT document.id, chunk.number, vector.vector
         FROM json_each(?3) wanted CROSS JOIN knowledge_document document
            ON document.tenant = ?1 AND document.id = wanted.value AND document.hidden_by IS NULL
         JOIN knowledge_chunk chunk ON chunk.tenant = ?1 AND chunk.document = document.id
         LEFT JOIN knowledge_vector vector ON vector.tenant = ?1 AND vector.document = document.id
            AND vector.print = chunk.print AND vector.model = ?2",
        vec![tenant.into(), model.into(), documents.into()],
    )
}

/// The vectors of these passages. Takes a JSON list of their numbers. Columns: number, vector.
pub fn of_passages(tenant: &str, model: &str, numbers: String) -> Statement {
    Statement::new(
        "SELECT chunk.number, vector.vector
         FROM json_each(?3) wanted CROSS JOIN knowledge_chunk chunk ON chunk.number = wanted.value AND chunk.tenant = ?1
         JOIN knowledge_vector vector ON vector.tenant = ?1 AND vector.document = chunk.document
            AND vector.print = chunk.print AND vector.model = ?2",
        vec![tenant.into(), model.into(), numbers.into()],
    )
}

/// The texts of a document that have a vector of a model. Columns: print, bytes of the vector.
pub fn known(whose: Whose<'_>, model: &str) -> Statement {
    Statement::new(
        "SELECT print, length(vector) FROM knowledge_vector WHERE tenant = ?1 AND document = ?2 AND model = ?3",
        whose.and([model.into()]),
    )
}

/// Notes the print of a passage that was stored before there were prints.
pub fn print_put(whose: Whose<'_>, number: i64, print: Vec<u8>) -> Statement {
    Statement::new(
        "UPDATE knowledge_chunk SET print = ?4 WHERE tenant = ?1 AND document = ?2 AND number = ?3 AND print IS NULL",
        whose.and([number.into(), print.into()]),
    )
}

/// Keeps the vector of a text, if the document still has that text.
pub fn vector_put(whose: Whose<'_>, model: &str, print: Vec<u8>, vector: Vec<u8>) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_vector (tenant, document, print, model, vector)
         SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (
            SELECT 1 FROM knowledge_chunk WHERE tenant = ?1 AND document = ?2 AND print = ?3)
         ON CONFLICT (tenant, document, print, model) DO UPDATE SET vector = excluded.vector",
        whose.and([print.into(), model.into(), vector.into()]),
    )
}

/// Forgets the vectors of texts that a document has no more, and those of other models.
pub fn vectors_tidy(whose: Whose<'_>, model: &str) -> Statement {
    Statement::new(
        "DELETE FROM knowledge_vector WHERE tenant = ?1 AND document = ?2 AND (model <> ?3 OR NOT EXISTS (
            SELECT 1 FROM knowledge_chunk chunk WHERE chunk.tenant = ?1 AND chunk.document = ?2
              AND chunk.print = knowledge_vector.print))",
        whose.and([model.into()]),
    )
}

/// Forgets all vectors of a document.
pub fn vectors_forget(whose: Whose<'_>) -> Statement {
    Statement::new("DELETE FROM knowledge_vector WHERE tenant = ?1 AND document = ?2", whose.cells())
}

/// Vectors of documents that are not there. Columns: document.
pub fn strays(tenant: &str, limit: i64) -> Statement {
    Statement::new(
        "SELECT document FROM knowledge_vector vector WHERE tenant = ?1 AND NOT EXISTS (
            SELECT 1 FROM knowledge_document document WHERE document.tenant = ?1 AND document.id = vector.document) LIMIT ?2",
        vec![tenant.into(), limit.into()],
    )
}

pub fn strays_forget(tenant: &str) -> Statement {
    Statement::new(
        "DELETE FROM knowledge_vector WHERE tenant = ?1 AND document NOT IN (
            SELECT id FROM knowledge_document WHERE tenant = ?1)",
        vec![tenant.into()],
    )
}
