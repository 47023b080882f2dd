//! What servers say about tasks, put where the library lets it through.
//!
//! The library knows tasks of the current revision only. Of the older one (2025-11-25) it drops what a tool says about tasks
//! and what a server can do with them, and takes a task for the empty result of a tool. So a message is looked at before the
//! library reads it: a fact about a tool goes to the tool's `_meta`, one about the server to its extensions, and a task, of
//! whichever revision, into a member that nobody else uses, so that it arrives as it was sent.

use rmcp::model::{ServerResult, TASKS_EXTENSION_ID, Tool};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The key by which the older revision ties questions and results to their task.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Whether a tool runs as a task, in the `_meta` of its definition.
const SUPPORT: &str = "orchestr8/taskSupport";

/// The tools of a list that could not be read, in the `_meta` of the list.
const MALFORMED: &str = "orchestr8/malformedTools";

/// The member a task is put into.
const TASK: &str = "orchestr8/task";

/// What is shown of the name of a tool that cannot be read.
const NAMED: usize = 128;

/// Whether a tool of another server runs as a task there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    Forbidden,
    Optional,
    Required,
}

/// The message as the library should read it; nothing when it may stay as it is.
pub fn lift(text: &str) -> Option<String> {
    const SIGNS: [&str; 4] = ["\"taskId\"", "\"taskSupport\"", "\"tasks\"", "\"tools\""];
    if !SIGNS.iter().any(|sign| text.contains(sign)) {
        return None;
    }
    let mut message: Value = serde_json::from_str(text).ok()?;
    let result = message.get_mut("result")?.as_object_mut()?;
    let is_lifted = lift_task(result) || lift_tools(result) || lift_capability(result);
    let is_parted = part_malformed_tools(result);
    (is_lifted || is_parted).then(|| message.to_string())
}

fn lift_task(result: &mut Map<String, Value>) -> bool {
    let is_task = |task: &Map<String, Value>| task.get("taskId").is_some_and(Value::is_string);
    if result.contains_key("content") {
        return false;
    }
    let task = if is_task(result) {
        std::mem::take(result)
    } else {
        match result.remove("task") {
            Some(Value::Object(task)) if is_task(&task) => task,
            Some(other) => {
                result.insert("task".into(), other);
                return false;
            }
            None => return false,
        }
    };
    *result = Map::from_iter([(TASK.to_owned(), Value::Object(task))]);
    true
}

fn lift_tools(result: &mut Map<String, Value>) -> bool {
    let mut is_lifted = false;
    let tools = result.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
        let Some(support) = tool.get("execution").and_then(|execution| execution.get("taskSupport")).cloned()
        else {
            continue;
        };
        if let Value::Object(meta) = tool.entry("_meta").or_insert_with(|| json!({})) {
            meta.insert(SUPPORT.into(), support);
            is_lifted = true;
        }
    }
    is_lifted
}

/// Takes tools out of a list that the library cannot read: it would refuse the whole list because of one.
fn part_malformed_tools(result: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(tools)) = result.get_mut("tools") else { return false };
    let mut malformed = Vec::new();
    tools.retain(|tool| match Tool::deserialize(tool) {
        Ok(_) => true,
        Err(error) => {
            let name: String = tool["name"].as_str().unwrap_or("(unnamed)").chars().take(NAMED).collect();
            malformed.push(json!({"tool": name, "why": format!("its definition is malformed: {error}")}));
            false
        }
    });
    if malformed.is_empty() {
        return false;
    }
    if !result.get("_meta").is_some_and(Value::is_object) {
        result.insert("_meta".into(), json!({}));
    }
    result["_meta"][MALFORMED] = malformed.into();
    true
}

/// The tools that were taken out of a list, each with the reason.
pub fn malformed_tools(meta: &Value) -> Vec<(String, String)> {
    let text = |tool: &Value, name: &str| tool[name].as_str().unwrap_or_default().to_owned();
    let tools = meta.get(MALFORMED).and_then(Value::as_array);
    tools.into_iter().flatten().map(|tool| (text(tool, "tool"), text(tool, "why"))).collect()
}

/// A server that has tasks says for which requests.
fn lift_capability(result: &mut Map<String, Value>) -> bool {
    let Some(Value::Object(capabilities)) = result.get_mut("capabilities") else { return false };
    let calls = capabilities.get("tasks").and_then(|tasks| tasks.pointer("/requests/tools/call"));
    if !calls.is_some_and(Value::is_object) {
        return false;
    }
    match capabilities.entry("extensions").or_insert_with(|| json!({})) {
        Value::Object(extensions) => {
            extensions.entry(TASKS_EXTENSION_ID).or_insert_with(|| json!({}));
            true
        }
        _ => false,
    }
}

/// The task that a server answered with, if it did.
pub fn task(result: &ServerResult) -> Option<&Value> {
    match result {
        ServerResult::CustomResult(custom) => custom.0.get(TASK),
        // All others are what they say.
        _ => None,
    }
}

/// What a tool says of itself. Words that nobody knows mean the default.
pub fn support(tool: &Tool) -> Support {
    let said = tool.meta.as_ref().and_then(|meta| meta.get(SUPPORT)).and_then(Value::as_str);
    match said {
        Some("optional") => Support::Optional,
        Some("required") => Support::Required,
        Some(_) | None => Support::Forbidden,
    }
}

