//! A test as its file says it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use orchestr8_contract::Code;
use serde_json::{Map, Value, json};

use super::assertion::Assertion;
use crate::cli::files;
use crate::failure::Failure;

/// How long a workflow under test may take, unless its test says otherwise.
const TIMEOUT_MS: u64 = 30_000;

#[derive(Clone)]
pub struct Case {
    pub file: PathBuf,
    pub id: String,
    pub name: String,
    pub workflow: Value,
    pub inputs: Map<String, Value>,
    pub timeout: Duration,
    assertions: Vec<Assertion>,
}

impl Case {
    /// Everything about the execution that is not as the test says.
    pub fn check(&self, execution: &Value) -> Vec<String> {
        self.assertions.iter().filter_map(|assertion| assertion.check(execution).err()).collect()
    }
}

const MEMBERS: [&str; 9] =
    ["$schema", "id", "name", "description", "workflow", "steps", "inputs", "timeoutMs", "assertions"];

/// The tests of a file: one, or a list of them.
pub fn read(file: &Path) -> Result<Vec<Case>, Failure> {
    let text = files::read(&file.display().to_string())?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| wrong(file, vec![format!("it is not JSON: {error}")]))?;
    let tests = match value {
        Value::Array(tests) => tests,
        one => vec![one],
    };
    let mut cases = Vec::new();
    for (index, test) in tests.iter().enumerate() {
        let mut reading = Reading {
            file,
            place: if tests.len() == 1 { String::new() } else { format!("/{index}") },
            problems: Vec::new(),
        };
        let case = reading.case(test);
        match case.filter(|_| reading.problems.is_empty()) {
            Some(case) => cases.push(case),
            None => return Err(wrong(file, reading.problems)),
        }
    }
    Ok(cases)
}

fn wrong(file: &Path, problems: Vec<String>) -> Failure {
    Failure::new(Code::InvalidArgument, format!("{} is not a test", file.display()))
        .listing(problems)
        .hinting("a test is {\"id\", \"name\", \"workflow\": FILE or object, \"inputs\", \"assertions\": [{\"type\", \"path\", \"operator\", \"expected\"}]}")
}

struct Reading<'a> {
    file: &'a Path,
    place: String,
    problems: Vec<String>,
}

impl Reading<'_> {
    fn complain(&mut self, member: &str, what: impl Into<String>) {
        self.problems.push(format!("{}/{member}: {}", self.place, what.into()));
    }

    fn case(&mut self, test: &Value) -> Option<Case> {
        let Value::Object(members) = test else {
            self.complain("", "a test is an object");
            return None;
        };
        for name in members.keys().filter(|name| !MEMBERS.contains(&name.as_str())) {
            self.complain(name, format!("is unknown; known: {}", MEMBERS.join(", ")));
        }
        let id = self.text(members, "id");
        let name = members.get("name").and_then(Value::as_str).map_or_else(|| id.clone(), str::to_owned);
        let workflow = self.workflow(members, &id);
        let inputs = match members.get("inputs") {
            None => Map::new(),
            Some(Value::Object(inputs)) => inputs.clone(),
            Some(_) => {
                self.complain("inputs", "must be an object");
                Map::new()
            }
        };
        let timeout_ms = match members.get("timeoutMs") {
            None => TIMEOUT_MS,
            Some(value) => value.as_u64().filter(|ms| *ms > 0).unwrap_or_else(|| {
                self.complain("timeoutMs", "must be a number of milliseconds");
                TIMEOUT_MS
            }),
        };
        let assertions = self.assertions(members.get("assertions"));
        Some(Case {
            file: self.file.to_owned(),
            id,
            name,
            workflow: workflow?,
            inputs,
            timeout: Duration::from_millis(timeout_ms),
            assertions,
        })
    }

    fn text(&mut self, members: &Map<String, Value>, name: &str) -> String {
        match members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()) {
            Some(text) => text.to_owned(),
            None => {
                self.complain(name, "must be a text");
                String::new()
            }
        }
    }

    /// The file it names, from where the test is; or the definition itself; or steps that become one.
    fn workflow(&mut self, members: &Map<String, Value>, id: &str) -> Option<Value> {
        match (members.get("workflow"), members.get("steps")) {
            (Some(Value::String(path)), None) => {
                let path = self.file.parent().unwrap_or(Path::new("")).join(path);
                match files::workflow(&path.display().to_string()) {
                    Ok(workflow) => Some(Value::clone(&workflow.source)),
                    Err(failure) => {
                        self.complain("workflow", failure.message);
                        self.problems.extend(failure.lines);
                        None
                    }
                }
            }
            (Some(workflow @ Value::Object(_)), None) => Some(workflow.clone()),
            (None, Some(steps @ Value::Array(_))) => {
                Some(json!({"id": id, "version": "1.0.0", "name": id, "steps": steps}))
            }
            (Some(_), Some(_)) => {
                self.complain("steps", "stands beside workflow; give one of them");
                None
            }
            (Some(_) | None, _) => {
                self.complain("workflow", "must be a file, a definition, or there must be steps");
                None
            }
        }
    }

    fn assertions(&mut self, value: Option<&Value>) -> Vec<Assertion> {
        let list = value.and_then(Value::as_array).cloned().unwrap_or_default();
        if list.is_empty() {
            self.complain(
                "assertions",
                "must be a list with at least one assertion: a test that checks nothing cannot fail",
            );
        }
        let mut assertions = Vec::new();
        for (index, value) in list.iter().enumerate() {
            match Assertion::read(value) {
                Ok(assertion) => assertions.push(assertion),
                Err(what) => self.complain(&format!("assertions/{index}"), what),
            }
        }
        assertions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Case>, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.test.json");
        std::fs::write(&file, text).unwrap();
        read(&file)
    }

    const STATUS: &str = r#"{"type":"status","expected":"completed"}"#;

    #[test]
    fn steps_become_a_workflow_and_a_list_several_tests() {
        let one = format!(r#"{{"id":"a","steps":[{{"id":"s"}}],"assertions":[{STATUS}]}}"#);
        let cases = read_text(&format!("[{one},{one}]")).unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].workflow["steps"][0]["id"], "s");
        assert_eq!((cases[0].name.as_str(), cases[0].timeout.as_millis()), ("a", 30_000));
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let failure =
            read_text(r#"{"workflow":"no.json","steps":[],"input":{},"timeoutMs":-1}"#).err().unwrap();
        let lines = failure.lines.join("\n");
        for part in ["/input: is unknown", "/id:", "/steps: stands beside", "/timeoutMs:", "cannot fail"] {
            assert!(lines.contains(part), "{part} is not in {lines}");
        }
        assert_eq!(failure.exit_code(), 2);
        assert_eq!(read_text("{").err().unwrap().exit_code(), 2);
    }

    #[test]
    fn a_workflow_file_that_is_missing_is_named() {
        let failure = read_text(&format!(r#"{{"id":"a","workflow":"no.json","assertions":[{STATUS}]}}"#))
            .err()
            .unwrap();
        assert!(failure.lines[0].contains("no.json"), "{failure:?}");
    }
}
