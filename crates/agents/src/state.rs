//! The state of one agent: names and values, in memory.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use serde_json::{Map, Value};

use crate::limits::{STATE_ENTRIES, TOLD_NAMES};

/// The state while a message is worked on. Copied only when it is changed, so reading costs nothing.
#[derive(Debug, Clone, Default)]
pub struct State {
    entries: Arc<Map<String, Value>>,
    changed: Changed,
}

/// Whether something was changed, and the first of the names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub any: bool,
    pub names: Vec<String>,
}

impl State {
    pub(crate) fn over(entries: Arc<Map<String, Value>>) -> Self {
        Self { entries, changed: Changed::default() }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.get(name)
    }

    pub fn entries(&self) -> &Map<String, Value> {
        &self.entries
    }

    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Result<(), Fault> {
        let name = name.into();
        if self.entries.len() >= STATE_ENTRIES && !self.entries.contains_key(&name) {
            let what = format!("the state of an agent holds {STATE_ENTRIES} names at most");
            return Err(Fault::new(Code::ResourceExhausted, what).with("reason", "state_full"));
        }
        self.changed.note(&name);
        Arc::make_mut(&mut self.entries).insert(name, value.into());
        Ok(())
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        if !self.entries.contains_key(name) {
            return None;
        }
        self.changed.note(name);
        Arc::make_mut(&mut self.entries).remove(name)
    }

    /// What it holds now, and what was changed since it was handed out.
    pub(crate) fn into_parts(self) -> (Arc<Map<String, Value>>, Changed) {
        (self.entries, self.changed)
    }
}

impl Changed {
    fn note(&mut self, name: &str) {
        self.any = true;
        if self.names.len() < TOLD_NAMES && !self.names.iter().any(|noted| noted == name) {
            self.names.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_copy_is_made_only_for_a_change() {
        let shared = Arc::new(Map::from_iter([(String::from("a"), json!(1))]));
        let mut state = State::over(shared.clone());
        assert_eq!(state.get("a"), Some(&json!(1)));
        assert_eq!(state.remove("b"), None);
        assert!(Arc::ptr_eq(&state.entries, &shared));
        state.set("a", 2).unwrap();
        state.set("a", 3).unwrap();
        assert_eq!((shared["a"].clone(), state.get("a").cloned()), (json!(1), Some(json!(3))));
        assert_eq!(state.into_parts().1, Changed { any: true, names: vec![String::from("a")] });
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let full: Map<String, Value> = (0..STATE_ENTRIES).map(|n| (n.to_string(), Value::Null)).collect();
        let mut state = State::over(Arc::new(full));
        assert_eq!(state.set("one more", 1).unwrap_err().code, Code::ResourceExhausted);
        assert!(state.set("7", 1).is_ok(), "a name that is there may change");
    }

    #[test]
    fn the_list_of_changed_names_is_cut() {
        let mut state = State::default();
        for n in 0..=TOLD_NAMES {
            state.set(n.to_string(), n).unwrap();
        }
        assert_eq!(state.into_parts().1.names.len(), TOLD_NAMES);
    }
}
