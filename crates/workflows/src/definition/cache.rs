//! Validated definitions by hash, so that running the same one again costs a comparison or a hash, and no validation (ADR-002).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::limits;
use super::{HASH, Problems, Workflow, measure, read_measured};

/// The least recently used are forgotten beyond a number and a size.
pub struct Cache {
    kept: Mutex<Kept>,
    most: usize,
    most_bytes: usize,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Arc<str>, Entry>,
    /// The one that was found last.
    newest: Option<Arc<Workflow>>,
    bytes: usize,
    /// Counts uses, so that the oldest is known without a clock.
    uses: u64,
}

struct Entry {
    workflow: Arc<Workflow>,
    bytes: usize,
    used: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(limits::DEFINITIONS_KEPT, limits::DEFINITIONS_BYTES)
    }
}

impl Cache {
    pub fn new(most: usize, most_bytes: usize) -> Self {
        Self { kept: Mutex::default(), most, most_bytes }
    }

    /// A definition by its hash, if it is remembered.
    pub fn get(&self, hash: &str) -> Option<Arc<Workflow>> {
        self.kept.lock().find(hash)
    }

    /// The definition of a value. The one that was asked for last is recognised by comparison; any other is hashed once; validates it only if it is not remembered.
    pub fn get_or_read(&self, value: &Value) -> Result<Arc<Workflow>, Problems> {
        let newest = self.kept.lock().newest.clone();
        if let Some(same) = newest.filter(|newest| *newest.source == *value) {
            return Ok(same);
        }
        let (hash, bytes) = measure(value)?;
        // The hash leaves out the hash that is written inside: that one must be right, too.
        let is_as_written = value
            .get(HASH)
            .is_none_or(|given| given.as_str().is_some_and(|given| given.eq_ignore_ascii_case(&hash)));
        if is_as_written && let Some(found) = self.get(&hash) {
            return Ok(found);
        }
        let workflow = read_measured(value, (hash, bytes))?;
        self.keep(workflow.clone(), bytes);
        Ok(workflow)
    }

    fn keep(&self, workflow: Arc<Workflow>, bytes: usize) {
        let mut kept = self.kept.lock();
        kept.insert(workflow, bytes);
        while kept.entries.len() > self.most || (kept.bytes > self.most_bytes && kept.entries.len() > 1) {
            kept.forget_oldest();
        }
    }
}

impl Kept {
    fn find(&mut self, hash: &str) -> Option<Arc<Workflow>> {
        self.uses += 1;
        let entry = self.entries.get_mut(hash)?;
        entry.used = self.uses;
        self.newest = Some(entry.workflow.clone());
        self.newest.clone()
    }

    fn insert(&mut self, workflow: Arc<Workflow>, bytes: usize) {
        self.uses += 1;
        let entry = Entry { workflow: workflow.clone(), bytes, used: self.uses };
        let replaced = self.entries.insert(workflow.hash.clone(), entry);
        self.bytes = self.bytes + bytes - replaced.map_or(0, |replaced| replaced.bytes);
    }

    /// Looks at all of them: there are few, and it only happens after a validation, which costs more.
    fn forget_oldest(&mut self) {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(hash, _)| hash.clone());
        if let Some(entry) = oldest.and_then(|hash| self.entries.remove(&hash)) {
            self.bytes -= entry.bytes;
        }
    }
}
