//! Transcripts: what a client says, and exactly what it must hear. People read them, and tests play them.
//!
//! ```text
//! # A remark.
//! % name value          a setting of the server, before anything is said
//! > what the client says
//! < what it must hear   "<any>" stands for any JSON value
//! ~ 100                 so many milliseconds pass
//!   two blanks          go on with the line before
//! ```
//!
//! What is heard is words, JSON, or words and then JSON (`200 {"status":"running"}`): the words must be the same, and the
//! JSON must fit. A text inside the JSON that is itself a JSON object is compared as one. Whatever is heard must be in the
//! transcript: silence between two lines is a part of it.

use std::future::Future;
use std::path::Path;

use serde_json::Value;

/// What a line of a transcript says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Set { name: String, value: String },
    Say(String),
    Hear(String),
    Pass { ms: u64 },
}

#[derive(Debug)]
pub struct Transcript {
    /// The name of its file.
    pub name: String,
    /// Each with its number in the file.
    pub lines: Vec<(usize, Line)>,
}

/// Somebody who talks to a server.
pub trait Client {
    fn say(&mut self, text: &str) -> impl Future<Output = ()>;

    /// The next thing heard. Panics when nothing comes.
    fn hear(&mut self) -> impl Future<Output = String>;

    fn pass(&mut self, ms: u64) -> impl Future<Output = ()>;

    /// What was heard and not expected, before more is said. A client that cannot tell without waiting gives nothing.
    fn unexpected(&mut self) -> impl Future<Output = Vec<String>>;

    /// What was heard and not expected until the end of the conversation, which this is.
    fn end(self) -> impl Future<Output = Vec<String>>;
}

impl Transcript {
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let mut lines: Vec<(usize, Line)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let at = |why: &str| format!("{name}, line {number}: {why}: {line}");
            let (mark, rest) = line.split_at(line.len().min(2));
            let read = match mark {
                "" | "#" | "# " => continue,
                "  " => {
                    let Some((_, Line::Say(text) | Line::Hear(text))) = lines.last_mut() else {
                        return Err(at("nothing is there to go on with"));
                    };
                    text.push_str(rest.trim());
                    continue;
                }
                "% " => {
                    let (name, value) = rest.split_once(' ').ok_or_else(|| at("a setting needs a value"))?;
                    Line::Set { name: name.to_owned(), value: value.to_owned() }
                }
                "> " => Line::Say(rest.to_owned()),
                "< " => Line::Hear(rest.to_owned()),
                "~ " => Line::Pass { ms: rest.trim().parse().map_err(|_| at("no number"))? },
                _ => return Err(at("it cannot be read")),
            };
            lines.push((number, read));
        }
        match lines.iter().any(|(_, line)| matches!(line, Line::Say(_))) {
            true => Ok(Self { name: name.to_owned(), lines }),
            false => Err(format!("{name}: nothing is said")),
        }
    }

    /// Its settings, each a name and a value.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines.iter().filter_map(|(_, line)| match line {
            Line::Set { name, value } => Some((name.as_str(), value.as_str())),
            Line::Say(_) | Line::Hear(_) | Line::Pass { .. } => None,
        })
    }

    /// Whether time passes in it.
    pub fn takes_time(&self) -> bool {
        self.lines.iter().any(|(_, line)| matches!(line, Line::Pass { .. }))
    }

    /// Plays it. An error says what was expected, and what was heard.
    pub async fn play(&self, client: impl Client) -> Result<(), String> {
        self.play_with(client, |_, _, _| false).await
    }

    /// As `play`; but what was heard instead of what line, with what was expected there, may be accepted.
    pub async fn play_with(
        &self,
        mut client: impl Client,
        mut accept: impl FnMut(usize, &str, &str) -> bool,
    ) -> Result<(), String> {
        for (number, line) in &self.lines {
            let at = |why: String| format!("{}, line {number}: {why}", self.name);
            match line {
                Line::Set { .. } => {}
                Line::Say(text) => {
                    let unexpected = client.unexpected().await;
                    if !unexpected.is_empty() {
                        return Err(at(format!("heard before it: {}", unexpected.join(" "))));
                    }
                    client.say(text).await;
                }
                Line::Hear(expected) => {
                    let heard = client.hear().await;
                    match fits(expected, &heard) {
                        Ok(true) => {}
                        Ok(false) if accept(*number, expected, &heard) => {}
                        Ok(false) => return Err(at(format!("expected {expected}\n        heard {heard}"))),
                        Err(why) => return Err(at(why)),
                    }
                }
                Line::Pass { ms } => client.pass(*ms).await,
            }
        }
        let unexpected = client.end().await;
        match unexpected.is_empty() {
            true => Ok(()),
            false => Err(format!("{}: heard at the end: {}", self.name, unexpected.join(" "))),
        }
    }
}

