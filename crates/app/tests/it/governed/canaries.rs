//! Secrets in the arguments of governed calls appear in no error, no log and no entry.

use orchestr8_workspace::plan::Status;
use serde_json::{Value, json};

use super::{GOOD, Governed, plant, with_workspace};
use crate::program::Place;

/// Each looks like a secret, or stands where texts are never repeated.
const CANARIES: [&str; 6] = [
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "sk-ant-api03-canarycanarycanarycanarycanary",
    "AKIAIOSFODNN7CANARYX",
    "canary-in-the-content",
    "canary-in-the-intent-of-a-write",
    "canary-in-the-patch",
];

fn assert_silent(what: &str, text: &str) {
    for canary in CANARIES {
        assert!(!text.contains(canary), "{canary} is in {what}: {text}");
    }
}

#[test]
fn no_secret_of_an_argument_is_told_logged_or_recorded() {
    let place = with_workspace(Place::new().with("ORCHESTR8_LOGGING_LEVEL", "debug"));
    let hash = plant(
        &place,
        &GOOD.replace("`test ! -e src/broken`", "`echo ghp_0123456789abcdefghijABCDEFGHIJ012345; exit 1`"),
        Status::Approved,
    );
    std::fs::create_dir_all(place.path().join("workspace/src")).unwrap();
    let mut governed = Governed::start(place, "executor", &["--conformance"]);
    governed.begin();
    let intent = CANARIES[4];
    let calls: Vec<(&str, Value)> = vec![
        ("read_file", json!({"path": format!("src/{}", CANARIES[0])})),
        ("read_file", json!({"path": format!("../{}", CANARIES[1])})),
        ("read_file", json!({"path": format!("/{}", CANARIES[2])})),
        ("read_plan", json!({"hash": CANARIES[1]})),
        (
            "write_file",
            json!({"path": "src/a.rs", "plan": hash, "content": format!("// {}\nx.unwrap()", CANARIES[3]), "intent": intent}),
        ),
        ("write_file", json!({"path": "src/a.rs", "plan": hash, "patch": CANARIES[5], "intent": intent})),
        (
            "write_file",
            json!({"path": "src/a.rs", "plan": CANARIES[0], "content": CANARIES[3], "intent": intent}),
        ),
        ("write_file", json!({"path": "src/a.txt", "plan": hash, "content": CANARIES[3], "intent": intent})),
        ("write_file", json!({"path": "src/a.txt", "plan": hash, "password": CANARIES[3], "intent": intent})),
        ("test_throw", json!({"what": CANARIES[3]})),
        (CANARIES[0], json!({"token": CANARIES[3]})),
    ];
    for (tool, args) in calls {
        let answer = governed.answer(tool, args);
        assert_silent(&format!("the answer of {tool}"), &answer.to_string());
    }
    let (log, place) = governed.end();
    assert!(log.contains("\"level\":\"debug\""), "the log was on");
    assert_silent("the log", &log);
    let trail = place.read("workspace/audit-log.jsonl");
    assert_eq!(trail.lines().count(), 14, "{trail}");
    assert_silent("the trail", &trail);
}
