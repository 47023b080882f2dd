//! Names and ids as providers take them: letters, digits, `_` and `-`. Ours have dots and more, so there is a way there and
//! back.

use indexmap::IndexMap;

use crate::limits::TOOL_NAME_CHARS;
use crate::model::Tool;

/// The names of the tools of one request.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// From the safe name to ours.
    ours: IndexMap<String, String>,
}

impl Names {
    pub fn of(tools: &[Tool]) -> Self {
        let mut ours = IndexMap::new();
        // Those that are safe as they are keep their names, whatever the others turn into.
        for tool in tools.iter().filter(|tool| is_safe(&tool.name)) {
            ours.insert(tool.name.clone(), tool.name.clone());
        }
        for tool in tools.iter().filter(|tool| !is_safe(&tool.name)) {
            if ours.values().any(|name| *name == tool.name) {
                continue;
            }
            let mut safe = safe(&tool.name);
            let mut number = 2_u32;
            while ours.contains_key(&safe) {
                let suffix = format!("_{number}");
                let stem = self::safe(&tool.name);
                let keep = stem.len().min(TOOL_NAME_CHARS - suffix.len());
                safe = format!("{}{suffix}", &stem[..keep]);
                number += 1;
            }
            ours.insert(safe, tool.name.clone());
        }
        Self { ours }
    }

    /// How the provider calls the tool. One that is no longer offered keeps what it can of its name.
    pub fn theirs(&self, name: &str) -> String {
        self.ours
            .iter()
            .find(|(_, ours)| *ours == name)
            .map_or_else(|| safe(name), |(theirs, _)| theirs.clone())
    }

    /// How we call it. A name that the model made up stays as it is.
    pub fn ours(&self, name: &str) -> String {
        self.ours.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

/// An id or name of safe characters; one that is safe already stays as it is.
pub fn safe(text: &str) -> String {
    let safe: String =
        text.chars().take(TOOL_NAME_CHARS).map(|c| if is_safe_char(c) { c } else { '_' }).collect();
    if safe.is_empty() { "_".to_owned() } else { safe }
}

fn is_safe(text: &str) -> bool {
    !text.is_empty() && text.len() <= TOOL_NAME_CHARS && text.chars().all(is_safe_char)
}

fn is_safe_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::HashSet;

    fn tool(name: &str) -> Tool {
        Tool { name: name.into(), description: String::new(), schema: json!({}) }
    }

    #[test]
    fn every_tool_has_a_safe_name_of_its_own_and_there_is_a_way_back() {
        let long = "x.".repeat(100);
        let longer = "x.".repeat(101);
        let names = ["a.b", "a_b", "a/b", "fine-1", "", "ä", &long, &longer, "a.b"];
        let tools: Vec<Tool> = names.iter().map(|name| tool(name)).collect();
        let map = Names::of(&tools);
        let mut seen = HashSet::new();
        for name in names.iter().take(8) {
            let theirs = map.theirs(name);
            assert!(is_safe(&theirs), "{theirs}");
            assert_eq!(map.ours(&theirs), *name);
            assert!(seen.insert(theirs));
        }
        assert_eq!((map.theirs("a_b").as_str(), map.theirs("a.b").as_str()), ("a_b", "a_b_2"));
        assert_eq!(
            (map.theirs("gone.tool").as_str(), map.ours("made_up").as_str()),
            ("gone_tool", "made_up")
        );
    }
}
