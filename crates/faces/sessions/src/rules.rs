//! What the members of each command must be, in the words clients already know (SES-4.2).

use serde_json::{Map, Value};

use crate::limits::{BASH_CHARS, HISTORY_PAGE, ID_CHARS, NAME_CHARS, PATH_CHARS, PROMPT_CHARS};

/// Looks at the members of one command.
pub type Check = fn(&Map<String, Value>, &mut Problems);

/// What is wrong with a command: all of it, each with its member.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    pub fn add(&mut self, member: &str, what: impl std::fmt::Display) {
        self.0.push(format!("{member}: {what}"));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The refusal a client reads.
    pub fn text(&self) -> String {
        format!("Validation failed: {}", self.0.join("; "))
    }
}

const TABLE: &[(&str, Check)] = &[
    ("create_session", |command, problems| {
        optional_word(command, "sessionId", problems);
        optional_text(command, "cwd", problems);
    }),
    ("load_session", |command, problems| {
        path(command, "sessionPath", problems);
        optional_word(command, "sessionId", problems);
    }),
    ("switch_session", |command, problems| count(command, "afterSeq", problems)),
    ("get_command_history", history),
    ("prompt", |command, problems| {
        bounded(command, "message", PROMPT_CHARS, problems);
        one_of(command, "streamingBehavior", &["steer", "followUp"], Need::Optional, problems);
    }),
    ("steer", |command, problems| bounded(command, "message", PROMPT_CHARS, problems)),
    ("follow_up", |command, problems| bounded(command, "message", PROMPT_CHARS, problems)),
    ("set_model", |command, problems| {
        required(command, "provider", problems);
        required(command, "modelId", problems);
    }),
    ("set_thinking_level", |command, problems| {
        one_of(command, "level", &LEVELS, Need::Required, problems);
    }),
    ("bash", |command, problems| {
        bounded(command, "command", BASH_CHARS, problems);
        optional_flag(command, "excludeFromContext", "excludeFromContext", problems);
    }),
    ("compact", |command, problems| optional_text(command, "customInstructions", problems)),
    ("extension_ui_response", ui_response),
    ("fork", |command, problems| required(command, "entryId", problems)),
    ("navigate_tree", navigate_tree),
    ("switch_session_file", |command, problems| path(command, "sessionPath", problems)),
    ("set_session_name", session_name),
    ("export_html", |command, problems| optional_text(command, "outputPath", problems)),
    ("new_session", |command, problems| optional_text(command, "parentSession", problems)),
    ("set_auto_compaction", |command, problems| flag(command, "enabled", problems)),
    ("set_auto_retry", |command, problems| flag(command, "enabled", problems)),
    ("cycle_model", |command, problems| {
        let known = |value: &Value| matches!(value.as_str(), Some("forward" | "backward"));
        if command.get("direction").is_some_and(|value| !known(value)) {
            problems.add("direction", "Must be 'forward' or 'backward'");
        }
    }),
];

/// Both vocabularies that clients use.
const LEVELS: [&str; 7] = ["none", "off", "minimal", "low", "medium", "high", "xhigh"];

const UI_METHODS: [&str; 6] = ["select", "confirm", "input", "editor", "interview", "cancelled"];

/// The rules of a command, if it has any beyond those of every command.
pub fn of(name: &str) -> Option<Check> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

/// The length as clients count it: UTF-16 units. Cheap for what is short anyway.
pub fn is_longer(text: &str, chars: usize) -> bool {
    text.len() > chars && text.encode_utf16().count() > chars
}

pub fn is_blank(value: &Value) -> bool {
    value.as_str().is_none_or(|text| text.trim().is_empty())
}

