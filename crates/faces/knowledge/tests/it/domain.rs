//! Actions with the names and shapes of knowledge, over a tree in memory: enough for the face to have something to say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{Effect, Slotting};
use orchestr8_kernel::{Action, Context, Halt, Kernel, Policy, Reply};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// A document is `{body, mime_type, title, parent, revision, deleted}`.
type Tree = BTreeMap<(String, String), Value>;

/// What outlives a restart of the face.
#[derive(Clone, Default)]
pub struct Domain {
    tree: Arc<Mutex<Tree>>,
    /// How often each action ran.
    runs: Arc<Mutex<BTreeMap<String, usize>>>,
    pub release: Arc<Notify>,
}

const WRITERS: &[&str] = &["owner", "editor"];
const CREATORS: &[&str] = &["owner", "editor", "agent"];
const READERS: &[&str] = &["owner", "editor", "viewer", "agent"];

/// Every action with who may run it, and whether it changes anything.
const ACTIONS: [(&str, &[&str], bool); 17] = [
    ("knowledge.create_document", CREATORS, true),
    ("knowledge.update_document", WRITERS, true),
    ("knowledge.delete_document", WRITERS, true),
    ("knowledge.move_document", WRITERS, true),
    ("knowledge.restore_document", WRITERS, true),
    ("knowledge.query_knowledge", READERS, false),
    ("knowledge.get_document", READERS, false),
    ("knowledge.list_children", READERS, false),
    ("knowledge.document_history", READERS, false),
    ("knowledge.list", READERS, false),
    ("knowledge.get_many", READERS, false),
    ("knowledge.edit", WRITERS, true),
    ("knowledge.webhooks_list", READERS, false),
    ("knowledge.webhooks_add", WRITERS, true),
    ("knowledge.webhooks_remove", WRITERS, true),
    ("test.slow", WRITERS, true),
    ("test.langroid", READERS, false),
];

impl Domain {
    pub fn register(&self, kernel: &Kernel) {
        for (name, roles, writes) in ACTIONS {
            let policy = if writes { Policy::stored() } else { Policy::read() };
            let policy = Policy { roles, slotting: Slotting::Free, ..policy };
            assert_eq!(policy.effect != Effect::Read, writes);
            let domain = self.clone();
            let work = move |args: orchestr8_kernel::Args, context: Context| {
                let domain = domain.clone();
                async move { domain.run(name, args.into_value(), context).await }
            };
            let mut action =
                Action::tool(name, "What it is for.", schema(name), policy, work).unwrap().hidden();
            action.about.version = Some("1.0.0".into());
            action.about.meta = meta(name);
            kernel.registry().register(action).unwrap();
        }
    }

    pub fn runs(&self, action: &str) -> usize {
        self.runs.lock().unwrap().get(action).copied().unwrap_or(0)
    }

    async fn run(&self, name: &'static str, args: Value, context: Context) -> Result<Reply, Halt> {
        *self.runs.lock().unwrap().entry(name.to_owned()).or_default() += 1;
        if name == "test.slow" {
            tokio::select! {
                () = self.release.notified() => {}
                () = context.cancel.fired() => return Err(Fault::new(Code::Cancelled, "stopped").into()),
            }
            if args["fail"] == true {
                return Err(Fault::new(Code::Unavailable, "it did not work").into());
            }
        }
        let tenant = context.principal.tenant.as_str().to_owned();
        Ok(Output::json(self.answer(name, &args, tenant)?).into())
    }

    fn answer(&self, name: &str, args: &Value, tenant: String) -> Result<Value, Fault> {
        let mut tree = self.tree.lock().unwrap();
        let id = args["document_id"].as_str().unwrap_or_default().to_owned();
        let at = (tenant.clone(), id.clone());
        match name {
            "knowledge.create_document" => create(&mut tree, at, args),
            "knowledge.query_knowledge" => Ok(query(args)),
            "knowledge.list" => {
                let ids: Vec<&String> = tree.keys().filter(|key| key.0 == tenant).map(|key| &key.1).collect();
                Ok(json!({"documents": ids, "asked": args}))
            }
            "knowledge.get_many"
            | "knowledge.webhooks_list"
            | "knowledge.webhooks_add"
            | "knowledge.webhooks_remove" => Ok(json!({"asked": args})),
            "test.slow" => Ok(json!({"done": true})),
            "test.langroid" => Ok(args.clone()),
            _ => {
                let document = tree.get_mut(&at).ok_or_else(|| missing(&id))?;
                known(name, &id, document, args)
            }
        }
    }
}

fn missing(id: &str) -> Fault {
    Fault::new(Code::NotFound, format!("there is no document {id}"))
}