/// Forgets what a tool says of itself: without a server that has tasks it means nothing.
pub fn forget_support(tool: &mut Tool) {
    if let Some(meta) = &mut tool.meta {
        meta.remove(SUPPORT);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::ServerJsonRpcMessage;

    use super::*;

    /// Values made of the names that matter here, in every wrong place.
    fn anything() -> impl Strategy<Value = Value> {
        let name = || {
            prop::sample::select(vec![
                "taskId",
                "task",
                "tasks",
                "tools",
                "execution",
                "taskSupport",
                "capabilities",
                "requests",
                "call",
                "content",
                "_meta",
                "extensions",
                "other",
            ])
        };
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 48, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name().prop_map(str::to_owned), inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

        /// Whatever a server says, it stays a message under its id, and only its result is another.
        #[test]
        fn whatever_a_server_says_stays_a_message(result in anything(), error in anything()) {
            let message = json!({"jsonrpc": "2.0", "id": 7, "result": result, "error": error});
            if let Some(lifted) = lift(&message.to_string()) {
                let mut lifted: Value = serde_json::from_str(&lifted).unwrap();
                prop_assert!(lifted["result"].is_object());
                lifted["result"] = message["result"].clone();
                prop_assert_eq!(lifted, message);
            }
        }

        /// What is no JSON is left to the library to refuse.
        #[test]
        fn what_is_no_message_is_left_as_it_is(text in ".{0,40}") {
            let text = format!("{text}\"taskId\"");
            prop_assert!(lift(&text).is_none());
        }
    }

    /// The result as the library reads it.
    fn read(result: &Value) -> ServerResult {
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
        let text = lift(&text).unwrap_or(text);
        match serde_json::from_str(&text).unwrap() {
            ServerJsonRpcMessage::Response(response) => response.result,
            other => panic!("a response, not {other:?}"),
        }
    }

    #[test]
    fn a_task_arrives_as_it_was_sent_in_either_revision() {
        let meta = json!({"io.modelcontextprotocol/model-immediate-response": "started"});
        let old =
            json!({"taskId": "t", "status": "completed", "ttl": 5, "pollInterval": 7, "createdAt": "x"});
        let new =
            json!({"resultType": "task", "taskId": "t", "status": "working", "ttlMs": null, "_meta": meta});
        for (result, expected) in [
            (json!({"task": old, "_meta": meta}), &old),
            (old.clone(), &old),
            (new.clone(), &new),
            (json!({"taskId": "t"}), &json!({"taskId": "t"})),
        ] {
            assert_eq!(task(&read(&result)), Some(expected), "{result}");
        }
    }

    #[test]
    fn what_is_no_task_stays_as_it_is() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"taskId":"t","task":{"taskId":"t"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":7},"tasks":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":{"taskId":"t"}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"taskId\":1}"}]}}"#,
            r#"{"taskId" no json"#,
        ] {
            assert_eq!(lift(text), None, "{text}");
        }
    }

    #[test]
    fn malformed_tools_are_parted_from_their_list() {
        let good = json!({"name": "good", "inputSchema": {"type": "object"}});
        let bad = json!({"name": "bad", "inputSchema": null});
        let ServerResult::ListToolsResult(listed) =
            read(&json!({"tools": [bad, good, 7, {"name": "odd", "inputSchema": {}, "_meta": 7}]}))
        else {
            panic!("a list")
        };
        assert_eq!(listed.tools.len(), 1);
        let meta = serde_json::to_value(&listed.meta).unwrap();
        let malformed = malformed_tools(&meta);
        let names: Vec<&str> = malformed.iter().map(|(tool, _)| tool.as_str()).collect();
        assert_eq!(names, ["bad", "(unnamed)", "odd"]);
        assert!(malformed[0].1.contains("malformed"), "{malformed:?}");
    }

    #[test]
    fn tools_and_servers_tell_what_they_do_with_tasks() {
        let tool = |support: &str| json!({"name": support, "inputSchema": {}, "execution": {"taskSupport": support}});
        let tools = json!({"tools": [tool("optional"), tool("required"), tool("forbidden"), tool("odd"), {"name": "a", "inputSchema": {}}]});
        let ServerResult::ListToolsResult(mut listed) = read(&tools) else { panic!("a list") };
        let said: Vec<Support> = listed.tools.iter().map(support).collect();
        let none = Support::Forbidden;
        assert_eq!(said, [Support::Optional, Support::Required, none, none, none]);
        listed.tools.iter_mut().for_each(forget_support);
        assert!(listed.tools.iter().all(|tool| support(tool) == none));
        for (tasks, expected) in [
            (json!({"requests": {"tools": {"call": {}}}}), true),
            (json!({"list": {}}), false),
            (json!(7), false),
        ] {
            let result = json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                "capabilities": {"tools": {}, "tasks": tasks}});
            let ServerResult::InitializeResult(info) = read(&result) else {
                panic!("an answer to initialize")
            };
            assert_eq!(info.capabilities.supports_tasks(), expected, "{result}");
        }
    }
}
