//! Learns what passages mean: a model turns their texts into vectors, and the store keeps these. A text that a document had
//! before is not sent again.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::{Either, select};
use orchestr8_contract::{Code, Fault, Kind};
use orchestr8_kernel::ports::store::Batch;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{tables, to_bytes};
use crate::hub::{Hub, Meaning};
use crate::limits::{EMBED_MS, EMBED_TEXTS};
use crate::record::{Document, read};
use crate::retrieval::dense::Purpose;
use crate::retrieval::tables::passages_of;
use crate::tables::Whose;
use crate::text::Ruler;
use crate::write::number;

/// Bytes of the print that tells texts of one document apart.
const PRINT: usize = 16;

/// A passage whose vector is wanted.
pub(super) struct Wanted {
    pub document: String,
    pub number: i64,
    pub print: Vec<u8>,
    pub text: String,
}

/// A passage as a model reads it: with the title of its document, which says what it is about.
pub fn passage_text(title: &str, heading: &str, text: &str) -> String {
    match heading.is_empty() || text.contains(heading) {
        true => format!("{title}\n{text}"),
        false => format!("{title}\n{heading}\n{text}"),
    }
}

/// What tells a text apart from others of its document.
pub fn print(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).iter().take(PRINT).copied().collect()
}

impl Hub {
    /// Learns the passages of these documents. What was learned so far stays learned if it is interrupted.
    pub(super) async fn learn(
        &self,
        meaning: &Meaning,
        tenant: &str,
        documents: &HashSet<String>,
    ) -> Result<(), Fault> {
        let model = meaning.embedder.name();
        let (mut wanted, mut batch) = (Vec::new(), Batch::new());
        for id in documents {
            let whose = Whose { tenant, id };
            let known = self.known(meaning, whose).await?;
            for one in self.texts(whose).await? {
                batch.then(tables::print_put(whose, one.number, one.print.clone()));
                if !known.contains(&one.print) {
                    wanted.push(one);
                }
            }
        }
        self.store().commit(batch).await.map_err(read)?;
        for some in wanted.chunks(EMBED_TEXTS) {
            let vectors = self.embed(meaning, some).await?;
            let mut batch = Batch::new();
            for (one, vector) in some.iter().zip(&vectors) {
                let whose = Whose { tenant, id: &one.document };
                batch.then(tables::vector_put(whose, model, one.print.clone(), to_bytes(vector)));
            }
            self.store().commit(batch).await.map_err(read)?;
        }
        let mut batch = Batch::new();
        for id in documents {
            batch.then(tables::vectors_tidy(Whose { tenant, id }, model));
        }
        self.store().commit(batch).await.map_err(read)
    }

    /// The passages of a document as its model reads them.
    pub(super) async fn texts(&self, whose: Whose<'_>) -> Result<Vec<Wanted>, Fault> {
        let Some(document) = self.any_document(whose).await?.filter(Document::visible) else {
            return Ok(Vec::new());
        };
        let body = self.body(whose, document.content_revision).await?;
        let ruler = Ruler::new(&body);
        let mut texts = Vec::new();
        for row in &self.rows(passages_of(whose)).await? {
            let of = || Ok((row.int(0)?, row.int(1)?, row.int(2)?, row.text(4)?));
            let (number, start, chars, heading) = of().map_err(read)?;
            // A document that changed between the two reads is cut wrongly; its passages have other numbers by then.
            let text = passage_text(&document.title, heading, ruler.piece(start, chars));
            // One that was stored before there were prints has none.
            let print = row.blob(5).map_or_else(|_| print(&text), <[u8]>::to_vec);
            texts.push(Wanted { document: document.id.clone(), number, print, text });
        }
        Ok(texts)
    }

    /// The prints of a document's texts whose vectors the store has.
    pub(super) async fn known(&self, meaning: &Meaning, whose: Whose<'_>) -> Result<HashSet<Vec<u8>>, Fault> {
        let rows = self.rows(tables::known(whose, meaning.embedder.name())).await?;
        let mut known = HashSet::with_capacity(rows.len());
        for row in &rows {
            let of = || Ok((row.blob(0)?.to_vec(), row.int(1)?));
            let (print, bytes) = of().map_err(read)?;
            if bytes == number(4 * meaning.embedder.dimensions()) {
                known.insert(print);
            }
        }
        Ok(known)
    }

    /// One vector for each. A text that the model refuses for good is near to nothing, and keeps nobody else.
    async fn embed(&self, meaning: &Meaning, wanted: &[Wanted]) -> Result<Vec<Vec<f32>>, Fault> {
        let texts = |some: &[Wanted]| some.iter().map(|one| one.text.clone()).collect();
        match self.ask_model(meaning, texts(wanted), Purpose::Passage).await {
            Err(fault) if fault.kind() == Kind::Invalid => {}
            ended => return ended,
        }
        let mut vectors = Vec::with_capacity(wanted.len());
        for one in wanted {
            match self.ask_model(meaning, texts(std::slice::from_ref(one)), Purpose::Passage).await {
                Err(fault) if fault.kind() == Kind::Invalid => {
                    let word =
                        json!({"document": one.document, "error": orchestr8_kernel::log::error(&fault)});
                    self.kernel().log().warn("the model refuses a passage", word);
                    vectors.push(vec![0.0; meaning.embedder.dimensions()]);
                }
                ended => vectors.extend(ended?),
            }
        }
        Ok(vectors)
    }

    /// Asks the model, within its time, and checks that it answered what it was asked.
    pub(super) async fn ask_model(
        &self,
        meaning: &Meaning,
        texts: Vec<String>,
        purpose: Purpose,
    ) -> Result<Vec<Vec<f32>>, Fault> {
        let count = texts.len();
        let waited = self.kernel().ports().clock.sleep(Duration::from_millis(EMBED_MS));
        let vectors = match select(meaning.embedder.embed(texts, purpose), waited).await {
            Either::Left((vectors, _)) => vectors?,
            Either::Right(_) => return Err(Fault::new(Code::Timeout, "the embedding model took too long")),
        };
        let dimensions = meaning.embedder.dimensions();
        let right = |vector: &Vec<f32>| vector.len() == dimensions && vector.iter().all(|x| x.is_finite());
        if vectors.len() != count || !vectors.iter().all(right) {
            return Err(Fault::internal("the embedding model did not give one whole vector for each text"));
        }
        Ok(vectors)
    }
}