/// A non-negative integer, also when it is written as `1.0`.
pub fn integer(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
    let whole = |float: f64| ((0.0..=EXACT).contains(&float) && float.fract() == 0.0).then_some(float as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

fn too_long(chars: usize) -> String {
    format!("Too long (max {chars} chars)")
}

fn text<'a>(command: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    command.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn required(command: &Map<String, Value>, name: &str, problems: &mut Problems) {
    if text(command, name).is_none() {
        problems.add(name, "Required string");
    }
}

fn bounded(command: &Map<String, Value>, name: &str, chars: usize, problems: &mut Problems) {
    match text(command, name) {
        None => problems.add(name, "Required string"),
        Some(text) if is_longer(text, chars) => problems.add(name, too_long(chars)),
        Some(_) => {}
    }
}

fn optional_text(command: &Map<String, Value>, name: &str, problems: &mut Problems) {
    if command.get(name).is_some_and(|value| !value.is_string()) {
        problems.add(name, "Must be a string if provided");
    }
}

/// A text that says something, if it is there.
fn optional_word(command: &Map<String, Value>, name: &str, problems: &mut Problems) {
    if command.get(name).is_some_and(is_blank) {
        problems.add(name, "Must be a non-empty string if provided");
    }
}

fn flag(command: &Map<String, Value>, name: &str, problems: &mut Problems) {
    if !command.get(name).is_some_and(Value::is_boolean) {
        problems.add(name, "Required boolean");
    }
}

fn optional_flag(command: &Map<String, Value>, name: &str, shown: &str, problems: &mut Problems) {
    if command.get(name).is_some_and(|value| !value.is_boolean()) {
        problems.add(shown, "Must be a boolean if provided");
    }
}

fn count(command: &Map<String, Value>, name: &str, problems: &mut Problems) {
    if command.get(name).is_some_and(|value| integer(value).is_none()) {
        problems.add(name, "Must be a non-negative integer");
    }
}

#[derive(PartialEq)]
enum Need {
    Required,
    Optional,
}

fn one_of(command: &Map<String, Value>, name: &str, words: &[&str], need: Need, problems: &mut Problems) {
    let is_known = |value: &Value| value.as_str().is_some_and(|word| words.contains(&word));
    if command.get(name).map_or(need == Need::Required, |value| !is_known(value)) {
        problems.add(name, format_args!("Must be one of: {}", words.join(", ")));
    }
}

fn path(command: &Map<String, Value>, name: &str, problems: &mut Problems) {
    match text(command, name) {
        None => problems.add(name, "Required string"),
        Some(path) if is_longer(path, PATH_CHARS) => {
            problems.add(name, format_args!("{name} too long (max {PATH_CHARS} chars)"));
        }
        Some(path) if path.contains("..") || path.starts_with('~') || path.contains('\0') => {
            problems.add(name, format_args!("{name} contains potentially dangerous path components"));
        }
        Some(_) => {}
    }
}

fn session_name(command: &Map<String, Value>, problems: &mut Problems) {
    match text(command, "name") {
        None => problems.add("name", "Required string"),
        Some(name) if is_longer(name, NAME_CHARS) => problems.add("name", too_long(NAME_CHARS)),
        Some(name) if name.chars().any(|c| c.is_ascii_control()) => {
            problems.add("name", "Must not contain control characters");
        }
        Some(_) => {}
    }
}

fn history(command: &Map<String, Value>, problems: &mut Problems) {
    optional_word(command, "sessionIdFilter", problems);
    optional_word(command, "commandId", problems);
    if text(command, "commandId").is_some_and(|id| is_longer(id, ID_CHARS)) {
        problems.add("commandId", too_long(ID_CHARS));
    }
    for name in ["fromTimestamp", "toTimestamp"] {
        if command.get(name).is_some_and(|value| integer(value).is_none()) {
            problems.add(name, "Must be a non-negative integer timestamp");
        }
    }
    let at = |name: &str| command.get(name).and_then(Value::as_f64);
    if let (Some(from), Some(to)) = (at("fromTimestamp"), at("toTimestamp"))
        && from > to
    {
        problems.add("fromTimestamp", "Must be less than or equal to toTimestamp");
    }
    if let Some(limit) = command.get("limit") {
        let is_whole = limit.as_f64().is_some_and(|limit| limit.fract() == 0.0);
        if !is_whole {
            problems.add("limit", "Must be an integer if provided");
        } else if !integer(limit).is_some_and(|limit| (1..=HISTORY_PAGE).contains(&limit)) {
            problems.add("limit", format_args!("Must be between 1 and {HISTORY_PAGE}"));
        }
    }
}

fn ui_response(command: &Map<String, Value>, problems: &mut Problems) {
    match text(command, "requestId") {
        None => problems.add("requestId", "Required string"),
        Some(id) => {
            if is_longer(id, ID_CHARS) {
                problems.add("requestId", too_long(ID_CHARS));
            }
            if !id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-')) {
                let what = "Must contain only alphanumeric characters, colons, underscores, and dashes";
                problems.add("requestId", what);
            }
        }
    }
    match command.get("response") {
        Some(Value::Object(response)) => {
            let method = response.get("method").and_then(Value::as_str);
            if !method.is_some_and(|method| UI_METHODS.contains(&method)) {
                problems.add("response.method", format_args!("Must be one of: {}", UI_METHODS.join(", ")));
            }
        }
        Some(_) | None => problems.add("response", "Required object"),
    }
}

