//! The search: by words, by meaning where there is a model for it, and both fused.

mod check;
pub mod closeness;
pub mod dense;
pub mod fusion;
pub mod hybrid;
pub mod lexical;
pub mod lexicon;
pub mod passage;
pub mod passing;
pub mod tables;

pub use check::{Mend, Report};

/// One document that a side of the search found, with its best passage.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub document: String,
    /// The number of the passage.
    pub passage: i64,
    pub score: f64,
}

/// What a query is limited to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// At least one of these.
    pub tags: Vec<String>,
    /// This document and all below it.
    pub below: Option<String>,
    /// Every one of these; a list holds a value if one of its entries is it.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.below.is_none() && self.metadata.is_empty()
    }
}
