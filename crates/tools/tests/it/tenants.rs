//! Each tenant has an instance of its own of each server.

use std::collections::BTreeMap;
use std::path::Path;

use orchestr8_contract::Code;
use orchestr8_kernel::Why;
use orchestr8_kernel::ports::store::Statement;
use orchestr8_testing::settled::{fault, text};
use orchestr8_testing::{until, within};
use orchestr8_tools::remote::{InstanceLimits, Link, Phase, Server};
use serde_json::json;

use crate::world::{TOOLS, World, fixture, is_alive, store};

async fn count(world: &World, tenant: &str) -> String {
    text(world.call_as(tenant, "other.count", json!({})).await)
}

fn scripted(script: &str, mark: &Path) -> Server {
    let args = ["-c", script, "sh", mark.to_str().unwrap(), env!("CARGO_BIN_EXE_mcp-fixture")];
    let args = args.map(str::to_owned).to_vec();
    Server::new("other", Link::Stdio { command: "/bin/sh".into(), args, env: BTreeMap::new(), cwd: None })
}

#[tokio::test]
async fn tenants_share_no_process() {
    let world = World::with(fixture(&[])).await;
    assert_eq!(world.seen_of("other", "acme"), None, "it is started when it is wanted");
    assert_eq!(count(&world, "acme").await, "1");
    assert_eq!(count(&world, "acme").await, "2");
    for tenant in ["rival", "local"] {
        assert_eq!(count(&world, tenant).await, "1", "{tenant}");
    }
    let pids = ["acme", "rival", "local"].map(|tenant| world.seen_of("other", tenant).unwrap().pid.unwrap());
    assert!(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2], "{pids:?}");
    world.call_as("rival", "other.die", json!({})).await;
    until("the death to be seen", || world.seen_of("other", "rival").unwrap().pid != Some(pids[1])).await;
    assert_eq!(count(&world, "acme").await, "3", "what one tenant breaks is whole for the others");
    within(world.remote.stop()).await;
    until("all to be gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_shared_server_has_one_instance_for_all() {
    let mut server = fixture(&[]);
    server.shared = true;
    let world = World::with(server).await;
    for (tenant, counted) in [("acme", "1"), ("rival", "2"), ("local", "3")] {
        assert_eq!(count(&world, tenant).await, counted);
    }
    assert_eq!(world.remote.seen().len(), 1);
    within(world.remote.stop()).await;
}

#[tokio::test]
async fn an_unused_instance_is_stopped_and_started_by_the_next_call() {
    let mut server = fixture(&[]);
    server.idle_timeout_ms = Some(50);
    let world = World::with(server).await;
    assert_eq!(count(&world, "acme").await, "1");
    let pid = world.seen_of("other", "acme").unwrap().pid.unwrap();
    until("it to be idle", || world.seen_of("other", "acme").unwrap().phase == Phase::Idle).await;
    until("its process to be gone", || !is_alive(pid)).await;
    assert_eq!(world.listed().len(), TOOLS, "its tools stay listed");
    assert_eq!(count(&world, "acme").await, "1", "another process");
    world.remote.stop().await;
}

#[tokio::test]
async fn an_instance_with_a_call_to_do_is_not_stopped() {
    let mut server = fixture(&[]);
    server.idle_timeout_ms = Some(20);
    let world = World::with(server).await;
    let submission = world.submission_as("acme", "other.hang", json!({}));
    let (cancel, kernel) = (submission.cancel.clone(), world.kernel.clone());
    let call = tokio::spawn(async move { kernel.submit(submission).await });
    until("the other instance to be idle", || world.seen_of("other", "local").unwrap().phase == Phase::Idle)
        .await;
    until("the call to run", || {
        world.seen_of("other", "acme").is_some_and(|seen| seen.phase == Phase::Running)
    })
    .await;
    assert_eq!(count(&world, "local").await, "1");
    until("it to be idle again", || world.seen_of("other", "local").unwrap().phase == Phase::Idle).await;
    assert_eq!(world.seen_of("other", "acme").unwrap().phase, Phase::Running);
    cancel.fire(Why::Client);
    within(call).await.unwrap();
    world.remote.stop().await;
}

