//! The prompt forms of the offline model: what a prompt asks it to do, line by line.

use orchestr8_contract::Code;
use serde_json::{Map, Value};

use crate::limits::{OFFLINE_WAIT_MS, OFFLINE_WORDS};

/// What to do in one round: a prompt has several when `/then` parts it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// Lines that are no form, in order.
    pub said: Vec<String>,
    pub thoughts: Vec<String>,
    pub calls: Vec<Call>,
    /// `/json`: each is an answer, word for word.
    pub answers: Vec<String>,
    pub words: Option<u64>,
    pub wait_ms: u64,
    pub fail: Option<Fail>,
    /// What is wrong with a form; said instead of an answer.
    pub mistakes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fail {
    pub code: Code,
    /// None: always.
    pub times: Option<u64>,
}

/// Reads a prompt. There is always at least one round.
pub fn read(prompt: &str) -> Vec<Round> {
    let mut rounds = vec![Round::default()];
    for line in prompt.lines() {
        if line.trim_end() == "/then" {
            rounds.push(Round::default());
        } else if let Some(round) = rounds.last_mut() {
            round.take(line);
        }
    }
    rounds
}

impl Round {
    fn take(&mut self, line: &str) {
        let (form, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match form.trim_end() {
            "/tool" => match call(rest) {
                Ok(call) => self.calls.push(call),
                Err(mistake) => self.mistakes.push(mistake),
            },
            "/think" => self.thoughts.push(rest.to_owned()),
            "/json" => self.answers.push(rest.to_owned()),
            "/fail" => match fail(rest) {
                Some(fail) => self.fail = Some(fail),
                None => self.mistakes.push(format!("/fail {rest}: write /fail <CODE> [times]")),
            },
            "/slow" => match rest.parse::<u64>() {
                Ok(ms) => self.wait_ms = ms.min(OFFLINE_WAIT_MS),
                Err(_) => self.mistakes.push(format!("/slow {rest}: write /slow <milliseconds>")),
            },
            "/long" => match rest.parse::<u64>() {
                Ok(words) => self.words = Some(words.min(OFFLINE_WORDS)),
                Err(_) => self.mistakes.push(format!("/long {rest}: write /long <words>")),
            },
            _ => self.said.push(line.to_owned()),
        }
    }
}

fn call(rest: &str) -> Result<Call, String> {
    let (name, json) = rest.split_once(' ').unwrap_or((rest, "{}"));
    if name.is_empty() {
        return Err("/tool: write /tool <name> <json object>".to_owned());
    }
    match serde_json::from_str(json) {
        Ok(Value::Object(arguments)) => Ok(Call { name: name.to_owned(), arguments }),
        Ok(_) | Err(_) => Err(format!("/tool {name}: the arguments are not a JSON object")),
    }
}

fn fail(rest: &str) -> Option<Fail> {
    let mut words = rest.split_whitespace();
    let wanted = words.next()?;
    let code = Code::ALL.iter().copied().find(|code| code.as_str() == wanted)?;
    let times = match words.next() {
        None => None,
        Some(times) => Some(times.parse().ok()?),
    };
    Some(Fail { code, times })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_that_are_no_form_are_said() {
        let rounds = read("hello /tool x\n/unknown y\n\n /think not at the start");
        assert_eq!(rounds.len(), 1);
        assert_eq!(rounds[0].said, ["hello /tool x", "/unknown y", "", " /think not at the start"]);
    }

    #[test]
    fn every_form_is_read() {
        let rounds = read(
            "/think hm hm\n/tool echo {\"a\": 1}\n/tool list\n/slow 5\n/long 3\n/fail UNAVAILABLE 2\n/json {}\n/then\nbye",
        );
        let first = &rounds[0];
        assert_eq!(first.thoughts, ["hm hm"]);
        assert_eq!(
            (first.calls[0].name.as_str(), first.calls[0].arguments.get("a")),
            ("echo", Some(&json!(1)))
        );
        assert_eq!((first.calls[1].name.as_str(), first.calls[1].arguments.len()), ("list", 0));
        assert_eq!(
            (first.wait_ms, first.words, first.answers.as_slice()),
            (5, Some(3), ["{}".to_owned()].as_slice())
        );
        assert_eq!(first.fail, Some(Fail { code: Code::Unavailable, times: Some(2) }));
        assert_eq!((rounds.len(), rounds[1].said.as_slice()), (2, ["bye".to_owned()].as_slice()));
    }

    #[test]
    fn a_form_that_is_wrong_is_a_mistake_and_numbers_are_bounded() {
        let round =
            &read("/tool\n/tool x 1\n/tool x {\n/slow soon\n/long -1\n/fail NOPE\n/fail TIMEOUT x\n/fail")[0];
        assert_eq!(round.mistakes.len(), 8, "{:?}", round.mistakes);
        let round = &read(&format!("/slow {0}\n/long {0}", u64::MAX))[0];
        assert_eq!((round.wait_ms, round.words), (OFFLINE_WAIT_MS, Some(OFFLINE_WORDS)));
    }
}
