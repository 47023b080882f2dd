//! Children are started, watched, ended and never left behind.

use std::collections::BTreeMap;
use std::path::Path;

use orchestr8_contract::Code;
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::registry;
use orchestr8_testing::settled::text;
use orchestr8_testing::{until, within};
use orchestr8_tools::remote::{Link, Phase, Server};
use serde_json::{Value, json};

use crate::world::{TOOLS, World, fixture, is_alive, store, was_reaped};

#[tokio::test]
async fn a_child_sees_only_the_environment_it_is_given() {
    let world = World::with(fixture(&[])).await;
    let seen: Value = serde_json::from_str(&text(world.call("other.environment", json!({})).await)).unwrap();
    assert_eq!(seen, json!({"PATH": "/usr/bin:/bin", "LANG": "C", "OWN": "given"}));
    world.remote.stop().await;
}

#[tokio::test]
async fn stopping_ends_the_child_and_its_children() {
    for flags in [&[][..], &["--stay"]] {
        let world = World::with(fixture(flags)).await;
        let pid = world.seen().pid.unwrap();
        let grandchild: u32 = text(world.call("other.spawn", json!({})).await).parse().unwrap();
        assert!(is_alive(pid) && is_alive(grandchild));
        within(world.remote.stop()).await;
        assert!(was_reaped(pid), "{flags:?}");
        until("the grandchild to be gone", || !is_alive(grandchild)).await;
    }
}

#[tokio::test]
async fn dropping_everything_ends_the_child_and_its_children() {
    let world = World::with(fixture(&["--stay"])).await;
    let pid = world.seen().pid.unwrap();
    let grandchild: u32 = text(world.call("other.spawn", json!({})).await).parse().unwrap();
    drop(world);
    until("the child to be gone", || !is_alive(pid)).await;
    until("the grandchild to be gone", || !is_alive(grandchild)).await;
    until("the child to be reaped", || was_reaped(pid)).await;
}

#[tokio::test]
async fn what_a_dying_child_leaves_behind_is_ended_too() {
    let world = World::with(fixture(&[])).await;
    let grandchild: u32 = text(world.call("other.spawn", json!({})).await).parse().unwrap();
    world.call("other.die", json!({})).await;
    until("the grandchild to be gone", || !is_alive(grandchild)).await;
    world.remote.stop().await;
}

#[tokio::test]
async fn a_server_that_does_not_come_up_holds_up_nobody() {
    let mut mute = fixture(&["--mute"]);
    mute.start_timeout_ms = 100;
    mute.name = "mute".into();
    let nothing =
        Link::Stdio { command: "/nowhere/at/all".into(), args: vec![], env: BTreeMap::new(), cwd: None };
    let mut off = fixture(&[]);
    off.name = "off".into();
    off.disabled = true;
    let servers = vec![mute, Server::new("nothing", nothing), fixture(&[]), off];
    let world = World::on(store(), servers).await;
    let seen = world.remote.seen();
    assert_eq!(
        seen.iter().map(|seen| seen.server.as_str()).collect::<Vec<_>>(),
        ["mute", "nothing", "other"]
    );
    assert_eq!(seen[2].phase, Phase::Running);
    assert!(seen[0].problem.as_ref().unwrap().contains("within 100 ms"), "{seen:?}");
    assert!(seen[1].problem.as_ref().unwrap().contains("could not be started"), "{seen:?}");
    assert_eq!(text(world.call("other.echo", json!({"message": "a"})).await), "a");
    within(world.remote.stop()).await;
}

/// A server that comes up once and never again.
fn once(mark: &Path) -> Server {
    scripted(r#"test -e "$1" && { echo "it cannot start" >&2; exit 1; }; : > "$1"; exec "$2""#, mark)
}

/// A server that comes up at the second try.
fn at_last(mark: &Path) -> Server {
    scripted(r#"test -e "$1" && exec "$2"; : > "$1"; exit 1"#, mark)
}

fn scripted(script: &str, mark: &Path) -> Server {
    let args = ["-c", script, "sh", mark.to_str().unwrap(), env!("CARGO_BIN_EXE_mcp-fixture")];
    let args = args.map(str::to_owned).to_vec();
    Server::new("other", Link::Stdio { command: "/bin/sh".into(), args, env: BTreeMap::new(), cwd: None })
}

#[tokio::test]
async fn while_a_server_is_away_its_tools_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(once(&folder.path().join("mark"))).await;
    assert_eq!(world.call("other.die", json!({})).await.code(), Some(Code::OutcomeUnknown));
    until("the end to be seen", || world.seen().problem.is_some()).await;
    assert_eq!(world.listed().len(), TOOLS, "they stay listed");
    assert_eq!(world.call("other.change", json!({})).await.code(), Some(Code::Unavailable));
    until("the next start to fail", || world.seen().exit_code == Some(1)).await;
    let seen = world.seen();
    assert!(seen.problem.as_ref().unwrap().contains("exit status"), "{seen:?}");
    assert_eq!(seen.last_error.as_ref().map(|error| &error.message), seen.problem.as_ref(), "{seen:?}");
    assert_eq!(seen.stderr, ["it cannot start"]);
    assert!(seen.next_attempt_at_ms.is_some(), "{seen:?}");
    world.remote.stop().await;
}

#[tokio::test]
async fn the_tools_of_a_server_appear_when_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(at_last(&folder.path().join("mark"))).await;
    let mut news = world.kernel.bus().subscribe(&Filter::names([registry::CHANGED]).about("tools")).unwrap();
    assert_eq!((world.listed().len(), world.seen().phase), (0, Phase::Waiting));
    within(news.next()).await.unwrap();
    assert_eq!(world.listed().len(), TOOLS);
    until("it to run", || world.seen().phase == Phase::Running).await;
    assert_eq!(text(world.call("other.echo", json!({"message": "a"})).await), "a");
    world.remote.stop().await;
}

#[tokio::test]
async fn what_a_child_writes_to_stderr_is_in_the_log() {
    let world = World::with(fixture(&["--chatty"])).await;
    let told = |entry: &Value| entry["line"] == "the fixture has started" && entry["server"] == "other";
    until("the line to be logged", || world.log.entries().iter().any(told)).await;
    world.remote.stop().await;
}
