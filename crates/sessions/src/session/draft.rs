//! A change of a session that is being put together: entries, header and news become durable in one commit, and only then is
//! anybody told.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Guard};
use orchestr8_kernel::{Kernel, Reply};
use orchestr8_models::Message;
use serde_json::Value;

use super::Session;
use crate::limits;
use crate::news::News;
use crate::record::{self, Body, Entry, Header, Place};
use crate::tables::{self, Placed};
use crate::tree::Tree;

pub struct Draft {
    session: Arc<Session>,
    /// Set once its news have numbers: until it is made or given up, nothing else is told.
    hold: Option<Hold>,
    /// What will be true of the session.
    pub header: Header,
    batch: Batch,
    /// Entries to be put in, all before anything in `batch`.
    entries: Vec<Placed>,
    news: Vec<News>,
    /// The messages that news may refer to.
    messages: HashMap<Place, Message>,
    reserve: Option<u64>,
    /// What is written after everything else.
    last: Batch,
    taken: Vec<u64>,
    at_ms: i64,
}

impl Draft {
    pub fn new(session: &Arc<Session>, at_ms: i64) -> Self {
        Self {
            session: session.clone(),
            hold: None,
            header: session.header(),
            batch: Batch::new(),
            entries: Vec::new(),
            news: Vec::new(),
            messages: HashMap::new(),
            reserve: None,
            last: Batch::new(),
            taken: Vec::new(),
            at_ms,
        }
    }

    /// Adds an entry at the leaf, which then is the leaf.
    pub fn append(&mut self, body: Body) -> Place {
        self.append_as(None, self.at_ms, body)
    }

    /// As `append`, for an entry that was somewhere before.
    pub fn append_as(&mut self, label: Option<&str>, at_ms: i64, body: Body) -> Place {
        let entry = Entry { parent: self.header.leaf, at_ms, body };
        let place = self.insert(label, &entry);
        self.header.leaf = Some(place);
        if let Body::Message { message } = entry.body {
            self.header.messages += 1;
            self.header.stats.count(&message);
            self.messages.insert(place, message);
        }
        place
    }

    /// Adds an entry as it is, and leaves the leaf alone.
    pub fn insert(&mut self, label: Option<&str>, entry: &Entry) -> Place {
        let place = self.header.next;
        self.header.next += 1;
        self.entries.push(Placed { place, label: label.map(str::to_owned), record: record::text(entry) });
        place
    }

    /// Adds all of another tree as further roots and goes to where it was.
    pub fn graft(&mut self, tree: &Tree, leaf: Option<Place>) {
        let base = self.header.next;
        for (_, node) in tree.nodes() {
            let entry = node.entry.moved_by(base);
            self.insert(node.label.as_deref(), &entry);
            if let Body::Message { message } = &entry.body {
                self.header.stats.count(message);
            }
        }
        self.header.leaf = leaf.map(|leaf| leaf + base);
        self.header.messages = u64::try_from(tree.messages(leaf).len()).unwrap_or(u64::MAX);
    }

    pub fn label(&mut self, place: Place, label: Option<&str>) {
        self.batch.then_one(tables::entry_label(self.session.whose(), place, label));
    }

    /// A message that was put in before, and that news of this draft refer to.
    pub fn refer_to(&mut self, place: Place, message: &Message) {
        self.messages.insert(place, message.clone());
    }

    /// A waiting message is in the tree now.
    pub fn take(&mut self, queued: u64) {
        self.batch.then_one(tables::queue_remove(self.session.whose(), queued));
        self.taken.push(queued);
    }

    /// Tells of something once this is durable.
    pub fn tell(&mut self, news: News) {
        self.news.push(news);
    }

    /// Keeps news that were told before, under the number they had.
    pub fn keep(&mut self, seq: u64, news: &News) {
        self.batch.then(tables::event_insert(self.session.whose(), seq, record::text(news)));
    }

    /// Forgets all but the newest events, those of this draft included.
    pub fn trim(&mut self) {
        self.last.then(tables::events_trim(self.session.whose(), limits::EVENTS_KEPT));
    }

    /// What a session that is not there yet begins with.
    pub fn into_parts(mut self) -> (Header, Batch) {
        let batch = self.statements();
        (self.header, batch)
    }

    /// What is to be written; many entries take few statements, since a commit has only so many.
    fn statements(&mut self) -> Batch {
        let mut batch = Batch::new();
        let mut entries = std::mem::take(&mut self.entries).into_iter().peekable();
        while entries.peek().is_some() {
            let some: Vec<Placed> = entries.by_ref().take(limits::ENTRIES_PER_STATEMENT).collect();
            let rows = Guard::Rows(some.len());
            batch.steps.push((tables::entries_insert(self.session.whose(), some), rows));
        }
        batch.merge(std::mem::take(&mut self.batch));
        batch
    }

    /// What is to be written, and the numbers of its news.
    fn finish(&mut self, kernel: &Kernel) -> (Batch, Vec<u64>) {
        let mut batch = self.statements();
        let mut numbers = Vec::with_capacity(self.news.len());
        if !self.news.is_empty() {
            self.hold = Some(Hold::new(&self.session, kernel));
        }
        for news in &self.news {
            let (seq, reserve) = self.session.number();
            self.reserve = self.reserve.max(reserve);
            batch.then(tables::event_insert(self.session.whose(), seq, record::text(news)));
            numbers.push(seq);
        }
        batch.then_one(tables::session_update(self.session.whose(), record::text(&self.header)));
        if let Some(upto) = self.reserve {
            batch.then(tables::session_reserve(self.session.whose(), upto));
        }
        batch.merge(std::mem::take(&mut self.last));
        (batch, numbers)
    }

    /// Makes it durable, then true, then known.
    pub async fn commit(mut self, kernel: &Kernel) -> Result<(), Fault> {
        let (batch, numbers) = self.finish(kernel);
        kernel.ports().store.commit(batch).await.map_err(store_fault)?;
        self.made(kernel, numbers);
        Ok(())
    }

    /// The reply of a command whose effects this is: durable with its outcome, then true, then known.
    pub fn into_reply(mut self, output: Value, kernel: &Kernel) -> Reply {
        let (batch, numbers) = self.finish(kernel);
        let kernel = kernel.clone();
        Reply::new(Output::json(output), batch).then(move || self.made(&kernel, numbers))
    }

    fn made(self, kernel: &Kernel, numbers: Vec<u64>) {
        if let Some(upto) = self.reserve {
            self.session.reserved(upto);
        }
        self.session.install(self.header);
        for queued in self.taken {
            self.session.queue.remove(queued);
        }
        for (seq, news) in numbers.into_iter().zip(self.news) {
            let told = news.told(|place| self.messages.get(&place));
            self.session.tell(kernel, seq, told);
        }
        drop(self.hold);
    }
}

/// While it is there, what else is told waits: numbers are heard in their order.
struct Hold {
    session: Arc<Session>,
    kernel: Kernel,
}

impl Hold {
    fn new(session: &Arc<Session>, kernel: &Kernel) -> Self {
        session.hold_back();
        Self { session: session.clone(), kernel: kernel.clone() }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.session.let_go(&self.kernel);
    }
}

#[cfg(test)]
mod tests;
