//! The guide tells what happens: its commands are run, its JSON is checked, its HTTP calls are made.

use orchestr8_testing::words;
use serde_json::{Value, json};

use super::{alone, json_of, newest, root};
use crate::program::Place;
use crate::server::{Http, Server};

fn guide() -> String {
    std::fs::read_to_string(root().join("docs/guide/workflows.md")).unwrap()
}

/// The blocks of the guide that are marked so.
fn blocks(mark: &str) -> Vec<String> {
    let guide = guide();
    let fence = format!("```{mark}\n");
    guide.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Whether a text is as the guide says: `…` stands for anything, over lines too.
pub fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Runs every command of a guide's console blocks: it must say what stands below it. Gives how many there were.
pub fn run_console(place: &Place, guide: &str) -> usize {
    let mut checked = 0;
    for block in guide.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for step in block.split("$ orchestr8 ").skip(1) {
            let (line, expected) = step.split_once('\n').unwrap();
            let line = match line.contains("$EXECUTION") {
                true => line.replace("$EXECUTION", &newest(place, &[])),
                false => line.to_owned(),
            };
            let args = words(&line);
            let said = place.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
            // On a terminal both come together: progress before its result, words of advice after it.
            let both = |one: &str, other: &str| {
                format!("{}\n{}", one.trim_end(), other.trim_end()).trim().to_owned()
            };
            let texts = [both(&said.err, &said.out), both(&said.out, &said.err)];
            let is_so = texts.iter().any(|text| is_like(expected.trim(), text));
            assert!(is_so, "$ orchestr8 {line}\n{}\nis not\n{expected}", texts[0]);
            checked += 1;
        }
    }
    checked
}

/// Every `orchestr8 <command>` that a guide names is one.
pub fn check_mentions(guide: &str) {
    let known: Vec<String> =
        orchestr8::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for mention in guide.split("`orchestr8 ").skip(1) {
        let name = mention.split([' ', '`']).next().unwrap();
        assert!(known.iter().any(|known| known == name), "orchestr8 {name}");
    }
}

#[test]
fn the_commands_say_what_the_guide_says() {
    let place = alone();
    place.write(
        "broken.json",
        r#"{"id": "broken", "version": "1", "name": "Broken", "steps": [{"id": "a", "agentID": "@orchestr8/echo"}]}"#,
    );
    let checked = run_console(&place, &guide());
    assert!(checked >= 20, "the guide shows {checked} commands");
}

#[test]
fn every_command_the_guide_mentions_exists() {
    check_mentions(&guide());
}

#[test]
fn its_definitions_are_valid() {
    let place = Place::new();
    let workflows = blocks("json workflow");
    let steps = blocks("json step");
    assert!(workflows.len() >= 3 && steps.len() >= 12, "{} {}", workflows.len(), steps.len());
    let mut files = Vec::new();
    for text in workflows {
        files.push(text);
    }
    for text in steps {
        files.push(around(&text).to_string());
    }
    for (index, text) in files.iter().enumerate() {
        let name = format!("{index}.json");
        place.write(&name, text);
        let said = place.run(&["validate", &name]);
        assert_eq!(said.code, Some(0), "{text}\n{}", said.err);
    }
}

/// A workflow around one step: whatever it names is there.
fn around(text: &str) -> Value {
    let step: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let named = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let mut others = named(&step["dependencies"]);
    others.extend(named(&step["switch"]["default"]));
    for case in named(&step["switch"]["cases"]) {
        others.extend(named(&case["steps"]));
    }
    let mut steps: Vec<Value> =
        others.iter().map(|id| json!({"id": id, "agentId": "@orchestr8/echo", "input": {}})).collect();
    steps.push(step);
    json!({"id": "around", "version": "1.0.0", "name": "Around", "steps": steps,
        "variables": {"orders": [], "quiet": false, "kind": "", "title": "", "name": ""}})
}

#[test]
fn its_test_is_one() {
    let place = alone();
    for (index, text) in blocks("json test").iter().enumerate() {
        let name = format!("{index}.test.json");
        place.write(&name, text);
        let said = place.run(&["test", &name]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}

#[test]
fn its_http_calls_are_answered() {
    let place = alone();
    let server = Server::start(&place, &[]);
    let url = format!("http://{}", server.address);
    let mut http = server.connect();
    let mut checked = 0;
    for block in blocks("sh curl") {
        for line in block.lines() {
            let line = match line.contains("$EXECUTION") {
                true => line.replace("$EXECUTION", &newest(&place, &["--server", &url])),
                false => line.to_owned(),
            };
            let (status, body) = curl(&mut http, &line);
            assert!((200..300).contains(&status), "{line}\n{status} {body:#}");
            checked += 1;
        }
    }
    assert!(checked >= 5, "the guide shows {checked} calls");
    let ran = json_of(&place.run(&["list", "--json", "--server", &url]));
    assert_eq!(ran["executions"].as_array().unwrap().len(), 1);
}

/// What curl would send.
fn curl(http: &mut Http, line: &str) -> (u16, Value) {
    let words = words(line);
    let mut words = words.iter().map(String::as_str).skip(1);
    let (mut path, mut body, mut head) = (String::new(), None, String::new());
    while let Some(word) = words.next() {
        match word {
            "-s" => {}
            "--json" => body = words.next(),
            "-H" => head.push_str(&format!("{}\r\n", words.next().unwrap())),
            url => path = url.strip_prefix("localhost:8088").unwrap().to_owned(),
        }
    }
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = body.unwrap_or_default();
    let kind =
        if body.is_empty() { "" } else { "Content-Type: application/json\r\nAccept: application/json\r\n" };
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost:8088\r\n{kind}{head}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let answer = http.send(&text, body).unwrap();
    (answer.status, answer.json())
}

#[test]
fn patterns_stand_for_anything_in_their_place() {
    assert!(is_like("a …\nb", "a xyz\nb") && is_like("…", "") && is_like("a…c…e", "abcde"));
    assert!(!is_like("a…b", "ac") && !is_like("a", "ab") && !is_like("a…b…a", "aba b"));
}
