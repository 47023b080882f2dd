//! The index on a Qdrant server: one collection for each model of a deployment, with the tenant as an indexed key, and beside it
//! one that says up to which change of each tenant it has come.

mod call;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Kernel;
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::retrieval::dense::{Dense, Embedder, Near, Point};
use call::Caller;

/// Points that are sent at once: about two megabytes.
const POINTS: usize = 256;

/// Points that are listed at once.
const LISTED: usize = 10_000;

/// How far a search looks around in the graph. With this it finds more than 98 of 100 that an exact one finds.
const LOOKED_AT: usize = 128;

/// Characters of a model's name that a collection's name shows.
const NAME_CHARS: usize = 40;

/// Where the server is.
#[derive(Clone)]
pub struct Settings {
    pub url: Url,
    pub key: Option<String>,
    /// What the names of its collections begin with: deployments that share a server have different ones.
    pub collection: String,
}

/// The address of a server, if it is one: http or https, with a host.
pub fn address(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// A handle to the server. Clones share it.
#[derive(Clone)]
pub struct Qdrant(Arc<Shared>);

struct Shared {
    caller: Caller,
    vectors: String,
    positions: String,
    dimensions: usize,
    /// Whether the collections are known to be there.
    ready: AtomicBool,
}

impl Qdrant {
    pub fn new(kernel: &Kernel, settings: &Settings, embedder: &dyn Embedder) -> Self {
        let vectors = collection(&settings.collection, embedder.name(), embedder.dimensions());
        Self(Arc::new(Shared {
            caller: Caller::new(kernel, settings),
            positions: format!("{vectors}_positions"),
            vectors,
            dimensions: embedder.dimensions(),
            ready: AtomicBool::new(false),
        }))
    }

    /// Whether the server answers.
    pub async fn reach(&self) -> Result<(), Fault> {
        self.0.caller.call(Method::GET, "collections", None).await.map(drop)
    }
}

/// The name of the collection for a model.
fn collection(prefix: &str, model: &str, dimensions: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let shown: String = model.chars().map(plain).take(NAME_CHARS).collect();
    let hash = Sha256::digest(format!("{model}\n{dimensions}").as_bytes());
    let short: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}_{shown}_{short}")
}

/// The point that holds a tenant's position.
fn position_id(tenant: &str) -> String {
    let hash = Sha256::digest(tenant.as_bytes());
    let bytes: [u8; 16] = std::array::from_fn(|at| hash[at]);
    Uuid::from_bytes(bytes).to_string()
}

fn of_tenant(tenant: &str) -> Value {
    json!({"key": "tenant", "match": {"value": tenant}})
}

impl Shared {
    /// Makes the collections if they are not there. Positions without vectors would be a lie, so they go together.
    async fn prepare(&self) -> Result<(), Fault> {
        if self.ready.load(Ordering::Acquire) {
            return Ok(());
        }
        let there = self.caller.try_call(Method::GET, &format!("collections/{}", self.vectors), None).await?;
        match there {
            Some(answer) => {
                let size = answer.pointer("/result/config/params/vectors/size").and_then(Value::as_u64);
                if size != u64::try_from(self.dimensions).ok() {
                    let message = format!("the collection {} holds vectors of another length", self.vectors);
                    return Err(Fault::new(Code::Configuration, message)
                        .with("hint", "give this deployment a knowledge.vectors.collection of its own"));
                }
            }
            None => {
                self.caller
                    .try_call(Method::DELETE, &format!("collections/{}", self.positions), None)
                    .await?;
                let shape = json!({"vectors": {"size": self.dimensions, "distance": "Cosine"}});
                self.create(&self.vectors, shape).await?;
                for (name, schema) in [
                    ("tenant", json!({"type": "keyword", "is_tenant": true})),
                    ("document", json!({"type": "keyword"})),
                ] {
                    let body = json!({"field_name": name, "field_schema": schema});
                    let path = format!("collections/{}/index?wait=true", self.vectors);
                    self.caller.call(Method::PUT, &path, Some(&body)).await?;
                }
            }
        }
        let path = format!("collections/{}", self.positions);
        if self.caller.try_call(Method::GET, &path, None).await?.is_none() {
            self.create(&self.positions, json!({"vectors": {}})).await?;
        }
        self.ready.store(true, Ordering::Release);
        Ok(())
    }

