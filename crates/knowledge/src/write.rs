//! A write: everything that one change of a document is made of, gathered into one commit.

use orchestr8_contract::{Fault, Output, topic};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Context, Reply};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::outbox;
use crate::record::{Document, Op};
use crate::retrieval::lexicon::{Entry, Sign, entries};
use crate::retrieval::tables::{Passage, counts_replace, passage_insert, passages_delete, words_insert};
use crate::tables::{self, Record, Whose};
use crate::turns::Turn;

/// Wakes those who carry out deliveries.
pub const DELIVERIES: &str = "knowledge.deliveries";

/// Wakes those who keep indexes outside of the store.
pub const CHANGES: &str = topic::DOCUMENTS;

/// Who writes what.
pub struct Write<'a> {
    pub tenant: &'a str,
    pub author: &'a str,
    correlation: &'a str,
    /// The id of the event that tells others of it.
    pub event: Uuid,
    batch: Batch,
}

impl<'a> Write<'a> {
    pub fn new(context: &'a Context, event: Uuid) -> Self {
        let tenant = context.principal.tenant.as_str();
        let mut batch = Batch::new();
        batch.then(tables::tree_open(tenant));
        batch.then_one(tables::tree_bump(tenant));
        let (author, correlation) = (&*context.principal.name, context.correlation.as_str());
        Self { tenant, author, correlation, event, batch }
    }

    pub fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    fn whose(&self, id: &'a str) -> Whose<'a> {
        Whose { tenant: self.tenant, id }
    }

    /// The next revision of the document, its place in the journal of changes, and the news of it.
    pub fn record(&mut self, new: &'a Document, op: Op, note: Option<&str>, body: Option<&str>) {
        let record = Record { op, author: self.author, correlation: self.correlation, note, body };
        self.batch.then_one(tables::revision_insert(self.tenant, new, &record));
        self.batch.then(tables::change_note(self.whose(&new.id)));
        let news =
            outbox::News { tenant: self.tenant, author: self.author, id: self.event, document: new, op };
        self.batch.then(outbox::tables::delivery_insert(&news));
        self.batch.wake(DELIVERIES).wake(CHANGES);
    }

    pub fn tags(&mut self, new: &'a Document) {
        if new.revision > 1 {
            self.batch.then(tables::tags_delete(self.whose(&new.id)));
        }
        for tag in new.tags() {
            self.batch.then(tables::tag_insert(self.whose(&new.id), tag));
        }
    }

    /// Puts the words of the document into the index, in the same commit: whoever wrote it finds it with the next query.
    pub fn index(&mut self, new: &'a Document, body: &str) {
        let whose = self.whose(&new.id);
        index(&mut self.batch, whose, &entries(&Sign::of(self.tenant), &new.title, new.mime, body));
    }

    /// The answer, once all of it is durable; the turn ends with that.
    pub fn reply(self, output: Value, turn: Turn) -> Reply {
        Reply::new(Output::json(output), self.batch).then(move || drop(turn))
    }
}

/// Replaces what the index has of a document.
pub fn index(batch: &mut Batch, whose: Whose<'_>, entries: &[Entry]) {
    let words = entries.iter().map(|entry| entry.words).sum();
    batch.then_one(counts_replace(whose, number(entries.len()), words));
    for statement in passages_delete(whose) {
        batch.then(statement);
    }
    for (place, entry) in entries.iter().enumerate() {
        let passage = Passage {
            place: number(place),
            start_char: number(entry.chunk.offset),
            chars: number(entry.chunk.length),
            words: entry.words,
            heading: &entry.chunk.heading,
            print: &entry.print,
        };
        batch.then_one(passage_insert(whose, &passage));
        let (head, body, fold) = (entry.head.clone(), entry.body.clone(), entry.fold.clone());
        batch.then_one(words_insert(whose, number(place), head, body, fold));
    }
}

/// Somebody wrote with a revision in mind that is not the present one (KNO-6).
pub fn check_revision(document: &Document, known: Option<i64>) -> Result<(), Fault> {
    match known {
        Some(known) if known != document.revision => {
            let message = format!("the document is at revision {}, not {known}", document.revision);
            Err(Fault::new(orchestr8_contract::Code::VersionMismatch, message)
                .with("expected_revision", known)
                .with("actual", document.revision)
                .with("hint", "read the document, decide again, and send its revision"))
        }
        _ => Ok(()),
    }
}

pub fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What a document is, for a patch to change.
pub fn patchable(document: &Document, body: &str) -> Value {
    json!({"content": {"mime_type": document.mime.as_str(), "body": body}, "metadata": document.metadata,
           "is_human_readable": document.human})
}
