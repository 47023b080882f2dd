//! The show itself.

use serde_json::json;

use super::{alone, json_of};

#[test]
fn the_demo_kills_a_run_and_nothing_is_done_twice() {
    let place = alone();
    let said = place.run(&["demo", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let shown = json_of(&said);
    assert_eq!(shown["once"], true, "{shown:#}");
    for step in shown["steps"].as_array().unwrap() {
        assert_eq!(step["done"], 1, "{shown:#}");
    }
    assert_eq!(shown["steps"][0], json!({"step": "reserve-stock", "begun": 1, "done": 1}));
    assert_eq!(shown["steps"][2]["begun"], 2, "it was under way at the kill: {shown:#}");
}
