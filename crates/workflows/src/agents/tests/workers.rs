//! Queues of workers: handed out once, leased, taken back, cancelled.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::super::workers::{Failure, HeldTask, QueueKey, Task};
use super::super::{Answer, Usage};
use super::world::World;

const QUEUE: &str = "@worker/jobs";
const NOW: Duration = Duration::ZERO;

type Calling = JoinHandle<Result<Answer, Fault>>;

fn begin(world: &World, config: Value, input: Value) -> (Calling, CancellationToken) {
    let mut call = world.call(QUEUE, input);
    call.config = config;
    let cancel = call.cancel.clone();
    (tokio::spawn(world.agent(QUEUE).call(call)), cancel)
}

async fn take(world: &World) -> Task {
    let mut tasks = world.workers.poll(jobs(), "w", Duration::from_secs(60), 1).await.unwrap();
    tasks.pop().expect("a task within the wait")
}

fn jobs() -> QueueKey {
    QueueKey { tenant: Tenant::local(), name: "jobs".into() }
}

fn held(id: Uuid, token: &str) -> HeldTask<'_> {
    static LOCAL: LazyLock<Tenant> = LazyLock::new(Tenant::local);
    HeldTask { tenant: &LOCAL, id, token }
}

#[tokio::test]
async fn any_queue_has_its_agent_and_nothing_else_does() {
    let world = World::new();
    for id in ["@worker/jobs", "@worker/a.b-c_1"] {
        assert!(world.agents.find(id).is_some(), "{id}");
    }
    for id in ["@worker/", "@worker", "@worker/a b", "@worker/a/b", "@orchestr8/"] {
        assert!(world.agents.find(id).is_none(), "{id}");
    }
}

#[tokio::test]
async fn a_task_is_handed_out_and_its_answer_ends_the_step() {
    let world = World::new();
    let (calling, _) = begin(&world, Value::Null, json!({"n": 1}));
    let task = take(&world).await;
    assert_eq!(
        (&*task.call.key, &*task.call.step, &task.call.input),
        ("exec-1:step", "step", &json!({"n": 1}))
    );
    assert_eq!(world.workers.depth(), (0, 1));
    let usage = Usage { tokens: 3, cost: 0.1 };
    world.workers.complete(&held(task.id, &task.lease_token), json!("done"), usage).unwrap();
    let answer = calling.await.unwrap().unwrap();
    assert_eq!(answer, Answer { output: json!("done"), usage });
    let late = world.workers.complete(&held(task.id, &task.lease_token), json!("again"), usage).unwrap_err();
    assert_eq!((late.code, late.details.unwrap()["reason"].as_str()), (Code::NotFound, Some("task_unknown")));
    assert_eq!(world.workers.depth(), (0, 0));
}

