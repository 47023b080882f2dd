//! What holds when things go wrong in the middle: nothing half done stays, and everything is recorded.

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use serde_json::{Value, json};

use crate::world::{GOOD, World};

fn write(plan: &str) -> Value {
    json!({"path": "src/a.txt", "plan": plan, "content": "new\n", "intent": "See that it is taken back again"})
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_taken_back_and_recorded() {
    let world = World::with(|settings| settings.call_ms = 300);
    let plan = world.plant(&GOOD.replace("`test ! -e src/broken`", "`sleep 600; test -e src`"));
    world.write("src/a.txt", "old\n");
    let executor = world.connect("c", Role::Executor).await;
    let error = executor.call("write_file", write(&plan)).await.unwrap_err();
    assert_eq!((error.error_code, &error.cause["code"]), (Code::UnknownToolFailure, &json!("TIMEOUT")));
    assert_eq!(std::fs::read_to_string(world.path("src/a.txt")).unwrap(), "old\n");
    let entries = world.entries();
    assert_eq!((entries.len(), &entries[2]["cause"]["code"]), (3, &json!("TIMEOUT")));
    assert_eq!(
        (&entries[1]["result"], &entries[1]["change"]["path"]),
        (&json!("intent"), &json!("src/a.txt"))
    );
}

#[tokio::test]
async fn a_command_has_its_own_limit() {
    let world = World::new();
    let plan =
        world.plant(&GOOD.replace(
            "`test ! -e src/broken` (limit 30 s)",
            "`echo begun; sleep 600; test -e src` (limit 1 s)",
        ));
    let executor = world.connect("c", Role::Executor).await;
    let error = executor.call("write_file", write(&plan)).await.unwrap_err();
    assert_eq!((error.error_code, &error.cause["code"]), (Code::PreflightFailed, &json!("TIMEOUT")));
    assert!(!world.path("src").exists());
}

/// ERR-6: what cannot be recorded has not happened.
#[tokio::test]
async fn a_write_that_cannot_be_recorded_is_taken_back() {
    let world = World::new();
    let plan = world.plant(GOOD);
    world.write("src/a.txt", "old\n");
    let executor = world.connect("c", Role::Executor).await;
    std::fs::remove_file(world.path("audit-log.jsonl")).unwrap();
    std::fs::create_dir(world.path("audit-log.jsonl")).unwrap();
    let error = executor.call("write_file", write(&plan)).await.unwrap_err();
    assert_eq!(error.error_code, Code::AuditLogFailed);
    assert_eq!(std::fs::read_to_string(world.path("src/a.txt")).unwrap(), "old\n");
    let error = executor.call("read_file", json!({"path": "src/a.txt"})).await.unwrap_err();
    assert_eq!(error.error_code, Code::AuditLogFailed, "reading is recorded too");
}

#[tokio::test]
async fn a_session_stays_locked_until_a_report_is_written() {
    let world = World::new();
    let plan = world.plant(GOOD);
    let executor = world.connect("c", Role::Executor).await;
    let outside = json!({"path": "etc/x", "plan": plan, "content": "x", "intent": "Write where the plan does not allow it"});
    assert_eq!(executor.call("write_file", outside).await.unwrap_err().error_code, Code::PlanScopeViolation);
    for path in [
        "src/a.txt",
        "docs/reports/../../src/a.txt",
        "docs/reports/deep/a.md",
        "docs/reports/a.txt",
        "docs/reports",
    ] {
        let args = json!({"path": path, "plan": plan, "content": "x", "intent": "Write although the session is locked"});
        assert_eq!(
            executor.call("write_file", args).await.unwrap_err().error_code,
            Code::SessionLocked,
            "{path}"
        );
    }
    for content in ["", "why\n", "Something went wrong, and it will not happen again.\n"] {
        let args = json!({"path": "docs/reports/a.md", "content": content});
        assert!(executor.call("write_file", args).await.is_err(), "{content}");
    }
    let content = "write_file ended with PLAN_SCOPE_VIOLATION: etc is not in the plan.\n";
    let args = json!({"path": "docs/reports/a.md", "content": content});
    let report = executor.call("write_file", args.clone()).await.unwrap();
    assert_eq!(report["unlocked"], true);
    let again = executor.call("write_file", args).await.unwrap_err();
    assert_eq!(again.error_code, Code::FileAlreadyExists, "a report is never replaced");
    executor.call("write_file", write(&plan)).await.unwrap();
    let other = world.connect("d", Role::Executor).await;
    other.call("write_file", write(&plan)).await.unwrap();
}

/// Entries say what was asked by its hash: equal arguments in another order have the same, nested ones count.
#[tokio::test]
async fn the_hash_of_arguments_covers_all_of_them() {
    let world = World::new();
    let planner = world.connect("p", Role::Planner).await;
    for text in [
        r#"{"bundle":{"a":{"x":1,"y":2}}}"#,
        r#"{"bundle":{"a":{"y":2,"x":1}}}"#,
        r#"{"bundle":{"a":{"y":2,"x":3}}}"#,
    ] {
        planner.call("verify_attestation_bundle", serde_json::from_str(text).unwrap()).await.unwrap();
    }
    let entries = world.entries();
    assert_eq!(entries[1]["args_hash"], entries[2]["args_hash"]);
    assert_ne!(entries[2]["args_hash"], entries[3]["args_hash"]);
}
