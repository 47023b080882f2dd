//! `@orchestr8/knowledge`: reads, writes and asks the documents of whoever runs the workflow.

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault, limits};
use orchestr8_kernel::Kernel;
use orchestr8_kernel::submission::{Identity, Scope};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::child::{key, submit};
use super::members::{Members, wrong};
use super::{Agent, Answer, Call, Capability};

/// Keys of steps meet no keys of clients.
const SCOPE: &str = "workflow-knowledge";

/// One thing it can do: the action of the knowledge domain, and the members the action knows by the same name, and judges.
struct Operation {
    name: &'static str,
    action: &'static str,
    members: &'static [&'static str],
    writes: bool,
    /// The tool of clients that reads the same.
    tool: Option<&'static str>,
}

macro_rules! operation {
    ($name:literal, $action:literal, $writes:literal, [$($member:literal),*], $tool:expr) => {
        Operation {
            name: $name, action: concat!("knowledge.", $action), members: &[$($member),*], writes: $writes, tool: $tool,
        }
    };
}

#[rustfmt::skip]
const OPERATIONS: [Operation; 12] = [
    operation!("query", "query_knowledge", false, ["query", "filters", "top_k", "context_hints", "routing"], Some("search_knowledge")),
    operation!("get", "get_document", false, ["document_id", "full", "revision"], Some("get_document")),
    operation!("get_many", "get_many", false, ["ids", "full"], Some("get_document")),
    operation!("list", "list", false, ["prefix", "deleted", "cursor", "limit"], Some("list_documents")),
    operation!("children", "list_children", false, ["parent_id", "cursor", "limit"], Some("list_documents")),
    operation!("history", "document_history", false, ["document_id", "before_revision", "limit"], None),
    operation!("create", "create_document", true,
        ["document_id", "parent_id", "content", "metadata", "is_human_readable", "created_at"], None),
    operation!("update", "update_document", true, ["document_id", "patch", "update_mask", "last_known_revision"], None),
    operation!("edit", "edit", true, ["document_id", "old_str", "new_str", "last_known_revision"], None),
    operation!("move", "move_document", true, ["document_id", "new_parent_id", "position", "last_known_revision"], None),
    operation!("delete", "delete_document", true, ["document_id", "reason", "delete_at", "last_known_revision"], None),
    operation!("restore", "restore_document", true, ["document_id"], None),
];

/// Short ways to say what a document is.
const TITLE: &str = "title";
const BODY: &str = "body";
const TAGS: &str = "tags";
const MIME: &str = "mime_type";
const SHORT: [&str; 4] = [TITLE, BODY, TAGS, MIME];

pub struct Knowledge {
    kernel: Kernel,
}

impl Knowledge {
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel }
    }
}

impl Agent for Knowledge {
    fn id(&self) -> &str {
        "@orchestr8/knowledge"
    }

    fn about(&self) -> &str {
        "Reads, writes and asks documents: {operation: \"query\", query} gives {response, context}; also get, create, update, edit, move, delete and more."
    }

    fn capability(&self, input: &Value, config: &Value) -> Capability {
        let named = Members::peek(input, config).text("operation").ok().flatten().unwrap_or_default();
        let operation = OPERATIONS.iter().find(|operation| operation.name == named);
        let same_as = operation.map(|operation| std::iter::once(operation.action).chain(operation.tool));
        Capability::Agent { same_as: same_as.into_iter().flatten().collect() }
    }

    fn target(&self, input: &Value, config: &Value) -> Option<String> {
        Members::peek(input, config).text("operation").ok()?.map(str::to_owned)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let kernel = self.kernel.clone();
        async move {
            let (operation, args) = arguments(&call)?;
            if kernel.registry().find(operation.action).is_none() {
                return Err(Fault::new(Code::Configuration, "knowledge is not a part of this server"));
            }
            // One for each attempt: after a crash the attempt is answered from the ledger, while a retry really runs.
            let identity = || {
                let key = key(&format!("{}#{}", call.key, call.attempt))?;
                Ok::<_, Fault>(Identity { scope: Scope(SCOPE.into()), key, ttl_ms: limits::KEY_TTL_MS })
            };
            let identity = operation.writes.then(identity).transpose()?;
            submit(&kernel, operation.action, args, &call, identity).await.map(Answer::from)
        }
        .boxed()
    }
}

