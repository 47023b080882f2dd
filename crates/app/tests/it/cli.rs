//! The small commands: tools, errors, version, completions, manual pages, and the conventions all of them keep.

use std::process::Command;

use serde_json::{Value, json};

use crate::program::Place;

#[test]
fn tools_are_listed_and_called_without_a_client() {
    let place = Place::new();
    let listed = place.run(&["tools", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.out.lines().any(|line| line.starts_with("echo ")), "{}", listed.out);
    let json: Value = serde_json::from_str(&place.run(&["tools", "list", "--json"]).out).unwrap();
    assert!(
        json["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "health" && tool["inputSchema"]["type"] == "object")
    );
    let called = place.run(&["tools", "call", "echo", "--args", r#"{"message":"hi"}"#]);
    assert_eq!((called.code, called.err.as_str()), (Some(0), ""), "{called:?}");
    assert!(called.out.contains("hi"));
}

#[test]
fn a_search_and_a_question_know_that_the_command_line_calls() {
    let place = Place::new();
    let search = ["tools", "call", "tool_search", "--args", r#"{"query":"health echo"}"#, "--json"];
    let found = place.run(&[&search[..], &["--tools", "tool_search,echo"]].concat());
    let found: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(found["output"]["value"]["tools"].as_array().unwrap().len(), 1, "{found}");
    let asked = place.run(&["tools", "call", "test_input_required_result_elicitation", "--conformance"]);
    assert!(asked.err.contains("the command line cannot answer"), "{asked:?}");
}

#[test]
fn failures_have_their_exit_codes() {
    let place = Place::new();
    let unknown = place.run(&["tools", "call", "ecko"]);
    assert_eq!(unknown.code, Some(3));
    assert_eq!(
        unknown.err,
        "error: there is no tool named 'ecko'\n\
         hint: did you mean echo? `orchestr8 tools list` lists all\n\
         code: NOT_FOUND (trying the same again does not help; more: orchestr8 errors NOT_FOUND)\n"
    );
    let wrong = place.run(&["tools", "call", "echo", "--args", r#"{"message":5}"#]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.starts_with("error: the arguments do not match the schema: /message: "),
        "{}",
        wrong.err
    );
    for args in ["[]", "{", "5"] {
        assert_eq!(place.run(&["tools", "call", "echo", "--args", args]).code, Some(2), "{args}");
    }
    let slow = place.run(&[
        "tools",
        "call",
        "test_sleep",
        "--conformance",
        "--args",
        r#"{"ms":60000}"#,
        "--timeout-ms",
        "20",
    ]);
    assert_eq!(slow.code, Some(6), "{slow:?}");
    assert_eq!(place.run(&["no-such-command"]).code, Some(2));
}

#[test]
fn a_key_makes_a_repeat_the_same() {
    let place = Place::new();
    let call = || {
        let args = [
            "tools",
            "call",
            "test_append",
            "--conformance",
            "--json",
            "--key",
            "k",
            "--args",
            r#"{"list":"l","value":"v"}"#,
        ];
        serde_json::from_str::<Value>(&place.run(&args).out).unwrap()
    };
    let (first, second) = (call(), call());
    assert_eq!((&first["replayed"], &second["replayed"]), (&json!(false), &json!(true)));
    assert_eq!(first["runId"], second["runId"]);
    let other = place.run(&[
        "tools",
        "call",
        "test_append",
        "--conformance",
        "--key",
        "k",
        "--args",
        r#"{"list":"l","value":"w"}"#,
    ]);
    assert_eq!(other.code, Some(5), "{other:?}");
}

#[test]
fn codes_are_explained() {
    let place = Place::new();
    let said = place.run(&["errors", "timeout"]);
    assert!(said.out.starts_with("TIMEOUT\nThe server stopped waiting"), "{}", said.out);
    let unknown = place.run(&["errors", "TIMEUOT"]);
    assert_eq!((unknown.code, unknown.err.contains("did you mean TIMEOUT?")), (Some(3), true));
    let all: Value = serde_json::from_str(&place.run(&["errors", "--json"]).out).unwrap();
    assert!(all.as_array().unwrap().len() > 20);
}

#[test]
fn both_names_are_the_same_program() {
    let version = concat!("orchestr8 ", env!("CARGO_PKG_VERSION"), "\n");
    for binary in [env!("CARGO_BIN_EXE_orchestr8"), env!("CARGO_BIN_EXE_o8")] {
        let output = Command::new(binary).arg("version").output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), version);
    }
    let json: Value = serde_json::from_str(&Place::new().run(&["version", "--json"]).out).unwrap();
    assert_eq!(
        json["protocols"]["mcp"],
        json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
    );
}

#[test]
fn completions_and_manual_pages_are_made() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]).out;
        for word in ["doctor", "chat", "tail"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert!(place.run(&["man"]).out.contains(".TH orchestr8"));
    assert_eq!(place.run(&["man", "--out", "man"]).code, Some(0));
    let pages = std::fs::read_dir(place.path().join("man")).unwrap().count();
    assert!(pages > 10, "{pages} pages");
    for page in ["orchestr8-chat.1", "orchestr8-sessions-tail.1", "orchestr8-sessions-export.1"] {
        assert!(place.read(&format!("man/{page}")).contains(".TH"), "{page}");
    }
}

#[test]
fn colour_is_for_terminals_and_for_whoever_insists() {
    let place = Place::new();
    assert!(!place.run(&["errors", "NO_SUCH"]).err.contains('\x1b'));
    assert!(place.run(&["--color", "always", "errors", "NO_SUCH"]).err.contains("\x1b[1;31merror:\x1b[0m"));
    assert!(!place.run(&["--color", "never", "errors", "NO_SUCH"]).err.contains('\x1b'));
}

/// The first thing anybody runs: within a second, without a file, an account or a database.
#[test]
fn help_names_every_command() {
    let said = Place::new().run(&["--help"]);
    assert_eq!(said.code, Some(0));
    for command in [
        "run",
        "init",
        "create",
        "validate",
        "test",
        "list",
        "inspect",
        "logs",
        "cancel",
        "pause",
        "resume",
        "retry",
        "fork",
        "approve",
        "signal",
        "chat",
        "sessions",
        "knowledge",
        "workflows",
        "schedule",
        "events",
        "demo",
        "mcp",
        "serve",
        "tools",
        "config",
        "doctor",
        "backup",
        "audit",
        "errors",
        "version",
        "completions",
        "man",
    ] {
        assert!(said.out.lines().any(|line| line.trim_start().starts_with(command)), "{command}");
    }
    assert!(said.out.contains("Exit codes: 0 ok, 1 failed"));
}
