//! A recipe: one well-formed request of one face that leads to one action.

use super::objects::Objects;
use super::wire::Request;

pub struct Recipe {
    /// The route, MCP method, command or envelope, as the lists of the program name it.
    pub route: String,
    /// The action or operation that the request leads to.
    pub action: String,
    /// What the audit trail calls a refusal, if not by the action.
    pub audited_as: Option<&'static str>,
    pub request: Box<dyn Fn(&Objects) -> Request>,
    /// How it may end for callers with the right besides success: with a failure of the domain that needs a part this server
    /// does not have.
    pub ends: &'static [&'static str],
    /// Whether the address in the request is the proof, so that the caller does not matter.
    pub by_link: bool,
    /// Whether a stranger that names an object gets an empty answer, and not that there is none.
    pub filters: bool,
}

impl Recipe {
    pub fn new(
        route: impl Into<String>,
        action: impl Into<String>,
        request: impl Fn(&Objects) -> Request + 'static,
    ) -> Self {
        let (route, action, request) = (route.into(), action.into(), Box::new(request));
        Self { route, action, audited_as: None, request, ends: &[], by_link: false, filters: false }
    }

    /// The same request to `/api/v1`, where the API of `/v1` is served too.
    pub fn under_the_other_prefix(self) -> Self {
        let Recipe { route, request, .. } = self;
        let moved = move |target: String| target.replacen("/v1/", "/api/v1/", 1);
        let request = Box::new(move |objects: &Objects| match request(objects) {
            Request::Http { method, target, body } => Request::Http { method, target: moved(target), body },
            Request::Delivery { target, body, signature } => {
                Request::Delivery { target: moved(target), body, signature }
            }
            Request::Stream { target } => Request::Stream { target: moved(target) },
            Request::Socket { target } => Request::Socket { target: moved(target) },
            other @ (Request::Mcp { .. } | Request::LegacyMcp { .. } | Request::Command(_)) => other,
        });
        Self { route: moved(route), request, ..self }
    }

    /// May end so for callers with the right.
    pub fn ends(mut self, codes: &'static [&'static str]) -> Self {
        self.ends = codes;
        self
    }

    pub fn audited_as(mut self, name: &'static str) -> Self {
        self.audited_as = Some(name);
        self
    }

    pub fn by_link(mut self) -> Self {
        self.by_link = true;
        self
    }

    pub fn filtering(mut self) -> Self {
        self.filters = true;
        self
    }
}

/// A recipe without anything special.
pub fn of(
    route: impl Into<String>,
    action: impl Into<String>,
    request: impl Fn(&Objects) -> Request + 'static,
) -> Recipe {
    Recipe::new(route, action, request)
}
