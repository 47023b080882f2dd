//! Tools of another server that run as tasks there, in either revision.

use std::sync::Arc;

use orchestr8_contract::{Code, Output};
use orchestr8_kernel::action::Tasking;
use orchestr8_kernel::peer::About;
use orchestr8_kernel::{Halt, Settled, Why};
use orchestr8_testing::settled::{fault, text};
use orchestr8_testing::{Person, until, within};
use serde_json::{Value, json};

use crate::world::{World, fixture};

const ERAS: [&[&str]; 2] = [&["--tasks"], &["--tasks", "--modern"]];

async fn call(world: &World, person: Person, tool: &str, args: Value) -> (Arc<Person>, Settled) {
    let person = Arc::new(person);
    let mut submission = world.submission(tool, args);
    submission.peer = Some(person.clone());
    (person, within(world.kernel.submit(submission)).await)
}

/// The tasks that the server was told to stop.
async fn stopped(world: &World) -> Value {
    serde_json::from_str(&text(world.call("other.stopped", json!({})).await)).unwrap()
}

async fn until_stopped(world: &World, tasks: Value) {
    within(async { while stopped(world).await != tasks {} }).await;
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}

fn asked(person: Person) -> Person {
    Person { can: vec![About::Elicit], ..person }
}

fn always() -> Person {
    asked(Person { answers: orchestr8_testing::Answers::Always(accepted()), ..Person::default() })
}

