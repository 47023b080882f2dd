//! The hub over the real store: one flush for many, nothing kept after a failure, agents inside the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use orchestr8_contract::id::{AgentId, RequestId};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement};
use orchestr8_kernel::{Cancel, Kernel, Principal, Submission};
use orchestr8_testing::{Holding, Parts, memory, submission, within};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::aacp::audit::Actor;
use crate::aacp::desk::Wish;
use crate::aacp::ledger::Backoff;
use crate::aacp::record::Address;
use crate::aacp::registry::{Condition, Registered, Registration};
use crate::aacp::{Answer, Envelope, Hub, Settings, Status};
use crate::actions::of_messages;
use crate::{Agent, Coordinator, Echo, Message, Surroundings, tables};

/// Counts commits, and lets those fail or break that it is told to.
struct Counting {
    store: Arc<dyn Store>,
    commits: AtomicUsize,
    failing: Mutex<usize>,
    breaking: AtomicBool,
}

impl Store for Counting {
    fn commit(&self, batch: Batch) -> BoxFuture<'static, Result<(), Error>> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        assert!(!self.breaking.swap(false, Ordering::SeqCst), "as wished");
        let mut failing = self.failing.lock();
        if *failing > 0 {
            *failing -= 1;
            return async { Err(Error::Full("as wished".into())) }.boxed();
        }
        self.store.commit(batch)
    }

    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        self.store.query(statement)
    }

    fn watch(&self, topic: &str) -> watch::Receiver<u64> {
        self.store.watch(topic)
    }
}

struct World {
    kernel: Kernel,
    hub: Hub,
    store: Arc<Counting>,
    coordinator: Coordinator,
}

fn world() -> World {
    world_on(Arc::new(memory(&[tables::MIGRATIONS])))
}

fn world_on(store: Arc<dyn Store>) -> World {
    let store = Arc::new(Counting {
        store,
        commits: AtomicUsize::new(0),
        failing: Mutex::new(0),
        breaking: AtomicBool::new(false),
    });
    let kernel = Parts::on(store.clone()).kernel();
    let ports = kernel.ports();
    let coordinator = Coordinator::new(kernel.bus().clone(), ports.clock.clone(), ports.log.clone());
    coordinator.register(AgentId::parse(Echo::ID).unwrap(), Arc::new(Echo)).unwrap();
    let hub = Hub::new(kernel.clone(), coordinator.clone(), Settings::default());
    World { kernel, hub, store, coordinator }
}

fn request(id: &str, source: &str, target: &str) -> Envelope {
    let envelope = json!({
        "messageId": format!("m-{id}"), "requestId": id, "sourceAgentId": source, "targetAgentId": target,
        "messageType": "REQUEST", "payload": {"type": "t", "payload": id}
    });
    let Value::Object(map) = envelope else { unreachable!() };
    Envelope::read(map).unwrap()
}

async fn outcome(hub: &Hub, id: &str) -> (Status, Option<Answer>) {
    let (local, id) = (Principal::local(), RequestId::parse(id).unwrap());
    let entry = within(hub.wait(&local.tenant, &id, 60_000, &Cancel::new())).await.unwrap().unwrap();
    (entry.status, entry.answer)
}

#[tokio::test]
async fn however_many_send_at_once_they_share_flushes() {
    let world = world();
    let local = Principal::local();
    world.hub.ready().await.unwrap();
    let sends =
        (0..200).map(|n| world.hub.send(&local, Actor::server(), request(&format!("r{n}"), "ann", "echo")));
    let sent = join_all(sends).await;
    let mut seqs: Vec<u64> = sent.into_iter().map(|sent| sent.unwrap().seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=200).collect::<Vec<u64>>());
    for n in 0..200 {
        assert_eq!(outcome(&world.hub, &format!("r{n}")).await.0, Status::Completed);
    }
    let commits = world.store.commits.load(Ordering::SeqCst);
    assert!(commits <= 400, "{commits} flushes for 200 messages and 200 answers");
    // What came at once was read from the store in part; once that is over, what comes is handed over.
    world.hub.send(&local, Actor::server(), request("calm", "ann", "echo")).await.unwrap();
    assert_eq!(outcome(&world.hub, "calm").await.0, Status::Completed);
    let alone = world.store.commits.load(Ordering::SeqCst);
    world.hub.send(&local, Actor::server(), request("alone", "ann", "echo")).await.unwrap();
    assert_eq!(outcome(&world.hub, "alone").await.0, Status::Completed);
    assert_eq!(
        world.store.commits.load(Ordering::SeqCst) - alone,
        2,
        "one for the request, one for its answer"
    );
}

