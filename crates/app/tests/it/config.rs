//! The configuration as people meet it: what is shown, and what is said when it is wrong.

use serde_json::Value;

use crate::program::Place;

#[test]
fn everything_wrong_is_said_at_once() {
    let place = Place::new().with("MCP_TOOLS_DEFAULT_TIMEOUT_MS", "fast");
    place.write(
        "orchestr8.json",
        r#"{"tools": {"maxPaylodBytes": 5}, "resources": {"maxConcurrentExecutions": 0}}"#,
    );
    for args in [&["config", "check"][..], &["config", "show"], &["mcp"], &["serve"], &["tools", "list"]] {
        let said = place.run(args);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{args:?}");
        assert_eq!(
            said.err,
            "error: 3 settings are wrong\n     \
             - tools.maxPaylodBytes: is not a setting; did you mean tools.maxPayloadBytes? (in orchestr8.json)\n     \
             - resources.maxConcurrentExecutions: 0 must be a whole number from 1 to 10000 (in orchestr8.json)\n     \
             - tools.defaultTimeoutMs: \"fast\" must be a whole number from 1 to 86400000 \
             (from the environment variable MCP_TOOLS_DEFAULT_TIMEOUT_MS)\n\
             hint: Correct the setting the message names; `orchestr8 config show` prints where each value comes from.\n\
             code: CONFIGURATION (trying the same again does not help; more: orchestr8 errors CONFIGURATION)\n",
            "{args:?}"
        );
    }
    let json = place.run(&["--json", "config", "check"]);
    let error: Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!(
        (json.code, &error["error"]["code"], error["error"]["problems"].as_array().unwrap().len()),
        (Some(2), &Value::from("CONFIGURATION"), 3)
    );
}

#[test]
fn every_value_says_where_it_came_from() {
    let place = Place::new().with("ORCHESTR8_LOGGING_LEVEL", "warn");
    place.write("orchestr8.toml", "[server]\nname = 'mine'\n[[auth.tokens]]\nname = 'ci'\nsha256 = 'ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB'\n");
    let said = place.run(&["config", "show", "--changed"]);
    assert_eq!(
        said.out,
        "server.name            mine        orchestr8.toml\n\
         logging.level          warn        $ORCHESTR8_LOGGING_LEVEL\n\
         auth.tokens[0].name    ci          orchestr8.toml\n\
         auth.tokens[0].sha256  [REDACTED]  orchestr8.toml\n"
    );
    let all = place.run(&["config", "show"]);
    assert!(all.out.contains("tools.defaultTimeoutMs") && all.out.contains("  30000  "), "{}", all.out);
    let json: Value = serde_json::from_str(&place.run(&["config", "show", "--json"]).out).unwrap();
    let level = json["settings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|setting| setting["key"] == "logging.level")
        .unwrap();
    assert_eq!(
        (&level["value"], &level["origin"]["kind"]),
        (&Value::from("warn"), &Value::from("environment"))
    );
    assert!(!all.out.contains("ABAB") && !json.to_string().contains("ABAB"));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let place = Place::new();
    for (name, text, said) in [
        (
            "a.json",
            "{\"tools\": {},\n \"tools\": {}}",
            "error: a.json: the name \"tools\" is there twice at line 2 column 8\n",
        ),
        ("b.toml", "[tools\n", "error: b.toml: "),
        ("c.yaml", "", "error: c.yaml is neither .json nor .toml\n"),
    ] {
        place.write(name, text);
        let answer = place.run(&["--config", name, "config", "check"]);
        assert_eq!(answer.code, Some(2));
        assert!(answer.err.starts_with(said), "{}", answer.err);
    }
    let missing = place.run(&["--config", "missing.json", "config", "check"]);
    assert!(missing.err.starts_with("error: missing.json: No such file or directory"), "{}", missing.err);
}

#[test]
fn a_misspelt_variable_is_mentioned() {
    let place = Place::new().with("ORCHESTR8_TOOLS_FLITER", "echo");
    let said = place.run(&["config", "check"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(0), "ok: 0 settings differ from the defaults (no file)\n")
    );
    assert_eq!(
        said.err,
        "warning: the environment variable ORCHESTR8_TOOLS_FLITER is not a setting; did you mean ORCHESTR8_TOOLS_FILTER?\n"
    );
    assert_eq!(place.run(&["--quiet", "config", "check"]).err, "");
}
