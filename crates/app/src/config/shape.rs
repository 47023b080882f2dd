//! What a setting may hold, how it is read from an environment variable, and how to say so.

use std::net::SocketAddr;

use serde_json::Value;

/// The values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Bool,
    Int {
        min: u64,
        max: u64,
    },
    Text,
    Choice(&'static [&'static str]),
    Texts,
    Choices(&'static [&'static str]),
    /// `address:port`.
    Socket,
    /// 64 hexadecimal digits.
    Sha256,
    /// Names with text values.
    Pairs,
}

/// A text longer than this is a mistake (a pasted file, say).
const TEXT_BYTES: usize = 4096;
/// A list longer than this is a mistake.
const LIST_ITEMS: usize = 1000;

impl Shape {
    /// Whether the value fits.
    pub fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Shape::Bool, Value::Bool(_)) => true,
            (Shape::Int { min, max }, Value::Number(number)) => {
                number.as_u64().is_some_and(|n| (min..=max).contains(&n))
            }
            (Shape::Text, Value::String(text)) => fits(text),
            (Shape::Choice(choices), Value::String(text)) => choices.contains(&text.as_str()),
            (Shape::Texts, Value::Array(items)) => {
                items.len() <= LIST_ITEMS && items.iter().all(|item| item.as_str().is_some_and(fits))
            }
            (Shape::Choices(choices), Value::Array(items)) => {
                !items.is_empty()
                    && items.iter().all(|item| item.as_str().is_some_and(|text| choices.contains(&text)))
            }
            (Shape::Socket, Value::String(text)) => text.parse::<SocketAddr>().is_ok(),
            (Shape::Sha256, Value::String(text)) => {
                text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            (Shape::Pairs, Value::Object(pairs)) => {
                pairs.len() <= LIST_ITEMS
                    && pairs.values().all(|value| value.as_str().is_some_and(|text| text.len() <= TEXT_BYTES))
            }
            _ => false,
        }
    }

    /// Reads the text of an environment variable or a flag. What cannot be read comes back as text, and is then refused.
    pub fn read(self, text: &str) -> Value {
        let list = || {
            Value::Array(
                text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(Value::from).collect(),
            )
        };
        match self {
            Shape::Bool => match text {
                "true" | "1" => Value::Bool(true),
                "false" | "0" => Value::Bool(false),
                other => Value::from(other),
            },
            Shape::Int { .. } => text.trim().parse::<u64>().map_or_else(|_| Value::from(text), Value::from),
            Shape::Text | Shape::Choice(_) | Shape::Socket | Shape::Sha256 => Value::from(text),
            Shape::Texts | Shape::Choices(_) => list(),
            Shape::Pairs => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
        }
    }

    /// What is allowed, to stand after "must be".
    pub fn allowed(self) -> String {
        match self {
            Shape::Bool => String::from("true or false"),
            Shape::Int { min, max } => format!("a whole number from {min} to {max}"),
            Shape::Text => format!("a text of 1 to {TEXT_BYTES} bytes without control characters"),
            Shape::Choice(choices) => format!("one of {}", choices.join(", ")),
            Shape::Texts => format!("a list of at most {LIST_ITEMS} non-empty texts"),
            Shape::Choices(choices) => format!("a non-empty list of {}", choices.join(", ")),
            Shape::Socket => String::from("an address and a port, such as 127.0.0.1:8088 or [::1]:8088"),
            Shape::Sha256 => String::from("64 hexadecimal digits (printf %s \"$TOKEN\" | sha256sum)"),
            Shape::Pairs => String::from("names with text values"),
        }
    }
}

fn fits(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT_BYTES && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SMALL: Shape = Shape::Int { min: 1, max: 10 };

    #[test]
    fn each_shape_takes_its_values_and_no_others() {
        let fits = [
            (Shape::Bool, json!(true)),
            (SMALL, json!(10)),
            (Shape::Text, json!("a b")),
            (Shape::Choice(&["full", "normal"]), json!("normal")),
            (Shape::Texts, json!([])),
            (Shape::Choices(&["legacy", "modern"]), json!(["modern"])),
            (Shape::Socket, json!("[::1]:0")),
            (Shape::Sha256, json!("aB".repeat(32))),
            (Shape::Pairs, json!({"A": ""})),
        ];
        for (shape, value) in &fits {
            assert!(shape.accepts(value), "{shape:?} {value}");
            for (other, _) in fits
                .iter()
                .filter(|(other, _)| std::mem::discriminant(other) != std::mem::discriminant(shape))
            {
                let both_texts = value.is_string() && *other == Shape::Text;
                let both_lists = value.is_array() && *other == Shape::Texts;
                assert!(both_texts || both_lists || !other.accepts(value), "{other:?} took {value}");
            }
        }
    }

    #[test]
    fn edges_are_refused() {
        for (shape, value) in [
            (SMALL, json!(0)),
            (SMALL, json!(11)),
            (SMALL, json!(1.5)),
            (SMALL, json!(-1)),
            (SMALL, json!("5")),
            (Shape::Text, json!("")),
            (Shape::Text, json!("a\nb")),
            (Shape::Choices(&["legacy"]), json!([])),
            (Shape::Socket, json!("localhost:80")),
            (Shape::Sha256, json!("g".repeat(64))),
            (Shape::Pairs, json!({"A": 1})),
        ] {
            assert!(!shape.accepts(&value), "{shape:?} took {value}");
        }
    }

    #[test]
    fn texts_of_the_environment_are_read_and_nonsense_stays_text() {
        assert_eq!(SMALL.read(" 7 "), json!(7));
        assert_eq!(SMALL.read("fast"), json!("fast"));
        assert_eq!(Shape::Bool.read("1"), json!(true));
        assert_eq!(Shape::Bool.read("yes"), json!("yes"), "only what cannot be misread");
        assert_eq!(Shape::Texts.read("a, b,,c "), json!(["a", "b", "c"]));
        assert_eq!(Shape::Texts.read(""), json!([]));
        assert_eq!(Shape::Pairs.read(r#"{"A":"b"}"#), json!({"A": "b"}));
    }
}
