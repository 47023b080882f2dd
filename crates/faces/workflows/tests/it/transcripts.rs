//! Runs the transcripts of `conformance/workflows/rest`: what a client sends, and exactly what it must hear.
//!
//! ```text
//! > GET /v1/executions/<id>        what is sent: request line, headers, an empty line, the body
//! < 200                            what is heard: status, the headers that matter, an empty line, the body
//! % graceMs 50                     a setting, before anything is sent
//! # a remark
//! ```
//!
//! In what is heard `<any>` stands for anything, `<=name>` for anything that is kept under the name, and `<name>` for what was
//! kept; the last also in what is sent. A member of a body that is not written down must not be there, unless the object ends
//! with `"...": "<any>"`.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use http::Method;
use orchestr8_workflows_face::Settings;
use serde_json::Value;

use crate::real::Real;
use crate::world::Answer;

#[tokio::test]
async fn every_transcript_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/workflows/rest");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|name| name.extension().is_some_and(|extension| extension == "transcript"));
    names.sort();
    assert!(names.len() >= 8, "only {} transcripts found", names.len());
    let mut wrong = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(&name).unwrap();
        if let Err(why) = play(&text).await {
            wrong.push(format!("{}: {why}", name.file_name().unwrap().display()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_transcript_that_is_wrong_fails() {
    for wrong in [
        "> GET /v1/health\n< 404",
        "> GET /v1/health\n< 200\n< Content-Type: text/plain",
        "> GET /v1/health\n< 200\n<\n< {\"healthy\":false,\"...\":\"<any>\"}",
        "> GET /v1/health\n< 200\n<\n< {\"healthy\":true}",
        "> GET /v1/health",
        "nonsense",
        "% shoeSize 43\n> GET /v1/health\n< 200",
        "> GET /v1/health\n< 200\n% graceMs 5",
    ] {
        assert!(play(wrong).await.is_err(), "{wrong}");
    }
    play("> GET /v1/health\n< 200\n<\n< {\"healthy\":true,\"...\":\"<any>\"}").await.unwrap();
}

#[test]
fn the_list_of_records_names_every_file_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/workflows");
    let list = std::fs::read_to_string(root.join("README.md")).unwrap();
    let named: BTreeSet<&str> =
        list.split('`').filter(|word| word.ends_with(".md") || word.ends_with(".transcript")).collect();
    let mut there = BTreeSet::new();
    for folder in ["mcp", "rest", "tables"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap();
        there.extend(files.map(|file| format!("{folder}/{}", file.unwrap().file_name().display())));
    }
    assert_eq!(named, there.iter().map(String::as_str).collect());
}

/// One request and what must be heard, each as lines, with the line it begins at.
#[derive(Default)]
struct Exchange {
    line: usize,
    sent: Vec<String>,
    heard: Vec<String>,
}

/// What a transcript sets, and what is said in it.
#[derive(Default)]
struct Script {
    settings: Vec<(String, u64)>,
    exchanges: Vec<Exchange>,
}

fn read(text: &str) -> Result<Script, String> {
    let mut script = Script::default();
    let exchanges = &mut script.exchanges;
    for (number, line) in text.lines().enumerate() {
        let rest = || line.get(2..).unwrap_or_default().to_owned();
        match line.as_bytes().first() {
            None | Some(b'#') => {}
            Some(b'%') => {
                match rest().split_once(' ').map(|(name, value)| (name.to_owned(), value.parse())) {
                    Some((name, Ok(value))) if exchanges.is_empty() => script.settings.push((name, value)),
                    _ => return Err(format!("line {}: no setting: {line}", number + 1)),
                }
            }
            Some(b'>') => {
                if exchanges.last().is_none_or(|exchange| !exchange.heard.is_empty()) {
                    exchanges.push(Exchange { line: number + 1, ..Exchange::default() });
                }
                if let Some(exchange) = exchanges.last_mut() {
                    exchange.sent.push(rest());
                }
            }
            Some(b'<') => match exchanges.last_mut() {
                Some(exchange) => exchange.heard.push(rest()),
                None => return Err(format!("line {}: nothing was asked", number + 1)),
            },
            Some(_) => return Err(format!("line {}: cannot be read: {line}", number + 1)),
        }
    }
    match exchanges.iter().find(|exchange| exchange.heard.is_empty()) {
        Some(exchange) => Err(format!("line {}: no answer is written down", exchange.line)),
        None if exchanges.is_empty() => Err("nothing is asked".to_owned()),
        None => Ok(script),
    }
}

async fn play(text: &str) -> Result<(), String> {
    let Script { settings, exchanges } = read(text)?;
    let real = world(&settings).await?;
    let mut kept = HashMap::new();
    for exchange in exchanges {
        let answer = send(&real, &exchange.sent, &kept).await;
        compare(&exchange.heard, &answer, &mut kept).map_err(|why| {
            format!("line {}: {why}\n  heard {} {}", exchange.line, answer.status, answer.text)
        })?;
    }
    Ok(())
}

async fn world(settings: &[(String, u64)]) -> Result<Real, String> {
    let (mut face, mut domain) = (Settings::new("1.2.3"), orchestr8_workflows::Settings::default());
    for (name, value) in settings {
        match name.as_str() {
            "syncLimitMs" => face.sync_limit_ms = *value,
            "graceMs" => domain.grace_ms = *value,
            "queueWaitMs" => domain.queue_wait_ms = *value,
            "runningSteps" => {
                domain.running_steps = usize::try_from(*value).map_err(|error| error.to_string())?
            }
            other => return Err(format!("there is no setting {other}")),
        }
    }
    Ok(Real::whole(face, domain).await)
}

async fn send(real: &Real, lines: &[String], kept: &HashMap<String, String>) -> Answer {
    let filled: Vec<String> = lines
        .iter()
        .map(|line| {
            kept.iter().fold(line.clone(), |line, (name, value)| line.replace(&format!("<{name}>"), value))
        })
        .collect();
    let (method, target) = filled[0].split_once(' ').unwrap();
    let end = filled.iter().position(String::is_empty).unwrap_or(filled.len());
    let mut headers: Vec<(String, String)> = filled[1..end]
        .iter()
        .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let body = filled.get(end + 1..).filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n"));
    if body.is_some() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push(("Content-Type".into(), "application/json".into()));
    }
    real.ask(Method::from_bytes(method.as_bytes()).unwrap(), target, &headers, body).await
}

fn compare(lines: &[String], answer: &Answer, kept: &mut HashMap<String, String>) -> Result<(), String> {
    if answer.status.as_str() != lines[0].trim() {
        return Err(format!("expected {}", lines[0]));
    }
    let end = lines.iter().position(String::is_empty).unwrap_or(lines.len());
    for line in &lines[1..end] {
        let (name, expected) = line.split_once(": ").ok_or_else(|| format!("no header: {line}"))?;
        let found = answer.header(&name.to_ascii_lowercase());
        if !fits(&Value::from(expected), &Value::from(found), kept) {
            return Err(format!("expected {line}, found {found:?}"));
        }
    }
    let Some(body) = lines.get(end + 1..).filter(|lines| !lines.is_empty()) else { return Ok(()) };
    let body = body.join("\n");
    let expected: Value = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
    let found: Value = serde_json::from_str(&answer.text).map_err(|error| error.to_string())?;
    if fits(&expected, &found, kept) { Ok(()) } else { Err(format!("expected {expected}")) }
}

fn fits(expected: &Value, found: &Value, kept: &mut HashMap<String, String>) -> bool {
    match (expected, found) {
        (Value::String(any), _) if any == "<any>" => true,
        (Value::String(pattern), Value::String(text)) => text_fits(pattern, text, kept),
        (Value::Object(expected), Value::Object(found)) => {
            let more = expected.contains_key("...");
            let named = expected.len() - usize::from(more);
            (more || named == found.len())
                && expected
                    .iter()
                    .filter(|(name, _)| *name != "...")
                    .all(|(name, value)| found.get(name).is_some_and(|found| fits(value, found, kept)))
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| fits(expected, found, kept))
        }
        (expected, found) => expected == found,
    }
}

/// Compares a text that may have places for anything, for something to keep, and for something kept.
fn text_fits(pattern: &str, text: &str, kept: &mut HashMap<String, String>) -> bool {
    let Some((before, rest)) = pattern.split_once('<') else { return pattern == text };
    let Some((name, after)) = rest.split_once('>') else { return pattern == text };
    let Some(text) = text.strip_prefix(before) else { return false };
    if let Some(known) = kept.get(name).cloned() {
        return text.strip_prefix(&*known).is_some_and(|text| text_fits(after, text, kept));
    }
    let end = match after.split('<').next() {
        Some("") | None => text.len(),
        Some(literal) => match text.find(literal) {
            Some(end) => end,
            None => return false,
        },
    };
    if let Some(name) = name.strip_prefix('=') {
        kept.insert(name.to_owned(), text[..end].to_owned());
    } else if name != "any" {
        return false;
    }
    text_fits(after, &text[end..], kept)
}
