//! The passages that pass a filter, remembered until something of their tenant changes: whoever asks within one part of a tree
//! asks there again.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use orchestr8_contract::Fault;
use parking_lot::Mutex;

use super::Filter;
use super::lexical::stored;
use super::tables;
use crate::hub::Hub;
use crate::limits::{PASSING_FILTERS, PASSING_NUMBERS, PASSING_READING};
use crate::record::read;
use crate::tables::tree_read;

/// Only these passages; all if none are named.
pub type Within = Option<Arc<HashSet<i64>>>;

/// What was found out last, the latest first.
pub struct Passing {
    known: Mutex<VecDeque<Known>>,
    /// Both sides of a query ask for the same at once: one reads it, and the other waits for that.
    reading: [tokio::sync::Mutex<()>; PASSING_READING],
}

impl Default for Passing {
    fn default() -> Self {
        Self { known: Mutex::default(), reading: std::array::from_fn(|_| tokio::sync::Mutex::default()) }
    }
}

struct Known {
    tenant: String,
    filter: Filter,
    /// The version of the tree that it was true of.
    version: i64,
    numbers: Arc<HashSet<i64>>,
}

impl Passing {
    pub fn get(&self, tenant: &str, filter: &Filter, version: i64) -> Option<Arc<HashSet<i64>>> {
        let mut known = self.known.lock();
        let at = known.iter().position(|one| one.is(tenant, filter) && one.version == version)?;
        let one = known.remove(at)?;
        let numbers = one.numbers.clone();
        known.push_front(one);
        Some(numbers)
    }

    fn reading(&self, wanted: &tables::Filter<'_>) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        (wanted.tenant, &wanted.tags, wanted.below, &wanted.metadata).hash(&mut hasher);
        &self.reading[hasher.finish() as usize % PASSING_READING]
    }

    /// Remembers what was read after the tree had this version; what was known of the filter before is forgotten.
    pub fn keep(&self, tenant: &str, filter: &Filter, version: i64, numbers: Arc<HashSet<i64>>) {
        let mut known = self.known.lock();
        known.retain(|one| !one.is(tenant, filter));
        known.push_front(Known { tenant: tenant.to_owned(), filter: filter.clone(), version, numbers });
        let mut sum = 0;
        known.retain(|one| {
            sum += one.numbers.len();
            sum <= PASSING_NUMBERS
        });
        known.truncate(PASSING_FILTERS);
    }
}

impl Hub {
    /// The passages of all documents that pass a filter. Every change makes a new version of the tree.
    pub(crate) async fn open(&self, tenant: &str, filter: &Filter) -> Result<Arc<HashSet<i64>>, Fault> {
        // Read first: what is read after it is at least as new.
        let version = match self.row(tree_read(tenant)).await? {
            Some(tree) => tree.int(0).map_err(read)?,
            None => return Ok(Arc::default()),
        };
        if let Some(numbers) = self.passing().get(tenant, filter, version) {
            return Ok(numbers);
        }
        let wanted = stored(tenant, filter);
        let _reading = self.passing().reading(&wanted).lock().await;
        if let Some(numbers) = self.passing().get(tenant, filter, version) {
            return Ok(numbers);
        }
        let rows = self.rows(tables::open(&wanted)).await?;
        let numbers: HashSet<i64> =
            rows.iter().map(|row| row.int(0)).collect::<Result<_, _>>().map_err(read)?;
        let numbers = Arc::new(numbers);
        self.passing().keep(tenant, filter, version, numbers.clone());
        Ok(numbers)
    }
}

impl Known {
    fn is(&self, tenant: &str, filter: &Filter) -> bool {
        self.tenant == tenant && self.filter == *filter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tag: usize) -> Filter {
        Filter { tags: vec![tag.to_string()], ..Filter::default() }
    }

    fn numbers(count: usize) -> Arc<HashSet<i64>> {
        Arc::new((0..i64::try_from(count).unwrap()).collect())
    }

    #[test]
    fn what_is_known_holds_for_one_version_of_one_tenant() {
        let passing = Passing::default();
        passing.keep("a", &tagged(1), 7, numbers(3));
        assert_eq!(passing.get("a", &tagged(1), 7), Some(numbers(3)));
        assert_eq!(passing.get("a", &tagged(1), 8), None);
        assert_eq!(passing.get("b", &tagged(1), 7), None);
        assert_eq!(passing.get("a", &tagged(2), 7), None);
        passing.keep("a", &tagged(1), 8, numbers(4));
        assert_eq!((passing.get("a", &tagged(1), 7), passing.known.lock().len()), (None, 1));
    }

    #[test]
    fn only_so_much_is_remembered() {
        let passing = Passing::default();
        for tag in 0..2 * PASSING_FILTERS {
            passing.keep("a", &tagged(tag), 1, numbers(tag + 1));
            // What is asked for again and again stays.
            assert!(passing.get("a", &tagged(0), 1).is_some(), "{tag}");
        }
        assert_eq!(passing.known.lock().len(), PASSING_FILTERS);
        passing.keep("a", &tagged(9), 1, numbers(PASSING_NUMBERS));
        assert_eq!(passing.known.lock().len(), 1);
        passing.keep("a", &tagged(8), 1, numbers(PASSING_NUMBERS + 1));
        assert!(passing.known.lock().is_empty(), "what is too large is read each time");
    }
}
