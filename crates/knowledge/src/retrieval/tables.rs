//! The statements over passages and the lexical index. FTS5 keeps the words; scores are made here from its postings, because its
//! own ranking would let the documents of one tenant change the scores of another.
//!
//! The number of a passage holds its length in the lowest twelve bits, so that scoring reads nothing but postings.

use orchestr8_kernel::ports::store::{Cell, Statement};

use crate::tables::Whose;

/// One passage as it is stored.
pub struct Passage<'a> {
    pub place: i64,
    pub start_char: i64,
    pub chars: i64,
    pub words: i64,
    pub heading: &'a str,
    /// Tells its text apart from others of its document.
    pub print: &'a [u8],
}

/// Takes the passages of a document out of the counts and puts others in.
pub fn counts_replace(whose: Whose<'_>, chunks: i64, words: i64) -> Statement {
    Statement::new(
        "UPDATE knowledge_tree SET
            chunks = chunks - (SELECT COUNT(*) FROM knowledge_chunk WHERE tenant = ?1 AND document = ?2) + ?3,
            words = words - (SELECT COALESCE(SUM(words), 0) FROM knowledge_chunk WHERE tenant = ?1 AND document = ?2) + ?4
         WHERE tenant = ?1",
        whose.and([chunks.into(), words.into()]),
    )
}

/// Takes a document out of the index; then its passages may go, too.
pub fn passages_delete(whose: Whose<'_>) -> [Statement; 2] {
    [
        "DELETE FROM knowledge_lexical WHERE rowid IN (SELECT number FROM knowledge_chunk WHERE tenant = ?1 AND document = ?2)",
        "DELETE FROM knowledge_chunk WHERE tenant = ?1 AND document = ?2",
    ]
    .map(|sql| Statement::new(sql, whose.cells()))
}

pub fn passage_insert(whose: Whose<'_>, passage: &Passage<'_>) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_chunk (tenant, document, place, number, start_char, chars, words, heading, print)
         SELECT ?1, ?2, ?3, (COALESCE(MAX(number), 0) / 4096 + 1) * 4096 + ?6, ?4, ?5, ?6, ?7, ?8 FROM knowledge_chunk",
        whose.and([
            passage.place.into(),
            passage.start_char.into(),
            passage.chars.into(),
            passage.words.into(),
            passage.heading.into(),
            passage.print.to_vec().into(),
        ]),
    )
}

/// The words of a passage that is there.
pub fn words_insert(whose: Whose<'_>, place: i64, head: String, body: String, fold: String) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_lexical (rowid, head, body, fold)
         SELECT number, ?4, ?5, ?6 FROM knowledge_chunk WHERE tenant = ?1 AND document = ?2 AND place = ?3",
        whose.and([place.into(), head.into(), body.into(), fold.into()]),
    )
}

/// In how many passages each word stands. Takes a JSON list of words. Columns: word, passages.
pub fn frequencies(words: String) -> Statement {
    Statement::new(
        "SELECT word.value, term.doc FROM json_each(?1) word CROSS JOIN knowledge_term term ON term.term = word.value",
        vec![words.into()],
    )
}

/// How passages are scored: BM25.
pub struct Weights {
    pub k1: f64,
    pub b: f64,
    /// What a word in a title or heading counts.
    pub head: f64,
    /// The mean number of words of the tenant's passages.
    pub mean: f64,
}

/// Takes a JSON list of `[word, weight, weight of its plain form]`. Columns: number, score.
pub fn best(words: String, weights: &Weights, limit: i64) -> Statement {
    scored(
        "WITH word AS (SELECT key, value ->> 0 AS term, value ->> 1 AS kept, value ->> 2 AS plain FROM json_each(?1)),
         hit AS (SELECT word.key, posting.doc AS number, SUM(CASE posting.col WHEN 'body' THEN 1.0 WHEN 'head' THEN ?4 ELSE 0.0 END) AS kept_tf,
              SUM(CASE posting.col WHEN 'fold' THEN 1.0 ELSE 0.0 END) AS plain_tf, word.kept, word.plain
            FROM word CROSS JOIN knowledge_posting posting ON posting.term = word.term GROUP BY word.key, posting.doc)
         SELECT number, SUM(
              kept * kept_tf / (kept_tf + ?2 * (1.0 - ?3 + ?3 * (number & 4095) / ?5))
            + plain * plain_tf / (plain_tf + ?2 * (1.0 - ?3 + ?3 * (number & 4095) / ?5))) AS score
         FROM hit GROUP BY number HAVING score > 0 ORDER BY score DESC, number LIMIT ?6",
        words,
        weights,
        [limit.into()],
    )
}