/// The transcripts of a folder, in order of name. Panics at one that cannot be read.
pub fn folder(path: impl AsRef<Path>) -> Vec<Transcript> {
    let entries = std::fs::read_dir(path.as_ref()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "transcript")).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let (name, text) = (file.file_name().unwrap().to_string_lossy(), std::fs::read_to_string(file));
        Transcript::read(&name, &text.unwrap()).unwrap_or_else(|why| panic!("{why}"))
    };
    files.iter().map(read).collect()
}

/// Whether the README of a folder names every transcript in it and no other.
pub fn check_list(path: impl AsRef<Path>) {
    let list = std::fs::read_to_string(path.as_ref().join("README.md")).unwrap();
    let mut named: Vec<&str> = list.split('`').filter(|word| word.ends_with(".transcript")).collect();
    named.sort_unstable();
    named.dedup();
    let mut there: Vec<String> = folder(path).into_iter().map(|transcript| transcript.name).collect();
    there.sort_unstable();
    assert_eq!(named, there);
}

/// Plays it; with `O8_BLESS=1` in the environment, its file is changed to expect what was heard, for people to review.
pub async fn play_or_bless(folder: &str, transcript: &Transcript, client: impl Client) -> Result<(), String> {
    #[allow(clippy::disallowed_methods, reason = "how tests are run is not a setting of the program")]
    if std::env::var("O8_BLESS").is_err() {
        return transcript.play(client).await;
    }
    let mut heard = Vec::new();
    let accept = |number: usize, expected: &str, found: &str| {
        heard.push((number, expected.to_owned(), found.to_owned()));
        true
    };
    let played = transcript.play_with(client, accept).await;
    let path = Path::new(folder).join(&transcript.name);
    let file = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, rewritten(&file, &heard)).unwrap();
    played
}