#[tokio::test]
async fn at_the_limit_an_unused_instance_makes_room_and_a_busy_one_does_not() {
    let mut second = fixture(&[]);
    second.name = "second".into();
    let limits = InstanceLimits { total: 2, per_tenant: 1 };
    let world = World::starting(store(), vec![fixture(&[]), second], |settings| {
        settings.instances = limits;
    })
    .await;
    within(world.remote.started()).await;
    assert_eq!(count(&world, "acme").await, "1");
    assert_eq!(text(world.call_as("acme", "second.count", json!({})).await), "1");
    until("the first to be stopped", || world.seen_of("other", "acme").unwrap().phase == Phase::Idle).await;
    let submission = world.submission_as("acme", "second.hang", json!({}));
    let (cancel, kernel) = (submission.cancel.clone(), world.kernel.clone());
    let call = tokio::spawn(async move { kernel.submit(submission).await });
    until("the call to run", || world.kernel.running() == 1).await;
    let refused = fault(world.call_as("acme", "other.count", json!({})).await);
    assert_eq!(refused.code, Code::ResourceExhausted);
    let details = refused.details.unwrap();
    assert_eq!(
        (&details["reason"], &details["maxInstances"]),
        (&json!("instance_limit_exceeded"), &json!(1))
    );
    assert_eq!(count(&world, "rival").await, "1", "another tenant has its own limit");
    assert_eq!(count(&world, "third").await, "1", "the unused one of another tenant makes room");
    until("it to be stopped", || world.seen_of("other", "rival").unwrap().phase == Phase::Idle).await;
    cancel.fire(Why::Client);
    within(call).await.unwrap();
    world.remote.stop().await;
}

#[tokio::test]
async fn accepted_tools_are_offered_before_their_server_has_started() {
    let (store, folder) = (store(), tempfile::tempdir().unwrap());
    World::on(store.clone(), vec![fixture(&[])]).await.remote.stop().await;
    // It starts when the mark is there.
    let mark = folder.path().join("mark");
    let slow = scripted(r#"while ! test -e "$1"; do sleep 0.02; done; exec "$2""#, &mark);
    let world = World::starting(store, vec![slow], |_| ()).await;
    assert_eq!((world.listed().len(), world.seen().phase), (TOOLS, Phase::Starting));
    let submission = world.submission("other.count", json!({}));
    let kernel = world.kernel.clone();
    let call = tokio::spawn(async move { kernel.submit(submission).await });
    until("the call to run", || world.kernel.running() == 1).await;
    std::fs::write(&mark, "").unwrap();
    assert_eq!(text(within(call).await.unwrap()), "1", "a call waits for the start");
    world.remote.stop().await;
}

#[tokio::test]
async fn tools_that_a_server_no_longer_lists_are_not_offered_at_the_next_start() {
    let store = store();
    World::on(store.clone(), vec![fixture(&["--tasks"])]).await.remote.stop().await;
    let world = World::on(store.clone(), vec![fixture(&[])]).await;
    assert_eq!(world.listed().len(), TOOLS);
    world.remote.stop().await;
    let world = World::starting(store, vec![fixture(&["--mute"])], |_| ()).await;
    assert_eq!(world.listed().len(), TOOLS);
    world.remote.stop().await;
}

#[tokio::test]
async fn a_tenant_whose_instance_tells_another_definition_is_refused_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let world =
        World::with(scripted(r#"test -e "$1" && exec "$2" --second --tasks; exec "$2""#, &mark)).await;
    std::fs::write(&mark, "").unwrap();
    let echo = json!({"message": "a"});
    let refused = fault(world.call_as("acme", "other.echo", echo.clone()).await);
    assert_eq!(refused.code, Code::Quarantined);
    assert_eq!(count(&world, "acme").await, "1", "its other tools work");
    let seen = world.seen_of("other", "acme").unwrap();
    assert_eq!(seen.quarantined, ["echo"]);
    assert!(seen.refused.iter().any(|(_, why)| why.contains("not among the accepted tools")), "{seen:?}");
    assert_eq!(world.listed().len(), TOOLS, "new tools of one tenant's instance are offered to none");
    assert_eq!(text(world.call("other.echo", echo).await), "a", "other tenants go on");
    let chain = "SELECT body FROM chain WHERE json_extract(body, '$.action') = 'tools.quarantine'";
    let entries = world.kernel.ports().store.query(Statement::new(chain, vec![])).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert!(entries[0].text(0).unwrap().contains("acme"), "{:?}", entries[0].text(0));
    world.remote.stop().await;
}
