//! `session.run`: a message to a session that is there or not, kept or not, said once.

use std::path::Path;
use std::time::Duration;

use orchestr8_contract::id::Key;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Submission, Why};
use orchestr8_sessions::tables;
use orchestr8_stores::Sqlite;
use orchestr8_stores::sqlite::{self, Options, Place};
use orchestr8_testing::{migrations, settled, submission, within};
use serde_json::{Value, json};

use crate::world::World;

const NAME: &str = "session.run";

async fn run(world: &World, args: Value) -> Value {
    settled::value(world.kernel.submit(submission(NAME, args)).await)
}

async fn failed(world: &World, args: Value) -> Fault {
    settled::fault(world.kernel.submit(submission(NAME, args)).await)
}

fn keyed(args: Value) -> Submission {
    let mut wish = submission(NAME, args);
    let key = Key::parse("exec:step").unwrap();
    wish.identities.push(Identity { scope: Scope("test".into()), key, ttl_ms: 60_000 });
    wish
}

#[tokio::test]
async fn a_session_is_made_when_it_is_not_there_and_spoken_to_when_it_is() {
    let world = World::new().await;
    let args =
        json!({"message": "hello", "sessionId": "s", "systemPrompt": "be kind", "sessionName": "mine"});
    let first = run(&world, args).await;
    assert_eq!(
        (&first["sessionId"], &first["text"], &first["stopReason"]),
        (&json!("s"), &json!("hello"), &json!("stop"))
    );
    assert!(first["usage"]["total"].as_u64().unwrap() > 0);
    let second = run(&world, json!({"message": "again", "sessionId": "s"})).await;
    assert_eq!(second["text"], "again");
    assert_eq!(world.texts().await, ["user: hello", "assistant: hello", "user: again", "assistant: again"]);
    let state = world.settle("get_state", json!({"sessionId": "s"})).await;
    assert_eq!(state.version, Some(2), "each prompt counts as one change");
    assert_eq!(settled::value(state)["sessionName"], "mine");
}

#[tokio::test]
async fn a_session_that_is_not_kept_is_gone_also_after_a_failure() {
    let world = World::new().await;
    let answer = run(&world, json!({"message": "hello", "keep": false})).await;
    let id = answer["sessionId"].as_str().unwrap();
    assert_eq!(world.settle("get_state", json!({"sessionId": id})).await.code(), Some(Code::NotFound));
    failed(&world, json!({"message": "/fail INTERNAL", "keep": false})).await;
    assert_eq!(world.ask("list_sessions", json!({})).await["sessions"], json!([]));
}

#[tokio::test]
async fn an_answer_that_failed_is_a_fault_with_its_session_and_its_price() {
    let world = World::new().await;
    let fault = failed(&world, json!({"message": "/fail RESOURCE_EXHAUSTED", "sessionId": "s"})).await;
    assert_eq!(fault.code, Code::ResourceExhausted);
    let details = fault.details.unwrap();
    assert_eq!(details["sessionId"], "s");
    assert!(details["usage"].is_object());
    let wrong = json!({"message": "x", "provider": "offline", "modelId": "nobody"});
    assert_eq!(failed(&world, wrong).await.code, Code::NotFound);
    assert_eq!(
        failed(&world, json!({"message": "x", "sessionId": "no spaces"})).await.code,
        Code::InvalidArgument
    );
    assert_eq!(
        failed(&world, json!({"message": "x", "cwd": "/does/not/exist"})).await.code,
        Code::InvalidArgument
    );
}

#[tokio::test]
async fn under_its_key_an_answer_is_given_again_and_a_failure_is_tried_again() {
    let world = World::new().await;
    world.session().await;
    world.ask("set_auto_retry", json!({"sessionId": "s", "enabled": false})).await;
    let args = json!({"message": "/fail UNAVAILABLE 1\nback", "sessionId": "s"});
    assert_eq!(world.kernel.submit(keyed(args.clone())).await.code(), Some(Code::Unavailable));
    assert_eq!(world.texts().await.len(), 2);
    let answered = world.kernel.submit(keyed(args.clone())).await;
    assert!(!answered.replayed);
    assert_eq!(settled::value(answered)["text"], "back");
    assert_eq!(world.texts().await.len(), 2, "what got no answer was taken back and said anew");
    assert!(world.kernel.submit(keyed(args)).await.replayed);
    assert_eq!(world.texts().await.len(), 2);
}

#[tokio::test]
async fn after_a_crash_it_runs_again_and_the_message_stands_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::on(open(folder.path()).await).await;
    world.session().await;
    let mut heard = world.listen();
    let args = json!({"message": "/slow 200\nwell", "sessionId": "s"});
    let (kernel, wish) = (world.kernel.clone(), keyed(args.clone()));
    let first = tokio::spawn(async move { kernel.submit(wish).await });
    heard.until("message_end").await;
    // As if the process died: nothing more is written, and nobody holds the file.
    world.store.close().await;
    first.await.unwrap();
    world.kernel.registry().replace(|_| true, Vec::new()).unwrap();
    drop((world, heard));
    let restarted = World::on(open(folder.path()).await).await;
    let told = restarted.ask("get_startup_recovery", json!({})).await;
    assert_eq!(told["recoveredInFlightFailures"], 0, "it is no command of a client");
    let ended = within(restarted.kernel.submit(keyed(args))).await;
    assert_eq!(settled::value(ended)["text"], "well");
    let said: Vec<String> =
        restarted.texts().await.into_iter().filter(|text| text.starts_with("user")).collect();
    assert_eq!(said, ["user: /slow 200\nwell"]);
}

#[tokio::test]
async fn told_to_stop_it_stops_the_turn_and_the_next_one_begins_afresh() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let wish = keyed(json!({"message": "/slow 60000\nnever", "sessionId": "s"}));
    let (kernel, cancel) = (world.kernel.clone(), wish.cancel.clone());
    let running = tokio::spawn(async move { kernel.submit(wish).await });
    heard.until("message_end").await;
    cancel.fire(Why::Client);
    assert_eq!(within(running).await.unwrap().code(), Some(Code::Cancelled));
    heard.until("agent_end").await;
    assert_eq!(run(&world, json!({"message": "next", "sessionId": "s"})).await["text"], "next");
}

#[tokio::test]
async fn a_turn_that_somebody_stops_is_no_answer() {
    let world = World::new().await;
    world.session().await;
    let mut heard = world.listen();
    let (kernel, wish) =
        (world.kernel.clone(), submission(NAME, json!({"message": "/slow 60000\nx", "sessionId": "s"})));
    let running = tokio::spawn(async move { kernel.submit(wish).await });
    heard.until("message_end").await;
    world.ask("abort", json!({"sessionId": "s"})).await;
    assert_eq!(settled::fault(within(running).await.unwrap()).code, Code::Cancelled);
}

/// Opens the store once whoever had it before has let go of it.
async fn open(folder: &Path) -> Sqlite {
    loop {
        let place = Place::File(folder.join("data.sqlite3"));
        match sqlite::open(Options::new(place, migrations(&[tables::MIGRATIONS]))) {
            Ok(store) => return store,
            Err(sqlite::Error::Held { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    }
}
