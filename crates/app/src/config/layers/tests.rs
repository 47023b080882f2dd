//! Which value wins, and what is said about wrong ones.

use serde_json::json;

use super::*;

fn file(document: Value) -> Given {
    given(document, true)
}

fn given(document: Value, is_trusted: bool) -> Given {
    let path = PathBuf::from("orchestr8.json");
    Given { files: vec![FileLayer { path, document, is_trusted }], flags: Vec::new() }
}

fn value_of(entries: &[Entry], key: &str) -> (Value, String) {
    let entry = entries.iter().find(|entry| entry.place.to_string() == key).unwrap();
    (entry.value.clone(), entry.origin.to_string())
}

fn problems(given: &Given, environment: &Environment) -> Vec<String> {
    let problems = lay(given, environment).unwrap_err();
    problems.iter().map(|problem| format!("{} {} [{}]", problem.key, problem.what, problem.origin)).collect()
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let key = "tools.defaultTimeoutMs";
    let mut given = file(json!({"tools": {"defaultTimeoutMs": 2}}));
    let nothing = Environment::default();
    let variable = Environment::of(&[
        ("ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS", "3"),
        ("MCP_TOOLS_DEFAULT_TIMEOUT_MS", "4"),
    ]);
    let alias = Environment::of(&[("MCP_TOOLS_DEFAULT_TIMEOUT_MS", "4")]);
    let look = |given: &Given, environment| value_of(&lay(given, environment).unwrap().entries, key);
    assert_eq!(look(&Given::default(), &nothing), (json!(30_000), "default".into()));
    assert_eq!(look(&given, &nothing), (json!(2), "orchestr8.json".into()));
    assert_eq!(look(&given, &alias), (json!(4), "$MCP_TOOLS_DEFAULT_TIMEOUT_MS".into()));
    assert_eq!(look(&given, &variable), (json!(3), "$ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS".into()));
    given.flags.push((key, "--timeout", json!(5)));
    assert_eq!(look(&given, &variable), (json!(5), "--timeout".into()));
}

#[test]
fn unknown_keys_are_named_in_full_with_what_was_meant() {
    let given = file(json!({
        "tools": {"defaultTimoutMs": 1, "adminPolicy": {"mod": "deny_all"}},
        "toolz": {},
        "maxPayloadBytes": 1,
        "mcpServers": {"files": {"comand": "x"}},
        "wholly": "unknown",
        "$schema": "fine",
    }));
    assert_eq!(
        problems(&given, &Environment::default()),
        [
            "maxPayloadBytes is not a setting; did you mean tools.maxPayloadBytes? [orchestr8.json]",
            "mcpServers.files.comand is not a setting; did you mean mcpServers.files.command? [orchestr8.json]",
            "tools.adminPolicy.mod is not a setting; did you mean tools.adminPolicy.mode? [orchestr8.json]",
            "tools.defaultTimoutMs is not a setting; did you mean tools.defaultTimeoutMs? [orchestr8.json]",
            "toolz is not a setting; did you mean tools? [orchestr8.json]",
            "wholly is not a setting [orchestr8.json]",
        ]
    );
}

#[test]
fn wrong_values_are_named_all_at_once_with_what_is_allowed() {
    let given = file(json!({
        "tools": {"defaultTimeoutMs": 0, "filter": "echo"},
        "store": [],
        "auth": {"tokens": [{"name": "ci"}, {}]},
        "mcpServers": {"a b": {"command": "x"}},
    }));
    let environment = Environment::of(&[("MCP_LOGGING_LEVEL", "loud")]);
    assert_eq!(
        problems(&given, &environment),
        [
            "auth.tokens[1] is empty; it must say what it is [orchestr8.json]",
            "mcpServers.a b has a name that is not 1 to 32 of A-Z a-z 0-9 _ - [orchestr8.json]",
            "store must be an object with settings inside [orchestr8.json]",
            "tools.defaultTimeoutMs 0 must be a whole number from 1 to 86400000 [orchestr8.json]",
            "tools.filter \"echo\" must be a list of at most 1000 non-empty texts [orchestr8.json]",
            "logging.level \"loud\" must be one of debug, info, warn, error [$MCP_LOGGING_LEVEL]",
            "auth.tokens[0].sha256 is missing; it must be 64 hexadecimal digits (printf %s \"$TOKEN\" | sha256sum) [orchestr8.json]",
        ]
    );
}

