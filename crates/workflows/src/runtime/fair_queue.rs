//! Lines that are served in turns: round robin over keys, at as many levels as there are keys.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use tokio::sync::oneshot;

/// What waits, and who is served next.
pub trait WaitingLine: Default {
    type Place;
    type Item;

    fn push(&mut self, place: Self::Place, item: Self::Item);

    /// The next one that still waits. None when nothing is left.
    fn pop(&mut self) -> Option<Self::Item>;

    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Steps of one execution that wait for something, the first one first. One that stopped waiting is passed over.
pub struct Waiters<S>(VecDeque<oneshot::Sender<S>>);

/// The oldest first.
pub struct ByAge<T>(BTreeMap<i64, T>);

/// The highest priority first; within one, as its own line says.
pub struct ByPriority<Q> {
    lines: BTreeMap<std::cmp::Reverse<i32>, Q>,
    len: usize,
}

/// Keys that take turns, each with a line of its own. A key whose line is empty takes no memory.
pub struct RoundRobin<K, Q> {
    order: VecDeque<K>,
    lines: HashMap<K, Q>,
    len: usize,
}

/// Waiting steps: workflows take turns, and within a workflow its executions do.
pub type StepLine<S> = RoundRobin<Arc<str>, RoundRobin<i64, Waiters<S>>>;

impl<S> Default for Waiters<S> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Default for ByAge<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<Q> Default for ByPriority<Q> {
    fn default() -> Self {
        Self { lines: BTreeMap::new(), len: 0 }
    }
}

impl<K, Q> Default for RoundRobin<K, Q> {
    fn default() -> Self {
        Self { order: VecDeque::new(), lines: HashMap::new(), len: 0 }
    }
}

impl<S> WaitingLine for Waiters<S> {
    type Place = ();
    type Item = oneshot::Sender<S>;

    fn push(&mut self, (): (), item: Self::Item) {
        self.0.push_back(item);
    }

    fn pop(&mut self) -> Option<Self::Item> {
        std::iter::from_fn(|| self.0.pop_front()).find(|waiter| !waiter.is_closed())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T> WaitingLine for ByAge<T> {
    type Place = i64;
    type Item = T;

    fn push(&mut self, number: i64, item: T) {
        self.0.insert(number, item);
    }

    fn pop(&mut self) -> Option<T> {
        self.0.pop_first().map(|(_, item)| item)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<Q: WaitingLine> WaitingLine for ByPriority<Q> {
    type Place = (i32, Q::Place);
    type Item = Q::Item;

    fn push(&mut self, (priority, place): Self::Place, item: Self::Item) {
        let line = self.lines.entry(std::cmp::Reverse(priority)).or_default();
        let before = line.len();
        line.push(place, item);
        self.len += line.len() - before;
    }

    fn pop(&mut self) -> Option<Self::Item> {
        loop {
            let mut first = self.lines.first_entry()?;
            let line = first.get_mut();
            let before = line.len();
            let item = line.pop();
            self.len -= before - line.len();
            if line.is_empty() {
                first.remove();
            }
            if item.is_some() {
                return item;
            }
        }
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl<K: Hash + Eq + Clone, Q: WaitingLine> WaitingLine for RoundRobin<K, Q> {
    type Place = (K, Q::Place);
    type Item = Q::Item;

    fn push(&mut self, (key, place): Self::Place, item: Self::Item) {
        if !self.lines.contains_key(&key) {
            self.order.push_back(key.clone());
        }
        let line = self.lines.entry(key).or_default();
        let before = line.len();
        line.push(place, item);
        self.len += line.len() - before;
    }

    fn pop(&mut self) -> Option<Self::Item> {
        loop {
            let key = self.order.pop_front()?;
            let Some(line) = self.lines.get_mut(&key) else { continue };
            let before = line.len();
            let item = line.pop();
            self.len -= before - line.len();
            if line.is_empty() {
                self.lines.remove(&key);
            } else {
                self.order.push_back(key);
            }
            if item.is_some() {
                return item;
            }
        }
    }

    fn len(&self) -> usize {
        self.len
    }
}
