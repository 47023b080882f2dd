//! The real runtime beside the reference model: random definitions that need no script, up to their end, after a kill, and again
//! through retry and fork.

use std::rc::Rc;
use std::sync::Arc;

use orchestr8_workflows::definition;
use serde_json::{Value, json};

use super::comparable::comparable;
use super::reference::definition::{Definition, id};
use super::reference::dice::{Dice, Range};
use super::reference::run::{End, Run, Status};
use super::reference::self_running::{run_to_the_end, self_running};
use crate::world::{Desk, World};

const RANGE: Range = Range { steps: 7, depth: 2, items: 4, timers: true, workers: false };

fn of_seed(seed: u64) -> (Dice, Definition) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x11fe);
    let definition = self_running(&mut dice, RANGE);
    (dice, definition)
}

fn model(definition: &Definition) -> (Run, Vec<String>) {
    let mut run = Run::new(Rc::new(definition.clone()), String::new());
    run.settle();
    let called = run_to_the_end(&mut run);
    (run, called)
}

/// The keys of the calls of a test agent since the last look, without the ids of executions.
fn called(desk: &Desk) -> Vec<String> {
    let calls = std::mem::take(&mut *desk.calls.lock());
    let key = |key: String| match key.split_once(':') {
        Some((execution, rest)) if execution.starts_with("exec-") => rest.to_owned(),
        _ => key,
    };
    calls.into_iter().map(|(_, one)| key(one)).collect()
}

fn compare(seed: u64, what: &str, run: &Run, end: &Value, source: &Value) {
    let tell = || format!("seed {seed}, {what}: {end:#}\n of {source}");
    assert_eq!(end["status"], run.status.as_str(), "{}", tell());
    let workflow = definition::read_value(source).unwrap();
    for (place, own) in run.steps.iter().enumerate() {
        let shown = &end["steps"][id(place)];
        let word = shown["status"].as_str().unwrap_or_default();
        let is_same = match own.end {
            Some(End::Completed) => word == "completed",
            Some(End::Failed) => word == "failed",
            Some(End::Skipped) => word == "skipped",
            Some(End::Stopped) => matches!(word, "skipped" | "cancelled"),
            None => false,
        };
        assert!(is_same, "{} is {word} instead of {:?}: {}", id(place), own.end, tell());
        if let (Some(End::Completed), Some(expected)) = (own.end, &own.output) {
            let found = comparable(&workflow.steps[place], shown["output"].clone());
            assert!(found == *expected, "{} gives something else: {}", id(place), tell());
        }
    }
}

fn sorted(mut keys: Vec<String>) -> Vec<String> {
    keys.sort();
    keys
}

#[tokio::test]
async fn the_runtime_does_what_the_reference_model_says() {
    let world = World::new().await;
    for seed in 0..200 {
        let (mut dice, definition) = of_seed(seed);
        let source = definition.to_json();
        let (mut run, expected) = model(&definition);
        let id = world.start_whole(source.clone(), json!({})).await;
        let end = world.end(&id).await;
        compare(seed, "the run", &run, &end, &source);
        assert_eq!(sorted(called(&world.desk)), sorted(expected), "seed {seed}: {source}");
        if run.status != Status::Completed {
            run.retry();
            let expected = run_to_the_end(&mut run);
            world.ask("executions.retry", json!({"executionId": id})).await;
            compare(seed, "the retry", &run, &ended_again(&world, &id, &end).await, &source);
            assert_eq!(sorted(called(&world.desk)), sorted(expected), "seed {seed}, retry: {source}");
        }
        let from = dice.below(definition.ends[0]);
        let mut fork = run.fork(from, String::from("fork/"));
        let expected = run_to_the_end(&mut fork);
        let args = json!({"executionId": id, "fromStep": format!("s{from}")});
        let forked = world.ask("executions.fork", args).await["executionId"].as_str().unwrap().to_owned();
        compare(seed, "the fork", &fork, &world.end(&forked).await, &source);
        assert_eq!(sorted(called(&world.desk)), sorted(expected), "seed {seed}, fork from s{from}: {source}");
    }
}

/// The end after a retry. A retry is taken in after it was answered.
async fn ended_again(world: &World, id: &str, before: &Value) -> Value {
    loop {
        let end = world.end(id).await;
        if end["lastSequence"].as_u64() > before["lastSequence"].as_u64() {
            return end;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn after_a_kill_at_any_point_the_end_is_what_the_reference_model_says() {
    for seed in 1000..1030 {
        let (mut dice, definition) = of_seed(seed);
        let source = definition.to_json();
        let (run, expected) = model(&definition);
        let folder = tempfile::tempdir().unwrap();
        let desk = Arc::<Desk>::default();
        let world = World::at(folder.path(), desk.clone()).await;
        let execution = world.start_whole(source.clone(), json!({})).await;
        for _ in 0..dice.below(40) {
            tokio::task::yield_now().await;
        }
        world.die().await;
        let world = World::at(folder.path(), desk.clone()).await;
        compare(seed, "the run that was killed", &run, &world.end(&execution).await, &source);
        world.die().await;
        // What was under way is called again with its key, and nothing else is called.
        let (mut found, mut expected) = (sorted(called(&desk)), sorted(expected));
        found.dedup();
        expected.dedup();
        assert_eq!(found, expected, "seed {seed}: {source}");
    }
}