#[tokio::test]
async fn what_could_not_be_written_did_not_happen_and_can_be_sent_again() {
    let world = world();
    let local = Principal::local();
    *world.store.failing.lock() = 1;
    let refused = world.hub.send(&local, Actor::server(), request("r1", "ann", "echo")).await.unwrap_err();
    assert_eq!(refused.code, Code::StoreFailed);
    let sent = world.hub.send(&local, Actor::server(), request("r1", "ann", "echo")).await.unwrap();
    assert_eq!((sent.seq, sent.duplicate), (1, false), "no number was lost");
    assert_eq!(outcome(&world.hub, "r1").await.0, Status::Completed);
    let again = world.hub.send(&local, Actor::server(), request("r1", "ann", "echo")).await.unwrap();
    assert!(again.duplicate);
}

/// Counts what it works on; the first so many times it is not able to.
struct Moody {
    worked: AtomicUsize,
    failures: usize,
    fault: Fault,
}

impl Agent for Moody {
    fn receive<'a>(&'a self, message: Message, _: Surroundings<'a>) -> BoxFuture<'a, Result<Value, Fault>> {
        let worked = self.worked.fetch_add(1, Ordering::SeqCst);
        let answer = if worked < self.failures { Err(self.fault.clone()) } else { Ok(message.payload) };
        async move { answer }.boxed()
    }
}

fn moody(world: &World, failures: usize, fault: Fault) -> Arc<Moody> {
    let agent = Arc::new(Moody { worked: AtomicUsize::new(0), failures, fault });
    world.coordinator.register(AgentId::parse("moody").unwrap(), agent.clone()).unwrap();
    agent
}

