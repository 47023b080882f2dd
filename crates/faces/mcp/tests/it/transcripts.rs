//! Runs the transcripts of `conformance/mcp`: what a client says, and exactly what it must hear.
//!
//! `> ` the client says; `< ` the server says, with `"<any>"` where the value does not matter; `# ` a remark;
//! `~ 100` so many milliseconds pass; `% name value` a setting, before anything is said. Whatever is heard must be in the
//! transcript: silence between two lines is part of it.

use std::path::Path;
use std::time::Duration;

use orchestr8_kernel::Limits;
use orchestr8_mcp::Eras;
use serde_json::Value;

use crate::world::{Client, face_on, settings, store};

#[tokio::test(start_paused = true)]
async fn every_transcript_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/mcp");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|name| name.extension().is_some_and(|extension| extension == "transcript"));
    names.sort();
    assert!(names.len() >= 20, "only {} transcripts found", names.len());
    let mut wrong = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(&name).unwrap();
        if let Err(why) = play(&text).await {
            wrong.push(format!("{}: {why}", name.file_name().unwrap().display()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

async fn play(text: &str) -> Result<(), String> {
    let (mut limits, mut settings) = (Limits::default(), settings());
    let mut client = None;
    for (number, line) in text.lines().enumerate() {
        let at = |why: String| format!("line {}: {why}", number + 1);
        let (mark, rest) = line.split_at(line.len().min(2));
        match mark {
            "" | "# " | "#" => continue,
            "% " => {
                let (name, value) =
                    rest.split_once(' ').ok_or_else(|| at("a setting needs a value".into()))?;
                let number = || value.parse::<usize>().map_err(|error| at(error.to_string()));
                match name {
                    "slots" => limits.concurrent_runs = number()?,
                    "payload-bytes" => limits.payload_bytes = number()?,
                    "timeout-ms" => limits.timeout_ms = number()? as u64,
                    "page-size" => settings.page_size = number()?,
                    "tools" => settings.tool_filter.only = value.split(' ').map(str::to_owned).collect(),
                    // The transcript needs the tools of these tests; others hold for the program too.
                    "fixtures" => {}
                    "eras" => {
                        settings.eras =
                            Eras { legacy: value.contains("legacy"), modern: value.contains("modern") }
                    }
                    _ => return Err(at(format!("there is no setting {name}"))),
                }
                continue;
            }
            _ => {}
        }
        let client =
            client.get_or_insert_with(|| Client::of(&face_on(store(), limits.clone(), settings.clone())));
        match mark {
            "> " => {
                let unexpected = client.rest().await;
                if !unexpected.is_empty() {
                    return Err(at(format!("heard before it: {}", unexpected.join(" "))));
                }
                client.tell(rest);
            }
            "< " => {
                let expected: Value = serde_json::from_str(rest).map_err(|error| at(error.to_string()))?;
                let heard = client.hear().await;
                if !fits(&expected, &heard) {
                    return Err(at(format!("expected {expected}\n        heard {heard}")));
                }
            }
            "~ " => {
                tokio::time::sleep(Duration::from_millis(
                    rest.trim().parse().map_err(|_| at("no number".into()))?,
                ))
                .await
            }
            _ => return Err(at(format!("cannot be read: {line}"))),
        }
    }
    let unexpected = match &client {
        Some(client) => client.rest().await,
        None => return Err("nothing is said".into()),
    };
    if unexpected.is_empty() { Ok(()) } else { Err(format!("heard at the end: {}", unexpected.join(" "))) }
}

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
            // JSON inside a text is compared as JSON, so that it too may have places that do not matter.
            let parsed = |text: &str| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            parsed(expected).zip(parsed(heard)).is_some_and(|(expected, heard)| fits(&expected, &heard))
        }
        (expected, heard) => expected == heard,
    }
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_is_wrong_fails() {
    let hello = r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert!(play(hello).await.unwrap_err().contains("heard at the end"));
    assert!(play(&format!("{hello}\n< {{\"id\":1}}")).await.unwrap_err().contains("expected"));
    assert!(play("? what").await.unwrap_err().contains("cannot be read"));
}
