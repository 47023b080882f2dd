//! The result of a request, written member by member and finished the way its era has it.

use serde::Serialize;

use crate::era::{Era, SERVER_KEY};
use crate::wire::{self, Id, push_string};

/// What kind of result the modern era calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultType {
    Complete,
    InputRequired,
    Task,
}

impl ResultType {
    fn as_str(self) -> &'static str {
        match self {
            ResultType::Complete => "complete",
            ResultType::InputRequired => "input_required",
            ResultType::Task => "task",
        }
    }
}

/// Who may keep a copy of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    Public,
    Private,
}

/// The members of a result and of its `_meta`, without braces.
#[derive(Debug, Clone)]
pub struct Body {
    pub result_type: ResultType,
    members: String,
    meta: String,
    cache: Option<(u64, CacheScope)>,
    /// It answers a repeat of an earlier request.
    pub is_replay: bool,
}

impl Body {
    /// `{}`, or what the modern era makes of it.
    pub fn empty() -> Self {
        Self::with_capacity(0)
    }

    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            result_type: ResultType::Complete,
            members: String::with_capacity(bytes),
            meta: String::new(),
            cache: None,
            is_replay: false,
        }
    }

    /// Marks it as the answer to a repeat.
    #[must_use]
    pub fn replayed(mut self) -> Self {
        self.is_replay = true;
        self
    }

    #[must_use]
    pub fn of(mut self, result_type: ResultType) -> Self {
        self.result_type = result_type;
        self
    }

    /// A member that is JSON text already. Names are our own and need no escapes.
    #[must_use]
    pub fn raw(mut self, name: &str, json: &str) -> Self {
        push_member(&mut self.members, name, json);
        self
    }

    #[must_use]
    pub fn text(mut self, name: &str, text: &str) -> Self {
        push_name(&mut self.members, name);
        push_string(&mut self.members, text);
        self
    }

    #[must_use]
    pub fn value(self, name: &str, value: &impl Serialize) -> Self {
        self.raw(name, &json(value))
    }

    #[must_use]
    pub fn meta(mut self, name: &str, value: &impl Serialize) -> Self {
        if !self.meta.is_empty() {
            self.meta.push(',');
        }
        // Unlike the names of members, these may be an action's own words.
        push_string(&mut self.meta, name);
        self.meta.push(':');
        self.meta.push_str(&json(value));
        self
    }

    /// How long a client may keep it, which only the modern era is told.
    #[must_use]
    pub fn cached(mut self, ttl_ms: u64, scope: CacheScope) -> Self {
        self.cache = Some((ttl_ms, scope));
        self
    }

    /// `content` with one block of text.
    pub fn content(text: &str) -> Self {
        let mut body = Self::with_capacity(text.len() + text.len() / 8 + 64);
        body.members.push_str("\"content\":[{\"type\":\"text\",\"text\":");
        push_string(&mut body.members, text);
        body.members.push_str("}]");
        body
    }

    /// The text of the `result` member. `server` is the JSON text of our name and version.
    pub fn finish(self, era: Era, server: &str) -> String {
        let mut out = String::with_capacity(self.bytes(server));
        self.write(&mut out, era, server);
        out
    }

    /// The whole answer to a request.
    pub fn respond(self, id: &Id, era: Era, server: &str) -> String {
        let mut out = wire::begin_response(Some(id), "result", self.bytes(server));
        self.write(&mut out, era, server);
        out.push('}');
        out
    }

    /// Room enough for it.
    fn bytes(&self, server: &str) -> usize {
        self.members.len() + self.meta.len() + server.len() + 128
    }

    fn write(&self, out: &mut String, era: Era, server: &str) {
        out.push('{');
        if era.is_modern() {
            push_name(out, "resultType");
            push_string(out, self.result_type.as_str());
        }
        push_all(out, &self.members);
        if let (Era::Modern, Some((ttl_ms, scope))) = (era, self.cache) {
            push_member(out, "ttlMs", itoa::Buffer::new().format(ttl_ms));
            let scope = match scope {
                CacheScope::Public => "\"public\"",
                CacheScope::Private => "\"private\"",
            };
            push_member(out, "cacheScope", scope);
        }
        if era.is_modern() || !self.meta.is_empty() {
            push_name(out, "_meta");
            out.push('{');
            let at = out.len();
            out.push_str(&self.meta);
            if era.is_modern() {
                if out.len() > at {
                    out.push(',');
                }
                push_string(out, SERVER_KEY);
                out.push(':');
                out.push_str(server);
            }
            out.push('}');
        }
        out.push('}');
    }
}

/// What our own types serialize to cannot fail: their keys are strings and their numbers finite.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| String::from("null"))
}

fn push_all(out: &mut String, members: &str) {
    if !members.is_empty() {
        if !out.ends_with('{') {
            out.push(',');
        }
        out.push_str(members);
    }
}

fn push_name(out: &mut String, name: &str) {
    if !out.is_empty() && !out.ends_with('{') {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
}

fn push_member(out: &mut String, name: &str, json: &str) {
    push_name(out, name);
    out.push_str(json);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::era::Revision;

    const LEGACY: Era = Era::Legacy(Revision::V2025_11_25);
    const SERVER: &str = r#"{"name":"s","version":"1"}"#;

    #[test]
    fn an_empty_legacy_result_has_no_members() {
        assert_eq!(Body::empty().finish(LEGACY, SERVER), "{}");
        assert_eq!(Body::empty().cached(5, CacheScope::Public).finish(LEGACY, SERVER), "{}");
    }

    #[test]
    fn a_modern_result_says_its_type_and_its_server() {
        assert_eq!(
            Body::empty().finish(Era::Modern, SERVER),
            r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#
        );
        let body = Body::empty()
            .text("a", "x\"y")
            .value("b", &[1, 2])
            .meta("k", &true)
            .cached(5, CacheScope::Private);
        assert_eq!(
            body.clone().finish(Era::Modern, SERVER),
            r#"{"resultType":"complete","a":"x\"y","b":[1,2],"ttlMs":5,"cacheScope":"private","_meta":{"k":true,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#
        );
        assert_eq!(body.finish(LEGACY, SERVER), r#"{"a":"x\"y","b":[1,2],"_meta":{"k":true}}"#);
    }

    #[test]
    fn a_member_that_ends_in_a_brace_is_followed_by_a_comma() {
        assert_eq!(Body::empty().raw("a", "{}").raw("b", "1").finish(LEGACY, SERVER), r#"{"a":{},"b":1}"#);
    }
}
