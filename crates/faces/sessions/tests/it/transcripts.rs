//! Plays the transcripts of `conformance/sessions` on both transports, in time that is simulated.

use std::time::Duration;

use orchestr8_kernel::Limits;
use orchestr8_testing::transcript::{self, Transcript};

use crate::fixtures;
use crate::world::{BOTH, Client, Over, World, settings};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../conformance/sessions");

#[tokio::test(start_paused = true)]
async fn every_transcript_holds_on_both_transports() {
    let transcripts = transcript::folder(FOLDER);
    assert!(transcripts.len() >= 12, "only {} transcripts found", transcripts.len());
    let mut wrong = Vec::new();
    for transcript in transcripts {
        for over in BOTH {
            let player =
                player(&transcript, over).await.unwrap_or_else(|why| panic!("{}: {why}", transcript.name));
            wrong.extend(transcript.play(player).await.err().map(|why| format!("{over:?}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

struct Player {
    client: Client,
    world: World,
}

/// A client of a face with the settings of the transcript. It has heard the first words, unless they are a part of it.
async fn player(transcript: &Transcript, over: Over) -> Result<Player, String> {
    let (mut limits, mut settings, mut is_greeted, mut recovers) =
        (Limits::default(), settings(), true, false);
    for (name, value) in transcript.settings() {
        let number = || value.parse::<usize>().map_err(|error| error.to_string());
        match name {
            "bucket-commands" => settings.bucket_commands = number()?,
            "global-commands" => settings.global_commands = number()?,
            "message-bytes" => settings.message_bytes = number()?,
            "pending" => settings.pending = number()?,
            "in-flight" => limits.in_flight = number()?,
            "first-words" => is_greeted = value != "shown",
            "recovery" => recovers = true,
            _ => return Err(format!("there is no setting {name}")),
        }
    }
    let world = World::with(settings, limits);
    if recovers {
        world.kernel.registry().register(fixtures::recovery()).unwrap();
    }
    let client = match is_greeted {
        true => world.client(over).await,
        false => world.stranger(over, 1 << 16).await,
    };
    Ok(Player { client, world })
}

impl transcript::Client for Player {
    async fn say(&mut self, text: &str) {
        self.client.tell_text(text).await;
    }

    async fn hear(&mut self) -> String {
        self.client.hear_text().await
    }

    async fn pass(&mut self, ms: u64) {
        self.world.kernel.ports().clock.sleep(Duration::from_millis(ms)).await;
    }

    async fn unexpected(&mut self) -> Vec<String> {
        self.client.rest().await
    }

    async fn end(mut self) -> Vec<String> {
        self.client.rest().await
    }
}
