//! Session files there and back, those of others, and damaged ones.

use orchestr8_models::{
    Assistant, BashExecution, Block, Message, StopReason, Thinking, ToolResult, Usage, User,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::record::{Body, Entry, Header, Stats};
use crate::tree::Node;

fn header(name: Option<String>, parent: Option<String>, leaf: Option<Place>) -> Header {
    Header {
        owner: None,
        shared: Default::default(),
        name,
        cwd: "/work".into(),
        provider: "p".into(),
        model: "m".into(),
        thinking: Thinking::Off,
        auto_compaction: true,
        auto_retry: true,
        system: None,
        tools: None,
        parent,
        file: None,
        leaf,
        next: 0,
        messages: 0,
        stats: Stats::default(),
    }
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        any::<String>().prop_map(Block::text),
        (any::<String>(), any::<Option<String>>())
            .prop_map(|(thinking, signature)| Block::Thinking { thinking, signature }),
        ("[a-z]{1,8}", "[a-z]{1,8}", any::<String>(), any::<i64>()).prop_map(|(id, name, text, number)| {
            let arguments = Map::from_iter([("a".to_owned(), json!([text, number]))]);
            Block::ToolCall { id, name, arguments }
        }),
        Just(Block::Image { data: "aGk=".into(), mime_type: "image/png".into() }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let content = || prop::collection::vec(block(), 0..3);
    let stamp = 0..4_000_000_000_000_i64;
    let stop = prop::sample::select(vec![
        StopReason::Stop,
        StopReason::Length,
        StopReason::ToolUse,
        StopReason::Error,
        StopReason::Aborted,
    ]);
    let usage = (any::<[u32; 4]>(), 0.0..1e6).prop_map(|(n, cost)| Usage {
        input: n[0].into(),
        output: n[1].into(),
        cache_read: n[2].into(),
        cache_write: n[3].into(),
        cost,
    });
    let assistant = (content(), usage, stop, stamp.clone(), any::<Option<String>>()).prop_map(
        |(content, usage, stop_reason, timestamp, error_message)| {
            let (provider, model) = ("p".into(), "m".into());
            Message::Assistant(Assistant {
                content,
                provider,
                model,
                usage,
                stop_reason,
                timestamp,
                error_message,
            })
        },
    );
    let bash = (any::<[String; 2]>(), any::<Option<i32>>(), any::<[bool; 3]>(), stamp.clone()).prop_map(
        |([command, output], exit_code, [cancelled, truncated, exclude_from_context], timestamp)| {
            Message::BashExecution(BashExecution {
                command,
                output,
                exit_code,
                cancelled,
                truncated,
                timestamp,
                exclude_from_context,
            })
        },
    );
    prop_oneof![
        (content(), stamp.clone())
            .prop_map(|(content, timestamp)| Message::User(User { content, timestamp })),
        assistant,
        (content(), any::<bool>(), stamp).prop_map(|(content, is_error, timestamp)| {
            let (tool_call_id, tool_name) = ("1".into(), "echo".into());
            Message::ToolResult(ToolResult { tool_call_id, tool_name, content, is_error, timestamp })
        }),
        bash,
    ]
}

/// An entry that refers to others by how far along the tree they are.
fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        6 => message().prop_map(|message| Body::Message { message }),
        1 => any::<[String; 2]>().prop_map(|[provider, model_id]| Body::ModelChange { provider, model_id }),
        1 => prop::sample::select(Thinking::ALL.to_vec())
            .prop_map(|thinking_level| Body::ThinkingLevelChange { thinking_level }),
        1 => (any::<String>(), any::<Place>(), any::<u32>()).prop_map(|(summary, first_kept, tokens)| {
            Body::Compaction { summary, first_kept, tokens_before: tokens.into() }
        }),
        1 => (any::<String>(), any::<Place>()).prop_map(|(summary, from)| Body::BranchSummary { summary, from }),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    let label = prop::option::weighted(0.2, "[a-zäöü€]{1,20}");
    let entry = (body(), label, any::<Place>(), 0..4_000_000_000_000_i64);
    prop::collection::vec(entry, 0..12).prop_map(|entries| {
        let mut tree = Tree::default();
        for (mut body, label, parent, at_ms) in entries {
            let own = tree.next();
            match &mut body {
                Body::Compaction { first_kept: other, .. } | Body::BranchSummary { from: other, .. } => {
                    *other %= own + 1;
                }
                Body::Message { .. } | Body::ModelChange { .. } | Body::ThinkingLevelChange { .. } => {}
            }
            let parent = (parent % (own + 1)).checked_sub(1);
            tree.push(Node { label, entry: Entry { parent, at_ms, body } });
        }
        tree
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn what_is_written_is_read_again(
        tree in tree(),
        leaf in any::<Place>(),
        name in prop::option::of("[a-z][a-z ä]{0,20}[a-z]"),
        parent in any::<Option<String>>(),
        created_ms in 0..4_000_000_000_000_i64,
    ) {
        let leaf = (leaf % (tree.next() + 1)).checked_sub(1);
        let header = header(name.clone(), parent.clone(), leaf);
        let text = write("some-id", created_ms, &header, &tree);
        let head = Head { id: "some-id".into(), created_ms, cwd: "/work".into(), parent };
        prop_assert_eq!(read(&text).unwrap(), Imported { head, name, tree, leaf, skipped: 0 });
    }

    #[test]
    fn nothing_in_a_file_breaks_the_reader(lines in prop::collection::vec(any::<String>(), 0..6), text in ".*") {
        let head = r#"{"type":"session","version":3,"id":"x","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/"}"#;
        let _ = read(&text);
        let _ = read(&[head, &lines.join("\n")].join("\n"));
        for line in lines {
            let _ = read(&format!("{head}\n{{\"type\":\"message\",\"id\":{}}}", json!(line)));
        }
    }
}

const HEAD: &str =
    r#"{"type":"session","version":3,"id":"x","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/work"}"#;

fn file(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    format!("{HEAD}\n{}\n", lines.join("\n"))
}

fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2024-12-03T14:00:01.000Z",
           "message": {"role": "user", "content": text}})
}