fn create(tree: &mut Tree, at: (String, String), args: &Value) -> Result<Value, Fault> {
    let parent = args["parent_id"].as_str().unwrap_or_default().to_owned();
    if parent != "root" && !tree.contains_key(&(at.0.clone(), parent.clone())) {
        return Err(missing(&parent));
    }
    if tree.contains_key(&at) {
        return Err(Fault::new(Code::StateConflict, "there is such a document already"));
    }
    let document = json!({"body": args["content"]["body"], "mime_type": args["content"]["mime_type"], "parent": parent, "revision": 1});
    let id = at.1.clone();
    tree.insert(at, document);
    Ok(json!({"id": id, "revision": 1}))
}

fn query(args: &Value) -> Value {
    let noop = args["routing"]["noop_qdrant"] == true;
    let context = if noop { json!([]) } else { json!([{"document_id": "d", "snippet": "s"}]) };
    let hits = if noop { 0 } else { 1 };
    json!({"response": if noop { "" } else { "s" }, "context": context, "usage": {"latency_ms": 0, "qdrant_hits": hits, "lexical_hits": hits}})
}

fn known(name: &str, id: &str, document: &mut Value, args: &Value) -> Result<Value, Fault> {
    let revision = document["revision"].as_i64().unwrap();
    if let Some(expected) = args["last_known_revision"].as_i64().filter(|expected| *expected != revision) {
        let fault = Fault::new(Code::VersionMismatch, "the document has changed since");
        return Err(fault.with("expected_revision", expected).with("actual", revision));
    }
    match name {
        "knowledge.update_document" => {
            document["revision"] = (revision + 1).into();
            if let Some(body) = args["patch"]["content"].get("body") {
                document["body"] = body.clone();
            }
            Ok(json!({"id": id, "revision": revision + 1}))
        }
        "knowledge.delete_document" => {
            Ok(json!({"id": id, "deleted": true, "purge_at": "2026-04-01T00:00:00.000Z"}))
        }
        "knowledge.move_document" | "knowledge.restore_document" => {
            Ok(json!({"id": id, "revision": revision, "parent_id": document["parent"], "ordering": 0}))
        }
        "knowledge.get_document" => Ok(json!({
            "id": id, "revision": revision,
            "content": {"mime_type": document["mime_type"], "body": document["body"]},
            "content_length": document["body"].as_str().unwrap().chars().count(),
        })),
        "knowledge.list_children" => Ok(json!({"children": []})),
        "knowledge.document_history" => Ok(json!({"revisions": [{"revision": revision}]})),
        "knowledge.edit" => edit(id, document, args),
        other => panic!("no action {other}"),
    }
}

fn edit(id: &str, document: &mut Value, args: &Value) -> Result<Value, Fault> {
    let (old, new) = (args["old_str"].as_str().unwrap(), args["new_str"].as_str().unwrap());
    let body = document["body"].as_str().unwrap().to_owned();
    match body.matches(old).count() {
        0 => Err(Fault::new(Code::NotFound, "the text is not there").with("reason", "not_found_in_content")),
        1 => {
            document["body"] = body.replace(old, new).into();
            document["revision"] = (document["revision"].as_i64().unwrap() + 1).into();
            Ok(json!({"id": id, "revision": document["revision"]}))
        }
        count => {
            let fault = Fault::new(Code::StateConflict, "the text is there more than once");
            Err(fault.with("reason", "ambiguous").with("occurrences", count))
        }
    }
}

fn meta(name: &str) -> Map<String, Value> {
    let meta = match name {
        "knowledge.create_document" | "knowledge.update_document" => json!({"max_payload_bytes": 131_072}),
        "knowledge.query_knowledge" => json!({"max_payload_bytes": 65_536}),
        "test.slow" => json!({"a2a": true}),
        "test.langroid" => json!({"a2a": true, "executor": "langroid"}),
        _ => json!({}),
    };
    meta.as_object().unwrap().clone()
}

/// The seed's schemas of the arguments, as far as the face's tests reach (KNO-8).
fn schema(name: &str) -> Value {
    let id = json!({"type": "string", "format": "uuid"});
    match name {
        "knowledge.create_document" => json!({
            "type": "object", "required": ["document_id", "parent_id", "content", "metadata"],
            "properties": {
                "document_id": id, "parent_id": {"type": "string"},
                "content": {"type": "object", "required": ["mime_type", "body"], "properties": {
                    "mime_type": {"enum": ["text/markdown", "text/plain", "application/json"]}, "body": {"type": "string"}}},
                "metadata": {"type": "object", "required": ["title"]},
            },
        }),
        "knowledge.update_document" => {
            json!({"type": "object", "required": ["document_id", "patch", "update_mask"], "properties": {"document_id": id}})
        }
        "knowledge.query_knowledge" => {
            json!({"type": "object", "required": ["query"], "properties": {"query": {"type": "string", "maxLength": 2048}}})
        }
        _ => json!({"type": "object"}),
    }
}
