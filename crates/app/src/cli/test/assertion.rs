//! What a test says about an execution: its outputs, its status, how long it took.

use serde_json::Value;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Output,
    Status,
    Duration,
}

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equals,
    NotEquals,
    Contains,
    Matches,
    Exists,
    LessThan,
    GreaterThan,
}

const OPERATORS: [(&str, Operator); 7] = [
    ("equals", Operator::Equals),
    ("notEquals", Operator::NotEquals),
    ("contains", Operator::Contains),
    ("matches", Operator::Matches),
    ("exists", Operator::Exists),
    ("lessThan", Operator::LessThan),
    ("greaterThan", Operator::GreaterThan),
];

const MEMBERS: [&str; 4] = ["type", "path", "expected", "operator"];

/// Values longer than this are cut in what people read.
const SHOWN: usize = 200;

#[derive(Debug, Clone)]
pub struct Assertion {
    subject: Subject,
    path: String,
    operator: Operator,
    expected: Value,
}

impl Assertion {
    pub fn read(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or("an assertion is an object")?;
        if let Some(name) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(format!("'{name}' is unknown; known: {}", MEMBERS.join(", ")));
        }
        let subject = match value["type"].as_str() {
            Some("output") => Subject::Output,
            Some("status") => Subject::Status,
            Some("duration") => Subject::Duration,
            Some(_) | None => return Err(String::from("type must be output, status or duration")),
        };
        let usual = match subject {
            Subject::Duration => Operator::LessThan,
            Subject::Output | Subject::Status => Operator::Equals,
        };
        let operator = match &value["operator"] {
            Value::Null => usual,
            word => {
                OPERATORS.iter().find(|(name, _)| word == name).map(|(_, operator)| *operator).ok_or_else(
                    || format!("operator must be one of {}", OPERATORS.map(|(name, _)| name).join(", ")),
                )?
            }
        };
        if !members.contains_key("expected") && operator != Operator::Exists {
            return Err(String::from("expected is missing"));
        }
        let path = members.get("path").map_or(Ok(""), |path| path.as_str().ok_or("path must be a text"))?;
        Ok(Self { subject, path: path.to_owned(), operator, expected: value["expected"].clone() })
    }

    /// What is wrong, in a sentence.
    pub fn check(&self, execution: &Value) -> Result<(), String> {
        let (name, actual) = match self.subject {
            Subject::Output if self.path.is_empty() => (String::from("outputs"), Some(&execution["outputs"])),
            Subject::Output => (format!("output {}", self.path), find(&execution["outputs"], &self.path)),
            Subject::Status if self.path.is_empty() => (String::from("status"), Some(&execution["status"])),
            Subject::Status => {
                (format!("status of {}", self.path), execution["steps"][self.path.as_str()].get("status"))
            }
            Subject::Duration => (String::from("duration"), Some(&execution["duration"])),
        };
        let word =
            OPERATORS.iter().find(|(_, operator)| *operator == self.operator).map_or("", |(name, _)| name);
        if self.holds(actual) {
            return Ok(());
        }
        let actual = actual.map_or_else(|| String::from("nothing"), shown);
        let because = match text_of(&execution["errors"][0]["message"]) {
            Some(message) if execution["status"] != "completed" => {
                format!(" (the execution says: {message})")
            }
            Some(_) | None => String::new(),
        };
        match self.operator {
            Operator::Exists => {
                Err(format!("{name}: {word} should be {}, found {actual}{because}", self.wants()))
            }
            Operator::Equals
            | Operator::NotEquals
            | Operator::Contains
            | Operator::Matches
            | Operator::LessThan
            | Operator::GreaterThan => {
                Err(format!("{name}: {word} {} does not hold for {actual}{because}", shown(&self.expected)))
            }
        }
    }

    /// `exists` with `expected: false` wants that there is nothing.
    fn wants(&self) -> bool {
        self.expected != Value::Bool(false)
    }

    fn holds(&self, actual: Option<&Value>) -> bool {
        let expected = &self.expected;
        let number = |value: Option<&Value>| value.and_then(Value::as_f64);
        match self.operator {
            Operator::Exists => actual.is_some_and(|value| !value.is_null()) == self.wants(),
            Operator::Equals => actual.is_some_and(|actual| same(actual, expected)),
            Operator::NotEquals => !actual.is_some_and(|actual| same(actual, expected)),
            Operator::Contains => actual.is_some_and(|actual| contains(actual, expected)),
            Operator::Matches => match (actual.and_then(text_of), text_of(expected)) {
                (Some(actual), Some(pattern)) => matches(&pattern, &actual),
                (Some(_) | None, _) => false,
            },
            Operator::LessThan => number(actual).zip(number(Some(expected))).is_some_and(|(a, b)| a < b),
            Operator::GreaterThan => number(actual).zip(number(Some(expected))).is_some_and(|(a, b)| a > b),
        }
    }
}