/// What is looked for, and where.
pub struct Filter<'a> {
    pub tenant: &'a str,
    /// JSON lists and objects; none where everything is wanted.
    pub tags: Option<String>,
    pub below: Option<&'a str>,
    pub metadata: Option<String>,
}

/// The same within documents that pass a filter, all of which are looked at.
pub fn best_within(words: String, weights: &Weights, filter: &Filter<'_>, limit: i64) -> Statement {
    scored(
        "WITH RECURSIVE below(id) AS (
           SELECT ?9 UNION SELECT child.id FROM below CROSS JOIN knowledge_document child
             WHERE child.tenant = ?7 AND child.parent = below.id AND ?9 IS NOT NULL),
         open AS MATERIALIZED (SELECT chunk.number FROM knowledge_document document
             JOIN knowledge_chunk chunk ON chunk.tenant = document.tenant AND chunk.document = document.id
           WHERE document.tenant = ?7 AND document.hidden_by IS NULL
             AND (?8 IS NULL OR EXISTS (SELECT 1 FROM json_each(?8) wanted JOIN knowledge_tag tag
                 ON tag.tenant = ?7 AND tag.tag = wanted.value AND tag.document = document.id))
             AND (?9 IS NULL OR document.id IN (SELECT id FROM below))
             AND (?10 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?10) wanted WHERE NOT EXISTS (
                 SELECT 1 FROM json_each(document.metadata) given WHERE given.key = wanted.key AND (
                   (given.value = wanted.value AND given.type = wanted.type)
                   OR (given.type = 'array' AND EXISTS (SELECT 1 FROM json_each(given.value) item
                        WHERE item.value = wanted.value AND item.type = wanted.type))))))),
         word AS (SELECT key, value ->> 0 AS term, value ->> 1 AS kept, value ->> 2 AS plain FROM json_each(?1)),
         hit AS (SELECT word.key, posting.doc AS number, SUM(CASE posting.col WHEN 'body' THEN 1.0 WHEN 'head' THEN ?4 ELSE 0.0 END) AS kept_tf,
              SUM(CASE posting.col WHEN 'fold' THEN 1.0 ELSE 0.0 END) AS plain_tf, word.kept, word.plain
            FROM word CROSS JOIN knowledge_posting posting ON posting.term = word.term
            WHERE posting.doc IN (SELECT number FROM open) GROUP BY word.key, posting.doc)
         SELECT number, SUM(
              kept * kept_tf / (kept_tf + ?2 * (1.0 - ?3 + ?3 * (number & 4095) / ?5))
            + plain * plain_tf / (plain_tf + ?2 * (1.0 - ?3 + ?3 * (number & 4095) / ?5))) AS score
         FROM hit GROUP BY number HAVING score > 0 ORDER BY score DESC, number LIMIT ?6",
        words,
        weights,
        [
            limit.into(),
            filter.tenant.into(),
            filter.tags.clone().into(),
            filter.below.into(),
            filter.metadata.clone().into(),
        ],
    )
}

/// The passages of documents that pass a filter. Columns: number.
pub fn open(filter: &Filter<'_>) -> Statement {
    Statement::new(
        "WITH RECURSIVE below(id) AS (
           SELECT ?3 UNION SELECT child.id FROM below CROSS JOIN knowledge_document child
             WHERE child.tenant = ?1 AND child.parent = below.id AND ?3 IS NOT NULL)
         SELECT chunk.number FROM knowledge_document document
             JOIN knowledge_chunk chunk ON chunk.tenant = document.tenant AND chunk.document = document.id
           WHERE document.tenant = ?1 AND document.hidden_by IS NULL
             AND (?2 IS NULL OR EXISTS (SELECT 1 FROM json_each(?2) wanted JOIN knowledge_tag tag
                 ON tag.tenant = ?1 AND tag.tag = wanted.value AND tag.document = document.id))
             AND (?3 IS NULL OR document.id IN (SELECT id FROM below))
             AND (?4 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?4) wanted WHERE NOT EXISTS (
                 SELECT 1 FROM json_each(document.metadata) given WHERE given.key = wanted.key AND (
                   (given.value = wanted.value AND given.type = wanted.type)
                   OR (given.type = 'array' AND EXISTS (SELECT 1 FROM json_each(given.value) item
                        WHERE item.value = wanted.value AND item.type = wanted.type))))))",
        vec![
            filter.tenant.into(),
            filter.tags.clone().into(),
            filter.below.into(),
            filter.metadata.clone().into(),
        ],
    )
}