/// The file with what was heard in the place of what was expected, each by the number of its line. What was expected as
/// "<any>" stays so.
pub fn rewritten(file: &str, heard: &[(usize, String, String)]) -> String {
    let mut out = String::with_capacity(file.len());
    let mut goes_on = false;
    for (number, line) in (1..).zip(file.lines()) {
        let new = heard.iter().find(|(at, _, _)| *at == number);
        goes_on = goes_on && line.starts_with("  ");
        match new {
            Some((_, expected, heard)) => {
                out.push_str("< ");
                out.push_str(&merged(expected, heard));
                out.push('\n');
                goes_on = true;
            }
            None if goes_on => {}
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

fn merged(expected: &str, heard: &str) -> String {
    let ((_, expected), (words, found)) = (parts(expected), parts(heard));
    let values = expected
        .zip(found)
        .map(|(expected, found)| (serde_json::from_str(expected), serde_json::from_str(found)));
    match values {
        Some((Ok(expected), Ok(found))) => {
            let space = if words.is_empty() { "" } else { " " };
            format!("{words}{space}{}", merged_value(&expected, found))
        }
        Some((Ok(_) | Err(_), _)) | None => heard.to_owned(),
    }
}

fn merged_value(expected: &Value, heard: Value) -> Value {
    match (expected, heard) {
        (Value::String(any), _) if any == "<any>" => expected.clone(),
        (Value::Object(expected), Value::Object(heard)) => heard
            .into_iter()
            .map(|(name, value)| {
                let value = match expected.get(&name) {
                    Some(expected) => merged_value(expected, value),
                    None => value,
                };
                (name, value)
            })
            .collect(),
        (Value::Array(expected), Value::Array(heard)) if expected.len() == heard.len() => {
            expected.iter().zip(heard).map(|(expected, heard)| merged_value(expected, heard)).collect()
        }
        (Value::String(expected), Value::String(heard)) => {
            let object = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            match object(expected).zip(object(&heard)) {
                Some((expected, found)) => merged_value(&expected, found).to_string().into(),
                None => heard.into(),
            }
        }
        (_, heard) => heard,
    }
}

/// Whether what was heard is what was expected. An error says that the expectation makes no sense.
fn fits(expected: &str, heard: &str) -> Result<bool, String> {
    let ((words, expected), (heard_words, heard)) = (parts(expected), parts(heard));
    let parsed = |text: &str| serde_json::from_str::<Value>(text);
    Ok(match (expected, heard) {
        (None, None) => words == heard_words,
        (Some(expected), Some(heard)) => {
            let expected = parsed(expected).map_err(|error| format!("{error} in {expected}"))?;
            words == heard_words && parsed(heard).is_ok_and(|heard| value_fits(&expected, &heard))
        }
        (Some(_), None) | (None, Some(_)) => false,
    })
}

/// The words before the JSON, and the JSON.
fn parts(text: &str) -> (&str, Option<&str>) {
    match text.find(['{', '[']) {
        Some(at) => (text[..at].trim(), Some(&text[at..])),
        None => (text.trim(), None),
    }
}

fn value_fits(expected: &Value, heard: &Value) -> bool {
    match (expected, heard) {
        (Value::String(any), _) if any == "<any>" => true,
        (Value::Object(expected), Value::Object(heard)) => {
            let fits = |(name, value): (&String, &Value)| {
                heard.get(name).is_some_and(|found| value_fits(value, found))
            };
            expected.len() == heard.len() && expected.iter().all(fits)
        }
        (Value::Array(expected), Value::Array(heard)) => {
            expected.len() == heard.len()
                && expected.iter().zip(heard).all(|(expected, heard)| value_fits(expected, heard))
        }
        (Value::String(expected), Value::String(heard)) if expected != heard => {
            let object = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            object(expected).zip(object(heard)).is_some_and(|(expected, heard)| value_fits(&expected, &heard))
        }
        (expected, heard) => expected == heard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Says back what it is told, as many times as it is told to.
    #[derive(Default)]
    struct Parrot {
        says: VecDeque<String>,
        passed_ms: u64,
    }

    impl Client for Parrot {
        async fn say(&mut self, text: &str) {
            let (times, text) = text.split_once(' ').unwrap();
            self.says.extend(std::iter::repeat_n(text.to_owned(), times.parse().unwrap()));
        }

        async fn hear(&mut self) -> String {
            self.says.pop_front().unwrap()
        }

        async fn pass(&mut self, ms: u64) {
            self.passed_ms += ms;
        }

        async fn unexpected(&mut self) -> Vec<String> {
            self.says.drain(..).collect()
        }

        async fn end(mut self) -> Vec<String> {
            self.unexpected().await
        }
    }

    async fn play(text: &str) -> Result<(), String> {
        Transcript::read("test", text)?.play(Parrot::default()).await
    }

    #[tokio::test]
    async fn what_was_said_and_heard_holds() {
        let text = "# A remark.\n\n% slots 1\n> 1 200 {\"a\": [1, 2],\n   \"b\": 3}\n< 200 {\"b\":3,\"a\":[1,\"<any>\"]}\n~ 5\n> 1 204\n< 204";
        play(text).await.unwrap();
        let read = Transcript::read("test", text).unwrap();
        assert_eq!(read.settings().collect::<Vec<_>>(), [("slots", "1")]);
        assert!(read.takes_time());
    }

    #[tokio::test]
    async fn what_does_not_hold_is_named_with_its_line() {
        let cases = [
            ("> 1 200\n< 201", "line 2: expected 201\n        heard 200"),
            ("> 1 200 {}\n< 201 {}", "line 2: expected"),
            ("> 1 200 {}\n< 200", "line 2: expected"),
            ("> 1 {\"a\":1}\n< {\"a\":2}", "line 2: expected"),
            ("> 1 {\"a\":1,\"b\":2}\n< {\"a\":1}", "line 2: expected"),
            ("> 1 [1]\n< [1,2]", "line 2: expected"),
            ("> 1 {}\n< {", "line 2: EOF"),
            ("> 2 a\n< a\n> 1 b", "line 3: heard before it: a"),
            ("> 1 a", "heard at the end: a"),
            ("? what", "line 1: it cannot be read"),
            ("  what", "line 1: nothing is there"),
            ("~ soon", "line 1: no number"),
            ("% slots", "line 1: a setting needs a value"),
            ("# nothing", "nothing is said"),
        ];
        for (text, why) in cases {
            let wrong = play(text).await.unwrap_err();
            assert!(wrong.contains(why), "{text}: {wrong}");
        }
    }

    #[test]
    fn what_was_heard_takes_the_place_of_what_was_expected_but_for_what_may_be_anything() {
        let file = "> say\n< {\"a\":\"<any>\",\n  \"b\":1}\n# end\n";
        let heard = [(2, "{\"a\":\"<any>\",\"b\":1}".to_owned(), "{\"a\":7,\"b\":2,\"c\":3}".to_owned())];
        assert_eq!(rewritten(file, &heard), "> say\n< {\"a\":\"<any>\",\"b\":2,\"c\":3}\n# end\n");
    }

    #[test]
    fn json_inside_a_text_is_compared_as_json() {
        let fits = |expected: &str, heard: &str| fits(expected, heard).unwrap();
        assert!(fits(r#"{"t":"{\"a\":1,\"b\":\"<any>\"}"}"#, r#"{"t":"{\"b\": 7, \"a\": 1}"}"#));
        assert!(!fits(r#"{"t":"{\"a\":1}"}"#, r#"{"t":"{\"a\":2}"}"#));
        assert!(!fits(r#"{"t":"a"}"#, r#"{"t":"b"}"#));
    }
}