/// A path of dots and `[n]`, as in expressions: `fetch.items[0].name`.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = value;
    for part in path.replace('[', ".[").split('.').filter(|part| !part.is_empty()) {
        at = match part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(index) => at.get(index.parse::<usize>().ok()?)?,
            None => at.get(part)?,
        };
    }
    Some(at)
}

/// 1 and 1.0 are the same number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|found| same(value, found)))
        }
        (one, other) => one == other,
    }
}

/// A text contains a text, a list an item, an object all members of another.
fn contains(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::String(actual), Value::String(expected)) => actual.contains(expected.as_str()),
        (Value::Array(items), expected) => items.iter().any(|item| same(item, expected)),
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().all(|(name, value)| actual.get(name).is_some_and(|found| same(found, value)))
        }
        (Value::Object(actual), Value::String(name)) => actual.contains_key(name),
        (_, _) => false,
    }
}

/// Texts as they are, other plain values as they are written.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `*` stands for anything, `?` for one letter. Looks back only to the last star, so it never takes long.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[t] => {
                p += 1;
                t += 1;
            }
            Some(_) | None => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|letter| *letter == '*')
}

fn shown(value: &Value) -> String {
    crate::cli::words::cut(&value.to_string(), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn holds(assertion: Value) -> bool {
        let execution = json!({"status": "completed", "duration": 120, "steps": {"a": {"status": "skipped"}},
            "outputs": {"fetch": {"items": [{"name": "Ada"}, {"name": "Grace"}], "count": 2, "text": "hello world", "none": null}}});
        Assertion::read(&assertion).unwrap().check(&execution).is_ok()
    }

    fn output(path: &str, operator: &str, expected: Value) -> bool {
        holds(json!({"type": "output", "path": path, "operator": operator, "expected": expected}))
    }

    #[test]
    fn every_operator_can_hold_and_fail() {
        let count = "fetch.count";
        assert!(
            output(count, "equals", json!(2))
                && output(count, "equals", json!(2.0))
                && !output(count, "equals", json!(3))
        );
        assert!(output(count, "notEquals", json!(3)) && !output(count, "notEquals", json!(2)));
        assert!(
            output("fetch.text", "contains", json!("lo w")) && !output("fetch.text", "contains", json!("x"))
        );
        let items = "fetch.items";
        assert!(
            output(items, "contains", json!({"name": "Ada"}))
                && !output(items, "contains", json!({"name": "Bob"}))
        );
        assert!(
            output("fetch.items[1]", "contains", json!("name"))
                && output("fetch", "contains", json!({"count": 2}))
        );
        assert!(
            output("fetch.text", "matches", json!("hel*w?rld"))
                && !output("fetch.text", "matches", json!("hel*w?ld"))
        );
        assert!(
            output("fetch.items[0].name", "exists", json!(true))
                && !output("fetch.items[2]", "exists", json!(true))
        );
        assert!(
            output("fetch.items[2]", "exists", json!(false)) && output("fetch.none", "exists", json!(false))
        );
        assert!(output(count, "lessThan", json!(3)) && !output(count, "lessThan", json!(2)));
        assert!(output(count, "greaterThan", json!(1)) && !output("fetch.text", "greaterThan", json!(1)));
        assert!(!output("nowhere", "equals", Value::Null), "nothing is not null");
    }

    #[test]
    fn status_and_duration_have_their_usual_operators() {
        assert!(holds(json!({"type": "status", "expected": "completed"})));
        assert!(holds(json!({"type": "status", "path": "a", "expected": "skipped"})));
        assert!(
            holds(json!({"type": "duration", "expected": 121}))
                && !holds(json!({"type": "duration", "expected": 120}))
        );
    }

    #[test]
    fn mistakes_are_refused() {
        for wrong in [
            json!([]),
            json!({"type": "speed", "expected": 1}),
            json!({"type": "output"}),
            json!({"type": "output", "operator": "equal", "expected": 1}),
            json!({"type": "output", "expected": 1, "pth": "a"}),
            json!({"type": "output", "expected": 1, "path": 5}),
        ] {
            assert!(Assertion::read(&wrong).is_err(), "{wrong}");
        }
        assert!(Assertion::read(&json!({"type": "output", "path": "a", "operator": "exists"})).is_ok());
    }

    #[test]
    fn what_does_not_hold_is_told_with_what_was_found() {
        let assertion = Assertion::read(&json!({"type": "output", "path": "a.b", "expected": 1})).unwrap();
        let execution = json!({"status": "failed", "outputs": {}, "errors": [{"message": "no answer"}]});
        assert_eq!(
            assertion.check(&execution).unwrap_err(),
            "output a.b: equals 1 does not hold for nothing (the execution says: no answer)"
        );
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!matches(&"*a".repeat(30), &"b".repeat(5000)));
        assert!(matches("***", "") && matches("", "") && !matches("?", ""));
    }
}
