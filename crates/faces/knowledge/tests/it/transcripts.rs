//! Plays the transcripts of `conformance/knowledge`; its README says how to read them.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Method;
use orchestr8_knowledge_face::security::jws::Form;
use orchestr8_knowledge_face::security::keys::Pair;
use orchestr8_knowledge_face::{Security, Settings};
use orchestr8_testing::transcript::{Client, Transcript, check_list, folder};
use orchestr8_testing::within;
use serde_json::{Value, json};

use crate::world::{Answer, NOW, World};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/knowledge")
}

#[tokio::test]
async fn kno_12_every_transcript_holds() {
    let transcripts = folder(root());
    assert!(transcripts.len() >= 9, "only {} transcripts found", transcripts.len());
    let mut wrong = Vec::new();
    for transcript in transcripts {
        let client = Agent::new(&transcript).await;
        wrong.extend(transcript.play(client).await.err());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_transcript_that_is_wrong_fails() {
    for wrong in [
        "> envelope {}\n< 201 {}",
        "> envelope {}\n< 200 {\"ok\":true}",
        "> envelope {}\n> GET /mcp/capabilities",
        "> GET /nothing\n< 200",
    ] {
        let transcript = Transcript::read("test", wrong).unwrap();
        assert!(transcript.play(Agent::new(&transcript).await).await.is_err(), "{wrong}");
    }
}

#[test]
fn the_list_of_transcripts_names_every_file_and_no_other() {
    check_list(root());
}

/// Somebody who sends envelopes and reads answers.
struct Agent {
    /// None only while it restarts.
    world: Option<World>,
    keys: Vec<Pair>,
    sent: u32,
    heard: VecDeque<String>,
    /// The link and the hash of an artifact that were heard last.
    kept: BTreeMap<&'static str, String>,
}

impl Agent {
    async fn new(transcript: &Transcript) -> Self {
        let (mut settings, mut bus) = (Settings::default(), false);
        for (name, value) in transcript.settings() {
            match (name, value) {
                ("profile", "external") => settings.security = Security::External,
                ("ratePerMinute", number) => settings.rate_per_minute = Some(number.parse().unwrap()),
                ("bus", "on") => bus = true,
                other => panic!("no setting {other:?}"),
            }
        }
        let world = match bus {
            true => World::with_bus(settings).await,
            false => World::with(settings),
        };
        if bus {
            world.consume();
        }
        let keys = vec![
            world.key("k-owner", "acme", "svc:agent-cskh", &["owner"]).await,
            world.key("k-viewer", "acme", "svc:agent-cskh", &["viewer"]).await,
        ];
        Self { world: Some(world), keys, sent: 0, heard: VecDeque::new(), kept: BTreeMap::new() }
    }

    /// The envelope of the README with these members put over it.
    fn envelope(&mut self, over: &str) -> Vec<u8> {
        self.sent += 1;
        let mut envelope = json!({
            "envelope_version": "2.2", "request_id": format!("00000000-0000-4000-8000-{:012}", self.sent),
            "tenant_id": "acme", "principal": {"sub": "svc:agent-cskh", "roles": ["owner"]}, "timestamp": NOW,
            "ttl_sec": 300, "action": "knowledge.query_knowledge", "action_version": "1.0.0",
            "payload": {"schema_version": "1.0", "args": {"query": "q"}},
        });
        let over: Value = serde_json::from_str(over).unwrap_or_else(|error| panic!("{error}: {over}"));
        for (name, value) in over.as_object().unwrap() {
            match (name.as_str(), value) {
                ("args", args) => envelope["payload"]["args"] = args.clone(),
                (name, Value::Null) => drop(envelope.as_object_mut().unwrap().remove(name)),
                (name, value) => envelope[name] = value.clone(),
            }
        }
        envelope.to_string().into_bytes()
    }

    async fn send(&mut self, method: Method, target: &str, headers: &[(&str, &str)], body: Vec<u8>) {
        let answer = within(self.world.as_ref().unwrap().ask(method, target, headers, body)).await;
        if let Ok(body) = serde_json::from_str::<Value>(&answer.text)
            && let Some(uri) = body["data"]["artifact_uri"].as_str()
        {
            self.kept.insert("$artifact_uri", uri.to_owned());
            let hash = body["data"]["artifact_hash"].as_str().unwrap();
            self.kept.insert("$artifact_hash", hash.to_owned());
        }
        self.heard.push_back(words(&answer));
    }

    async fn send_signed(&mut self, how: &[&str], body: Vec<u8>) {
        let [kid, nonce, form] = how else { panic!("signed <kid> <nonce> <detached|compact>") };
        let pair = self.keys.iter().find(|pair| pair.kid == *kid).cloned();
        // A key nobody knows signs as well as any other.
        let pair = pair.unwrap_or(Pair { kid: (*kid).to_owned(), seed: [99; 32] });
        let world = self.world.as_ref().unwrap();
        match *form {
            "compact" => {
                let body = world.signature(&pair, &body, nonce, Form::Compact).into_bytes();
                self.send(Method::POST, "/mcp/actions", &[("content-type", "application/jose")], body).await;
            }
            "detached" => {
                let signature = world.signature(&pair, &body, nonce, Form::Detached);
                self.send(Method::POST, "/mcp/actions", &[("x-jws-signature", &signature)], body).await;
            }
            other => panic!("no form {other}"),
        }
    }
}

/// The status, the headers that matter, and the body.
fn words(answer: &Answer) -> String {
    let mut words = vec![answer.status.as_u16().to_string()];
    for name in ["idempotency-replayed", "retry-after", "x-ratelimit-remaining"] {
        let default = name == "x-ratelimit-remaining" && answer.header("x-ratelimit-limit") == "60000";
        if !answer.header(name).is_empty() && !default {
            words.push(format!("{name}={}", answer.header(name)));
        }
    }
    words.push(answer.text.clone());
    words.join(" ")
}

impl Client for Agent {
    async fn say(&mut self, text: &str) {
        let text = &self.kept.iter().fold(text.to_owned(), |text, (name, kept)| text.replace(name, kept));
        let (head, json) = text.split_at(text.find('{').unwrap_or(text.len()));
        let mut head = head.split_whitespace();
        let (verb, rest): (&str, Vec<&str>) = (head.next().unwrap(), head.collect());
        match verb {
            "restart" => self.world = self.world.take().map(World::restart),
            "publish" => {
                let body = self.envelope(json);
                self.send(Method::POST, "/a2a/publish", &[], body).await;
            }
            "upload" => {
                let body = text.splitn(3, ' ').nth(2).unwrap().as_bytes().to_vec();
                let headers = [("content-type", rest[0]), ("x-tenant-id", "acme")];
                self.send(Method::POST, "/artifacts", &headers, body).await;
            }
            "envelope" => {
                let body = self.envelope(json);
                let headers: Vec<(&str, &str)> =
                    rest.iter().map(|pair| pair.split_once('=').unwrap()).collect();
                self.send(Method::POST, "/mcp/actions", &headers, body).await;
            }
            "signed" => {
                let body = self.envelope(json);
                self.send_signed(&rest, body).await;
            }
            method => {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                self.send(method, rest[0], &[], json.as_bytes().to_vec()).await;
            }
        }
    }

    async fn hear(&mut self) -> String {
        self.heard.pop_front().expect("nothing was heard")
    }

    async fn pass(&mut self, ms: u64) {
        self.world.as_ref().unwrap().clock.advance(Duration::from_millis(ms));
    }

    async fn unexpected(&mut self) -> Vec<String> {
        self.heard.drain(..).collect()
    }

    async fn end(mut self) -> Vec<String> {
        self.unexpected().await
    }
}
