//! Holes in the arguments of a template: what may fill them, and how an argument is made of them.

use std::collections::BTreeMap;

use orchestr8_contract::Fault;
use regex::Regex;
use serde_json::Value;

use super::template::plain;

/// What a hole may be filled with.
#[derive(Debug, Clone)]
pub enum ArgumentHole {
    Text,
    Integer,
    Number,
    Boolean,
    Choice(Vec<String>),
    /// The whole text matches.
    Pattern(Regex),
}

/// An argument in pieces. However it is filled, it stays one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentTemplate(Vec<ArgumentPiece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum ArgumentPiece {
    Fixed(String),
    Hole(String),
}

impl ArgumentHole {
    pub fn parse(kind: &str) -> Result<Self, String> {
        match (kind, kind.split_once(':')) {
            ("text", _) => Ok(ArgumentHole::Text),
            ("integer", _) => Ok(ArgumentHole::Integer),
            ("number", _) => Ok(ArgumentHole::Number),
            ("boolean", _) => Ok(ArgumentHole::Boolean),
            (_, Some(("enum", choices))) if !choices.is_empty() => {
                Ok(ArgumentHole::Choice(choices.split('|').map(str::to_owned).collect()))
            }
            (_, Some(("pattern", pattern))) => {
                let whole = Regex::new(&format!("^(?:{pattern})$"));
                whole
                    .map(ArgumentHole::Pattern)
                    .map_err(|_| format!("'{pattern}' is not a regular expression"))
            }
            _ => Err(format!(
                "'{kind}' is no type; it may be text, integer, number, boolean, enum:a|b or pattern:<regular expression>"
            )),
        }
    }

    /// The text of a value, if it is of this type.
    pub fn read(&self, name: &str, value: &Value) -> Result<String, Fault> {
        let path = format!("values.{name}");
        let text = plain(&path, value)?;
        let wanted = match self {
            ArgumentHole::Text => None,
            ArgumentHole::Integer => text.parse::<i64>().is_err().then(|| String::from("a whole number")),
            ArgumentHole::Number => {
                let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
                (!is_number).then(|| String::from("a number"))
            }
            ArgumentHole::Boolean => {
                (text != "true" && text != "false").then(|| String::from("true or false"))
            }
            ArgumentHole::Choice(choices) => {
                (!choices.contains(&text)).then(|| format!("one of {}", choices.join(", ")))
            }
            ArgumentHole::Pattern(pattern) => {
                (!pattern.is_match(&text)).then(|| format!("a text that matches {pattern}"))
            }
        };
        match wanted {
            None => Ok(text),
            Some(wanted) => Err(Fault::invalid(format!("`{path}` must be {wanted}")).with("path", path)),
        }
    }
}

impl ArgumentTemplate {
    /// `{name}` is a hole; braces around anything else are themselves.
    pub fn parse(text: &str) -> Self {
        let (mut pieces, mut fixed, mut rest) = (Vec::new(), String::new(), text);
        while let Some(start) = rest.find('{') {
            let (before, after) = rest.split_at(start);
            fixed.push_str(before);
            let name = after[1..].split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
            match name {
                Some(name) => {
                    if !fixed.is_empty() {
                        pieces.push(ArgumentPiece::Fixed(std::mem::take(&mut fixed)));
                    }
                    pieces.push(ArgumentPiece::Hole(name.to_owned()));
                    rest = &after[name.len() + 2..];
                }
                None => {
                    fixed.push('{');
                    rest = &after[1..];
                }
            }
        }
        fixed.push_str(rest);
        if !fixed.is_empty() || pieces.is_empty() {
            pieces.push(ArgumentPiece::Fixed(fixed));
        }
        Self(pieces)
    }

    pub fn holes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            ArgumentPiece::Hole(name) => Some(name.as_str()),
            ArgumentPiece::Fixed(_) => None,
        })
    }

    /// One argument. A value cannot make an option of it, unless the template lists that very value.
    pub fn fill(
        &self,
        values: &BTreeMap<&str, String>,
        holes: &BTreeMap<String, ArgumentHole>,
    ) -> Result<String, Fault> {
        let text: String = self
            .0
            .iter()
            .map(|piece| match piece {
                ArgumentPiece::Fixed(text) => text.as_str(),
                ArgumentPiece::Hole(name) => values.get(name.as_str()).map_or("", String::as_str),
            })
            .collect();
        match self.0.first() {
            Some(ArgumentPiece::Hole(name)) if text.starts_with('-') && !is_choice(holes.get(name)) => {
                let path = format!("values.{name}");
                Err(Fault::invalid(format!(
                    "`{path}` must not begin with '-', which would make it an option"
                ))
                .with("path", path))
            }
            Some(ArgumentPiece::Hole(_) | ArgumentPiece::Fixed(_)) | None => Ok(text),
        }
    }
}

fn is_choice(hole: Option<&ArgumentHole>) -> bool {
    matches!(hole, Some(ArgumentHole::Choice(_)))
}

fn is_name(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn holes_are_found_and_other_braces_left() {
        let holes = |text: &str| ArgumentTemplate::parse(text).holes().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(holes("--size={w}x{h}"), ["w", "h"]);
        for plain in ["", "{}", "{a b}", "awk '{print $1}'", "{", "}{"] {
            assert!(holes(plain).is_empty(), "{plain}");
            let filled = ArgumentTemplate::parse(plain).fill(&BTreeMap::new(), &BTreeMap::new());
            assert_eq!(filled.unwrap(), plain);
        }
    }

    #[test]
    fn values_are_of_their_type_and_no_option() {
        let read = |kind: &str, value: Value| ArgumentHole::parse(kind).unwrap().read("x", &value).ok();
        assert_eq!(read("integer", json!(5)).as_deref(), Some("5"));
        assert_eq!(read("integer", json!("5")).as_deref(), Some("5"));
        assert_eq!(read("enum:png|jpeg", json!("png")).as_deref(), Some("png"));
        assert_eq!(read("pattern:[a-z]+", json!("abc")).as_deref(), Some("abc"));
        for (kind, value) in [
            ("integer", json!("5; rm")),
            ("integer", json!(1.5)),
            ("number", json!("NaN")),
            ("boolean", json!("yes")),
            ("enum:png|jpeg", json!("gif")),
            ("pattern:[a-z]+", json!("abc\n--x")),
            ("text", json!("a\0b")),
            ("text", json!(["a"])),
        ] {
            assert_eq!(read(kind, value.clone()), None, "{kind} {value}");
        }
        for wrong in ["", "string", "enum:", "pattern:("] {
            assert!(ArgumentHole::parse(wrong).is_err(), "{wrong}");
        }
        let holes = BTreeMap::from([
            (String::from("t"), ArgumentHole::Text),
            (String::from("c"), ArgumentHole::Choice(vec![String::from("-v")])),
        ]);
        let fill = |arg: &str, value: &str| {
            ArgumentTemplate::parse(arg)
                .fill(&BTreeMap::from([("t", value.to_owned()), ("c", value.to_owned())]), &holes)
        };
        assert!(fill("{t}", "--upload-pack=id").is_err());
        assert_eq!(fill("--name={t}", "-x; id").unwrap(), "--name=-x; id");
        assert_eq!(fill("{c}", "-v").unwrap(), "-v");
    }
}
