//! The ports of the search by meaning: a model that turns texts into vectors, and an index over them.

use std::collections::HashSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;

use crate::text::language::Language;

/// What a text is to the model: some treat questions and passages differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Query,
    Passage,
}

/// Turns texts into vectors.
pub trait Embedder: Send + Sync + 'static {
    /// The model, as vectors remember it.
    fn name(&self) -> &str;

    fn dimensions(&self) -> usize;

    /// Whether it has learned this language; what it says about others weighs little.
    fn speaks(&self, language: Language) -> bool;

    /// Whether it can be asked now: its weights may have yet to be fetched. Asking this costs next to nothing.
    fn is_there(&self) -> bool {
        true
    }

    /// One vector for each text, in order.
    fn embed(&self, texts: Vec<String>, purpose: Purpose)
    -> BoxFuture<'static, Result<Vec<Vec<f32>>, Fault>>;
}

/// A passage as a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub passage: i64,
    pub document: String,
    pub vector: Vec<f32>,
}

/// What is near to what.
#[derive(Debug, Clone)]
pub struct Near {
    pub tenant: Arc<str>,
    pub vector: Vec<f32>,
    /// Only these passages; all of them are looked at, however few they are.
    pub within: Option<Arc<HashSet<i64>>>,
    pub limit: usize,
}

/// An index over vectors: a cache that can be rebuilt, and that knows up to which change of a tenant it has come.
pub trait Dense: Send + Sync + 'static {
    /// Replaces all points of these documents.
    fn upsert(&self, tenant: &str, points: Vec<Point>) -> BoxFuture<'static, Result<(), Fault>>;

    fn remove(&self, tenant: &str, documents: Vec<String>) -> BoxFuture<'static, Result<(), Fault>>;

    /// The nearest passages, nearest first, with their similarity.
    fn search(&self, near: Near) -> BoxFuture<'static, Result<Vec<(i64, f64)>, Fault>>;

    /// Those of these passages that it holds in this process, where asking costs next to nothing: their vectors have length
    /// one. An index that is elsewhere has nothing at hand; then the store is asked.
    fn at_hand(&self, _tenant: &str, _passages: Vec<i64>) -> BoxFuture<'static, Result<Vec<Point>, Fault>> {
        async { Ok(Vec::new()) }.boxed()
    }

    /// The change of the tenant that it reflects; 0 if it knows nothing of it.
    fn position(&self, tenant: &str) -> BoxFuture<'static, Result<i64, Fault>>;

    /// From now on it reflects all changes up to this one.
    fn reflect(&self, tenant: &str, position: i64) -> BoxFuture<'static, Result<(), Fault>>;

    /// Forgets a tenant: it reflects nothing of it and is filled anew.
    fn clear(&self, tenant: &str) -> BoxFuture<'static, Result<(), Fault>>;

    /// The numbers of all passages of a tenant that it holds.
    fn passages(&self, tenant: &str) -> BoxFuture<'static, Result<Vec<i64>, Fault>>;
}
