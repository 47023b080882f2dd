//! Turns by tenant, and budgets of time and memory.

use std::sync::mpsc;

use orchestr8_contract::RoleSet;

use super::*;
use crate::ports::clock::Simulated;

fn of(tenant: &str, name: &str) -> Principal {
    Principal::new(name, Tenant::parse(tenant).unwrap(), RoleSet::NONE)
}

fn world(limits: HeavyLimits) -> (Arc<Simulated>, HeavyWork) {
    let clock = Arc::new(Simulated::new());
    (clock.clone(), HeavyWork::new(clock, limits))
}

fn reason(fault: &Fault) -> &str {
    fault.details.as_ref().unwrap()["reason"].as_str().unwrap()
}

/// Lets the tasks that were spawned come to where they wait.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tenants_that_wait_take_turns() {
    let (_, heavy) = world(HeavyLimits::default());
    let (go, gate) = mpsc::channel::<()>();
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let blocker = tokio::spawn({
        let heavy = heavy.clone();
        async move { heavy.run(&of("rival", "eve"), INLINE_BYTES, move || gate.recv()).await }
    });
    settle().await;
    let mut waiting = Vec::new();
    for name in ["rival-1", "rival-2", "rival-3", "acme-1"] {
        let (heavy, order) = (heavy.clone(), order.clone());
        waiting.push(tokio::spawn(async move {
            let tenant = name.split('-').next().unwrap();
            heavy.run(&of(tenant, "x"), INLINE_BYTES, move || order.lock().push(name.to_owned())).await
        }));
        settle().await;
    }
    go.send(()).unwrap();
    blocker.await.unwrap().unwrap().unwrap();
    for one in waiting {
        one.await.unwrap().unwrap();
    }
    assert_eq!(*order.lock(), ["rival-1", "acme-1", "rival-2", "rival-3"]);
}

#[tokio::test]
async fn time_that_is_used_up_comes_back_and_is_no_one_elses() {
    let (clock, heavy) = world(HeavyLimits { ms_per_minute: 10_000, ..HeavyLimits::default() });
    let spend = |principal: Principal, ms: u64| {
        let (clock, heavy) = (clock.clone(), heavy.clone());
        async move { heavy.run(&principal, INLINE_BYTES, move || clock.advance(Duration::from_millis(ms))).await }
    };
    spend(of("rival", "eve"), 8_500).await.unwrap();
    let fault = spend(of("rival", "eve"), 1).await.unwrap_err();
    assert_eq!((fault.code, reason(&fault)), (Code::ResourceExhausted, "cpu_quota"));
    spend(of("rival", "mallory"), 8_000).await.unwrap();
    assert_eq!(
        reason(&spend(of("rival", "trent"), 1).await.unwrap_err()),
        "cpu_quota",
        "the tenant's is used up"
    );
    spend(of("acme", "alice"), 1).await.unwrap();
    assert!(
        heavy.run(&of("rival", "eve"), INLINE_BYTES - 1, || ()).await.is_ok(),
        "small work is not counted"
    );
    clock.advance(Duration::from_secs(60));
    spend(of("rival", "eve"), 1).await.unwrap();
}

#[tokio::test]
async fn patient_work_waits_for_the_budget_and_small_input_is_charged_too() {
    let (clock, heavy) = world(HeavyLimits { ms_per_minute: 1_000, ..HeavyLimits::default() });
    let spend = clock.clone();
    let turn = heavy.reserve(&of("rival", "eve"), 10).await.unwrap();
    turn.run(move || spend.advance(Duration::from_secs(2))).await.unwrap();
    assert_eq!(reason(&heavy.reserve(&of("rival", "eve"), 10).await.err().unwrap()), "cpu_quota");
    let urgent = heavy.reserve_beyond_budget(&of("rival", "eve")).await.unwrap();
    assert_eq!(urgent.run(|| 7).await.unwrap(), 7, "what others wait for is done all the same");
    let waiting = tokio::spawn({
        let heavy = heavy.clone();
        async move { heavy.reserve_patiently(&of("rival", "eve"), 10).await.is_ok() }
    });
    settle().await;
    assert!(!waiting.is_finished());
    while !waiting.is_finished() {
        clock.advance(Duration::from_secs(10));
        settle().await;
    }
    assert!(waiting.await.unwrap());
    assert!(heavy.reserve(&of("acme", "alice"), 10).await.is_ok(), "no one else pays for it");
}

#[tokio::test]
async fn what_waits_is_bounded_by_its_size_for_each_tenant() {
    let (_, heavy) = world(HeavyLimits { bytes_per_tenant: 3 * INLINE_BYTES, ..HeavyLimits::default() });
    let (go, gate) = mpsc::channel::<()>();
    let run = |tenant: &'static str, bytes: usize| {
        let heavy = heavy.clone();
        tokio::spawn(async move { heavy.run(&of(tenant, "x"), bytes, || ()).await })
    };
    let blocker = tokio::spawn({
        let heavy = heavy.clone();
        async move { heavy.run(&of("rival", "x"), 2 * INLINE_BYTES, move || gate.recv()).await }
    });
    settle().await;
    assert_eq!(reason(&run("rival", 2 * INLINE_BYTES).await.unwrap().unwrap_err()), "memory_quota");
    let (rival, given_up) = (run("rival", INLINE_BYTES), run("acme", INLINE_BYTES));
    settle().await;
    given_up.abort();
    let acme = run("acme", 3 * INLINE_BYTES);
    settle().await;
    go.send(()).unwrap();
    blocker.await.unwrap().unwrap().unwrap();
    rival.await.unwrap().unwrap();
    acme.await.unwrap().unwrap();
    run("rival", 3 * INLINE_BYTES).await.unwrap().unwrap();
}