#[test]
fn a_token_in_the_place_of_its_hash_is_not_repeated() {
    let given = file(json!({"auth": {"tokens": [{"name": "ci", "sha256": "hunter2"}]}}));
    let said = problems(&given, &Environment::default());
    assert!(
        said[0].starts_with("auth.tokens[0].sha256 its value must be 64") && !said[0].contains("hunter2"),
        "{said:?}"
    );
}

#[test]
fn items_keep_together_and_get_their_defaults() {
    let given = file(json!({"mcpServers": {"b": {"url": "http://b"}, "a": {"command": "x"}}}));
    let entries = lay(&given, &Environment::default()).unwrap().entries;
    let keys: Vec<String> =
        entries.iter().map(|entry| entry.place.to_string()).filter(|key| key.starts_with("mcp")).collect();
    assert_eq!(keys[0], "mcpServers.a.type");
    assert_eq!(keys[keys.len() / 2], "mcpServers.b.type");
    assert_eq!(value_of(&entries, "mcpServers.b.startTimeoutMs"), (json!(30_000), "default".into()));
    assert_eq!(document(&entries)["mcpServers"]["b"]["url"], "http://b");
    assert_eq!(document(&entries)["mcpServers"]["b"].get("command"), None);
}

#[test]
fn a_misspelt_variable_is_noticed() {
    let environment = Environment::of(&[
        ("ORCHESTR8_TOOLS_DEFAULT_TIMOUT_MS", "1"),
        ("ORCHESTR8_DATA_DIR", "x"),
        ("ORCHESTR8_SECRET_SHOP_TOKEN", "z"),
        ("PATH", "y"),
    ]);
    let found: Vec<String> = strangers(&environment).iter().map(ToString::to_string).collect();
    let expected = "the environment variable ORCHESTR8_TOOLS_DEFAULT_TIMOUT_MS is not a setting; did you mean \
        ORCHESTR8_TOOLS_DEFAULT_TIMEOUT_MS?";
    assert_eq!(found, [expected]);
}

#[test]
fn an_untrusted_file_sets_levels_and_limits_and_nothing_else() {
    let document = json!({
        "logging": {"level": "debug", "redactKeys": []},
        "http": {"listen": "192.0.2.1:80", "bodyLimitBytes": 2048},
        "mcpServers": {"x": {"command": "/bin/sh", "timeoutMs": 5}},
        "store": {"sync": "full", "retentionDays": 1},
    });
    let laid = lay(&given(document.clone(), false), &Environment::default()).unwrap();
    assert_eq!(value_of(&laid.entries, "logging.level").0, json!("debug"));
    assert_eq!(value_of(&laid.entries, "http.bodyLimitBytes").0, json!(2048));
    assert_eq!(value_of(&laid.entries, "http.listen"), (json!("127.0.0.1:8088"), "default".into()));
    assert!(!laid.entries.iter().any(|entry| entry.place.to_string().starts_with("mcpServers")));
    let withheld: Vec<String> = laid.withheld.iter().map(|entry| entry.place.to_string()).collect();
    assert_eq!(
        withheld,
        [
            "http.listen",
            "logging.redactKeys",
            "mcpServers.x.command",
            "mcpServers.x.timeoutMs",
            "store.retentionDays"
        ],
        "store.sync is what holds anyway"
    );
    let trusted = lay(&given(document, true), &Environment::default()).unwrap();
    assert!(trusted.withheld.is_empty());
    assert_eq!(value_of(&trusted.entries, "http.listen").0, json!("192.0.2.1:80"));
}

#[test]
fn what_a_variable_says_instead_is_not_withheld_and_mistakes_are_told_anyway() {
    let document = json!({"http": {"listen": "192.0.2.1:80"}});
    let environment = Environment::of(&[("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:1")]);
    assert!(lay(&given(document, false), &environment).unwrap().withheld.is_empty());
    let wrong = lay(&given(json!({"http": {"listen": "nowhere"}}), false), &Environment::default());
    assert_eq!(wrong.unwrap_err()[0].key, "http.listen");
}

#[test]
fn the_users_own_file_holds_below_an_untrusted_one() {
    let own = FileLayer {
        path: "own.json".into(),
        document: json!({"store": {"path": "/own"}, "logging": {"level": "warn"}}),
        is_trusted: true,
    };
    let mut given = given(json!({"store": {"path": "/planted"}, "logging": {"level": "debug"}}), false);
    given.files.insert(0, own);
    let laid = lay(&given, &Environment::default()).unwrap();
    assert_eq!(value_of(&laid.entries, "store.path"), (json!("/own"), "own.json".into()));
    assert_eq!(value_of(&laid.entries, "logging.level"), (json!("debug"), "orchestr8.json".into()));
    assert_eq!(laid.withheld.len(), 1);
}
