//! Governed writes whose server is killed in the middle: the file is as it was or as it was verified, and the trail says which.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use orchestr8_testing::until;
use orchestr8_workspace::plan::Status;
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{GOOD, plant, root_of};
use crate::lives::random;
use crate::program::{Place, signal};
use crate::stdio::{Client, call};

/// Kills of one run; `O8_KILL_CYCLES` makes it more.
const CYCLES: u64 = 20;

/// A server that is not killed while its command runs is killed within this time after the call.
const MOMENT_US: u64 = 600_000;

fn cycles() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a test is told by its environment how long to go on")]
    let wanted = std::env::var("O8_KILL_CYCLES").ok();
    wanted.map_or(CYCLES, |text| text.parse().unwrap())
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The entries that are whole: the newest one may be half written while the server lives.
fn entries(root: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(root.join("audit-log.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn count(root: &Path, result: &str) -> usize {
    entries(root)
        .iter()
        .filter(|entry| entry["result"] == result && entry["tool_name"] == "write_file")
        .count()
}

fn begin(place: &Place) -> Client {
    let mut client = Client::ready(place, &["--governed", "executor"]);
    let root = root_of(place);
    let began = client.call(1, "begin_session", json!({"workspace_root": root}));
    assert_ne!(began["result"]["isError"], true, "{began}");
    client
}

/// What the file must hold by the trail: the text of the newest write that succeeded.
fn check(root: &Path, texts: &BTreeMap<String, String>) {
    let entries = entries(root);
    let written = entries.iter().rev().find(|entry| {
        entry["tool_name"] == "write_file" && entry["result"] == "success" && entry["change"].is_object()
    });
    let expected = written.map(|entry| texts[entry["change"]["after"].as_str().unwrap()].clone());
    let found = std::fs::read_to_string(root.join("src/a.txt")).ok();
    assert_eq!(found, expected, "the file is what the trail says");
    let of = |result: &str| -> Vec<&Value> {
        entries
            .iter()
            .filter(|entry| entry["result"] == result && entry["tool_name"] == "write_file")
            .collect()
    };
    let outcomes = of("success").len() + of("failure").len();
    assert_eq!(of("intent").len(), outcomes, "each write that was begun has one outcome");
    for success in of("success") {
        let is_same = |entry: &&&Value| entry["args_hash"] == success["args_hash"];
        assert_eq!(of("verified").iter().filter(is_same).count(), 1, "it was verified: {success}");
    }
    let left = std::fs::read_dir(root.join("src")).into_iter().flatten().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).filter(|name| name != "a.txt").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn after_each_kill_the_file_is_unchanged_or_verified_and_the_trail_says_which() {
    let place = Place::new();
    std::fs::create_dir_all(place.path().join("workspace")).unwrap();
    let root = root_of(&place);
    // The command looks for long enough that a kill can come in between, and fails if the text is not the new one.
    let plan =
        GOOD.replace("`test ! -e src/broken`", "`sleep 0.1; grep -q text src/a.txt && echo x > src/side`");
    let plan = plant(&place, &plan, Status::Approved);
    let mut random = random(14);
    let (_never, nothing) = std::sync::mpsc::channel::<()>();
    let mut texts = BTreeMap::new();
    let (mut unchanged, mut written) = (0, 0);
    for cycle in 0..cycles() {
        let mut client = begin(&place);
        check(&root, &texts);
        let text = format!("text {cycle}\n");
        texts.insert(sha256(&text), text.clone());
        let args = json!({"path": "src/a.txt", "plan": plan, "content": text, "intent": "Be killed while this is written"});
        let [intents, verified, successes] =
            ["intent", "verified", "success"].map(|result| count(&root, result));
        client.say(&call(2, "write_file", args).to_string());
        match cycle % 4 {
            0 => until("the command to begin", || count(&root, "intent") > intents).await,
            1 => {
                let answer = client.hear();
                assert_ne!(answer["result"]["isError"], true, "{answer}");
            }
            2 => until("the command to succeed", || count(&root, "verified") > verified).await,
            _ => drop(nothing.recv_timeout(Duration::from_micros(random(MOMENT_US)))),
        }
        signal(client.child(), Signal::KILL);
        drop(client.log_at_end());
        drop(begin(&place).log_at_end());
        check(&root, &texts);
        match count(&root, "success") > successes {
            true => written += 1,
            false => unchanged += 1,
        }
    }
    assert!(unchanged > 0 && written > 0, "{unchanged} unchanged, {written} written");
    let verified = place.run(&["--json", "audit", "verify", "--workspace", "workspace"]);
    let shown: Value = serde_json::from_str(&verified.out).unwrap();
    assert_eq!(shown["ok"], true, "{verified:?}");
}