#[tokio::test]
async fn aacp_6_sixty_four_repeats_at_once_are_worked_on_once() {
    let world = world();
    let agent = moody(&world, 0, Fault::internal("never"));
    let local = Principal::local();
    let send = |n: usize| {
        let mut envelope = request("r1", "ann", "moody");
        envelope.message = None;
        let (hub, local) = (world.hub.clone(), &local);
        async move { hub.send(local, Actor::server(), envelope).await.map(|sent| (n, sent.seq)) }
    };
    let mut seqs: Vec<u64> =
        join_all((0..64).map(send)).await.into_iter().map(|sent| sent.unwrap().1).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=64).collect::<Vec<u64>>(), "each is a message of its own");
    assert_eq!(outcome(&world.hub, "r1").await.0, Status::Completed);
    assert_eq!(agent.worked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn aacp_retry_a_passing_failure_is_tried_again_and_another_is_told() {
    let world = world();
    let agent = moody(&world, 1, Fault::new(Code::Unavailable, "not now"));
    let local = Principal::local();
    let stop = Cancel::new();
    tokio::spawn({
        let (hub, stop) = (world.hub.clone(), stop.clone());
        async move { hub.run(stop).await }
    });
    world.hub.send(&local, Actor::server(), request("r1", "ann", "moody")).await.unwrap();
    let (status, answer) = outcome(&world.hub, "r1").await;
    assert_eq!((status, answer), (Status::Completed, Some(Answer::Payload(Arc::new(json!("r1"))))));
    assert_eq!(agent.worked.load(Ordering::SeqCst), 2);
    stop.fire(orchestr8_kernel::Why::Client);
}

#[tokio::test]
async fn a_lasting_failure_is_an_outcome() {
    let world = world();
    let agent = moody(&world, 9, Fault::invalid("nonsense"));
    let local = Principal::local();
    world.hub.send(&local, Actor::server(), request("r1", "ann", "moody")).await.unwrap();
    let (status, answer) = outcome(&world.hub, "r1").await;
    assert_eq!(status, Status::Failed);
    assert!(matches!(answer, Some(Answer::Error(fault)) if fault.code == Code::InvalidArgument));
    assert_eq!(agent.worked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_waits_in_the_tail_is_found_by_whoever_looks_and_by_the_next_process() {
    let world = world();
    let local = Principal::local();
    world.hub.send(&local, Actor::server(), request("r1", "ann", "echo")).await.unwrap();
    assert_eq!(outcome(&world.hub, "r1").await.0, Status::Completed);
    let tail = || world.store.query(tables::tail_after(0, 10));
    assert!(
        !tail().await.unwrap().is_empty(),
        "the answer at least: the first run has looked for what came before"
    );
    // The next process: its memory is empty, its store is the same.
    let kernel = Parts::on(world.store.clone()).kernel();
    let coordinator = world.coordinator.clone();
    let next = Hub::new(kernel, coordinator, Settings::default());
    let id = RequestId::parse("r1").unwrap();
    assert_eq!(next.request(&local.tenant, &id).await.unwrap().unwrap().status, Status::Completed);
    assert_eq!(tail().await.unwrap().len(), 0, "it has filed what it found");
    let again = next.send(&local, Actor::server(), request("r1", "ann", "echo")).await.unwrap();
    assert!(again.duplicate, "an id is known, wherever it is kept");
    let found = next.query(tables::message_find(local.tenant.as_str(), "m-r1", 0)).await.unwrap();
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn what_is_large_is_filed_at_once() {
    let world = world();
    let mut envelope = request("r1", "ann", "echo");
    envelope.payload = json!({"type": "t", "payload": "x".repeat(crate::limits::TAIL_GROUP_BYTES)});
    world.hub.send(&Principal::local(), Actor::server(), envelope).await.unwrap();
    assert!(world.store.query(tables::tail_after(0, 10)).await.unwrap().is_empty());
    assert_eq!(outcome(&world.hub, "r1").await.0, Status::Completed);
}

/// The audit records, filed: what was done with which message, and by whom.
async fn audited(world: &World) -> Vec<(String, String, String)> {
    world.hub.filed().await.unwrap();
    let sql = "SELECT json_extract(r.value, '$.action'), json_extract(r.value, '$.object'), json_extract(r.value, '$.principal')
        FROM chain c JOIN json_each(c.body, '$.records') r ORDER BY c.seq, r.key";
    let rows = world.store.query(Statement::new(sql, vec![])).await.unwrap();
    let text = |row: &Row, at: usize| row.text(at).unwrap().to_owned();
    rows.iter().map(|row| (text(row, 0), text(row, 1), text(row, 2))).collect()
}

#[tokio::test]
async fn a_message_alone_costs_one_row_and_its_audit_record_none() {
    let world = world();
    world.hub.send(&Principal::local(), Actor::server(), request("warm", "ann", "echo")).await.unwrap();
    outcome(&world.hub, "warm").await;
    world.hub.filed().await.unwrap();
    let chain = || world.store.query(Statement::new("SELECT seq FROM chain", vec![]));
    let before = chain().await.unwrap().len();
    let by = Actor { principal: "ann".into(), ..Actor::server() };
    world.hub.send(&Principal::local(), by, request("r1", "ann", "echo")).await.unwrap();
    assert_eq!(outcome(&world.hub, "r1").await.0, Status::Completed);
    assert_eq!(chain().await.unwrap().len(), before, "it waits in the tail");
    let records = audited(&world).await;
    let of_it: Vec<_> = records.iter().filter(|(_, _, by)| by == "ann").collect();
    assert_eq!(of_it, [&("aacp.send".to_owned(), "m-r1".to_owned(), "ann".to_owned())]);
    assert_eq!(chain().await.unwrap().len(), before + 1, "one entry for all of it");
}

#[tokio::test]
async fn what_expires_is_on_record() {
    let world = world();
    world.hub.send(&Principal::local(), Actor::server(), request("r1", "ann", "echo")).await.unwrap();
    outcome(&world.hub, "r1").await;
    assert!(world.hub.purge_expired(i64::MAX, None).await.unwrap() > 0);
    let expired: Vec<_> =
        audited(&world).await.into_iter().filter(|(action, _, _)| action == "aacp.expire").collect();
    assert_eq!(expired.len(), 1, "one record for all messages of a tenant");
    assert_eq!((expired[0].1.as_str(), expired[0].2.as_str()), ("m-r1", "server"));
}

#[tokio::test]
async fn a_panic_at_the_post_is_told_and_the_next_message_goes_through() {
    let world = world();
    let local = Principal::local();
    world.hub.send(&local, Actor::server(), request("r1", "ann", "echo")).await.unwrap();
    assert_eq!(outcome(&world.hub, "r1").await.0, Status::Completed);
    world.store.breaking.store(true, Ordering::SeqCst);
    let refused =
        within(world.hub.send(&local, Actor::server(), request("r2", "ann", "echo"))).await.unwrap_err();
    assert_eq!(refused.code, Code::Internal);
    let sent = within(world.hub.send(&local, Actor::server(), request("r2", "ann", "echo"))).await.unwrap();
    assert_eq!((sent.seq, sent.duplicate), (2, false), "nothing of it was left behind");
    assert_eq!(outcome(&world.hub, "r2").await.0, Status::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_while_the_post_is_worked_is_answered_by_whoever_works_it() {
    let world = world();
    let hub = &world.hub;
    let mut senders = Vec::new();
    for sender in 0..8 {
        let hub = hub.clone();
        senders.push(tokio::spawn(async move {
            let (local, name) = (Principal::local(), format!("sender-{sender}"));
            for n in 1..=50 {
                let sent = hub
                    .send(&local, Actor::server(), request(&format!("{name}-{n}"), &name, "echo"))
                    .await
                    .unwrap();
                assert_eq!(sent.seq, n, "each sender's messages are numbered in its order");
            }
        }));
    }
    for sender in senders {
        within(sender).await.unwrap();
    }
    for sender in 0..8 {
        assert_eq!(outcome(hub, &format!("sender-{sender}-50")).await.0, Status::Completed);
    }
}

/// AACP-5: the number up to which everything is there never passes a gap, however long the gap stays.
#[tokio::test]
async fn what_waits_behind_a_gap_keeps_its_turn_when_its_time_is_over() {
    let store: Arc<dyn Store> = Arc::new(memory(&[tables::MIGRATIONS]));
    let kernel = Parts::on(store).kernel();
    let ports = kernel.ports();
    let coordinator = Coordinator::new(kernel.bus().clone(), ports.clock.clone(), ports.log.clone());
    let policy = Arc::new(Backoff { max_attempts: 4, base_delay_ms: 1, max_delay_ms: 1 });
    let hub = Hub::new(kernel, coordinator, Settings { timeout_ms: 1, policy, ..Settings::default() });
    hub.ready().await.unwrap();
    let local = Principal::local();
    let bob = Address { tenant: local.tenant.clone(), agent: AgentId::parse("bob").unwrap() };
    hub.agents().keep(
        bob.clone(),
        Registered {
            owner: "local".into(),
            registration: Registration::default(),
            condition: Condition::Idle,
            registered_ms: 0,
            seen_ms: None,
        },
    );
    let mut second = request("r2", "ann", "bob");
    second.seq = Some(2);
    assert!(hub.send(&local, Actor::server(), second).await.unwrap().held);
    let id = RequestId::parse("r2").unwrap();
    let unknown = async {
        while hub.request(&local.tenant, &id).await.unwrap().unwrap().status != Status::Unknown {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let due = Wish::Due { tenant: local.tenant.clone(), request: id.clone() };
            hub.wish(due).await.unwrap();
        }
    };
    within(unknown).await;
    assert_eq!(hub.request(&local.tenant, &id).await.unwrap().unwrap().attempts, 0, "it was not handed over");
    assert_eq!(hub.bounds(&bob).await.unwrap().0, 0, "nothing was handed out of its turn");
    let mut first = request("r1", "ann", "bob");
    first.seq = Some(1);
    assert_eq!(hub.send(&local, Actor::server(), first).await.unwrap().ack, 2);
    let inbox = hub.query(tables::inbox_after(&bob, 0, 0, 10)).await.unwrap();
    let seqs: Vec<i64> = inbox.iter().map(|row| row.int(2).unwrap()).collect();
    assert_eq!(seqs, [1, 2]);
}

#[tokio::test]
async fn of_two_who_register_a_name_at_once_one_has_it() {
    let holding = Holding::on(Arc::new(memory(&[tables::MIGRATIONS])));
    let world = world_on(holding.clone());
    let kernel = &world.kernel;
    for action in of_messages(&world.hub).unwrap() {
        kernel.registry().register(action).unwrap();
    }
    world.hub.ready().await.unwrap();
    let by = |name: &str| {
        let principal = Principal {
            name: name.into(),
            roles: orchestr8_contract::RoleSet::named(["agent"]),
            ..Principal::local()
        };
        let wish = submission("agents.register", json!({"agentId": "ann"}));
        kernel.submit(Submission { principal: Arc::new(principal), ..wish })
    };
    let written = holding.after("INSERT INTO aacp_agent");
    let second = async {
        written.reached().await;
        let second = by("two").await;
        written.release();
        second
    };
    let (first, second) = tokio::join!(by("one"), second);
    assert_eq!((first.code(), second.code()), (None, Some(Code::VersionMismatch)));
    assert_eq!(by("two").await.code(), Some(Code::Unauthorized));
    assert_eq!(by("one").await.code(), None);
}