fn navigate_tree(command: &Map<String, Value>, problems: &mut Problems) {
    required(command, "targetId", problems);
    match command.get("options") {
        None => {}
        Some(Value::Object(options)) => {
            optional_flag(options, "summarize", "options.summarize", problems);
            inner_text(options, "customInstructions", "options.customInstructions", problems);
            optional_flag(options, "replaceInstructions", "options.replaceInstructions", problems);
            inner_text(options, "label", "options.label", problems);
        }
        Some(_) => problems.add("options", "Must be an object if provided"),
    }
}

fn inner_text(options: &Map<String, Value>, name: &str, shown: &str, problems: &mut Problems) {
    if options.get(name).is_some_and(|value| !value.is_string()) {
        problems.add(shown, "Must be a string if provided");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text_of(name: &str, command: Value) -> String {
        let Value::Object(command) = command else { panic!("no object") };
        let mut problems = Problems::default();
        of(name).unwrap()(&command, &mut problems);
        if problems.is_empty() { String::new() } else { problems.text() }
    }

    #[test]
    fn each_member_is_refused_in_the_words_clients_know() {
        let long = "x".repeat(200_001);
        let cases = [
            ("prompt", json!({}), "message: Required string"),
            ("prompt", json!({"message": ""}), "message: Required string"),
            ("prompt", json!({"message": long}), "message: Too long (max 200000 chars)"),
            (
                "prompt",
                json!({"message": "x", "streamingBehavior": "later"}),
                "streamingBehavior: Must be one of: steer, followUp",
            ),
            ("set_model", json!({}), "provider: Required string; modelId: Required string"),
            ("bash", json!({"command": "x".repeat(20_001)}), "command: Too long (max 20000 chars)"),
            ("set_auto_retry", json!({"enabled": 1}), "enabled: Required boolean"),
            ("cycle_model", json!({"direction": "up"}), "direction: Must be 'forward' or 'backward'"),
            (
                "set_thinking_level",
                json!({"level": "max"}),
                "level: Must be one of: none, off, minimal, low, medium, high, xhigh",
            ),
            ("set_session_name", json!({"name": "a\u{7}"}), "name: Must not contain control characters"),
            (
                "load_session",
                json!({"sessionPath": "a/../b", "sessionId": " "}),
                "sessionPath: sessionPath contains potentially dangerous path components; sessionId: Must be a non-empty string if provided",
            ),
            (
                "get_command_history",
                json!({"fromTimestamp": 5, "toTimestamp": 4, "limit": 501}),
                "fromTimestamp: Must be less than or equal to toTimestamp; limit: Must be between 1 and 500",
            ),
            (
                "get_command_history",
                json!({"fromTimestamp": -1, "limit": "x", "sessionIdFilter": ""}),
                "sessionIdFilter: Must be a non-empty string if provided; fromTimestamp: Must be a non-negative integer timestamp; limit: Must be an integer if provided",
            ),
            (
                "extension_ui_response",
                json!({"requestId": "a b", "response": {"method": "shout"}}),
                "requestId: Must contain only alphanumeric characters, colons, underscores, and dashes; response.method: Must be one of: select, confirm, input, editor, interview, cancelled",
            ),
            (
                "navigate_tree",
                json!({"targetId": "x", "options": {"summarize": 1, "label": 2}}),
                "options.summarize: Must be a boolean if provided; options.label: Must be a string if provided",
            ),
            ("switch_session", json!({"afterSeq": -1}), "afterSeq: Must be a non-negative integer"),
        ];
        for (name, command, expected) in cases {
            assert_eq!(text_of(name, command), format!("Validation failed: {expected}"), "{name}");
        }
    }

    #[test]
    fn what_is_right_passes() {
        for (name, command) in [
            ("prompt", json!({"message": "😀".repeat(100_000)})),
            ("set_thinking_level", json!({"level": "off"})),
            ("get_command_history", json!({"limit": 500, "fromTimestamp": 1, "toTimestamp": 1})),
            ("extension_ui_response", json!({"requestId": "a:b_c-1", "response": {"method": "cancelled"}})),
            ("switch_session", json!({"afterSeq": 7})),
            ("create_session", json!({})),
        ] {
            assert_eq!(text_of(name, command), "", "{name}");
        }
    }
}