fn scored(
    sql: &'static str,
    words: String,
    weights: &Weights,
    more: impl IntoIterator<Item = Cell>,
) -> Statement {
    let mut cells = vec![words.into()];
    cells.extend([weights.k1, weights.b, weights.head, weights.mean].map(Cell::Real));
    cells.extend(more);
    Statement::new(sql, cells)
}

/// The passages of these numbers that may be seen, with their texts. Takes a JSON list.
/// Columns: number, document, revision, start_char, chars, text, metadata, human, mime.
pub fn passages(tenant: &str, numbers: String) -> Statement {
    Statement::new(
        "SELECT chunk.number, document.id, document.revision, chunk.start_char, chunk.chars,
            substr(content.body, chunk.start_char + 1, chunk.chars), document.metadata, document.human, document.mime
         FROM json_each(?2) wanted CROSS JOIN knowledge_chunk chunk ON chunk.number = wanted.value AND chunk.tenant = ?1
         JOIN knowledge_document document ON document.tenant = ?1 AND document.id = chunk.document AND document.hidden_by IS NULL
         JOIN knowledge_revision content ON content.tenant = ?1 AND content.document = document.id
            AND content.revision = document.content_revision",
        vec![tenant.into(), numbers.into()],
    )
}

/// Whose passages these are, of those that may be seen. Takes a JSON list. Columns: number, document.
pub fn owners(tenant: &str, numbers: String) -> Statement {
    Statement::new(
        "SELECT chunk.number, document.id
         FROM json_each(?2) wanted CROSS JOIN knowledge_chunk chunk ON chunk.number = wanted.value AND chunk.tenant = ?1
         JOIN knowledge_document document ON document.tenant = ?1 AND document.id = chunk.document AND document.hidden_by IS NULL",
        vec![tenant.into(), numbers.into()],
    )
}

/// Every document of everybody after one, in order. Columns: tenant, id.
pub fn documents_after(after: (&str, &str), limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, id FROM knowledge_document WHERE (tenant, id) > (?1, ?2) ORDER BY tenant, id LIMIT ?3",
        vec![after.0.into(), after.1.into(), limit.into()],
    )
}

/// The passages of a document, in order. Columns: number, start_char, chars, words, heading, print.
pub fn passages_of(whose: Whose<'_>) -> Statement {
    Statement::new(
        "SELECT number, start_char, chars, words, heading, print FROM knowledge_chunk WHERE tenant = ?1 AND document = ?2 ORDER BY place",
        whose.cells(),
    )
}

/// One row if the words of a passage are in the index as asked.
pub fn holds(number: i64, phrases: String) -> Statement {
    Statement::new(
        "SELECT rowid FROM knowledge_lexical WHERE knowledge_lexical MATCH ?2 AND rowid = ?1",
        vec![number.into(), phrases.into()],
    )
}

/// Entries of the index without a passage. Columns: number.
pub fn strays(limit: i64) -> Statement {
    Statement::new(
        "SELECT rowid FROM knowledge_lexical WHERE rowid NOT IN (SELECT number FROM knowledge_chunk) LIMIT ?1",
        vec![limit.into()],
    )
}

/// Tenants whose counts are not what their passages say. Columns: tenant.
pub fn counts_wrong() -> Statement {
    Statement::new(
        "SELECT tree.tenant FROM knowledge_tree tree WHERE (tree.chunks, tree.words) <> (
            SELECT COUNT(*), COALESCE(SUM(words), 0) FROM knowledge_chunk WHERE tenant = tree.tenant)",
        vec![],
    )
}

/// Counts the passages of a tenant anew.
pub fn counts_mend(tenant: &str) -> Statement {
    Statement::new(
        "UPDATE knowledge_tree SET
            chunks = (SELECT COUNT(*) FROM knowledge_chunk WHERE tenant = ?1),
            words = (SELECT COALESCE(SUM(words), 0) FROM knowledge_chunk WHERE tenant = ?1) WHERE tenant = ?1",
        vec![tenant.into()],
    )
}

/// Takes out stray entries.
pub fn strays_forget() -> Statement {
    Statement::new(
        "DELETE FROM knowledge_lexical WHERE rowid IN (
            SELECT rowid FROM knowledge_lexical WHERE rowid NOT IN (SELECT number FROM knowledge_chunk))",
        vec![],
    )
}

/// Takes out stray entries, and counts anew.
pub fn strays_mend() -> [Statement; 2] {
    let counts = Statement::new(
        "UPDATE knowledge_tree SET
            chunks = (SELECT COUNT(*) FROM knowledge_chunk WHERE tenant = knowledge_tree.tenant),
            words = (SELECT COALESCE(SUM(words), 0) FROM knowledge_chunk WHERE tenant = knowledge_tree.tenant)",
        vec![],
    );
    [strays_forget(), counts]
}
