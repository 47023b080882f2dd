//! The history of commands costs what it shows, however much the journal holds.

use orchestr8_sessions::tables::{self, Asked};
use orchestr8_testing::memory;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn no_history_looks_at_the_whole_journal() {
    let store = memory(&[tables::MIGRATIONS]);
    let all = Asked { tenant: "t", lanes: None, id: None, from_ms: 0, to_ms: i64::MAX, limit: 10 };
    let lanes = Some(["session:s", "session:s:side"]);
    for (asked, index) in [
        (Asked { ..all }, "journal_session (tenant=? AND at_ms>? AND at_ms<?)"),
        (Asked { lanes, ..all }, "journal_lane (tenant=? AND lane=?)"),
        (Asked { id: Some("c"), ..all }, "journal_id (tenant=? AND id=?)"),
        (Asked { id: Some("c"), lanes, ..all }, "journal_id (tenant=? AND id=?)"),
    ] {
        let steps = store.plan(&tables::history(&asked).sql).await.unwrap();
        let over_journal: Vec<_> = steps.iter().filter(|step| step.contains(" journal ")).collect();
        assert!(!over_journal.is_empty());
        for step in over_journal {
            assert_eq!(step, &format!("SEARCH journal USING INDEX {index}"), "{steps:#?}");
        }
        // Sorting what was found means that all of it was read first; with an id that is a handful.
        let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE"));
        assert!(asked.id.is_some() || asked.lanes.is_some() || !sorts, "{steps:#?}");
    }
}

#[tokio::test]
async fn the_newest_of_both_lanes_of_a_session_are_shown_in_their_order() {
    let world = World::new().await;
    world.session().await;
    for name in ["one", "two", "three"] {
        let command = world.named(name, "set_session_name", json!({"sessionId": "s", "name": name}));
        world.kernel.submit(command).await;
    }
    let ask = async |filter| {
        let history = world.ask("get_command_history", filter).await;
        let entries = history["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["commandId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ask(json!({"sessionIdFilter": "s", "limit": 2})).await, ["two", "three"]);
    assert_eq!(ask(json!({"limit": 2})).await, ["two", "three"]);
    assert_eq!(ask(json!({"sessionIdFilter": "s", "commandId": "one"})).await, ["one"]);
    assert!(ask(json!({"sessionIdFilter": "other"})).await.is_empty());
    assert!(ask(json!({"sessionIdFilter": "other", "commandId": "one"})).await.is_empty());
}