#[test]
fn a_file_of_another_program_is_read() {
    let text = file(&[
        user("any text", None, "hello"),
        json!({"type": "custom", "id": "c", "parentId": "any text", "customType": "x", "data": {}}),
        json!({"type": "message", "id": "b", "parentId": "c", "timestamp": "2024-12-03T14:00:02.000Z", "message": {
            "role": "assistant", "api": "x", "provider": "p", "model": "m", "stopReason": "stop", "timestamp": 5,
            "content": [{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, {"type": "hologram"},
                        {"type": "text", "text": "hi", "textSignature": "t"}],
            "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 10,
                      "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0, "total": 0.3}}}}),
        json!({"type": "message", "id": "d", "parentId": "b", "message": {"role": "custom", "content": "x"}}),
        json!({"type": "label", "id": "e", "parentId": "d", "targetId": "any text", "label": "start"}),
        json!({"type": "compaction", "id": "f", "parentId": "e", "summary": "s", "firstKeptEntryId": "d", "tokensBefore": 9}),
        json!({"type": "session_info", "id": "g", "parentId": "f", "name": " mine\u{7} "}),
    ]);
    let read = read(&text).unwrap();
    assert_eq!((read.name.as_deref(), read.skipped, read.leaf), (Some("mine"), 2, Some(2)));
    assert_eq!(read.tree.path(read.leaf), [0, 1, 2], "children of what was skipped hang on its parent");
    assert_eq!(read.tree.get(0).unwrap().label.as_deref(), Some("start"));
    let Some(Message::Assistant(assistant)) = read.tree.get(1).unwrap().entry.body.message() else {
        panic!("no answer")
    };
    assert_eq!((assistant.usage.cost, assistant.content.len()), (0.3, 2));
    assert_eq!(assistant.content[0], Block::Thinking { thinking: "hm".into(), signature: Some("s".into()) });
    let Body::Compaction { first_kept, .. } = read.tree.get(2).unwrap().entry.body else {
        panic!("no summary")
    };
    assert_eq!(first_kept, 2, "of what it keeps, nothing is known here");
    assert_eq!(read.tree.get(0).unwrap().entry.at_ms, 1_733_234_401_000);
}

#[test]
fn the_first_version_of_the_format_is_a_plain_list() {
    let text = [
        json!({"type": "session", "id": "x", "timestamp": "2024-12-03T14:00:00.000Z", "cwd": "/"}),
        json!({"type": "message", "timestamp": "2024-12-03T14:00:00.000Z", "message": {"role": "user", "content": "a"}}),
        json!({"type": "message", "timestamp": "2024-12-03T14:00:00.000Z", "message": {"role": "user", "content": "b"}}),
        json!({"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 1}),
    ]
    .map(|line| line.to_string())
    .join("\r\n");
    let read = read(&text).unwrap();
    assert_eq!((read.tree.path(read.leaf), read.leaf), (vec![0, 1, 2], Some(2)));
    let Body::Compaction { first_kept, .. } = read.tree.get(2).unwrap().entry.body else {
        panic!("no summary")
    };
    assert_eq!(first_kept, 1);
}

#[test]
fn damage_is_named_with_its_line() {
    let good = user("a", None, "hello");
    let torn = format!("{}{}", file(std::slice::from_ref(&good)), r#"{"type":"message","id":"b","#);
    let whole = [
        ("", 1, "the file is empty"),
        ("{}", 1, "a session file begins with a line of the type 'session'"),
        ("\n\nnot json", 3, "it is not JSON at column 2"),
        (r#"{"type":"session","version":4}"#, 1, "version 4 of the format is not known here"),
        (torn.as_str(), 3, "it is not JSON at column 27"),
    ];
    let lines = [
        (json!({"id": "b"}), "it has no type"),
        (user("b", Some("gone"), "x"), "its parent 'gone' does not come before it"),
        (user("a", None, "x"), "its id 'a' was used before"),
        (json!({"type": "message", "parentId": 1}), "its parentId must be a text or null"),
        (json!({"type": "message"}), "its message has no role"),
        (json!({"type": "model_change", "provider": "p"}), "its modelId must be a text"),
    ];
    let lines = lines.map(|(line, what)| (file(&[good.clone(), line]), 3, what));
    let all = whole.into_iter().map(|(text, line, what)| (text.to_owned(), line, what)).chain(lines);
    for (text, line, what) in all {
        let fault = read(&text).unwrap_err();
        assert_eq!(fault.message, format!("line {line}: {what}"));
        assert_eq!(fault.details.unwrap()["line"], line);
    }
}

#[test]
fn a_file_has_its_limits() {
    let long = format!("{HEAD}\n\"{}\"", "x".repeat(crate::limits::LINE_BYTES));
    assert!(read(&long).unwrap_err().message.starts_with("line 2: it is longer than"));
    let line = format!("{}\n", json!({"type": "model_change", "provider": "", "modelId": ""}));
    let many = usize::try_from(crate::limits::ENTRIES).unwrap();
    let full = format!("{HEAD}\n{}", line.repeat(many));
    assert_eq!(read(&full).unwrap().tree.next(), crate::limits::ENTRIES);
    assert!(read(&format!("{full}{line}")).unwrap_err().message.contains("more than 200000 entries"));
}
