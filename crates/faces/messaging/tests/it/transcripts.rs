//! Plays the transcripts of `conformance/messaging`; its README says how to read them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use http::Method;
use orchestr8_testing::Answer;
use orchestr8_testing::transcript::{Client, Transcript, check_list, folder};

use crate::world::{World, settings};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/messaging")
}

#[tokio::test]
async fn every_transcript_holds() {
    let transcripts = folder(root());
    assert!(transcripts.len() >= 7, "only {} transcripts found", transcripts.len());
    let mut wrong = Vec::new();
    for transcript in transcripts {
        let client = Agent::new(&transcript);
        wrong.extend(transcript.play(client).await.err());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_transcript_that_is_wrong_fails() {
    for wrong in
        ["> GET /aacp/agents\n< 201 {}", "> GET /aacp/agents\n> GET /aacp/agents", "> GET /aacp/x\n< 200"]
    {
        let transcript = Transcript::read("test", wrong).unwrap();
        assert!(transcript.play(Agent::new(&transcript)).await.is_err(), "{wrong}");
    }
}

#[test]
fn the_list_of_transcripts_names_every_file_and_no_other() {
    check_list(root());
}

/// Somebody who sends messages and reads answers.
struct Agent {
    /// None only while it restarts.
    world: Option<World>,
    heard: VecDeque<String>,
}

impl Agent {
    fn new(transcript: &Transcript) -> Self {
        let mut own = settings();
        for (name, value) in transcript.settings() {
            match name {
                "maxInboxMessages" => own.inbox_messages = value.parse().unwrap(),
                "ttlMs" => own.ttl_ms = value.parse().unwrap(),
                other => panic!("no setting {other}"),
            }
        }
        Self { world: Some(World::with(own)), heard: VecDeque::new() }
    }
}

impl Client for Agent {
    async fn say(&mut self, text: &str) {
        let (words, body) = match text.find('{') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        match words.as_slice() {
            ["restart"] => {
                let world = self.world.take().unwrap();
                self.world = Some(world.restart().await);
            }
            ["quietly", method, target] => {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let mut answer = self.world.as_ref().unwrap().ask(method, target, &[], body).await;
                answer.text.clear();
                self.heard.push_back(words_of(&answer));
            }
            [method, target, headers @ ..] => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|header| header.split_once('=').expect("name=value")).collect();
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let answer = self.world.as_ref().unwrap().ask(method, target, &headers, body).await;
                self.heard.push_back(words_of(&answer));
            }
            other => panic!("{other:?} cannot be said"),
        }
    }

    async fn hear(&mut self) -> String {
        self.heard.pop_front().expect("an answer")
    }

    async fn pass(&mut self, ms: u64) {
        self.world.as_ref().unwrap().pass(ms).await;
    }

    async fn unexpected(&mut self) -> Vec<String> {
        self.heard.drain(..).collect()
    }

    async fn end(self) -> Vec<String> {
        self.heard.into()
    }
}

/// The status, the headers that matter, and the body.
fn words_of(answer: &Answer) -> String {
    let mut words = answer.status.as_u16().to_string();
    for name in ["retry-after", "location"] {
        if let Some(value) = answer.headers.get(name) {
            words.push_str(&format!(" {name}={}", value.to_str().unwrap()));
        }
    }
    format!("{words} {}", answer.text)
}
