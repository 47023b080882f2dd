//! Plays the transcripts of `conformance/mcp` on the face, in time that is simulated.

use std::time::Duration;

use orchestr8_kernel::Limits;
use orchestr8_mcp::Eras;
use orchestr8_testing::transcript::{self, Transcript};

use crate::world::{Client, face_on, settings, store};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../conformance/mcp");

#[tokio::test(start_paused = true)]
async fn every_transcript_holds() {
    let transcripts = transcript::folder(FOLDER);
    assert!(transcripts.len() >= 20, "only {} transcripts found", transcripts.len());
    let mut wrong = Vec::new();
    for transcript in transcripts {
        let client = client(&transcript).unwrap_or_else(|why| panic!("{}: {why}", transcript.name));
        wrong.extend(transcript::play_or_bless(FOLDER, &transcript, client).await.err());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A client of a face with the settings of the transcript.
fn client(transcript: &Transcript) -> Result<Client, String> {
    let (mut limits, mut settings) = (Limits::default(), settings());
    for (name, value) in transcript.settings() {
        let number = || value.parse::<usize>().map_err(|error| error.to_string());
        match name {
            "slots" => limits.concurrent_runs = number()?,
            "payload-bytes" => limits.payload_bytes = number()?,
            "timeout-ms" => limits.timeout_ms = number()? as u64,
            "page-size" => settings.page_size = number()?,
            "tools" => settings.tool_filter.only = value.split(' ').map(str::to_owned).collect(),
            // The transcript needs the tools of these tests; others hold for the program too.
            "fixtures" => {}
            "eras" => {
                settings.eras = Eras { legacy: value.contains("legacy"), modern: value.contains("modern") };
            }
            _ => return Err(format!("there is no setting {name}")),
        }
    }
    Ok(Client::of(&face_on(store(), limits, settings)))
}

impl transcript::Client for Client {
    async fn say(&mut self, text: &str) {
        self.tell(text);
    }

    async fn hear(&mut self) -> String {
        self.hear_text().await
    }

    async fn pass(&mut self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    async fn unexpected(&mut self) -> Vec<String> {
        self.rest().await
    }

    async fn end(self) -> Vec<String> {
        self.rest().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_is_wrong_fails() {
    let hello = r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (text, why) in [
        (hello.to_owned(), "heard at the end"),
        (format!("{hello}\n< {{\"id\":1}}"), "expected"),
        (format!("{hello}\n{hello}"), "heard before it"),
    ] {
        let transcript = Transcript::read("test", &text).unwrap();
        let wrong = transcript.play(client(&transcript).unwrap()).await.unwrap_err();
        assert!(wrong.contains(why), "{wrong}");
    }
}
