//! The words of one tenant's passages: for each word where it stands, and for each passage whose it is and how long.

use std::collections::HashMap;
use std::sync::Arc;

use super::postings::{Counts, Postings};

/// A document as the index takes it up.
#[derive(Debug, Clone)]
pub struct Taken {
    pub id: String,
    /// Tells whether anything of its passages has changed.
    pub print: u64,
    /// Deleted ones may come back, and until they are gone for good their words count like others (they are in the store's
    /// index, too); only nobody finds them.
    pub hidden: bool,
    pub passages: Vec<Passage>,
}

/// A passage with its words, each once.
#[derive(Debug, Clone)]
pub struct Passage {
    pub number: i64,
    pub words: Vec<(String, Counts)>,
}

/// The words of one tenant. A passage has a slot, which nobody else ever gets: those of a document that changes are gone, and
/// its new ones come last. So lists only ever grow at their ends, until the index is made anew without what is gone.
#[derive(Default)]
pub struct Index {
    words: HashMap<Box<str>, Postings>,
    /// Of each slot: the number of its passage, its length in words, and its document.
    numbers: Vec<i64>,
    lengths: Vec<u16>,
    owners: Vec<u32>,
    documents: Vec<Document>,
    places: HashMap<Arc<str>, u32>,
    gone: usize,
    /// Bytes of words and their lists, beside what the maps and lists themselves take.
    listed: usize,
}

struct Document {
    id: Arc<str>,
    print: u64,
    hidden: bool,
    first: u32,
    passages: u32,
}

/// The owner of slots that are gone.
const NOBODY: u32 = u32::MAX;

/// The lowest bits of a passage's number are its length in words.
const LENGTH: i64 = 4_095;

/// An index is worth making anew when so many slots are gone, and one in so many of all.
const GONE_LEAST: usize = 1_024;
const GONE_OF: usize = 5;

/// What a map takes for an entry beside its contents: it is up to half empty, and knows a byte of each.
const ENTRY: usize = 16;

impl Index {
    /// Takes up a document as it is now.
    pub fn put(&mut self, taken: Taken) {
        if let Some(&place) = self.places.get(taken.id.as_str()) {
            let own = &mut self.documents[place as usize];
            own.hidden = taken.hidden;
            if own.print == taken.print {
                return;
            }
        }
        self.remove(&taken.id);
        let (Some(first), Ok(place)) = (self.room(taken.passages.len()), u32::try_from(self.documents.len()))
        else {
            return;
        };
        let id: Arc<str> = taken.id.into();
        let passages = taken.passages.len() as u32;
        self.documents.push(Document {
            id: id.clone(),
            print: taken.print,
            hidden: taken.hidden,
            first,
            passages,
        });
        self.places.insert(id, place);
        for (slot, passage) in (first..).zip(taken.passages) {
            self.numbers.push(passage.number);
            self.lengths.push((passage.number & LENGTH) as u16);
            self.owners.push(place);
            for (word, counts) in passage.words {
                self.stands(word, slot, counts);
            }
        }
    }

    /// Takes out a document.
    pub fn remove(&mut self, id: &str) {
        let Some(place) = self.places.remove(id) else { return };
        let Document { first, passages, .. } = self.documents[place as usize];
        let slots = first as usize..first as usize + passages as usize;
        self.owners[slots].fill(NOBODY);
        self.gone += passages as usize;
    }

    /// Passages that are there, hidden ones included.
    pub fn len(&self) -> usize {
        self.numbers.len() - self.gone
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let word = size_of::<(Box<str>, Postings)>() + ENTRY;
        let document = size_of::<(Arc<str>, u32)>() + ENTRY + 64;
        self.listed
            + self.words.capacity() * word
            + self.numbers.capacity() * size_of::<i64>()
            + self.lengths.capacity() * size_of::<u16>()
            + self.owners.capacity() * size_of::<u32>()
            + self.documents.capacity() * size_of::<Document>()
            + self.places.capacity() * document
    }

    /// About how many bytes an index of so many passages and words will take: what is kept of a passage, and two bytes for
    /// each of its words.
    pub fn bytes_of(passages: usize, words: usize) -> usize {
        passages.saturating_mul(64).saturating_add(words.saturating_mul(2))
    }

    /// In how many passages a word stands.
    pub fn frequency(&self, word: &str) -> usize {
        match self.words.get(word) {
            None => 0,
            Some(list) if self.gone == 0 => list.len(),
            Some(list) => list.iter().filter(|(slot, _)| self.is_there(*slot)).count(),
        }
    }

    /// Whether so much of it is gone that it is worth making anew.
    pub fn is_worn(&self) -> bool {
        self.gone >= GONE_LEAST && self.gone * GONE_OF >= self.numbers.len()
    }

    /// The same without what is gone.
    pub fn renewed(&self) -> Self {
        let mut new = Self::default();
        let mut slots = vec![NOBODY; self.numbers.len()];
        for (old, document) in (0..).zip(&self.documents) {
            // The place of one that was taken up again is another by now.
            let first = document.first as usize;
            if self.owners.get(first) != Some(&old) {
                continue;
            }
            let (place, passages) = (new.documents.len() as u32, document.passages as usize);
            let from = new.numbers.len() as u32;
            for (slot, old) in (from..).zip(first..first + passages) {
                slots[old] = slot;
                new.numbers.push(self.numbers[old]);
                new.lengths.push(self.lengths[old]);
                new.owners.push(place);
            }
            new.places.insert(document.id.clone(), place);
            new.documents.push(Document { id: document.id.clone(), first: from, ..*document });
        }
        for (word, list) in &self.words {
            let mut kept = Postings::default();
            for (slot, counts) in list.iter().filter(|(slot, _)| self.is_there(*slot)) {
                kept.push(slots[slot as usize], counts);
            }
            if !kept.is_empty() {
                new.listed += word.len() + kept.bytes();
                new.words.insert(word.clone(), kept);
            }
        }
        new
    }

    pub(super) fn list(&self, word: &str) -> Option<&Postings> {
        self.words.get(word)
    }

    pub(super) fn length(&self, slot: u32) -> u16 {
        self.lengths[slot as usize]
    }

    pub(super) fn number(&self, slot: u32) -> i64 {
        self.numbers[slot as usize]
    }

    /// The document of a slot, if it may be found.
    pub(super) fn found_at(&self, slot: u32) -> Option<u32> {
        let owner = self.owners[slot as usize];
        self.documents.get(owner as usize).filter(|document| !document.hidden).map(|_| owner)
    }

    pub(super) fn id(&self, document: u32) -> &str {
        &self.documents[document as usize].id
    }

    fn is_there(&self, slot: u32) -> bool {
        self.owners[slot as usize] != NOBODY
    }

    /// The first slot of so many, if there is room for them.
    fn room(&self, passages: usize) -> Option<u32> {
        let end = u32::try_from(self.numbers.len().checked_add(passages)?).ok()?;
        (end < NOBODY).then_some(end - passages as u32)
    }

    fn stands(&mut self, word: String, slot: u32, counts: Counts) {
        if let Some(list) = self.words.get_mut(word.as_str()) {
            let before = list.bytes();
            list.push(slot, counts);
            self.listed += list.bytes() - before;
            return;
        }
        let mut list = Postings::default();
        list.push(slot, counts);
        self.listed += word.len() + list.bytes();
        self.words.insert(word.into(), list);
    }
}
