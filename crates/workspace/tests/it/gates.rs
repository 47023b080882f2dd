//! The order of the gates: what is wrong in several ways is told by the first gate it does not pass.

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use serde_json::json;

use crate::world::{GOOD, World};

/// What each gate says when it is the first that is not passed.
const CODES: [Code; 7] = [
    Code::MissingRequiredField,
    Code::PathTraversalBlocked,
    Code::HashMismatch,
    Code::InvalidInputValue,
    Code::PlanNotFound,
    Code::PlanScopeViolation,
    Code::RustPolicyViolation,
];

#[tokio::test]
async fn of_every_combination_of_mistakes_the_first_gate_is_told() {
    let world = World::new();
    let hash = world.plant(GOOD);
    for mistakes in 0_u32..1 << CODES.len() {
        let wrong = |gate: usize| mistakes & (1 << gate) != 0;
        let path = match (wrong(1), wrong(5)) {
            (true, _) => "../x.rs".to_owned(),
            (false, true) => format!("etc/{mistakes}.rs"),
            (false, false) => format!("src/{mistakes}.rs"),
        };
        let mut args =
            json!({"path": path, "plan": hash, "intent": "Try every way in which it can go wrong"});
        if wrong(0) {
            args.as_object_mut().unwrap().remove("intent");
        }
        if wrong(2) {
            args["previousHash"] = "0".repeat(64).into();
        }
        if !wrong(3) {
            args["content"] = if wrong(6) { "fn f() { g().unwrap() }" } else { "fn f() {}" }.into();
        }
        if wrong(4) {
            args["plan"] = "0".repeat(64).into();
        }
        let connection = world.connect(&format!("c{mistakes}"), Role::Executor).await;
        let ended = connection.call("write_file", args).await.map_err(|error| error.error_code);
        match (0..CODES.len()).find(|gate| wrong(*gate)) {
            None => assert!(ended.is_ok(), "{ended:?}"),
            // Without content there is nothing for the policy to look at.
            Some(gate) => assert_eq!(ended.unwrap_err(), CODES[gate], "mistakes {mistakes:07b}"),
        }
    }
}

#[tokio::test]
async fn of_two_writes_that_saw_the_same_file_one_is_told_so() {
    let world = World::new();
    let hash = world.plant(GOOD);
    world.write("src/a.txt", "old\n");
    let (one, two) = (world.connect("one", Role::Executor).await, world.connect("two", Role::Executor).await);
    let seen = one.call("read_file", json!({"path": "src/a.txt"})).await.unwrap()["hash"].clone();
    let write = |text: &str| json!({"path": "src/a.txt", "plan": hash, "content": text, "previousHash": seen, "intent": "Both of us want to change it"});
    let (first, second) =
        tokio::join!(one.call("write_file", write("1\n")), two.call("write_file", write("2\n")));
    let mut codes: Vec<Option<Code>> =
        [first, second].map(|ended| ended.err().map(|error| error.error_code)).to_vec();
    codes.sort_by_key(Option::is_some);
    assert_eq!(codes, [None, Some(Code::HashMismatch)]);
}
