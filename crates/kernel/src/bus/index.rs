//! Who wants which events: found by name and subject, without asking anybody who does not.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Filter;
use super::queue::Queue;

/// The listeners in the order in which they came.
type Listeners = BTreeMap<u64, Arc<Queue>>;

#[derive(Default)]
pub struct Index {
    /// A tree, since names are our own and few: comparing some is quicker than hashing one.
    by_name: BTreeMap<&'static str, Topic>,
    any_name: Topic,
    everybody: Listeners,
    next: u64,
}

#[derive(Default)]
struct Topic {
    any_subject: Listeners,
    by_subject: HashMap<Arc<str>, Listeners>,
}

/// Where a listener stands in the index.
pub struct Place {
    number: u64,
    filter: Filter,
}

impl Index {
    pub fn len(&self) -> usize {
        self.everybody.len()
    }

    pub fn queues(&self) -> impl Iterator<Item = &Arc<Queue>> {
        self.everybody.values()
    }

    pub fn add(&mut self, filter: &Filter, queue: Arc<Queue>) -> Place {
        let number = self.next;
        self.next += 1;
        if filter.names.is_empty() {
            self.any_name.add(filter, number, &queue);
        }
        for name in &filter.names {
            self.by_name.entry(name).or_default().add(filter, number, &queue);
        }
        self.everybody.insert(number, queue);
        Place { number, filter: filter.clone() }
    }

    pub fn remove(&mut self, place: &Place) {
        self.everybody.remove(&place.number);
        if place.filter.names.is_empty() {
            self.any_name.remove(place);
        }
        for name in &place.filter.names {
            // A name given twice is gone at the second look.
            if let Some(topic) = self.by_name.get_mut(name) {
                topic.remove(place);
                if topic.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
    }

    pub fn has(&self, name: &str) -> bool {
        !self.any_name.is_empty() || self.by_name.contains_key(name)
    }

    /// Visits everybody who wants events of this name about this subject, each once.
    pub fn interested(&self, name: &str, subject: &str, mut visit: impl FnMut(&Arc<Queue>)) {
        for topic in self.by_name.get(name).into_iter().chain([&self.any_name]) {
            topic.any_subject.values().for_each(&mut visit);
            if let Some(listeners) = topic.about(subject) {
                listeners.values().for_each(&mut visit);
            }
        }
    }
}

impl Topic {
    fn is_empty(&self) -> bool {
        self.any_subject.is_empty() && self.by_subject.is_empty()
    }

    fn about(&self, subject: &str) -> Option<&Listeners> {
        if self.by_subject.is_empty() { None } else { self.by_subject.get(subject) }
    }

    fn add(&mut self, filter: &Filter, number: u64, queue: &Arc<Queue>) {
        let listeners = match &filter.subject {
            None => &mut self.any_subject,
            Some(subject) => self.by_subject.entry(subject.clone()).or_default(),
        };
        listeners.insert(number, queue.clone());
    }

    fn remove(&mut self, place: &Place) {
        match &place.filter.subject {
            None => {
                self.any_subject.remove(&place.number);
            }
            Some(subject) => {
                if let Some(listeners) = self.by_subject.get_mut(subject) {
                    listeners.remove(&place.number);
                    if listeners.is_empty() {
                        self.by_subject.remove(subject);
                    }
                }
            }
        }
    }
}
