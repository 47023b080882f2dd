//! What a face is told on the way, what it may refuse, and what a restart settles.

use std::sync::Arc;

use orchestr8_contract::id::{Lane, SubmissionId};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::action::{Slotting, Versioning};
use orchestr8_kernel::fingerprint::Fingerprint;
use orchestr8_kernel::follow::Follow;
use orchestr8_kernel::submission::{Scope, Version};
use orchestr8_kernel::{End, Limits, Policy, Settled, Submission};
use parking_lot::Mutex;
use serde_json::json;

use crate::world::{Kind, World, open_store};

#[derive(Default)]
struct Heard {
    words: Mutex<Vec<&'static str>>,
    refuses: bool,
}

impl Follow for Heard {
    fn admit(&self) -> Result<(), Fault> {
        match self.refuses {
            true => Err(Fault::new(Code::ResourceExhausted, "too fast")),
            false => Ok(()),
        }
    }
    fn accepted(&self) {
        self.words.lock().push("accepted");
    }
    fn started(&self) {
        self.words.lock().push("started");
    }
    fn word(&self, mut fault: Fault) -> Fault {
        fault.message = format!("oh: {}", fault.message).into();
        fault
    }
    fn finished(&self, settled: &Settled) {
        self.words.lock().push(if settled.end == End::Success { "finished" } else { "failed" });
    }
}

fn named(world: &World, action: &str, name: &str) -> Submission {
    let id = SubmissionId::parse(name).unwrap();
    world.ask(action, json!({"name": name})).named(Scope("ids".into()), id, 60_000)
}

fn about(mut submission: Submission, expected: Option<u64>) -> Submission {
    submission.version = Some(Version { subject: Arc::from("s"), expected });
    submission
}

/// SES-7.2, SES-7.4: accepted, then started, then finished; a repeat is told of by whoever replays it, not by the path.
#[tokio::test]
async fn a_follower_hears_of_each_step_once() {
    let world = World::new();
    let heard = Arc::new(Heard::default());
    for _ in 0..2 {
        let mut submission = named(&world, "read", "a");
        submission.follow = Some(heard.clone());
        world.kernel.submit(submission).await;
    }
    assert_eq!(*heard.words.lock(), ["accepted", "started", "finished"]);
}

/// SES-7.2: what waits for its turn is accepted and not started.
#[tokio::test]
async fn started_means_that_it_is_its_turn() {
    let world = World::new();
    let lane = |mut submission: Submission| {
        submission.lane = Some(Lane::parse("x").unwrap());
        submission
    };
    let first = world.spawn(lane(named(&world, "wait", "first")));
    world.until(|world| world.begun() == 1).await;
    let heard = Arc::new(Heard::default());
    let mut second = lane(named(&world, "read", "second"));
    second.follow = Some(heard.clone());
    let second = world.spawn(second);
    world.until(|_| heard.words.lock().len() == 1).await;
    assert_eq!(*heard.words.lock(), ["accepted"]);
    world.gate.add_permits(1);
    first.await.unwrap();
    second.await.unwrap();
    assert_eq!(*heard.words.lock(), ["accepted", "started", "finished"]);
}

/// SES-9: why something failed is kept, replayed and passed on in the words of whoever submitted it.
#[tokio::test]
async fn a_follower_words_its_failure() {
    let world = World::new();
    let heard = Arc::new(Heard::default());
    let mut words = Vec::new();
    for _ in 0..2 {
        let mut submission = about(named(&world, "read", "a"), Some(7));
        submission.follow = Some(heard.clone());
        words.push(orchestr8_testing::settled::fault(world.kernel.submit(submission).await).message);
    }
    assert_eq!(words[0], "oh: 's' is not there, and version 7 of it was expected");
    assert_eq!(words[0], words[1]);
    let mut second = named(&world, "read", "b");
    second.depends_on = vec![SubmissionId::parse("a").unwrap()];
    let fault = orchestr8_testing::settled::fault(world.kernel.submit(second).await);
    assert_eq!(fault.details.unwrap()["why"], *words[0]);
    assert_eq!(*heard.words.lock(), ["accepted", "started", "failed"]);
}

/// A repeat needs no room: it is answered however much is in flight; what is new is refused.
#[tokio::test]
async fn repeats_are_answered_when_nothing_new_can_be() {
    let world = World::on(open_store(), Limits { in_flight: 1, ..Limits::default() });
    assert_eq!(world.kernel.submit(named(&world, "read", "a")).await.end, End::Success);
    let busy = world.spawn(named(&world, "wait", "busy"));
    world.until(|world| world.kernel.in_flight() == 1).await;
    assert!(world.kernel.submit(named(&world, "read", "a")).await.replayed);
    let refused = world.kernel.submit(named(&world, "read", "b")).await;
    assert_eq!((refused.end, refused.code()), (End::Refused, Some(Code::ResourceExhausted)));
    world.gate.add_permits(1);
    busy.await.unwrap();
    let fresh = world.kernel.submit(named(&world, "read", "b")).await;
    assert!(fresh.end == End::Success && !fresh.replayed, "what was refused was not remembered");
}

