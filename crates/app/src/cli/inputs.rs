//! What a workflow is given on the command line: `--input name=value` and `--inputs JSON`.

use std::io::Read;

use clap::Args;
use orchestr8_contract::Code;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Inputs larger than this would be refused anyway.
const INPUT_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Args, Clone, Default)]
pub struct Inputs {
    /// One input: a value that is JSON is taken as such, anything else as text. Can be given again.
    #[arg(long = "input", value_name = "NAME=VALUE")]
    pub one: Vec<String>,
    /// All inputs as a JSON object, or @FILE with it, or @- for stdin; --input wins.
    #[arg(long = "inputs", value_name = "JSON|@FILE")]
    pub all: Option<String>,
}

impl Inputs {
    pub fn read(&self) -> Result<Map<String, Value>, Failure> {
        let mut inputs = match &self.all {
            Some(text) => object("--inputs", text)?,
            None => Map::new(),
        };
        for pair in &self.one {
            let (name, value) =
                pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
                    Failure::new(
                        Code::InvalidArgument,
                        format!("--input {pair}: there is no '=' after a name"),
                    )
                    .hinting("write --input name=value")
                })?;
            inputs.insert(name.to_owned(), value_of(value));
        }
        Ok(inputs)
    }
}

/// Options such as `--tag customer=42`, one text for each name.
pub fn pairs(option: &str, given: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut pairs = Map::new();
    for pair in given {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let text = format!("{option} {pair}: there is no '=' after a name");
            return Err(
                Failure::new(Code::InvalidArgument, text).hinting(format!("write {option} customer=42"))
            );
        };
        if pairs.insert(name.to_owned(), Value::from(value)).is_some() {
            return Err(Failure::new(Code::InvalidArgument, format!("{option} names {name} twice")));
        }
    }
    Ok(pairs)
}

/// JSON if it is JSON, else the text itself.
pub fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// A JSON object given to an option, as it is or in a file.
pub fn object(option: &str, text: &str) -> Result<Map<String, Value>, Failure> {
    match json(option, text)? {
        Value::Object(object) => Ok(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Failure::new(Code::InvalidArgument, format!("{option} is not a JSON object"))
                .hinting(format!("write {option} '{{\"name\": \"value\"}}'")))
        }
    }
}

/// JSON given to an option: as it is, in `@FILE`, or `@-` on stdin.
pub fn json(option: &str, text: &str) -> Result<Value, Failure> {
    let text = match text.strip_prefix('@') {
        Some("-") => read(option, "stdin", std::io::stdin())?,
        Some(path) => {
            let file = std::fs::File::open(path).map_err(|cause| unreadable(option, path, &cause))?;
            read(option, path, file)?
        }
        None => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::new(Code::InvalidArgument, format!("{option} is not JSON: {error}"))
            .hinting("quote it for the shell, or put it in a file and give @FILE")
    })
}

fn read(option: &str, name: &str, from: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    from.take(INPUT_BYTES + 1).read_to_string(&mut text).map_err(|cause| unreadable(option, name, &cause))?;
    if text.len() as u64 > INPUT_BYTES {
        let message = format!("{option}: {name} has more than {INPUT_BYTES} bytes");
        return Err(
            Failure::new(Code::PayloadTooLarge, message).hinting("give a reference to large data instead")
        );
    }
    Ok(text)
}

fn unreadable(option: &str, name: &str, cause: &std::io::Error) -> Failure {
    let code = match cause.kind() {
        std::io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::InvalidArgument,
    };
    Failure::new(code, format!("{option}: {name}: {cause}")).hinting("check the path after the @")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(one: &[&str], all: Option<&str>) -> Result<Value, Failure> {
        let inputs =
            Inputs { one: one.iter().map(|text| (*text).to_owned()).collect(), all: all.map(str::to_owned) };
        inputs.read().map(Value::Object)
    }

    #[test]
    fn values_are_json_where_they_can_be() {
        assert_eq!(
            given(&["n=5", "zip=01234", "who=Ada L.", "list=[1,2]", "quoted=\"5\"", "empty=", "a=b=c"], None),
            Ok(
                json!({"n": 5, "zip": "01234", "who": "Ada L.", "list": [1, 2], "quoted": "5", "empty": "", "a": "b=c"})
            )
        );
    }

    #[test]
    fn single_inputs_win_over_all_of_them() {
        assert_eq!(given(&["a=2"], Some(r#"{"a":1,"b":3}"#)), Ok(json!({"a": 2, "b": 3})));
    }

    #[test]
    fn mistakes_are_refused_with_what_to_write() {
        for (one, all) in [(&["a"][..], None), (&["=1"], None), (&[], Some("[]")), (&[], Some("{"))] {
            assert_eq!(given(one, all).unwrap_err().exit_code(), 2, "{one:?} {all:?}");
        }
        assert_eq!(given(&[], Some("@no/such/file")).unwrap_err().exit_code(), 3);
    }

    #[test]
    fn all_inputs_may_stand_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.json");
        std::fs::write(&path, r#"{"a":1}"#).unwrap();
        assert_eq!(given(&[], Some(&format!("@{}", path.display()))), Ok(json!({"a": 1})));
    }
}
