//! Executions are named by the beginning of their id, or as the last one.

use serde_json::json;

use super::{alone, echo, json_of, write};

/// `exec-` and eight characters.
const BEGINNING: usize = 13;

#[test]
fn commands_take_the_beginning_of_an_id_and_last() {
    let place = alone();
    let file = write(&place, "named", &json!([echo("a", &[], json!({"n": 1}))]));
    let none = place.run(&["inspect", "last"]);
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.err.contains("there is no execution yet"), "{none:?}");
    let run = || json_of(&place.run(&["run", &file, "--json"]))["executionId"].as_str().unwrap().to_owned();
    let mut ids = vec![run(), run()];
    // Ids of executions that began within a minute begin alike, but for the moment at which the minute ends.
    while ids[0][..BEGINNING] != ids[1][..BEGINNING] {
        ids = vec![ids.pop().unwrap(), run()];
    }
    let shown = |name: &str| {
        let said = place.run(&["inspect", name, "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        json_of(&said)["executionId"].as_str().unwrap().to_owned()
    };
    let most = &ids[0][..ids[0].len() - 2];
    assert_eq!(shown("last"), ids[1]);
    assert_eq!(shown(most), ids[0]);
    assert_eq!(shown(most.strip_prefix("exec-").unwrap()), ids[0]);
    for command in [vec!["logs", "last"], vec!["fork", "last", "--from-step", "a", "--quiet"]] {
        let said = place.run(&command);
        assert_eq!(said.code, Some(0), "{command:?}: {said:?}");
    }
    let several = place.run(&["cancel", &ids[0][..BEGINNING]]);
    assert_eq!(several.code, Some(2), "{several:?}");
    assert!(ids.iter().all(|id| several.err.contains(id.as_str())), "it names them: {several:?}");
    let unknown = place.run(&["inspect", "00000000"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    let short = place.run(&["inspect", "exec-01"]);
    assert_eq!(short.code, Some(2), "{short:?}");
    assert!(short.err.contains("8 characters"), "{short:?}");
}
