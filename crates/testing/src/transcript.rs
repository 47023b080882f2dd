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
    pub async fn play(&self, mut client: impl Client) -> Result<(), String> {
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
    fn json_inside_a_text_is_compared_as_json() {
        let fits = |expected: &str, heard: &str| fits(expected, heard).unwrap();
        assert!(fits(r#"{"t":"{\"a\":1,\"b\":\"<any>\"}"}"#, r#"{"t":"{\"b\": 7, \"a\": 1}"}"#));
        assert!(!fits(r#"{"t":"{\"a\":1}"}"#, r#"{"t":"{\"a\":2}"}"#));
        assert!(!fits(r#"{"t":"a"}"#, r#"{"t":"b"}"#));
    }
}
