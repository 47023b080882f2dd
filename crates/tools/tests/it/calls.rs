//! Calls of tools of another server.

use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Output};
use orchestr8_kernel::action::{Effect, OnUnknown};
use orchestr8_kernel::{Principal, Why};
use orchestr8_testing::settled::{fault, text};
use orchestr8_testing::{Person, until, within};
use orchestr8_tools::remote::{Link, Phase, limits};
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use crate::world::{TOOLS, World, fixture, is_alive};

#[tokio::test]
async fn tools_are_named_described_and_hinted() {
    let world = World::with(fixture(&[])).await;
    let names = world.listed();
    assert_eq!(names.len(), TOOLS, "all pages, without the one whose schema is broken: {names:?}");
    assert!(names.contains(&"other.weird_name_".to_owned()));
    assert_eq!(world.seen().refused[0].0, "bad_schema");
    let table = world.kernel.registry().table();
    let echo = table.find("other.echo").unwrap();
    assert_eq!((echo.about.title.as_deref(), echo.about.description.as_str()), (Some("Echo"), "Echoes."));
    assert_eq!(echo.about.meta["orchestr8/server"], "other");
    assert_eq!(
        (echo.policy.effect, echo.policy.open_world, echo.policy.audited),
        (Effect::Read, false, true)
    );
    assert_eq!(echo.policy.resilience.as_ref().unwrap().max_attempts, 3);
    let die = table.find("other.die").unwrap();
    assert_eq!((die.policy.effect, die.policy.destructive), (Effect::Outside(OnUnknown::Fail), true));
    assert_eq!(
        die.policy.resilience.as_ref().unwrap().max_attempts,
        1,
        "what may have happened is not tried again"
    );
    world.remote.stop().await;
}

#[tokio::test]
async fn malformed_tools_are_skipped_and_reported_and_the_others_work() {
    let world = World::with(fixture(&["--malformed"])).await;
    let seen = world.seen();
    assert_eq!((seen.phase, world.listed().len()), (Phase::Running, TOOLS + 1), "{:?}", seen.problem);
    let mut refused: Vec<&str> = seen.refused.iter().map(|(tool, _)| tool.as_str()).collect();
    refused.sort_unstable();
    assert_eq!(refused, ["bad_schema", "no_schema", "odd_hint"]);
    assert_eq!(text(world.call("other.echo", json!({"message": "a"})).await), "a");
    let sent = world.call("other.patterns", json!({"to": "ada@example.org", "odd": "anything"})).await;
    assert_eq!(text(sent), "called patterns");
    let wrong = world.call("other.patterns", json!({"to": ".ada@example.org"})).await.code();
    assert_eq!(wrong, Some(Code::InvalidArgument), "look-around is matched");
    world.remote.stop().await;
}

#[tokio::test]
async fn results_and_errors_come_through() {
    let world = World::with(fixture(&[])).await;
    let settled = world.call("other.echo", json!({"message": "hé"})).await;
    let Ok(Output::Blocks { blocks, structured, failed, .. }) = settled.result else { panic!("blocks") };
    assert_eq!(serde_json::to_value(blocks).unwrap(), json!([{"type": "text", "text": "hé"}]));
    assert_eq!((structured, failed), (Some(json!({"message": "hé"})), false));
    assert_eq!(
        world.call("other.echo", json!({})).await.code(),
        Some(Code::InvalidArgument),
        "its schema is ours too"
    );
    let settled = world.call("other.fail", json!({})).await;
    assert!(matches!(settled.result, Ok(Output::Blocks { failed: true, .. })));
    let broken = fault(world.call("other.broken", json!({})).await);
    assert_eq!((broken.code, &broken.details.unwrap()["remoteCode"]), (Code::Unavailable, &json!(-32_603)));
    assert_eq!(world.call("other.wrong", json!({})).await.code(), Some(Code::InvalidArgument));
    assert_eq!(text(world.call("other.weird_name_", json!({})).await), "called weird name!");
    world.remote.stop().await;
}

#[tokio::test]
async fn errors_of_one_tool_leave_the_other_tools_of_its_server_alone() {
    let world = World::with(fixture(&[])).await;
    for _ in 0..10 {
        assert_eq!(world.call("other.broken", json!({})).await.code(), Some(Code::Unavailable));
    }
    assert_eq!(text(world.call("other.echo", json!({"message": "a"})).await), "a");
    world.remote.stop().await;
}

