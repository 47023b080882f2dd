//! Several processes on one workspace and one data file: each knows what the others did.

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use serde_json::{Value, json};

use crate::world::{GOOD, World};

const ROUNDS: usize = 20;

fn write(plan: &str, text: &str, seen: &Value) -> Value {
    json!({"path": "src/a.txt", "plan": plan, "content": text, "previousHash": seen, "intent": "Both of us have seen the same file"})
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_that_saw_the_same_file_exactly_one_wins() {
    let one = World::new();
    let plan = one.plant(GOOD);
    let two = one.other_process();
    one.write("src/a.txt", "0\n");
    let (first, second) =
        (one.connect("one", Role::Executor).await, two.connect("two", Role::Executor).await);
    for round in 0..ROUNDS {
        let seen = first.call("read_file", json!({"path": "src/a.txt"})).await.unwrap()["hash"].clone();
        let (ours, theirs) = (format!("{round} one\n"), format!("{round} two\n"));
        let (mine, other) = tokio::join!(
            first.call("write_file", write(&plan, &ours, &seen)),
            second.call("write_file", write(&plan, &theirs, &seen))
        );
        let lost: Vec<Code> = [&mine, &other]
            .into_iter()
            .filter_map(|ended| ended.as_ref().err())
            .map(|error| error.error_code)
            .collect();
        assert_eq!(lost, [Code::HashMismatch], "round {round}");
        let kept = std::fs::read_to_string(one.path("src/a.txt")).unwrap();
        assert_eq!(kept, if mine.is_ok() { ours } else { theirs }, "round {round}");
    }
    let checked = first.call("verify_workspace_integrity", json!({})).await.unwrap();
    assert_eq!((&checked["ok"], &checked["verdict"]), (&json!(true), &json!("CONSISTENT")), "{checked}");
}

#[tokio::test]
async fn a_lock_and_an_approval_hold_in_every_process() {
    let one = World::new();
    let two = one.other_process();
    let (here, there) = (one.connect("c", Role::Executor).await, two.connect("c", Role::Executor).await);
    let plan = two.plant(GOOD);
    here.call("write_file", json!({"path": "src/a.txt", "plan": plan, "content": "x\n", "intent": "Write within a plan of the other one"})).await.unwrap();
    let outside = json!({"path": "etc/x", "plan": plan, "content": "x", "intent": "Write where the plan does not allow it"});
    assert_eq!(here.call("write_file", outside).await.unwrap_err().error_code, Code::PlanScopeViolation);
    let again = json!({"path": "src/b.txt", "plan": plan, "content": "x", "intent": "Write in the other process instead"});
    assert_eq!(there.call("write_file", again.clone()).await.unwrap_err().error_code, Code::SessionLocked);
    let report = json!({"path": "docs/reports/a.md", "content": "write_file ended with PLAN_SCOPE_VIOLATION: etc is not allowed.\n"});
    assert_eq!(there.call("write_file", report).await.unwrap()["unlocked"], true);
    here.call("write_file", again).await.unwrap();
    let checked = there.call("verify_workspace_integrity", json!({})).await.unwrap();
    assert_eq!(checked["ok"], true, "{checked}");
}
