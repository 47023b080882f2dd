//! One question and its answer.

use rustix::process::Signal;
use serde_json::json;

use super::{Live, alone, sessions};
use crate::program::signal;
use crate::workflows::json_of;

#[test]
fn stdout_is_the_answer_and_nothing_else() {
    let place = alone();
    let said = place.run(&["chat", "good", "morning"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "good morning\n"), "{said:?}");
    assert!(
        said.err.starts_with("the offline model answers") && said.err.contains("docs/guide/models.md"),
        "{said:?}"
    );
    let quiet = place.run(&["chat", "--quiet", "good morning"]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("good morning\n", ""));
    assert!(sessions(&place, &[]).is_empty(), "one answer leaves nothing behind");
}

#[test]
fn tool_calls_are_told_beside_the_answer() {
    let place = alone();
    let prompt = "Let me look.\n/tool echo {\"message\":\"hi\"}\n/tool nope";
    let said = place.run(&["chat", prompt]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(
        said.out,
        "echo answered: {\"message\":\"hi\"}\nnope failed: There is no tool named 'nope'.\n"
    );
    let told: Vec<&str> = said.err.lines().skip(1).collect();
    assert_eq!(
        told,
        [
            "→ echo {\"message\":\"hi\"}",
            "← echo {\"message\":\"hi\"}",
            "→ nope {}",
            "← nope failed: There is no tool named 'nope'."
        ]
    );
    let red = place.run(&["--color", "always", "chat", "/tool nope"]);
    assert!(red.err.contains("\x1b[1;31m← nope failed"), "{red:?}");
}

#[test]
fn json_has_one_shape() {
    let said = alone().run(&["chat", "--json", "--session", "mine", "/tool echo {\"message\":\"hi\"}"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let mut answer = json_of(&said);
    assert!(answer["usage"]["input"].as_u64().unwrap() > 0, "{answer}");
    answer["usage"] = json!({});
    let call = json!({"id": "call_1_1", "name": "echo", "arguments": {"message": "hi"},
        "result": "{\"message\":\"hi\"}", "isError": false});
    assert_eq!(
        answer,
        json!({"sessionId": "mine", "kept": true, "model": "offline/echo", "stopReason": "stop",
            "text": "echo answered: {\"message\":\"hi\"}", "usage": {}, "toolCalls": [call]})
    );
}

#[test]
fn what_is_piped_in_is_said() {
    let place = alone();
    assert_eq!(place.run_with(&["chat", "-q"], "from\nstdin\n").out, "from\nstdin\n");
    assert_eq!(place.run_with(&["chat", "-q", "read:", "-", "!"], "this\n").out, "read: this !\n");
    let nothing = place.run(&["chat"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    let much = place.run_with(&["chat"], &"x".repeat(200_001));
    assert_eq!(much.code, Some(2), "{}", much.err);
}

#[test]
fn a_session_goes_on_where_it_was() {
    let place = alone();
    let first =
        place.run(&["chat", "-q", "--session", "s1", "--thinking", "low", "--system", "Be brief.", "one"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(place.run(&["chat", "-q", "--session", "s1", "--model", "offline/echo", "two"]).out, "two\n");
    let shown = json_of(&place.run(&["sessions", "show", "s1", "--json"]));
    assert_eq!(
        (&shown["session"]["messageCount"], &shown["session"]["thinkingLevel"]),
        (&json!(4), &json!("low"))
    );
    let other = place.run(&["chat", "--session", "s1", "--system", "Be long.", "three"]);
    assert_eq!(other.code, Some(5), "{other:?}");
}

#[test]
fn what_goes_wrong_has_its_exit_code() {
    let place = alone();
    let code = |args: &[&str]| place.run(&[&["chat", "-q"], args].concat()).code;
    assert_eq!(code(&["--model", "nobody/knows", "x"]), Some(3));
    assert_eq!(code(&["--model", "nobody", "x"]), Some(2));
    assert_eq!(code(&["--thinking", "sideways", "x"]), Some(2));
    assert_eq!(code(&["--cwd", "not-there", "x"]), Some(2));
    assert_eq!(code(&["--session", "not an id", "x"]), Some(2));
    assert_eq!(code(&["--server", "http://127.0.0.1:1", "x"]), Some(7));
    let failed = place.run(&["chat", "-q", "/fail UNAUTHENTICATED"]);
    assert_eq!((failed.code, failed.out.as_str()), (Some(4), ""), "{failed:?}");
    assert!(failed.err.starts_with("error: the model failed: the prompt asked"), "{}", failed.err);
    assert!(failed.err.contains("docs/guide/models.md"), "{}", failed.err);
    assert!(sessions(&place, &[]).is_empty(), "nothing of it is left");
}

#[test]
fn a_tool_that_asks_is_told_that_nobody_answers() {
    let said =
        alone().run(&["chat", "--conformance", "/tool test_elicitation {\"message\":\"who are you?\"}"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("a tool asks, and nobody can answer here: who are you?"), "{}", said.err);
    assert!(said.out.contains("action=cancel"), "{}", said.out);
}

#[test]
fn ctrl_c_stops_it() {
    let place = alone();
    let mut chat =
        Live::start(&place, &["chat", "/tool echo {\"message\":\"x\"}\n/then\n/slow 60000\nnever said"]);
    chat.hear("← echo");
    signal(&chat.child, Signal::INT);
    let (code, said) = chat.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(!said.contains("never said") && said.contains("stopped"), "{said}");
    assert!(sessions(&place, &[]).is_empty());
}
