//! Every method of the protocol, declared once: where it exists, what names its object, and what serves it.

use crate::body::Body;
use crate::era::Revision;
use crate::request::{Answer, Request};
use crate::wire::Error;
use crate::{call, completions, handshake, listen, lists, reads, task_calls};

/// What serves a method.
pub enum Serve {
    /// Answers at once.
    Now(fn(&Request<'_>) -> Result<Body, Error>),
    /// Answers now or later.
    Any(fn(&Request<'_>) -> Answer),
}

/// When a method of the legacy era may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It begins the conversation.
    Opening,
    /// Only in RUNNING (MCP-INIT-6).
    Running,
}

pub struct Method {
    pub name: &'static str,
    /// The first legacy revision that has it, if one has.
    pub legacy: Option<Revision>,
    pub modern: bool,
    pub gate: Gate,
    /// The param that names what it is about, which modern HTTP mirrors in `Mcp-Name`.
    pub object: Option<&'static str>,
    pub serve: Serve,
}

const fn both(name: &'static str, object: Option<&'static str>, serve: Serve) -> Method {
    Method { name, legacy: Some(Revision::FIRST), modern: true, gate: Gate::Running, object, serve }
}

const fn legacy(name: &'static str, since: Revision, serve: Serve) -> Method {
    Method { name, legacy: Some(since), modern: false, gate: Gate::Running, object: None, serve }
}

const fn modern(name: &'static str, object: Option<&'static str>, serve: Serve) -> Method {
    Method { name, legacy: None, modern: true, gate: Gate::Running, object, serve }
}

/// The method whose failures are results.
pub const TOOLS_CALL: &str = "tools/call";

/// The table. The methods called most come first.
pub static METHODS: [Method; 20] = [
    both(TOOLS_CALL, Some("name"), Serve::Any(call::call)),
    both("tools/list", None, Serve::Now(lists::tools)),
    both("resources/read", Some("uri"), Serve::Any(reads::resource)),
    both("prompts/get", Some("name"), Serve::Any(reads::prompt)),
    both("resources/list", None, Serve::Any(lists::resources)),
    both("resources/templates/list", None, Serve::Any(lists::templates)),
    both("prompts/list", None, Serve::Any(lists::prompts)),
    both("completion/complete", None, Serve::Any(completions::complete)),
    legacy("ping", Revision::FIRST, Serve::Now(handshake::ping)),
    Method {
        gate: Gate::Opening,
        ..legacy("initialize", Revision::FIRST, Serve::Now(handshake::initialize))
    },
    legacy("logging/setLevel", Revision::FIRST, Serve::Now(handshake::set_level)),
    legacy("resources/subscribe", Revision::FIRST, Serve::Any(listen::subscribe)),
    legacy("resources/unsubscribe", Revision::FIRST, Serve::Now(listen::unsubscribe)),
    legacy("tasks/result", Revision::V2025_11_25, Serve::Any(task_calls::result)),
    legacy("tasks/list", Revision::V2025_11_25, Serve::Any(task_calls::list)),
    Method {
        legacy: Some(Revision::V2025_11_25),
        ..modern("tasks/get", Some("taskId"), Serve::Any(task_calls::get))
    },
    Method {
        legacy: Some(Revision::V2025_11_25),
        ..modern("tasks/cancel", Some("taskId"), Serve::Any(task_calls::cancel))
    },
    modern("tasks/update", Some("taskId"), Serve::Any(task_calls::update)),
    modern("server/discover", None, Serve::Now(handshake::discover)),
    modern("subscriptions/listen", None, Serve::Any(listen::listen)),
];

/// The name of every method.
pub fn names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|method| method.name)
}

pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_declared_once_and_lives_in_some_era() {
        for method in &METHODS {
            assert_eq!(
                METHODS.iter().filter(|other| other.name == method.name).count(),
                1,
                "{}",
                method.name
            );
            assert!(method.legacy.is_some() || method.modern, "{}", method.name);
        }
    }

    #[test]
    fn only_initialize_opens() {
        let opening: Vec<_> =
            METHODS.iter().filter(|method| method.gate == Gate::Opening).map(|m| m.name).collect();
        assert_eq!(opening, ["initialize"]);
    }
}
