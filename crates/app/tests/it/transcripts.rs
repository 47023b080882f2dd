//! The transcripts of `conformance/mcp`, played on the real program in deterministic mode.
//!
//! The MCP face plays all of them; those that need tools of its own tests, or time to pass, are not for the program.

use std::path::Path;

use serde_json::Value;

use crate::program::Place;
use crate::stdio::Client;

#[test]
fn transcripts_hold_for_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/mcp");
    let (mut played, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let elsewhere =
            |line: &str| ["% fixtures", "% page-size", "~ "].iter().any(|mark| line.starts_with(mark));
        if path.extension().is_none_or(|extension| extension != "transcript") || text.lines().any(elsewhere) {
            continue;
        }
        played += 1;
        if let Err(why) = play(&text) {
            wrong.push(format!("{}: {why}", path.file_name().unwrap().display()));
        }
    }
    assert!(played >= 20, "only {played} transcripts were played");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn play(text: &str) -> Result<(), String> {
    let mut place = Place::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("% ")) {
        let (name, value) = line.split_once(' ').ok_or("a setting needs a value")?;
        let variable = match name {
            "slots" => "ORCHESTR8_RESOURCES_MAX_CONCURRENT_EXECUTIONS",
            "payload-bytes" => "ORCHESTR8_TOOLS_MAX_PAYLOAD_BYTES",
            "timeout-ms" => "ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS",
            "tools" => "ORCHESTR8_TOOLS_FILTER",
            "eras" => "ORCHESTR8_PROTOCOL_ERAS",
            _ => return Err(format!("there is no setting {name}")),
        };
        place = place.with(variable, &value.replace(' ', ","));
    }
    let mut client = Client::start(&place, &["--deterministic", "--ephemeral"]);
    for (number, line) in text.lines().enumerate() {
        if let Some(said) = line.strip_prefix("> ") {
            client.say(said);
        } else if let Some(expected) = line.strip_prefix("< ") {
            let expected: Value = serde_json::from_str(expected).map_err(|error| error.to_string())?;
            let heard = client.hear();
            if !fits(&expected, &heard) {
                return Err(format!("line {}: expected {expected}\n        heard {heard}", number + 1));
            }
        }
    }
    let (status, rest) = client.end();
    match (status.code(), rest.is_empty()) {
        (Some(0), true) => Ok(()),
        (code, _) => Err(format!("heard at the end: {rest:?}, exit code {code:?}")),
    }
}

/// As the face compares: `"<any>"` stands for anything, and JSON inside a text is compared as JSON.
fn fits(expected: &Value, heard: &Value) -> bool {
    match (expected, heard) {
        (Value::String(any), _) if any == "<any>" => true,
        (Value::Object(expected), Value::Object(heard)) => {
            expected.len() == heard.len()
                && expected
                    .iter()
                    .all(|(name, value)| heard.get(name).is_some_and(|found| fits(value, found)))
        }
        (Value::Array(expected), Value::Array(heard)) => {
            expected.len() == heard.len()
                && expected.iter().zip(heard).all(|(expected, heard)| fits(expected, heard))
        }
        (Value::String(expected), Value::String(heard)) if expected != heard => {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            parsed(expected).zip(parsed(heard)).is_some_and(|(expected, heard)| fits(&expected, &heard))
        }
        (expected, heard) => expected == heard,
    }
}