#[tokio::test]
async fn a_tool_that_must_be_a_task_can_be_called_like_any_other() {
    for flags in ERAS {
        let world = World::with(fixture(flags)).await;
        for looks in [1, 3] {
            let done = text(world.call("other.steps_and_write", json!({"looks": looks})).await);
            assert_eq!(done, format!("done after {looks} looks"), "{flags:?}");
        }
        let (person, settled) = call(&world, Person::default(), "other.steps", json!({"looks": 2})).await;
        let Ok(Output::Blocks { meta, .. }) = &settled.result else { panic!("blocks") };
        let meta: Vec<&String> = meta.iter().flat_map(|meta| meta.keys()).collect();
        assert!(!meta.iter().any(|key| key.contains("related-task")), "{meta:?}: a task nobody here knows");
        assert_eq!(text(settled), "done after 2 looks");
        let statuses =
            [json!({"status": "look 0"}), json!({"status": "look 1"}), json!({"status": "look 2"})];
        assert_eq!(*person.heard.lock(), statuses, "{flags:?}: where it stands is passed on");
        assert_eq!(stopped(&world).await, json!([]), "what has ended is not stopped");
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn a_tool_that_may_be_a_task_is_one_when_its_client_has_it_as_one() {
    let world = World::with(fixture(ERAS[0])).await;
    let table = world.kernel.registry().table();
    let tasking = |tool: &str| table.find(tool).unwrap().policy.tasking;
    assert_eq!(tasking("other.either"), Tasking::Optional);
    assert_eq!(tasking("other.steps"), Tasking::Optional, "through us it can be called in either way");
    assert_eq!(tasking("other.echo"), Tasking::Forbidden);
    let (_, plain) = call(&world, Person::default(), "other.either", json!({})).await;
    assert_eq!(text(plain), "not a task");
    let (_, task) =
        call(&world, Person { in_task: true, ..Person::default() }, "other.either", json!({})).await;
    assert_eq!(text(task), "done after 1 looks");
    world.remote.stop().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_stops_its_task() {
    for flags in ERAS {
        let mut server = fixture(flags);
        server.timeout_ms = Some(300);
        let world = World::with(server).await;
        let forever = json!({"looks": 1_000_000_000_u64});
        let submission = world.submission("other.steps_and_write", forever);
        let (kernel, cancel) = (world.kernel.clone(), submission.cancel.clone());
        let person = Arc::new(Person::default());
        let submission = orchestr8_kernel::Submission { peer: Some(person.clone()), ..submission };
        let running = tokio::spawn(async move { kernel.submit(submission).await });
        until("the task to be looked after", || !person.heard.lock().is_empty()).await;
        cancel.fire(Why::Client);
        assert_eq!(within(running).await.unwrap().code(), Some(Code::Cancelled));
        until_stopped(&world, json!(["task 1"])).await;
        // Its server wishes it to be looked at once a year.
        let rarely = json!({"looks": 1_000_000_000_u64, "poll": 31_536_000_000_u64});
        let late = world.call("other.steps_and_write", rarely).await.code();
        assert_eq!(late, Some(Code::Timeout), "{flags:?}: a task that never ends has the limit of its call");
        until_stopped(&world, json!(["task 1", "task 2"])).await;
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn what_goes_wrong_with_a_task_is_told() {
    for flags in ERAS {
        let world = World::with(fixture(flags)).await;
        for (tool, code, words) in [
            ("other.failing_task", Code::Unavailable, "it failed"),
            ("other.cancelled_task", Code::OutcomeUnknown, "by itself"),
            ("other.vanishing_task", Code::OutcomeUnknown, "it has vanished"),
            ("other.odd_task", Code::OutcomeUnknown, "status that is not known"),
        ] {
            let wrong = fault(world.call(tool, json!({})).await);
            assert_eq!(wrong.code, code, "{flags:?} {tool}");
            assert!(wrong.message.contains(words), "{flags:?} {tool}: {}", wrong.message);
        }
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn questions_of_tasks_reach_the_client_of_their_call() {
    for flags in ERAS {
        let world = World::with(fixture(flags)).await;
        // Two at once: a question of a task says whose it is, even over pipes.
        let (one, other) = tokio::join!(
            call(&world, always(), "other.asking_task", json!({"message": "One?"})),
            call(&world, always(), "other.asking_task_and_write", json!({"message": "Other?"})),
        );
        for ((person, settled), message) in [(one, "other: One?"), (other, "other: Other?")] {
            assert_eq!(serde_json::from_str::<Value>(&text(settled)).unwrap(), accepted(), "{flags:?}");
            let asked = person.asked.lock();
            assert_eq!((asked.len(), &asked[0].params["message"]), (1, &json!(message)), "{flags:?}");
        }
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn a_client_that_answers_a_task_by_calling_again_does_so_where_a_repeat_is_harmless() {
    for flags in ERAS {
        let world = World::with(fixture(flags)).await;
        let (_, settled) = call(&world, asked(Person::default()), "other.asking_task", json!({})).await;
        let Err(Halt::Asks(asks)) = settled.result else { panic!("questions, not {:?}", settled.result) };
        let answers = serde_json::Map::from_iter([(asks[0].key.clone(), accepted())]);
        let knows = Person { answers: orchestr8_testing::Answers::ByKey(answers), ..Person::default() };
        let (_, settled) = call(&world, asked(knows), "other.asking_task", json!({})).await;
        assert_eq!(serde_json::from_str::<Value>(&text(settled)).unwrap(), accepted(), "{flags:?}");
        world.remote.stop().await;
    }
    let world = World::with(fixture(ERAS[1])).await;
    let (_, settled) = call(&world, asked(Person::default()), "other.asking_task_and_write", json!({})).await;
    assert_eq!(fault(settled).code, Code::CapabilityMissing, "it may not be repeated");
    let (_, settled) = call(&world, Person::default(), "other.asking_task_and_write", json!({})).await;
    assert_eq!(fault(settled).code, Code::CapabilityMissing, "nobody can be asked");
    until_stopped(&world, json!(["task 1", "task 2"])).await;
    world.remote.stop().await;
}

#[tokio::test]
async fn without_a_server_that_has_tasks_tools_are_called_plainly() {
    // The same tools, of a server that does not say that it has tasks.
    let world = World::with(fixture(&["--tasks", "--no-tasks"])).await;
    let table = world.kernel.registry().table();
    assert_eq!(table.find("other.either").unwrap().policy.tasking, Tasking::Forbidden);
    assert_eq!(text(world.call("other.either", json!({})).await), "not a task");
    assert_eq!(world.call("other.steps", json!({})).await.code(), Some(Code::NotFound), "its own answer");
    world.remote.stop().await;
}
