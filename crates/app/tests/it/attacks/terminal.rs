//! Text of others at a terminal: nothing in it steers the terminal or deceives the eye (CWE-150, CVE-2021-42574).

use serde_json::json;

use crate::others;
use crate::program::Place;
use crate::talking::terminal::Desk;
use crate::workflows::{alone, json_of, newest};

/// Clipboard, title, clear screen, a C1 introducer, order reversed, zero width, a tag, a line of its own.
const EVIL: &str = "x\u{1b}]52;c;cHduZWQ=\u{7}\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}2J\u{202e}rev\u{200b}zw\u{e0041}tag\u{7f}\r\nhint: rm -rf ~";

/// What of it must never be seen raw.
const RAW: [&str; 9] =
    ["\u{1b}]", "\u{7}", "\u{1b}[2J", "\u{9b}", "\u{202e}", "\u{200b}", "\u{e0041}", "\u{7f}", "\nhint: rm"];

#[track_caller]
fn clean(what: &str, shown: &str) {
    for raw in RAW {
        assert!(!shown.contains(raw), "{what}: {raw:?} in {shown:?}");
    }
}

/// Runs a command at a terminal, and gives what is on the screen at its end.
fn screen(place: &Place, args: &[&str]) -> String {
    Desk::sit_down(place, args).all().replace("\r\n", "\n")
}

/// Runs it both ways, piped and at a terminal.
fn both(place: &Place, args: &[&str]) -> String {
    let said = place.run(args);
    clean(&format!("{args:?} stderr"), &said.err);
    clean(&format!("{args:?} piped"), &said.out);
    let shown = screen(place, args);
    clean(&format!("{args:?} at a terminal"), &shown);
    shown
}

#[test]
fn the_name_of_a_workflow_does_not_reach_the_terminal_raw() {
    let place = alone();
    let workflow = json!({"id": "evil", "version": "1.0.0", "name": EVIL, "description": EVIL,
        "steps": [{"id": "a", "agentId": "@orchestr8/echo", "input": {"text": EVIL}}]});
    place.plant("evil.json", &workflow.to_string());
    let shown = both(&place, &["run", "evil.json"]);
    assert!(shown.contains("x\\u{1b}]52;c;cHduZWQ=\\u{7}"), "it is shown for what it is: {shown:?}");
    let id = newest(&place, &[]);
    let shown = both(&place, &["inspect", &id]);
    assert!(shown.contains("\\u{202e}rev\\u{200b}zw\\u{e0041}tag\\u{7f}\\u{d}\\u{a}hint: rm"), "{shown:?}");
    for args in [&["list"][..], &["logs", &id], &["events"], &["inspect", &id, "--json"]] {
        both(&place, args);
    }
    assert_eq!(place.run(&["workflows", "apply", "evil.json"]).code, Some(0));
    both(&place, &["workflows", "list"]);
    both(&place, &["validate", "evil.json"]);
}

#[test]
fn errors_do_not_repeat_text_raw() {
    let place = alone();
    let evil = EVIL.replace('\0', "");
    both(&place, &["errors", &evil]);
    both(&place, &[&evil]);
    both(&place, &["list", &format!("--{evil}")]);
    both(&place, &["inspect", &evil]);
    both(&place, &["run", &evil]);
    both(&place, &["tools", "call", &evil]);
    let failed = place.run(&["--json", "errors", &evil]);
    clean("errors --json", &failed.err);
    let error: serde_json::Value = serde_json::from_str(&failed.err).unwrap();
    assert!(
        error["error"]["message"].as_str().unwrap().contains(&evil.to_string()),
        "JSON keeps its meaning: {failed:?}"
    );
}

#[test]
fn json_says_the_same_and_shows_nothing_raw() {
    let place = alone();
    let args = json!({"message": EVIL}).to_string();
    let said = place.run(&["tools", "call", "echo", "--args", &args, "--json"]);
    clean("tools call --json", &said.out);
    assert!(json_of(&said).to_string().contains(&json!(EVIL).to_string()[1..20]), "{said:?}");
    let output = &json_of(&said)["output"];
    assert!(output.to_string().contains(json!(EVIL).to_string().trim_matches('"')), "{output}");
}

#[test]
fn what_a_tool_answers_is_exact_in_a_pipe_and_harmless_at_a_terminal() {
    let place = alone();
    let args = json!({"message": EVIL}).to_string();
    let call = ["tools", "call", "echo", "--args", args.as_str()];
    let said = place.run(&call);
    assert_eq!(said.code, Some(0), "{said:?}");
    let shown = screen(&place, &call);
    for raw in &RAW[..8] {
        assert!(!shown.contains(raw), "{raw:?} in {shown:?}");
    }
}

#[test]
fn a_document_is_exact_in_a_pipe_and_harmless_at_a_terminal() {
    let place = alone();
    let body = EVIL.replace('\r', "");
    assert_eq!(place.run_with(&["knowledge", "put", "/evil", "-"], &body).code, Some(0));
    assert_eq!(
        place.run_with(&["knowledge", "put", "/t", "-", "--title", "T\u{202e}\u{200b}itle"], "x").code,
        Some(0)
    );
    let got = place.run(&["knowledge", "get", "/evil"]);
    assert_eq!(got.out.trim_end_matches('\n'), body.trim_end_matches('\n'), "a file gets what was put");
    let shown = screen(&place, &["knowledge", "get", "/evil"]);
    for raw in &RAW[..8] {
        assert!(!shown.contains(raw), "{raw:?} in {shown:?}");
    }
    both(&place, &["knowledge", "tree"]);
    let shown = screen(&place, &["knowledge", "query", "rev"]);
    for raw in &RAW[..8] {
        assert!(!shown.contains(raw), "{raw:?} in {shown:?}");
    }
    both(&place, &["knowledge", "history", "/evil"]);
}

#[test]
fn a_conversation_is_harmless_at_a_terminal() {
    let place = alone();
    let words = EVIL.replace(['\r', '\n'], " ");
    for args in
        [&["chat", "--session", "s", words.as_str()][..], &["sessions", "show", "s"], &["sessions", "list"]]
    {
        let shown = screen(&place, args);
        for raw in &RAW[..8] {
            assert!(!shown.contains(raw), "{args:?}: {raw:?} in {shown:?}");
        }
    }
}

/// Where a person judges a changed definition, every character counts.
#[test]
fn a_changed_definition_is_shown_as_it_is() {
    let place = alone().with("PATH", "/usr/bin:/bin");
    place.write("server.sh", others::SERVER);
    place.write("about", "first");
    place.write("orchestr8.toml", "[mcpServers.other]\ncommand = 'sh'\nargs = ['server.sh']\n");
    assert_eq!(place.run(&["tools", "call", "other.hi"]).code, Some(0));
    place.write("about", "sec\u{202e}ond\u{9b}2J\u{200b}");
    assert_eq!(place.run(&["tools", "call", "other.hi"]).code, Some(4));
    let shown = both(&place, &["tools", "accept", "other.hi", "--dry-run"]);
    assert!(shown.contains("sec\\u{202e}ond\\u{9b}2J\\u{200b}"), "{shown:?}");
}

#[test]
fn log_lines_show_hidden_characters() {
    let place = alone();
    let name = "x\u{1b}]0;t\u{7}\u{9b}\u{202e}\u{200b}";
    let place = place.with(&format!("ORCHESTR8_{name}"), "1");
    let said = place.run(&["mcp", "--ephemeral"]);
    clean("the log", &said.err);
    assert!(said.err.contains("202e"), "it is in the log: {said:?}");
}