    async fn create(&self, name: &str, shape: Value) -> Result<(), Fault> {
        let path = format!("collections/{name}");
        match self.caller.send(Method::PUT, &path, Some(&shape)).await? {
            // Another process was faster.
            (StatusCode::CONFLICT, _) => Ok(()),
            (status, answer) => call::accepted(status, answer).map(drop),
        }
    }

    /// Calls the server about a collection that should be there. If it is not, all is made anew with the next call.
    async fn about(&self, method: Method, name: &str, what: &str, body: &Value) -> Result<Value, Fault> {
        self.prepare().await?;
        let path = format!("collections/{name}/{what}");
        let answer = self.caller.try_call(method, &path, Some(body)).await?;
        answer.ok_or_else(|| {
            self.ready.store(false, Ordering::Release);
            Fault::new(Code::Unavailable, "the vector server has lost its collection; it is filled anew")
        })
    }

    async fn upsert(&self, tenant: &str, points: &[Point]) -> Result<(), Fault> {
        let kept: Vec<&Point> =
            points.iter().filter(|point| point.vector.iter().any(|x| *x != 0.0)).collect();
        for some in kept.chunks(POINTS) {
            let list: Vec<Value> = some
                .iter()
                .map(|point| {
                    json!({"id": point.passage, "vector": point.vector,
                           "payload": {"tenant": tenant, "document": point.document}})
                })
                .collect();
            self.about(Method::PUT, &self.vectors, "points?wait=true", &json!({"points": list})).await?;
        }
        // What these documents had before goes afterwards, so that none of them is missing in between.
        let documents: BTreeSet<&str> = points.iter().map(|point| point.document.as_str()).collect();
        let numbers: Vec<i64> = kept.iter().map(|point| point.passage).collect();
        let filter = json!({"must": [of_tenant(tenant), {"key": "document", "match": {"any": documents}}],
                            "must_not": [{"has_id": numbers}]});
        self.delete(filter).await
    }

    async fn delete(&self, filter: Value) -> Result<(), Fault> {
        let body = json!({"filter": filter});
        self.about(Method::POST, &self.vectors, "points/delete?wait=true", &body).await.map(drop)
    }

    async fn search(&self, near: Near) -> Result<Vec<(i64, f64)>, Fault> {
        let mut must = vec![of_tenant(&near.tenant)];
        if let Some(within) = &near.within {
            if within.is_empty() {
                return Ok(Vec::new());
            }
            must.push(json!({"has_id": within.as_ref()}));
        }
        // A graph may lose its way among points that a filter refuses; looking at all that pass finds them.
        let parameters = json!({"exact": near.within.is_some(), "hnsw_ef": LOOKED_AT.max(near.limit)});
        let body = json!({"query": near.vector, "filter": {"must": must}, "limit": near.limit, "params": parameters,
                          "with_payload": false, "with_vector": false});
        let answer = self.about(Method::POST, &self.vectors, "points/query", &body).await?;
        let points = answer.pointer("/result/points").and_then(Value::as_array).into_iter().flatten();
        Ok(points.filter_map(|point| Some((point["id"].as_i64()?, point["score"].as_f64()?))).collect())
    }

    async fn position(&self, tenant: &str) -> Result<i64, Fault> {
        let body = json!({"ids": [position_id(tenant)], "with_payload": true});
        let answer = self.about(Method::POST, &self.positions, "points", &body).await?;
        Ok(answer.pointer("/result/0/payload/position").and_then(Value::as_i64).unwrap_or(0))
    }

