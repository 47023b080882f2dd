//! A kernel with knowledge, and calls as a face would submit them.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::store::{Row, Statement, Store};
use orchestr8_kernel::{Args, Kernel, Principal, Settled, Submission};
use orchestr8_knowledge::{Hub, Meaning, Settings, actions, tables};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Parts, memory, settled};
use serde_json::{Value, json};

#[derive(Clone)]
pub struct World {
    pub kernel: Kernel,
    pub hub: Hub,
    pub store: Sqlite,
}

/// The id of the n-th document.
pub fn id(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

impl World {
    pub fn new() -> Self {
        Self::with(memory(&[tables::MIGRATIONS]), Settings::default())
    }

    pub fn with(store: Sqlite, settings: Settings) -> Self {
        Self::from_parts(Parts::on(Arc::new(store.clone())), store, settings)
    }

    pub fn from_parts(parts: Parts, store: Sqlite, settings: Settings) -> Self {
        Self::made(parts, store, |kernel| Hub::new(kernel, settings))
    }

    /// With a search by meaning.
    pub fn meaning(parts: Parts, store: Sqlite, meaning: Meaning) -> Self {
        Self::made(parts, store, |kernel| Hub::with_meaning(kernel, Settings::default(), meaning))
    }

    fn made(parts: Parts, store: Sqlite, hub: impl FnOnce(Kernel) -> Hub) -> Self {
        let kernel = Parts { ids: Arc::new(orchestr8_kernel::ports::ids::Random), ..parts }.kernel();
        let hub = hub(kernel.clone());
        for action in actions::all(&hub).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        Self { kernel, hub, store }
    }

    pub fn submission(tenant: &str, role: &str, name: &str, args: Value) -> Submission {
        let Value::Object(map) = args else { panic!("arguments are an object") };
        let roles = orchestr8_contract::RoleSet::named([role]);
        let principal = Principal::new("tester", Tenant::parse(tenant).unwrap(), roles);
        let correlation = CorrelationId::parse("test").unwrap();
        Submission::new(name, Args::new(map), Arc::new(principal), correlation)
    }

    pub async fn settle_as(&self, tenant: &str, role: &str, name: &str, args: Value) -> Settled {
        self.kernel.submit(Self::submission(tenant, role, name, args)).await
    }

    pub async fn settle(&self, name: &str, args: Value) -> Settled {
        self.settle_as("acme", "owner", &format!("knowledge.{name}"), args).await
    }

    pub async fn ask(&self, name: &str, args: Value) -> Value {
        settled::value(self.settle(name, args).await)
    }

    pub async fn fault(&self, name: &str, args: Value) -> Fault {
        settled::fault(self.settle(name, args).await)
    }

    pub async fn code(&self, name: &str, args: Value) -> Code {
        self.fault(name, args).await.code
    }

    /// A document with this title and text below a parent.
    pub async fn put(&self, n: usize, parent: &str, title: &str, body: &str) -> Value {
        self.ask("create_document", document(n, parent, title, body)).await
    }

    /// The titles of the children, in order.
    pub async fn children(&self, parent: &str) -> Vec<String> {
        let list = self.ask("list_children", json!({"parent_id": parent})).await;
        list["children"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["title"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The titles of what a query finds, best first.
    pub async fn find(&self, args: Value) -> Vec<String> {
        let found = self.ask("query_knowledge", args).await;
        let title = |one: &Value| one["metadata"]["title"].as_str().unwrap().to_owned();
        found["context"].as_array().unwrap().iter().map(title).collect()
    }

    pub async fn rows(&self, sql: &'static str) -> Vec<Row> {
        self.store.query(Statement::new(sql, vec![])).await.unwrap()
    }
}

pub fn document(n: usize, parent: &str, title: &str, body: &str) -> Value {
    json!({"document_id": id(n), "parent_id": parent, "content": {"mime_type": "text/markdown", "body": body},
           "metadata": {"title": title}})
}
