//! What is written about knowledge: who may ask, how much, and what comes over the bus.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Knowledge {
    pub security: KnowledgeSecurity,
    pub rate: KnowledgeRate,
    pub artifacts: KnowledgeArtifacts,
    pub webhooks: KnowledgeWebhooks,
    pub pubsub: KnowledgePubsub,
    pub words: KnowledgeWords,
    pub vectors: KnowledgeVectors,
    pub embedder: KnowledgeEmbedder,
    pub ack_ms: u64,
    pub heartbeat_ms: u64,
    pub public_url: Option<String>,
    pub web_base: Option<String>,
    pub test_mode: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeSecurity {
    pub profile: KnowledgeProfile,
    pub allow_unsigned: Vec<String>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
    pub key_set: Option<String>,
    pub key_set_file: Option<PathBuf>,
    pub tenant_claim: String,
    pub roles_claim: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KnowledgeProfile {
    Local,
    Basic,
    External,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeRate {
    pub per_minute: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeArtifacts {
    pub allowed_hosts: Vec<String>,
    pub max_bytes: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeWebhooks {
    pub allowed_hosts: Vec<String>,
    pub allow_private: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgePubsub {
    pub enabled: bool,
    pub max_attempts: u32,
    pub ack_deadline_ms: u64,
    pub base_delay_ms: u64,
    pub max_delay_ms: u64,
    pub max_queued: usize,
    pub max_in_flight: usize,
    pub max_in_flight_overall: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeWords {
    pub memory_mb: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeVectors {
    pub engine: VectorEngine,
    pub memory_mb: u64,
    pub url: String,
    pub key_variable: Option<String>,
    pub collection: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VectorEngine {
    Embedded,
    Qdrant,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnowledgeEmbedder {
    pub kind: EmbedderKind,
    pub file: Option<PathBuf>,
    pub model: Option<String>,
    pub base_url: Option<String>,
    pub dimensions: Option<usize>,
    pub multilingual: bool,
    pub key_variable: Option<String>,
    pub key_secret: Option<String>,
    pub batch: usize,
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbedderKind {
    Minilm,
    Openai,
    Voyage,
    Ollama,
    None,
}
