//! What holds for all actions of the program, whichever domain they belong to.

use orchestr8_kernel::action::Effect;

use super::*;
use crate::config::{self, Environment};
use crate::settings::Mode;

/// The program with every part switched on, in memory.
fn whole_program() -> Runtime {
    let environment = Environment::of(&[("HOME", "/nowhere")]);
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("orchestr8.toml");
    std::fs::write(&empty, "").unwrap();
    let loaded = config::load(Some(&empty), Vec::new(), &environment).unwrap();
    let mode = Mode { ephemeral: true, conformance: true, ..Mode::default() };
    let settings = Settings::new(loaded, mode, &environment).unwrap();
    let purpose =
        Purpose { when_held: WhenHeld::Refuse, at_least: Level::Error, lasting: false, starts_servers: true };
    Runtime::build(settings, purpose).unwrap()
}

/// The schemas of unlisted actions are compiled when they are first needed, so a wrong one would be found late.
#[tokio::test(flavor = "multi_thread")]
async fn the_schemas_of_all_actions_compile() {
    let runtime = whole_program();
    let table = runtime.kernel.registry().table();
    let wrong: Vec<String> = table
        .all()
        .iter()
        .filter_map(|action| action.prove().err().map(|error| format!("{}: {error}", action.name)))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
    assert!(table.all().len() > 100, "{} actions", table.all().len());
    runtime.close().await;
}

/// Actions that change something and have no audit entry of the kernel: where the record is instead, and the test that proves it.
const AUDITED_ELSEWHERE: &[(&str, &str)] = &[
    ("aacp.ack", "a record of the entry aacp.messages: attacks::audit::messages_are_on_record"),
    ("aacp.send", "a record of the entry aacp.messages: attacks::audit::messages_are_on_record"),
    (
        "session.run",
        "the session commands it submits: attacks::audit::a_session_run_by_a_workflow_is_on_record",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_action_that_changes_something_is_audited() {
    let runtime = whole_program();
    // Registers the tools of governed workspaces.
    runtime.face().await.unwrap();
    let table = runtime.kernel.registry().table();
    let changing = table.all().iter().filter(|action| action.policy.effect != Effect::Read);
    let unaudited: Vec<&str> =
        changing.filter(|action| !action.policy.audited).map(|action| action.name.as_str()).collect();
    let mut unaudited = unaudited;
    unaudited.sort_unstable();
    let known: Vec<&str> = AUDITED_ELSEWHERE.iter().map(|(name, _)| *name).collect();
    assert_eq!(unaudited, known);
    runtime.close().await;
}