#[tokio::test]
async fn tools_are_back_with_the_next_process_even_if_the_last_one_had_opened_the_breaker() {
    let mut server = fixture(&[]);
    server.timeout_ms = Some(500);
    let world = World::with(server).await;
    let calls = (0..5).map(|_| world.call("other.hang", json!({})));
    futures::future::join_all(calls).await;
    let refused = world.call("other.echo", json!({"message": "a"})).await.code();
    assert_eq!(refused, Some(Code::CircuitOpen));
    let pid = world.seen().pid.unwrap();
    std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    until("the next process to run", || {
        let seen = world.seen();
        seen.phase == Phase::Running && seen.pid != Some(pid)
    })
    .await;
    assert_eq!(text(world.call("other.echo", json!({"message": "a"})).await), "a");
    world.remote.stop().await;
}

#[tokio::test]
async fn progress_is_passed_on() {
    let world = World::with(fixture(&[])).await;
    let person = Arc::new(Person::default());
    let mut submission = world.submission("other.progress", json!({}));
    submission.peer = Some(person.clone());
    let (kernel, cancel) = (world.kernel.clone(), submission.cancel.clone());
    let call = tokio::spawn(async move { kernel.submit(submission).await });
    let progress = [1.0, 2.0].map(|done| json!({"progress": done, "total": 2.0}));
    until("the progress to be heard", || *person.heard.lock() == progress).await;
    cancel.fire(Why::Client);
    within(call).await.unwrap();
    world.remote.stop().await;
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_there_too() {
    let world = World::with(fixture(&[])).await;
    let submission = world.submission("other.hang", json!({}));
    let cancel = submission.cancel.clone();
    let kernel = world.kernel.clone();
    let call = tokio::spawn(async move { kernel.submit(submission).await });
    until("the call to run", || world.kernel.running() == 1).await;
    cancel.fire(Why::Client);
    assert_eq!(within(call).await.unwrap().code(), Some(Code::Cancelled));
    until("the slot to be free", || world.kernel.running() == 0).await;
    while text(world.call("other.cancelled", json!({})).await) == "[]" {
        tokio::task::yield_now().await;
    }
    world.remote.stop().await;
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_time_limit_and_opens_the_breaker() {
    let mut server = fixture(&[]);
    server.timeout_ms = Some(30);
    let world = World::with(server).await;
    let mut codes = Vec::new();
    for _ in 0..20 {
        codes.push(world.call("other.hang", json!({})).await.code().unwrap());
        if codes.last() == Some(&Code::CircuitOpen) {
            break;
        }
    }
    assert_eq!((codes.first(), codes.last()), (Some(&Code::Timeout), Some(&Code::CircuitOpen)), "{codes:?}");
    let other = fault(world.call("other.weird_name_", json!({})).await);
    assert_eq!(
        (other.code, &other.details.unwrap()["key"]),
        (Code::CircuitOpen, &json!("cb:mcp:other")),
        "the server has one breaker, not one for each tool"
    );
    until("the slots to be free", || world.kernel.running() == 0).await;
    world.remote.stop().await;
}

#[tokio::test]
async fn a_tenant_that_opens_the_breaker_does_not_stop_the_calls_of_another() {
    let mut server = fixture(&[]);
    server.timeout_ms = Some(30);
    let world = World::with(server).await;
    let call = |tenant: &str, tool: &str| {
        let mut submission = world.submission(tool, json!({}));
        let tenant = Tenant::parse(tenant).unwrap();
        submission.principal = Arc::new(Principal { tenant, ..Principal::clone(&submission.principal) });
        within(world.kernel.submit(submission))
    };
    let mut code = None;
    for _ in 0..20 {
        code = call("rival", "other.hang").await.code();
        if code == Some(Code::CircuitOpen) {
            break;
        }
    }
    assert_eq!(code, Some(Code::CircuitOpen));
    let refused = fault(call("rival", "other.weird_name_").await);
    assert_eq!(refused.details.unwrap()["key"], json!("cb:mcp:other:~rival/"));
    for tenant in ["acme", "local"] {
        assert_eq!(call(tenant, "other.weird_name_").await.code(), None, "{tenant}");
    }
    until("the slots to be free", || world.kernel.running() == 0).await;
    world.remote.stop().await;
}

#[tokio::test]
async fn credentials_of_a_server_do_not_come_back_from_it() {
    let mut server = fixture(&[]);
    if let Link::Stdio { env, .. } = &mut server.link {
        env.insert("SHOP_API_KEY".into(), "canary-of-the-operator".into());
    }
    let world = World::with(server).await;
    let shown = text(world.call("other.environment", json!({})).await);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["SHOP_API_KEY"], &shown["OWN"]), (&json!("[REDACTED]"), &json!("given")), "{shown}");
    world.remote.stop().await;
}