#[tokio::test]
async fn a_failure_says_whether_to_try_again() {
    let world = World::new();
    for (retryable, code) in [(true, Code::Unavailable), (false, Code::AgentFailed)] {
        let (calling, _) = begin(&world, Value::Null, Value::Null);
        let task = take(&world).await;
        let failure =
            Failure { message: "broken password=hunter2".into(), code: Some("E7".into()), retryable };
        world.workers.fail(&held(task.id, &task.lease_token), failure).unwrap();
        let fault = calling.await.unwrap().unwrap_err();
        assert_eq!((fault.code, fault.message.as_ref()), (code, "broken password=[REDACTED]"));
        assert_eq!(fault.details.unwrap()["workerCode"], "E7");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_lapses_gives_the_task_to_another_and_the_first_is_refused() {
    let world = World::new();
    let (calling, _) = begin(&world, json!({"leaseMs": 1000}), Value::Null);
    let first = take(&world).await;
    assert_eq!(first.lease_ms, 1000);
    let began = tokio::time::Instant::now();
    let second = take(&world).await;
    assert_eq!(began.elapsed().as_millis(), 1000, "as soon as the lease has lapsed");
    assert_eq!(second.id, first.id);
    assert_ne!(second.lease_token, first.lease_token);
    for refused in [
        world.workers.complete(&held(first.id, &first.lease_token), json!(1), Usage::default()).unwrap_err(),
        world.workers.fail(&held(first.id, &first.lease_token), Failure::default()).unwrap_err(),
        world.workers.heartbeat(&held(first.id, &first.lease_token)).unwrap_err(),
        world.workers.complete(&held(first.id, ""), json!(1), Usage::default()).unwrap_err(),
    ] {
        assert_eq!(
            (refused.code, refused.details.unwrap()["reason"].as_str()),
            (Code::NotFound, Some("lease_lost"))
        );
    }
    world.workers.complete(&held(second.id, &second.lease_token), json!(2), Usage::default()).unwrap();
    assert_eq!(calling.await.unwrap().unwrap().output, json!(2));
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_keeps_the_lease_and_tells_the_engine() {
    let world = World::new();
    let mut call = world.call(QUEUE, Value::Null);
    call.config = json!({"leaseMs": 1000});
    let heartbeat = call.heartbeat.clone();
    let calling = tokio::spawn(world.agent(QUEUE).call(call));
    let task = take(&world).await;
    heartbeat.beaten().await;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert!(!world.workers.heartbeat(&held(task.id, &task.lease_token)).unwrap());
        heartbeat.beaten().await;
    }
    assert!(world.workers.poll(jobs(), "other", NOW, 1).await.unwrap().is_empty());
    world.workers.complete(&held(task.id, &task.lease_token), json!(1), Usage::default()).unwrap();
    assert!(calling.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_cancelled_step_leaves_the_queue_and_its_worker_learns_of_it() {
    let world = World::new();
    let (calling, cancel) = begin(&world, Value::Null, Value::Null);
    let task = take(&world).await;
    cancel.cancel();
    let result =
        tokio::time::timeout(Duration::from_millis(100), calling).await.expect("within 100 ms").unwrap();
    assert_eq!(result.unwrap_err().code, Code::Cancelled);
    assert!(world.workers.heartbeat(&held(task.id, &task.lease_token)).unwrap(), "cancelled");
    assert!(world.workers.heartbeat(&held(task.id, "guess")).is_err(), "only the worker that had it may ask");
    assert!(world.workers.complete(&held(task.id, &task.lease_token), json!(1), Usage::default()).is_err());
    // One that nobody has taken yet is gone as well, and so is one whose caller went away without a word.
    let (calling, cancel) = begin(&world, Value::Null, Value::Null);
    let (dropped, _) = begin(&world, Value::Null, Value::Null);
    while world.workers.depth() != (2, 0) {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    dropped.abort();
    assert!(calling.await.unwrap().is_err() && dropped.await.is_err());
    assert_eq!(world.workers.depth(), (0, 0));
    assert!(world.workers.poll(jobs(), "w", NOW, 1).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn polls_are_bounded_and_wait_no_longer_than_they_say() {
    let world = World::new();
    let began = tokio::time::Instant::now();
    assert!(world.workers.poll(jobs(), "w", Duration::from_millis(70), 5).await.unwrap().is_empty());
    assert_eq!(began.elapsed().as_millis(), 70);
    for (queue, worker, limit) in
        [("a b", "w", 1), ("", "w", 1), ("q", "", 1), ("q", "w", 0), ("q", "w", 101)]
    {
        let fault = world
            .workers
            .poll(QueueKey { name: queue.into(), ..jobs() }, worker, NOW, limit)
            .await
            .err()
            .unwrap();
        assert_eq!(fault.code, Code::InvalidArgument);
    }
    let mut call = world.call(QUEUE, Value::Null);
    call.config = json!({"leaseMs": 1});
    assert_eq!(world.agent(QUEUE).call(call).await.unwrap_err().code, Code::InvalidArgument);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// 64 workers at one queue: every task is handed out once, whatever they ask for at a time.
    #[test]
    fn each_task_is_handed_out_once(count in 1_usize..150, limits in prop::collection::vec(1_usize..8, 64)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (ran, answered) = runtime.block_on(hand_out_all(count, &limits));
        prop_assert_eq!(ran.len(), count);
        prop_assert_eq!(ran.iter().collect::<HashSet<_>>().len(), count);
        prop_assert_eq!(answered, (0..count).collect::<HashSet<_>>());
    }
}

/// The numbers of the tasks in the order they were handed out, and the answers the steps got.
async fn hand_out_all(count: usize, limits: &[usize]) -> (Vec<usize>, HashSet<usize>) {
    let world = Arc::new(World::new());
    let over = CancellationToken::new();
    let workers: Vec<JoinHandle<Vec<usize>>> =
        limits.iter().map(|limit| tokio::spawn(labour(world.clone(), *limit, over.clone()))).collect();
    let calls: Vec<Calling> = (0..count).map(|number| begin(&world, Value::Null, json!(number)).0).collect();
    let mut answered = HashSet::new();
    for call in calls {
        answered.insert(usize::try_from(call.await.unwrap().unwrap().output.as_u64().unwrap()).unwrap());
    }
    over.cancel();
    let mut ran = Vec::new();
    for worker in workers {
        ran.extend(worker.await.unwrap());
    }
    (ran, answered)
}

/// Polls and completes until it is over.
async fn labour(world: Arc<World>, limit: usize, over: CancellationToken) -> Vec<usize> {
    let mut done = Vec::new();
    loop {
        let tasks = tokio::select! {
            biased;
            tasks = world.workers.poll(jobs(), "w", Duration::from_secs(60), limit) => tasks.unwrap(),
            () = over.cancelled() => return done,
        };
        for task in tasks {
            done.push(usize::try_from(task.call.input.as_u64().unwrap()).unwrap());
            let output = task.call.input.clone();
            world.workers.complete(&held(task.id, &task.lease_token), output, Usage::default()).unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_another_tenant_is_another_queue() {
    let world = World::new();
    let (running, _) = begin(&world, json!({}), json!({"card": "4711"}));
    let rival = Tenant::parse("rival").unwrap();
    let theirs = QueueKey { tenant: rival.clone(), ..jobs() };
    assert!(world.workers.poll(theirs, "w", NOW, 10).await.unwrap().is_empty());
    let task = take(&world).await;
    let stolen = HeldTask { tenant: &rival, id: task.id, token: &task.lease_token };
    assert_eq!(world.workers.complete(&stolen, json!(1), Usage::default()).unwrap_err().code, Code::NotFound);
    assert_eq!(world.workers.heartbeat(&stolen).unwrap_err().code, Code::NotFound);
    world.workers.complete(&held(task.id, &task.lease_token), json!(2), Usage::default()).unwrap();
    assert_eq!(running.await.unwrap().unwrap().output, json!(2));
}
