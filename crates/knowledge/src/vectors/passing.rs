//! The passages that pass a filter, remembered until something of their tenant changes: whoever asks within one part of a tree
//! asks there again.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::{PASSING_FILTERS, PASSING_NUMBERS};
use crate::retrieval::Filter;

/// What was found out last, the latest first.
#[derive(Default)]
pub struct Passing(Mutex<VecDeque<Known>>);

struct Known {
    tenant: String,
    filter: Filter,
    /// The version of the tree that it was true of.
    version: i64,
    numbers: Arc<HashSet<i64>>,
}

impl Passing {
    pub fn get(&self, tenant: &str, filter: &Filter, version: i64) -> Option<Arc<HashSet<i64>>> {
        let mut known = self.0.lock();
        let at = known.iter().position(|one| one.is(tenant, filter) && one.version == version)?;
        let one = known.remove(at)?;
        let numbers = one.numbers.clone();
        known.push_front(one);
        Some(numbers)
    }

    /// Remembers what was read after the tree had this version; what was known of the filter before is forgotten.
    pub fn keep(&self, tenant: &str, filter: &Filter, version: i64, numbers: Arc<HashSet<i64>>) {
        let mut known = self.0.lock();
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
        assert_eq!((passing.get("a", &tagged(1), 7), passing.0.lock().len()), (None, 1));
    }

    #[test]
    fn only_so_much_is_remembered() {
        let passing = Passing::default();
        for tag in 0..2 * PASSING_FILTERS {
            passing.keep("a", &tagged(tag), 1, numbers(tag + 1));
            // What is asked for again and again stays.
            assert!(passing.get("a", &tagged(0), 1).is_some(), "{tag}");
        }
        assert_eq!(passing.0.lock().len(), PASSING_FILTERS);
        passing.keep("a", &tagged(9), 1, numbers(PASSING_NUMBERS));
        assert_eq!(passing.0.lock().len(), 1);
        passing.keep("a", &tagged(8), 1, numbers(PASSING_NUMBERS + 1));
        assert!(passing.0.lock().is_empty(), "what is too large is read each time");
    }
}