/// SES-7.1: what is refused before it is accepted leaves no trace, and its id is free.
#[tokio::test]
async fn a_follower_may_refuse_and_nothing_is_remembered() {
    let world = World::new();
    let strict = Arc::new(Heard { refuses: true, ..Heard::default() });
    let mut refused = named(&world, "store", "a");
    refused.follow = Some(strict.clone());
    let refused = world.kernel.submit(refused).await;
    assert_eq!((refused.end, refused.code()), (End::Refused, Some(Code::ResourceExhausted)));
    assert!(strict.words.lock().is_empty());
    let free = world.kernel.submit(named(&world, "store", "a")).await;
    assert_eq!((free.end, free.replayed), (End::Success, false));
    let mut repeated = named(&world, "store", "a");
    repeated.follow = Some(strict);
    assert!(world.kernel.submit(repeated).await.replayed, "a repeat costs nothing");
}

/// SES-8.3: a face may count more than the arguments.
#[tokio::test]
async fn a_fingerprint_of_the_face_decides_what_is_the_same() {
    let world = World::new();
    let with = |request: serde_json::Value| {
        let mut submission = named(&world, "read", "a");
        submission.fingerprint = Some(Fingerprint::whole(&request));
        submission
    };
    world.kernel.submit(with(json!({"type": "read", "dependsOn": []}))).await;
    assert!(world.kernel.submit(with(json!({"dependsOn": [], "type": "read"}))).await.replayed);
    let other = world.kernel.submit(with(json!({"type": "read"}))).await;
    assert_eq!(other.code(), Some(Code::KeyConflict));
}

/// SES-10: created at 0, each change counts one, also when two lanes change it at once; gone when removed.
#[tokio::test]
async fn versions_begin_at_zero_count_without_gaps_and_end() {
    let world = World::new();
    for (name, how) in
        [("create", Versioning::Create), ("change", Versioning::Bump), ("remove", Versioning::Remove)]
    {
        world.register(
            name,
            Policy { versioning: how, slotting: Slotting::Free, ..Policy::stored() },
            Kind::Now,
        );
    }
    world.register("long", Policy { versioning: Versioning::Bump, ..Policy::stored() }, Kind::Waits);
    let created = world.kernel.submit(about(world.ask("create", json!({})), None)).await;
    assert_eq!(created.version, Some(0));
    let long = world.spawn(about(world.ask("long", json!({})), Some(0)));
    world.until(|world| world.begun() == 2).await;
    let beside = world.kernel.submit(about(world.ask("change", json!({})), Some(0))).await;
    assert_eq!((beside.end, beside.version), (End::Success, Some(1)));
    world.gate.add_permits(1);
    let long = long.await.unwrap();
    assert_eq!((long.end, long.version), (End::Success, Some(2)), "the one that took longer counts after it");
    let many = (0..50).map(|_| world.spawn(about(world.ask("change", json!({})), None)));
    let mut versions: Vec<_> = futures::future::join_all(many)
        .await
        .into_iter()
        .filter_map(|ended| ended.unwrap().version)
        .collect();
    versions.sort_unstable();
    assert_eq!(versions, (3..53).collect::<Vec<_>>());
    let removed = world.kernel.submit(about(world.ask("remove", json!({})), Some(52))).await;
    assert_eq!((removed.end, removed.version), (End::Success, None));
    let gone = world.kernel.submit(about(world.ask("change", json!({})), Some(52))).await;
    assert_eq!(gone.code(), Some(Code::NotFound));
}

/// A version in memory is not asked of the store again.
#[tokio::test]
async fn a_known_version_costs_no_query() {
    let world = World::new();
    world.register("create", Policy { versioning: Versioning::Create, ..Policy::stored() }, Kind::Now);
    world.kernel.submit(about(world.ask("create", json!({})), None)).await;
    let before = world.store.queries.load(std::sync::atomic::Ordering::SeqCst);
    let read = world.kernel.submit(about(world.ask("read", json!({})), Some(0))).await;
    assert_eq!((read.end, read.version), (End::Success, Some(0)));
    assert_eq!(world.store.queries.load(std::sync::atomic::Ordering::SeqCst), before);
}

/// What a killed process left in the middle gets an outcome, and repeats get that one.
#[tokio::test]
async fn what_was_cut_off_is_settled_once_for_all() {
    let store = open_store();
    let world = World::on(store.clone(), Limits::default());
    world.spawn(named(&world, "outside", "a"));
    world.spawn(world.keyed("outside", "other scope", json!({})));
    world.until(|world| world.begun() == 2).await;

    let later = World::on(store, Limits::default());
    let fault = |_: &orchestr8_kernel::ledger::CutOff| Fault::new(Code::OutcomeUnknown, "cut off");
    let settled = later.kernel.settle_cut_off("id", fault).await.unwrap();
    assert_eq!(settled.iter().map(|found| found.key.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(later.kernel.settle_cut_off("id", fault).await.unwrap(), []);
    let repeated = later.kernel.submit(named(&later, "outside", "a")).await;
    assert!(repeated.replayed);
    assert_eq!(repeated.code(), Some(Code::OutcomeUnknown));
}