fn arguments(call: &Call) -> Result<(&'static Operation, Map<String, Value>), Fault> {
    let named = Members::peek(&call.input, &call.config).needed_text("operation")?;
    let Some(operation) = OPERATIONS.iter().find(|operation| operation.name == named) else {
        let shown: String = named.chars().take(64).collect();
        let known: Vec<&str> = OPERATIONS.iter().map(|operation| operation.name).collect();
        let message = format!("there is no operation `{shown}`; there are {}", known.join(", "));
        return Err(Fault::invalid(message).with("path", "operation"));
    };
    let short: &[&str] = match operation.name {
        "create" | "update" => &SHORT,
        _ => &[],
    };
    let known: Vec<&str> = ["operation"].iter().chain(operation.members).chain(short).copied().collect();
    let members = Members::read(&call.input, &call.config, &known)?;
    let mut args = Map::new();
    for name in operation.members {
        args.extend(members.get(name).map(|value| ((*name).to_owned(), value.clone())));
    }
    match operation.name {
        "create" => fill_in(&mut args, &members, call)?,
        "update" => patch(&mut args, &members)?,
        _ => {}
    }
    Ok((operation, args))
}

/// What a new document is without anybody saying so. Its id is the same for every attempt of the step: it is made once.
fn fill_in(args: &mut Map<String, Value>, members: &Members<'_>, call: &Call) -> Result<(), Fault> {
    args.entry("document_id").or_insert_with(|| id_of(&call.key).into());
    args.entry("parent_id").or_insert_with(|| "root".into());
    if !args.contains_key("content") {
        let mime = members.text(MIME)?.unwrap_or("text/markdown");
        args.insert(
            "content".to_owned(),
            json!({"mime_type": mime, "body": body(members)?.unwrap_or_default()}),
        );
    }
    let metadata = args.entry("metadata").or_insert_with(|| json!({}));
    for name in [TITLE, TAGS] {
        if let (Some(value), Some(metadata)) = (members.get(name), metadata.as_object_mut()) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    Ok(())
}

/// What is to change, said in short.
fn patch(args: &mut Map<String, Value>, members: &Members<'_>) -> Result<(), Fault> {
    let (mut mask, mut patch) = (Vec::new(), json!({}));
    if let Some(body) = body(members)? {
        mask.push("content.body");
        patch["content"]["body"] = body.into();
    }
    if let Some(mime) = members.text(MIME)? {
        mask.push("content.mime_type");
        patch["content"]["mime_type"] = mime.into();
    }
    for (name, path) in [(TITLE, "metadata.title"), (TAGS, "metadata.tags")] {
        if let Some(value) = members.get(name) {
            mask.push(path);
            patch["metadata"][name] = value.clone();
        }
    }
    if mask.is_empty() {
        return Ok(());
    }
    if args.contains_key("patch") {
        return Err(Fault::invalid("`patch` says what is to change; leave the short members out")
            .with("path", "patch"));
    }
    args.insert("patch".to_owned(), patch);
    args.insert("update_mask".to_owned(), json!(mask));
    Ok(())
}

/// The output of another step may be given as it is.
fn body(members: &Members<'_>) -> Result<Option<String>, Fault> {
    match members.get(BODY) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(value @ (Value::Object(_) | Value::Array(_))) => Ok(Some(value.to_string())),
        Some(other) => Err(wrong(BODY, "a text, an object or a list", other)),
    }
}

fn id_of(key: &str) -> String {
    let hash = Sha256::digest(format!("orchestr8-step\n{key}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().hyphenated().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::tests::World;

    fn args(input: Value) -> Result<(&'static str, Value), Fault> {
        let (operation, args) = arguments(&World::new().call("@orchestr8/knowledge", input))?;
        Ok((operation.action, Value::Object(args)))
    }

    #[tokio::test]
    async fn a_new_document_has_the_same_id_for_every_attempt() {
        let input = json!({"operation": "create", "title": "T", "body": {"a": 1}, "tags": ["x"]});
        let (action, first) = args(input.clone()).unwrap();
        assert_eq!(action, "knowledge.create_document");
        assert_eq!(first["metadata"], json!({"title": "T", "tags": ["x"]}));
        assert_eq!(first["content"], json!({"mime_type": "text/markdown", "body": "{\"a\":1}"}));
        assert_eq!((first["parent_id"].as_str(), args(input).unwrap().1), (Some("root"), first.clone()));
    }

    #[tokio::test]
    async fn an_update_can_be_said_in_short() {
        let input = json!({"operation": "update", "document_id": "d", "body": "b", "title": "t"});
        let (_, args) = args(input).unwrap();
        assert_eq!(args["update_mask"], json!(["content.body", "metadata.title"]));
        assert_eq!(args["patch"], json!({"content": {"body": "b"}, "metadata": {"title": "t"}}));
    }

    #[tokio::test]
    async fn what_is_unknown_is_named() {
        let fault = args(json!({"operation": "burn"})).unwrap_err();
        assert!(fault.message.contains("there is no operation `burn`; there are query, get"), "{fault}");
        let fault = args(json!({"operation": "query", "qurey": "x"})).unwrap_err();
        assert!(fault.message.contains("input has no member `qurey`"), "{fault}");
        assert!(args(json!({})).unwrap_err().message.contains("`operation` is missing"));
        let both = json!({"operation": "update", "document_id": "d", "patch": {}, "body": "x"});
        assert!(args(both).is_err());
    }
}
