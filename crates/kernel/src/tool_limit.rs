//! The tools that work on behalf of a limited caller may use: those of a session, of a client of a filtered server, or of an
//! execution that one of them started. A limit only ever shrinks (ADR 38).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::token_scope::{intersect_patterns, matches};

/// Names of tools, actions and agents, or beginnings of names followed by `*`. Nothing else may be used; with none, nothing may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLimit(Arc<[String]>);

impl ToolLimit {
    pub fn new(patterns: &[String]) -> Self {
        Self(patterns.into())
    }

    /// The limit of a setting, in which an empty list stands for no limit.
    pub fn of_setting(patterns: &[String]) -> Option<Self> {
        (!patterns.is_empty()).then(|| Self::new(patterns))
    }

    pub fn allows(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, name))
    }

    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// What both limits allow.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        if self.0 == other.0 {
            return self.clone();
        }
        Self(intersect_patterns(&self.0, &other.0).into())
    }

    /// The limit of work that several limits apply to, each if there is one.
    pub fn all_of<'a>(limits: impl IntoIterator<Item = Option<&'a ToolLimit>>) -> Option<Self> {
        limits.into_iter().flatten().fold(None, |all: Option<Self>, limit| {
            Some(all.map_or_else(|| limit.clone(), |all| all.intersection(limit)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(patterns: &[&str]) -> ToolLimit {
        ToolLimit::new(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_limit_allows_what_it_names_and_an_empty_one_nothing() {
        let some = limit(&["run_workflow", "agent.*", "@orchestr8/http"]);
        for name in ["run_workflow", "agent.list", "@orchestr8/http"] {
            assert!(some.allows(name), "{name}");
        }
        for name in ["run_workflows", "agents.list", "@orchestr8/exec", ""] {
            assert!(!some.allows(name), "{name}");
        }
        assert!(!limit(&[]).allows("echo"));
        assert_eq!(ToolLimit::of_setting(&[]), None);
    }

    /// Property over all pairs of small limits: the intersection allows a name if and only if both do.
    #[test]
    fn an_intersection_allows_what_both_allow() {
        let patterns = ["a", "ab", "a*", "ab*", "b*", "*"];
        let subsets: Vec<ToolLimit> = (0u32..1 << patterns.len())
            .map(|bits| {
                let chosen: Vec<&str> =
                    (0..patterns.len()).filter(|at| bits & (1 << at) != 0).map(|at| patterns[at]).collect();
                limit(&chosen)
            })
            .collect();
        for one in &subsets {
            for other in &subsets {
                let both = one.intersection(other);
                for name in ["a", "ab", "abc", "b", "bc", "c", "ac"] {
                    let wanted = one.allows(name) && other.allows(name);
                    assert_eq!(both.allows(name), wanted, "{one:?} and {other:?}: {name}");
                }
            }
        }
    }

    #[test]
    fn of_several_limits_those_that_are_there_apply() {
        let (one, other) = (limit(&["a", "b"]), limit(&["b", "c"]));
        assert_eq!(ToolLimit::all_of([None, None]), None);
        assert_eq!(ToolLimit::all_of([None, Some(&one)]), Some(one.clone()));
        assert_eq!(ToolLimit::all_of([Some(&one), None, Some(&other)]), Some(limit(&["b"])));
    }
}
