//! What the settings of knowledge mean: who may ask, how much of it, and what comes over the bus.

use std::path::Path;

use orchestr8_contract::Code;
use orchestr8_knowledge::words;
use orchestr8_knowledge_face as face;
use orchestr8_outbound::Allowed;

use super::Review;
use crate::config::{self, KnowledgeProfile};
use crate::failure::Failure;

/// What knowledge runs with.
#[derive(Clone)]
pub struct Knowledge {
    pub domain: orchestr8_knowledge::Settings,
    pub security: face::Security,
    pub rate_per_minute: Option<u32>,
    pub unsigned: Vec<UnsignedAccess>,
    pub artifact_hosts: Vec<String>,
    pub artifact_bytes: usize,
    pub public_url: Option<String>,
    pub ack_ms: u64,
    pub heartbeat_ms: u64,
    /// None: envelopes come over HTTP only.
    pub pubsub: Option<orchestr8_broker::Settings>,
}

/// Where documents may be used without a signature although the profile is `external`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsignedAccess {
    /// Tools and resources of MCP clients.
    Mcp,
    /// Steps of workflows and tools of sessions.
    Workflows,
}

impl UnsignedAccess {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "mcp" => Some(UnsignedAccess::Mcp),
            "workflows" => Some(UnsignedAccess::Workflows),
            _ => None,
        }
    }
}

impl Knowledge {
    /// `answers` is the model that writes them: its provider and id.
    pub fn new(config: &config::Knowledge, answers: Option<(String, String)>) -> Result<Self, Failure> {
        let (pubsub, hooks) = (&config.pubsub, &config.webhooks);
        Ok(Self {
            domain: orchestr8_knowledge::Settings {
                vault: None,
                test_mode: config.test_mode,
                web_base: config.web_base.clone(),
                webhooks: Allowed {
                    hosts: hooks.allowed_hosts.clone(),
                    private: hooks.allow_private,
                    setting: "knowledge.webhooks",
                },
                answers,
                words: words::Settings::of_mb(config.words.memory_mb),
            },
            security: security(&config.security)?,
            unsigned: config
                .security
                .allow_unsigned
                .iter()
                .filter_map(|text| UnsignedAccess::parse(text))
                .collect(),
            rate_per_minute: Some(config.rate.per_minute).filter(|limit| *limit > 0),
            artifact_hosts: config.artifacts.allowed_hosts.clone(),
            artifact_bytes: config.artifacts.max_bytes,
            public_url: config.public_url.clone(),
            ack_ms: config.ack_ms,
            heartbeat_ms: config.heartbeat_ms,
            pubsub: pubsub.enabled.then(|| orchestr8_broker::Settings {
                attempts: pubsub.max_attempts,
                ack_deadline_ms: pubsub.ack_deadline_ms,
                base_delay_ms: pubsub.base_delay_ms,
                max_delay_ms: pubsub.max_delay_ms,
                tenant_queued: pubsub.max_queued,
                tenant_in_flight: pubsub.max_in_flight,
                in_flight: pubsub.max_in_flight_overall,
                ..orchestr8_broker::Settings::default()
            }),
        })
    }
}

const NEEDED: &str = "is missing; knowledge.security.profile = \"basic\" needs it";

impl Review<'_> {
    pub(super) fn knowledge(&mut self) {
        let own = &self.loaded.config.knowledge;
        let security = &own.security;
        let given = [
            ("issuer", security.issuer.is_some()),
            ("audience", security.audience.is_some()),
            ("keySet", security.key_set.is_some()),
            ("keySetFile", security.key_set_file.is_some()),
        ];
        let key = |name: &str| format!("knowledge.security.{name}");
        if security.allow_unsigned.iter().any(|text| UnsignedAccess::parse(text).is_none()) {
            self.complain(&key("allowUnsigned"), "must be a list of mcp and workflows");
        }
        if !security.allow_unsigned.is_empty() && security.profile != KnowledgeProfile::External {
            let what = "has a meaning only for knowledge.security.profile = \"external\"";
            self.complain(&key("allowUnsigned"), what);
        }
        match security.profile {
            KnowledgeProfile::Basic => {
                for (name, given) in &given[..2] {
                    if !given {
                        self.complain(&key(name), NEEDED);
                    }
                }
                match (given[2].1, given[3].1) {
                    (false, false) => self.complain(&key("keySetFile"), NEEDED),
                    (true, true) => {
                        self.complain(&key("keySet"), "stands beside keySetFile; give one of them")
                    }
                    (true, false) | (false, true) => {}
                }
            }
            KnowledgeProfile::Local | KnowledgeProfile::External => {
                for (name, _) in given.iter().filter(|(_, given)| *given) {
                    self.complain(
                        &key(name),
                        "has a meaning only for knowledge.security.profile = \"basic\"",
                    );
                }
            }
        }
        for (name, url) in [("publicUrl", &own.public_url), ("webBase", &own.web_base)] {
            let web = |url: &String| url.starts_with("http://") || url.starts_with("https://");
            if url.as_ref().is_some_and(|url| !web(url)) {
                self.complain(&format!("knowledge.{name}"), "must begin with http:// or https://");
            }
        }
        if own.pubsub.max_delay_ms < own.pubsub.base_delay_ms {
            self.complain("knowledge.pubsub.maxDelayMs", "is less than knowledge.pubsub.baseDelayMs");
        }
        if own.test_mode && !self.loaded.config.http.listen.ip().to_canonical().is_loopback() {
            self.complain(
                "knowledge.testMode",
                "is for tests, and http.listen is an address others can reach",
            );
        }
    }
}

/// The review has seen that what a profile needs is there.
fn security(config: &config::KnowledgeSecurity) -> Result<face::Security, Failure> {
    match config.profile {
        KnowledgeProfile::Local => Ok(face::Security::Local),
        KnowledgeProfile::External => Ok(face::Security::External),
        KnowledgeProfile::Basic => {
            let (name, text) = match (&config.key_set, &config.key_set_file) {
                (Some(text), _) => ("keySet", text.clone()),
                (None, Some(path)) => ("keySetFile", read(path)?),
                (None, None) => ("keySetFile", String::new()),
            };
            let issuer = config.issuer.as_deref().unwrap_or_default();
            let audience = config.audience.as_deref().unwrap_or_default();
            let mut trust = face::security::jwt::Trust::read(&text, issuer, audience).map_err(|fault| {
                Failure::new(Code::Configuration, format!("knowledge.security.{name}: {}", fault.message))
                    .hinting(
                        "it is a JSON Web Key Set with public keys: {\"keys\": [{\"kty\": …, \"kid\": …}]}",
                    )
            })?;
            (trust.tenant_claim, trust.roles_claim) =
                (config.tenant_claim.clone(), config.roles_claim.clone());
            Ok(face::Security::Basic(trust))
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|cause| {
        let what = format!("knowledge.security.keySetFile: {}: {cause}", path.display());
        Failure::new(Code::Configuration, what).hinting("check the path, and that the file may be read")
    })
}
