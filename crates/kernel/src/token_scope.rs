//! The scope of an API token: the faces and the actions it is limited to. Scopes only narrow.

use orchestr8_contract::{Code, Fault};

/// Before the name of a face in a scope.
const FACE: &str = "face:";

/// The faces a scope may name.
pub const FACES: [&str; 6] = ["mcp", "workflows", "sessions", "messaging", "knowledge", "dashboard"];

/// The entry of a scope that allows nothing: no action and no face has this name.
const NONE: &str = "-";

/// The longest pattern, and how many a scope may have.
const PATTERN_BYTES: usize = 128;
const PATTERNS: usize = 64;

/// The faces and actions a token is limited to. Without faces any face, without actions any action; roles apply as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenScope {
    faces: Vec<String>,
    /// Action names; a `*` at the end stands for any rest.
    actions: Vec<String>,
}

impl TokenScope {
    /// Reads entries such as `face:mcp`, `workflows.*` or `executions.get`. The error says what is wrong with which entry.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, String> {
        if entries.len() > PATTERNS {
            return Err(format!("a scope has at most {PATTERNS} entries"));
        }
        Self::parse_with(entries, &FACES)
    }

    /// A scope as it was recorded: an intersection of two may have more entries than either, and no face. One that cannot be read
    /// allows nothing.
    pub fn recorded<S: AsRef<str>>(entries: &[S]) -> Self {
        let faces: Vec<&str> = FACES.into_iter().chain([NONE]).collect();
        Self::parse_with(entries, &faces)
            .unwrap_or_else(|_| Self { faces: Vec::new(), actions: vec![NONE.to_owned()] })
    }

    fn parse_with<S: AsRef<str>>(entries: &[S], faces: &[&str]) -> Result<Self, String> {
        let mut scope = Self::default();
        for entry in entries.iter().map(AsRef::as_ref) {
            match entry.strip_prefix(FACE) {
                Some(face) if faces.contains(&face) => scope.faces.push(face.to_owned()),
                Some(face) => {
                    return Err(format!("there is no face '{face}'; the faces are {}", FACES.join(", ")));
                }
                None if is_pattern(entry) => scope.actions.push(entry.to_owned()),
                None => {
                    return Err(format!(
                        "'{entry}' is neither face:NAME nor an action name such as workflows.execute or workflows.*"
                    ));
                }
            }
        }
        Ok(scope)
    }

    /// As it is written: the entries that `parse` reads.
    pub fn entries(&self) -> Vec<String> {
        let faces = self.faces.iter().map(|face| format!("{FACE}{face}"));
        faces.chain(self.actions.iter().cloned()).collect()
    }

    pub fn allows_face(&self, face: &str) -> bool {
        self.faces.is_empty() || self.faces.iter().any(|allowed| allowed == face)
    }

    pub fn allows_action(&self, action: &str) -> bool {
        self.actions.is_empty() || self.actions.iter().any(|pattern| matches(pattern, action))
    }

    /// Whether it allows everything.
    pub fn is_unlimited(&self) -> bool {
        self.faces.is_empty() && self.actions.is_empty()
    }

    /// What both scopes allow.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        let common = |ours: &Vec<String>, theirs: &Vec<String>| match (ours.is_empty(), theirs.is_empty()) {
            (true, _) => theirs.clone(),
            (_, true) => ours.clone(),
            (false, false) => match intersect_patterns(ours, theirs) {
                common if common.is_empty() => vec![NONE.to_owned()],
                common => common,
            },
        };
        Self { faces: common(&self.faces, &other.faces), actions: common(&self.actions, &other.actions) }
    }

    /// The actions and the faces that either scope allows.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let either = |ours: &[String], theirs: &[String]| match ours.is_empty() || theirs.is_empty() {
            true => Vec::new(),
            false => {
                ours.iter().chain(theirs.iter().filter(|their| !ours.contains(their))).cloned().collect()
            }
        };
        Self { faces: either(&self.faces, &other.faces), actions: either(&self.actions, &other.actions) }
    }

    /// Whether it includes the action.
    pub fn check(&self, action: &str, whose: &str) -> Result<(), Fault> {
        match self.allows_action(action) {
            true => Ok(()),
            false => Err(Fault::new(
                Code::Unauthorized,
                format!("the scope of {whose} does not include '{action}'"),
            )
            .with("reason", "scope")),
        }
    }

    /// Whether everything that `other` allows is allowed here too.
    pub fn covers(&self, other: &TokenScope) -> bool {
        let faces = self.faces.is_empty()
            || (!other.faces.is_empty() && other.faces.iter().all(|face| self.faces.contains(face)));
        let actions = self.actions.is_empty()
            || (!other.actions.is_empty()
                && other.actions.iter().all(|theirs| self.actions.iter().any(|ours| includes(ours, theirs))));
        faces && actions
    }
}