#[tokio::test]
async fn a_server_takes_so_many_calls_at_once() {
    let mut server = fixture(&[]);
    server.max_concurrent = 1;
    let world = World::with(server).await;
    let submission = world.submission("other.hang", json!({}));
    let cancel = submission.cancel.clone();
    let kernel = world.kernel.clone();
    let call = tokio::spawn(async move { kernel.submit(submission).await });
    until("the call to run", || world.kernel.running() == 1).await;
    let refused = fault(world.call("other.wrong", json!({})).await);
    assert_eq!(
        (refused.code, &refused.details.unwrap()["server"]),
        (Code::ResourceExhausted, &json!("other"))
    );
    cancel.fire(Why::Client);
    within(call).await.unwrap();
    world.remote.stop().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_leaves_its_outcome_unknown() {
    let world = World::with(fixture(&[])).await;
    let pid = world.seen().pid.unwrap();
    assert_eq!(world.call("other.die", json!({})).await.code(), Some(Code::OutcomeUnknown));
    until("the server to be gone", || !is_alive(pid)).await;
    until("another one to come", || world.seen().pid.is_some_and(|new| new != pid)).await;
    until("it to run", || {
        world.kernel.registry().find("other.echo").is_some() && world.seen().problem.is_none()
    })
    .await;
    assert_eq!(text(world.call("other.echo", json!({"message": "again"})).await), "again");
    world.remote.stop().await;
}

#[tokio::test]
async fn a_call_that_may_be_repeated_is_repeated_after_a_death() {
    let world = World::with(fixture(&[])).await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let settled = world.call("other.die_once", json!({"mark": mark})).await;
    assert_eq!(text(settled), "survived");
    world.remote.stop().await;
}

#[tokio::test]
async fn a_call_that_was_given_up_keeps_its_slots_until_the_server_has_ended_it() {
    let mut server = fixture(&["--deaf"]);
    server.timeout_ms = Some(50);
    server.max_concurrent = 2;
    let world = World::with(server).await;
    for _ in 0..2 {
        assert_eq!(world.call("other.hang", json!({})).await.code(), Some(Code::Timeout));
    }
    assert_eq!(world.kernel.running(), 2, "the server still works on them");
    let refused = fault(world.call("other.hang", json!({})).await);
    assert_eq!(
        (refused.code, &refused.details.unwrap()["maxConcurrent"]),
        (Code::ResourceExhausted, &json!(2))
    );
    // Past the slots, as the server sees it: it ends what it was told to end.
    let registry = world.remote.registry();
    let served = registry.find(&Tenant::local(), "other").unwrap();
    let in_use = registry.instance(&served, &Tenant::local()).unwrap();
    let line = in_use.desk().line().await.unwrap();
    line.peer.call_tool(CallToolRequestParams::new("finish")).await.unwrap();
    until("the slots to be free", || world.kernel.running() == 0).await;
    assert_eq!(text(world.call("other.count", json!({})).await), "1");
    world.remote.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_at_once_wherever_its_id_stands() {
    for flags in [&[][..], &["--id-last"]] {
        let world = World::with(fixture(flags)).await;
        let refused = fault(world.call("other.large", json!({"bytes": 40_000_000})).await);
        let limit = u64::try_from(limits::MESSAGE_BYTES).unwrap();
        assert_eq!(
            (refused.code, &refused.details.unwrap()["limitBytes"]),
            (Code::PayloadTooLarge, &json!(limit))
        );
        assert_eq!(text(world.call("other.large", json!({"bytes": 3})).await), "xxx", "the connection lives");
        world.remote.stop().await;
    }
}