    async fn reflect(&self, tenant: &str, position: i64) -> Result<(), Fault> {
        let payload = json!({"tenant": tenant, "position": position});
        let body = json!({"points": [{"id": position_id(tenant), "vector": {}, "payload": payload}]});
        self.about(Method::PUT, &self.positions, "points?wait=true", &body).await.map(drop)
    }

    async fn clear(&self, tenant: &str) -> Result<(), Fault> {
        // The position first: whoever is interrupted here fills it anew.
        self.reflect(tenant, 0).await?;
        self.delete(json!({"must": [of_tenant(tenant)]})).await
    }

    async fn passages(&self, tenant: &str) -> Result<Vec<i64>, Fault> {
        let (mut numbers, mut offset) = (Vec::new(), Value::Null);
        loop {
            let mut body = json!({"filter": {"must": [of_tenant(tenant)]}, "limit": LISTED,
                                  "with_payload": false, "with_vector": false});
            if !offset.is_null() {
                body["offset"] = offset;
            }
            let answer = self.about(Method::POST, &self.vectors, "points/scroll", &body).await?;
            let points = answer.pointer("/result/points").and_then(Value::as_array).into_iter().flatten();
            numbers.extend(points.filter_map(|point| point["id"].as_i64()));
            offset = answer.pointer("/result/next_page_offset").cloned().unwrap_or(Value::Null);
            if offset.is_null() {
                return Ok(numbers);
            }
        }
    }
}

impl Dense for Qdrant {
    fn upsert(&self, tenant: &str, points: Vec<Point>) -> BoxFuture<'static, Result<(), Fault>> {
        let (shared, tenant) = (self.0.clone(), tenant.to_owned());
        async move { shared.upsert(&tenant, &points).await }.boxed()
    }

    fn remove(&self, tenant: &str, documents: Vec<String>) -> BoxFuture<'static, Result<(), Fault>> {
        let shared = self.0.clone();
        let filter = json!({"must": [of_tenant(tenant), {"key": "document", "match": {"any": documents}}]});
        async move { shared.delete(filter).await }.boxed()
    }

    fn search(&self, near: Near) -> BoxFuture<'static, Result<Vec<(i64, f64)>, Fault>> {
        let shared = self.0.clone();
        async move { shared.search(near).await }.boxed()
    }

    fn position(&self, tenant: &str) -> BoxFuture<'static, Result<i64, Fault>> {
        let (shared, tenant) = (self.0.clone(), tenant.to_owned());
        async move { shared.position(&tenant).await }.boxed()
    }

    fn reflect(&self, tenant: &str, position: i64) -> BoxFuture<'static, Result<(), Fault>> {
        let (shared, tenant) = (self.0.clone(), tenant.to_owned());
        async move { shared.reflect(&tenant, position).await }.boxed()
    }

    fn clear(&self, tenant: &str) -> BoxFuture<'static, Result<(), Fault>> {
        let (shared, tenant) = (self.0.clone(), tenant.to_owned());
        async move { shared.clear(&tenant).await }.boxed()
    }

    fn passages(&self, tenant: &str) -> BoxFuture<'static, Result<Vec<i64>, Fault>> {
        let (shared, tenant) = (self.0.clone(), tenant.to_owned());
        async move { shared.passages(&tenant).await }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_tell_deployments_and_models_apart() {
        let name = collection("orchestr8", "all-MiniLM-L6-v2/int8", 384);
        assert!(name.starts_with("orchestr8_all-minilm-l6-v2-int8_"), "{name}");
        assert_ne!(name, collection("orchestr8", "all-MiniLM-L6-v2 int8", 384));
        assert_ne!(name, collection("orchestr8", "all-MiniLM-L6-v2/int8", 385));
        assert!(collection("o", &"é/".repeat(500), 3).len() < 100);
    }

    #[test]
    fn positions_of_tenants_never_share_a_point() {
        assert_ne!(position_id("Acme"), position_id("acme"));
        assert!(Uuid::try_parse(&position_id("acme")).is_ok());
    }
}
