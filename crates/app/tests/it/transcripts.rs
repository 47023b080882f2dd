//! The transcripts of `conformance/mcp`, and those of the tools of workflows, played on the real program in deterministic mode.
//!
//! The MCP face plays all of the first; those that need tools of its own tests, or time to pass, are not for the program.

use orchestr8_testing::transcript::{self, Transcript};

use crate::program::Place;
use crate::stdio::Client;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/mcp");

const WORKFLOWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workflows/mcp");

#[tokio::test]
async fn transcripts_hold_for_the_program() {
    let is_for_us = |transcript: &Transcript| {
        !transcript.takes_time()
            && !transcript.settings().any(|(name, _)| matches!(name, "fixtures" | "page-size"))
    };
    let mut transcripts = transcript::folder(FOLDER);
    transcripts.retain(is_for_us);
    assert!(transcripts.len() >= 20, "only {} transcripts were played", transcripts.len());
    let mut wrong = Vec::new();
    for transcript in transcripts {
        let place = place(&transcript);
        let client = Client::start(&place, &["--deterministic", "--ephemeral"]);
        wrong.extend(transcript.play(client).await.err());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn tools_of_workflows_hold_to_their_transcripts() {
    let transcripts = transcript::folder(WORKFLOWS);
    assert!(!transcripts.is_empty());
    let mut wrong = Vec::new();
    for transcript in transcripts {
        let client = Client::start(&place(&transcript), &["--deterministic", "--ephemeral"]);
        wrong.extend(transcript::play_or_bless(WORKFLOWS, &transcript, client).await.err());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Where the program has the settings of the transcript.
fn place(transcript: &Transcript) -> Place {
    transcript.settings().fold(Place::new(), |place, (name, value)| {
        let variable = match name {
            "slots" => "ORCHESTR8_RESOURCES_MAX_CONCURRENT_EXECUTIONS",
            "payload-bytes" => "ORCHESTR8_TOOLS_MAX_PAYLOAD_BYTES",
            "timeout-ms" => "ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS",
            "tools" => "ORCHESTR8_TOOLS_FILTER",
            "eras" => "ORCHESTR8_PROTOCOL_ERAS",
            _ => panic!("{}: there is no setting {name}", transcript.name),
        };
        place.with(variable, &value.replace(' ', ","))
    })
}

impl transcript::Client for Client {
    async fn say(&mut self, text: &str) {
        Client::say(self, text);
    }

    async fn hear(&mut self) -> String {
        Client::hear(self).to_string()
    }

    async fn pass(&mut self, _: u64) {
        panic!("time is not for us to pass");
    }

    /// Another process says what it says when it likes; only at the end it is known to be silent.
    async fn unexpected(&mut self) -> Vec<String> {
        Vec::new()
    }

    async fn end(self) -> Vec<String> {
        let (status, rest) = Client::end(self);
        let failed = (!status.success()).then(|| format!("the end: {status}"));
        rest.iter().map(ToString::to_string).chain(failed).collect()
    }
}
