//! The transcripts of `conformance/workspace`, played on the real program in deterministic mode.
//!
//! What is said is the name of a tool and its arguments; what is heard is `ok` or `error` and the object. `tools` lists the
//! tools, `entry` shows the newest entry of the audit trail, `exists PATH` whether a file is there. `$ROOT` is the workspace,
//! `$PLAN`, `$DRAFT`, `$FAILING` and `$BROKEN` are plans in it, if the transcript asks for them.

use std::fs::File;
use std::os::unix::fs::symlink;

use orchestr8_contract::Code;
use orchestr8_contract::envelope::CODES;
use orchestr8_testing::transcript::{self, Transcript};
use orchestr8_workspace::plan::Status;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use super::{GOOD, Governed, plant, root_of, with_workspace};
use crate::program::Place;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workspace");

#[tokio::test]
async fn every_transcript_holds() {
    let transcripts = transcript::folder(FOLDER);
    assert!(transcripts.len() >= 15, "only {} transcripts found", transcripts.len());
    let mut wrong = Vec::new();
    for transcript in transcripts {
        let client = client(&transcript);
        wrong.extend(transcript::play_or_bless(FOLDER, &transcript, client).await.err());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// ERR-2: every registered code is shown by some transcript.
#[test]
fn every_registered_code_is_in_a_transcript() {
    let files = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).unwrap());
    let all: String = files.collect();
    let missing: Vec<&Code> =
        CODES.iter().filter(|code| !all.contains(&format!("\"error_code\":\"{code}\""))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

struct Player {
    governed: Governed,
    names: Vec<(&'static str, String)>,
    heard: Vec<String>,
    _held: Option<File>,
}

/// A workspace and a connection as the transcript wants them.
fn client(transcript: &Transcript) -> Player {
    let mut place = Place::new();
    for setting in transcript.settings().filter(|(name, _)| *name == "variable") {
        let (name, value) = setting.1.split_once('=').unwrap();
        place = place.with(name, value);
    }
    let place = with_workspace(place);
    let (mut role, mut more, mut names, mut held) =
        ("executor".to_owned(), vec!["--deterministic"], Vec::new(), None);
    let root = root_of(&place);
    for (name, value) in transcript.settings() {
        match name {
            "role" => role = value.to_owned(),
            "conformance" => more.push("--conformance"),
            "variable" => {}
            "file" => {
                let (path, text) = value.split_once(' ').unwrap();
                place.write(&format!("workspace/{path}"), &text.replace("\\n", "\n"));
            }
            "binary" => std::fs::write(root.join(value), [0xff, 0xfe, 0x00]).unwrap(),
            "folder" => std::fs::create_dir_all(root.join(value)).unwrap(),
            "link" => {
                let (path, to) = value.split_once(' ').unwrap();
                symlink(to, root.join(path)).unwrap();
            }
            "plan" => names.push(match value {
                "approved" => ("$PLAN", plant(&place, GOOD, Status::Approved)),
                "draft" => {
                    ("$DRAFT", plant(&place, &GOOD.replace("GREETING_1", "GREETING_2"), Status::Draft))
                }
                "failing" => {
                    let text = GOOD.replace("`test ! -e src/broken`", "`echo the tests say no >&2; exit 3`");
                    ("$FAILING", plant(&place, &text, Status::Approved))
                }
                "broken" => {
                    let hash = plant(&place, &GOOD.replace("GREETING_1", "GREETING_3"), Status::Approved);
                    let path = format!("workspace/docs/plans/{hash}.md");
                    place.write(&path, &place.read(&path).replace("src/**", "etc/**"));
                    ("$BROKEN", hash)
                }
                other => panic!("there is no plan {other}"),
            }),
            "held" => {
                let file = File::create(root.join("audit-log.lock")).unwrap();
                flock(&file, FlockOperation::LockExclusive).unwrap();
                held = Some(file);
            }
            _ => panic!("{}: there is no setting {name}", transcript.name),
        }
    }
    names.push(("$ROOT", root.to_str().unwrap().to_owned()));
    let governed = Governed::start(place, &role, &more);
    Player { governed, names, heard: Vec::new(), _held: held }
}

impl Player {
    fn answer(&mut self, tool: &str, args: &str) -> String {
        let root = self.governed.root();
        match tool {
            "tools" => {
                let list =
                    self.governed.ask(&json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}));
                let names: Vec<&Value> =
                    list["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
                format!("tools {}", json!(names))
            }
            "entry" => {
                let text = std::fs::read_to_string(root.join("audit-log.jsonl")).unwrap();
                format!("entry {}", text.lines().last().unwrap())
            }
            "exists" => format!("exists {}", root.join(args).exists()),
            "read" => format!("read {}", json!([std::fs::read_to_string(root.join(args)).unwrap()])),
            tool => {
                let args = if args.is_empty() { "{}" } else { args };
                match self.governed.call(tool, serde_json::from_str(args).unwrap()) {
                    Ok(output) => format!("ok {output}"),
                    Err(error) => format!("error {error}"),
                }
            }
        }
    }
}

impl transcript::Client for Player {
    async fn say(&mut self, text: &str) {
        let mut text = text.to_owned();
        for (name, value) in &self.names {
            text = text.replace(name, value);
        }
        let (tool, args) = text.split_once(' ').unwrap_or((&text, ""));
        let mut heard = self.answer(tool, args);
        for (name, value) in &self.names {
            heard = heard.replace(value.as_str(), name);
        }
        self.heard.push(heard);
    }

    async fn hear(&mut self) -> String {
        self.heard.remove(0)
    }

    async fn pass(&mut self, _: u64) {
        panic!("time is not for us to pass");
    }

    async fn unexpected(&mut self) -> Vec<String> {
        std::mem::take(&mut self.heard)
    }

    async fn end(self) -> Vec<String> {
        self.heard
    }
}