/// The patterns that both lists include. Of two patterns that meet, the narrower one is kept, so the result is made of patterns of
/// the two.
pub(crate) fn intersect_patterns(ours: &[String], theirs: &[String]) -> Vec<String> {
    let narrower = |ours: &[String], theirs: &[String]| -> Vec<String> {
        let is_included = |one: &&String| theirs.iter().any(|their| includes(their, one));
        ours.iter().filter(is_included).cloned().collect()
    };
    let mut common = narrower(ours, theirs);
    for pattern in narrower(theirs, ours) {
        if !common.contains(&pattern) {
            common.push(pattern);
        }
    }
    common
}

fn is_pattern(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
    !text.is_empty() && text.len() <= PATTERN_BYTES && name.bytes().all(letters)
}

pub(crate) fn matches(pattern: &str, action: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => action.starts_with(begin),
        None => pattern == action,
    }
}

pub(crate) fn includes(wider: &str, narrower: &str) -> bool {
    match (wider.strip_suffix('*'), narrower.strip_suffix('*')) {
        (Some(begin), Some(other)) => other.starts_with(begin),
        (Some(begin), None) => narrower.starts_with(begin),
        (None, Some(_)) => false,
        (None, None) => wider == narrower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(entries: &[&str]) -> TokenScope {
        TokenScope::parse(entries).unwrap()
    }

    #[test]
    fn a_scope_narrows_faces_and_actions() {
        let all = scope(&[]);
        assert!(all.allows_face("mcp") && all.allows_action("workflows.execute"));
        let some = scope(&["face:workflows", "executions.*", "workflows.list"]);
        assert!(some.allows_face("workflows") && !some.allows_face("mcp"));
        assert!(some.allows_action("executions.get") && some.allows_action("workflows.list"));
        assert!(!some.allows_action("workflows.listing") && !some.allows_action("execution"));
        assert_eq!(scope(&some.entries().iter().map(String::as_str).collect::<Vec<_>>()), some);
    }

    #[test]
    fn a_scope_covers_only_what_is_narrower() {
        let (all, some) = (scope(&[]), scope(&["face:mcp", "executions.*"]));
        assert!(all.covers(&some) && !some.covers(&all) && some.covers(&some));
        assert!(some.covers(&scope(&["face:mcp", "executions.get"])));
        for wider in [
            &["face:mcp"][..],
            &["executions.*"],
            &["face:mcp", "exec*"],
            &["face:mcp", "face:sessions", "executions.get"],
        ] {
            assert!(!some.covers(&scope(wider)), "{wider:?}");
        }
        assert!(!scope(&["executions.get"]).covers(&scope(&["executions.*"])));
    }

    /// Property over all pairs of small scopes: the intersection allows an action if and only if both do, also as it is stored.
    #[test]
    fn an_intersection_allows_the_actions_that_both_allow() {
        let patterns = ["a", "ab", "a*", "ab*", "b*", "*"];
        let subsets: Vec<TokenScope> = (0u32..1 << patterns.len())
            .map(|bits| {
                let chosen = (0..patterns.len()).filter(|at| bits & (1 << at) != 0).map(|at| patterns[at]);
                scope(&chosen.collect::<Vec<_>>())
            })
            .collect();
        for (one, other) in subsets.iter().flat_map(|one| subsets.iter().map(move |other| (one, other))) {
            let both = TokenScope::recorded(&one.intersection(other).entries());
            let either = TokenScope::recorded(&one.union(other).entries());
            for name in ["a", "ab", "abc", "b", "bc", "c", "ac"] {
                let allowed = (one.allows_action(name), other.allows_action(name));
                assert_eq!(both.allows_action(name), allowed.0 && allowed.1, "{one:?} and {other:?}: {name}");
                assert_eq!(
                    either.allows_action(name),
                    allowed.0 || allowed.1,
                    "{one:?} or {other:?}: {name}"
                );
            }
        }
    }

    #[test]
    fn scopes_that_share_no_face_allow_none_and_no_token_has_such_a_scope() {
        let one = scope(&["face:mcp", "face:workflows"]);
        assert_eq!(one.intersection(&scope(&["face:mcp", "a"])), scope(&["face:mcp", "a"]));
        let none = TokenScope::recorded(&one.intersection(&scope(&["face:sessions"])).entries());
        assert!(FACES.iter().all(|face| !none.allows_face(face)) && none.allows_action("a"));
        assert!(TokenScope::parse(&none.entries()).is_err());
        assert!(
            !TokenScope::recorded(&["face:rest"]).allows_action("a"),
            "what cannot be read allows nothing"
        );
    }

    #[test]
    fn senseless_entries_are_named() {
        for wrong in ["", "face:", "face:rest", "a b", "*.get", "a**", &"a".repeat(129)] {
            let said = TokenScope::parse(&[wrong]);
            assert!(said.is_err(), "{wrong}");
        }
        assert!(TokenScope::parse(&vec!["a"; 65]).is_err());
    }
}
