//! Named secrets: values that workflows may send and nobody gets to read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::redact::REDACTED;
use serde_json::{Map, Value};

use crate::limits::{SECRET_BYTES, SECRET_SEARCHED_BYTES, SECRETS};

/// What environment variables that hold secrets are called; the rest of the name is the name of the secret.
pub const ENV_PREFIX: &str = "ORCHESTR8_SECRET_";

/// Secrets by name. Printing it shows the names.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeMap<String, String>,
    /// What texts are searched for, the longest first.
    needles: Vec<String>,
    /// The first bytes of the needles, so that most places of a text need one look.
    first: Option<Box<[bool; 256]>>,
}

impl Secrets {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn new(values: impl IntoIterator<Item = (String, String)>) -> Result<Self, Fault> {
        let values: BTreeMap<String, String> = values.into_iter().collect();
        if values.len() > SECRETS {
            return Err(broken(format!("there are {} secrets; the limit is {SECRETS}", values.len())));
        }
        for (name, value) in &values {
            check(name, value)?;
        }
        let mut needles: Vec<String> = values.values().flat_map(|value| spellings(value)).collect();
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        let first = (!needles.is_empty()).then(|| {
            let mut first = Box::new([false; 256]);
            needles.iter().filter_map(|needle| needle.as_bytes().first()).for_each(|byte| {
                first[usize::from(*byte)] = true;
            });
            first
        });
        Ok(Self { values, needles, first })
    }

    /// From a JSON object of texts, as a secrets file holds it, and from the environment, which wins.
    pub fn gather<'e>(
        file: Option<&str>,
        environment: impl IntoIterator<Item = (&'e str, &'e str)>,
    ) -> Result<Self, Fault> {
        let mut values = file.map(parse).transpose()?.unwrap_or_default();
        for (name, value) in environment {
            if let Some(name) = name.strip_prefix(ENV_PREFIX) {
                values.insert(name.to_owned(), value.to_owned());
            }
        }
        Self::new(values)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The text without any of the secrets, also where JSON has escaped them.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(first) = &self.first else { return Cow::Borrowed(text) };
        let bytes = text.as_bytes();
        let (mut out, mut kept, mut at) = (String::new(), 0, 0);
        while at < bytes.len() {
            if bytes[at..].starts_with(REDACTED.as_bytes()) {
                // Never looked into, so that redacting twice is redacting once.
                at += REDACTED.len();
                continue;
            }
            let found = first[usize::from(bytes[at])]
                .then(|| self.needles.iter().find(|needle| bytes[at..].starts_with(needle.as_bytes())))
                .flatten();
            match found {
                Some(needle) => {
                    out.push_str(&text[kept..at]);
                    out.push_str(REDACTED);
                    at += needle.len();
                    kept = at;
                }
                None => at += 1,
            }
        }
        if kept == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[kept..]);
        Cow::Owned(out)
    }

    /// The value with every text and every name in it redacted.
    pub fn redact_value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => {
                let text = number.to_string();
                match self.redact(&text) {
                    Cow::Borrowed(_) => Value::Number(number),
                    Cow::Owned(text) => Value::String(text),
                }
            }
            Value::String(text) => match self.redact(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(text) => Value::String(text),
            },
            Value::Array(items) => items.into_iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(map) => Value::Object(self.redact_map(map)),
        }
    }

    fn redact_map(&self, map: Map<String, Value>) -> Map<String, Value> {
        map.into_iter()
            .map(|(name, value)| (self.redact(&name).into_owned(), self.redact_value(value)))
            .collect()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.values.keys()).finish()
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, Fault> {
    // The cause would quote the text, so it is not kept.
    serde_json::from_str(text)
        .map_err(|_| broken(String::from("the secrets file must hold one JSON object of texts")))
}

fn check(name: &str, value: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 128 || !name.chars().all(plain) {
        return Err(broken(format!("the name of a secret is 1 to 128 of A-Z a-z 0-9 _ -, and not {name:?}")));
    }
    if value.is_empty() || value.len() > SECRET_BYTES {
        return Err(broken(format!("the secret {name} must have 1 to {SECRET_BYTES} bytes")));
    }
    Ok(())
}

fn broken(message: String) -> Fault {
    Fault::new(Code::Configuration, message)
}

/// The secret as it is, and as a JSON text shows it.
fn spellings(value: &str) -> Vec<String> {
    // A part of the mark itself cannot be told from it.
    if value.len() < SECRET_SEARCHED_BYTES || REDACTED.contains(value) {
        return Vec::new();
    }
    let quoted = Value::from(value).to_string();
    let escaped = &quoted[1..quoted.len() - 1];
    let mut spellings = vec![value.to_owned()];
    if escaped != value {
        spellings.push(escaped.to_owned());
    }
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn secrets(values: &[(&str, &str)]) -> Secrets {
        Secrets::new(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).unwrap()
    }

    #[test]
    fn secrets_come_from_a_file_and_from_the_environment_which_wins() {
        let environment = [("ORCHESTR8_SECRET_TOKEN", "from-env"), ("PATH", "/bin")];
        let secrets =
            Secrets::gather(Some(r#"{"TOKEN": "from-file", "OTHER": "o-value"}"#), environment).unwrap();
        assert_eq!(secrets.get("TOKEN"), Some("from-env"));
        assert_eq!(secrets.names().collect::<Vec<_>>(), ["OTHER", "TOKEN"]);
        assert_eq!(format!("{secrets:?}"), r#"{"OTHER", "TOKEN"}"#);
        let fault = Secrets::gather(Some(r#"{"TOKEN": 17171717}"#), []).unwrap_err();
        assert!(fault.code == Code::Configuration && !fault.to_string().contains("1717"));
        for wrong in [("", "value"), ("a b", "value"), ("a", "")] {
            assert!(Secrets::new([(wrong.0.to_owned(), wrong.1.to_owned())]).is_err());
        }
    }

    #[test]
    fn every_spelling_is_found_and_the_longest_first() {
        let secrets = secrets(&[("A", "tok-1"), ("B", "tok-1-long"), ("C", "two\n\"lines\""), ("D", "abc")]);
        assert_eq!(secrets.redact("x tok-1-long tok-1"), "x [REDACTED] [REDACTED]");
        let inside = json!({"message": "two\n\"lines\""}).to_string();
        assert_eq!(secrets.redact(&inside), r#"{"message":"[REDACTED]"}"#);
        assert!(matches!(secrets.redact("abc is too short to search for"), Cow::Borrowed(_)));
        let value = secrets.redact_value(json!({"tok-1": ["tok-1", 1]}));
        assert_eq!(value, json!({"[REDACTED]": ["[REDACTED]", 1]}));
        let number = super::tests::secrets(&[("PIN", "12345678")]);
        assert_eq!(number.redact_value(json!(12_345_678)), json!("[REDACTED]"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn no_secret_survives_and_twice_is_once(
            values in prop::collection::vec("[a-z\"\\\\é]{4,12}", 1..6), parts in prop::collection::vec("[a-z\"é ]{0,10}", 0..6),
        ) {
            let secrets = Secrets::new(values.iter().enumerate().map(|(n, v)| (format!("S{n}"), v.clone()))).unwrap();
            let text: String = parts.iter().zip(values.iter().cycle()).map(|(part, value)| format!("{part}{value}")).collect();
            let once = secrets.redact(&text).into_owned();
            for value in &values {
                prop_assert!(!once.contains(value.as_str()), "{once}");
            }
            prop_assert_eq!(secrets.redact(&once).into_owned(), once.clone());
        }
    }
}
