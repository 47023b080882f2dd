//! What each setting does before the configuration of a working directory is trusted: one column of the settings table (ADR 30).
//!
//! It stands apart from the table so that all settings that an untrusted file may set are seen at one glance.

use super::table::Setting;

/// What a setting of a configuration that was found in the working directory does before the file is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustClass {
    /// A level or a limit: it applies. The worst that it can do is to slow down the commands in that folder.
    Free,
    /// It starts programs, or names addresses, keys, paths or texts for models, or says what is kept: it is left out.
    Guarded,
    /// It restricts who may do what: it is left out, and commands that act for others refuse to run without it.
    Protective,
    /// Not decided, so treated as protective. A test fails for every setting that is left so.
    Unclassified,
}

/// Keys by class. A key that ends with `[]` or `*` stands for all settings of such an item: an item is in effect whole or not
/// at all.
const CLASSES: [(TrustClass, &[&str]); 3] = [
    (
        TrustClass::Free,
        &[
            "server.shutdownTimeoutMs",
            "tools.defaultTimeoutMs",
            "tools.maxPayloadBytes",
            "tools.maxStateBytes",
            "tools.maxResultBytes",
            "tools.searchAbove",
            "resources.maxConcurrentExecutions",
            "resources.maxCpuMsPerMinute",
            "resources.maxWorkBytes",
            "logging.level",
            "aacp.requestTimeoutMs",
            "aacp.maxAttempts",
            "aacp.maxInboxMessages",
            "http.bodyLimitBytes",
            "http.firstByteTimeoutMs",
            "http.headerTimeoutMs",
            "http.bodyTimeoutMs",
            "http.idleTimeoutMs",
            "http.writeTimeoutMs",
            "http.maxConnections",
            "http.maxConnectionsPerIp",
            "http.maxStreamsPerPrincipal",
            "protocol.maxSessionsPerPrincipal",
            "protocol.eras",
            "gateway.maxInstances",
            "gateway.maxInstancesPerTenant",
            "workflows.maxConcurrentSteps",
            "workflows.maxExecutionsPerTenant",
            "workflows.maxExecutionsPerTreeLevel",
            "workflows.maxExecutionsPerTree",
            "workflows.queueWaitMs",
            "workflows.cancelGraceMs",
            "sessions.maxSessions",
            "sessions.maxConnections",
            "sessions.maxMessageBytes",
            "sessions.commandsPerMinute",
            "sessions.commandsPerMinuteOverall",
            "sessions.shutdownTimeoutMs",
            "sessions.longTimeoutMs",
            "sessions.shortTimeoutMs",
            "knowledge.ackMs",
            "knowledge.heartbeatMs",
            "knowledge.artifacts.maxBytes",
            "knowledge.pubsub.maxAttempts",
            "knowledge.pubsub.ackDeadlineMs",
            "knowledge.pubsub.baseDelayMs",
            "knowledge.pubsub.maxDelayMs",
            "knowledge.pubsub.maxQueued",
            "knowledge.pubsub.maxInFlight",
            "knowledge.pubsub.maxInFlightOverall",
            "knowledge.words.memoryMb",
            "knowledge.vectors.memoryMb",
        ],
    ),
    (
        TrustClass::Protective,
        &[
            "tools.filter",
            "workflows.allowedAgents",
            "logging.redactKeys",
            "auth.tokens[]",
            "http.maxFailedLoginsPerMinute",
            "http.tls.cert",
            "http.tls.key",
            "sessions.roots",
            "sandbox.memoryMb",
            "sandbox.processes",
            "sandbox.fileMb",
            "sandbox.cpuSeconds",
            "sandbox.openFiles",
            "sessions.tools",
            "knowledge.security.profile",
            "knowledge.security.issuer",
            "knowledge.security.audience",
            "knowledge.security.keySetFile",
            "knowledge.security.keySet",
            "knowledge.security.tenantClaim",
            "knowledge.security.rolesClaim",
            "knowledge.rate.perMinute",
            "workspace.roots",
        ],
    ),
    (
        TrustClass::Guarded,
        &[
            "server.name",
            "server.version",
            "server.instructions",
            "tools.adminRegistrationEnabled",
            "tools.adminPolicy.mode",
            "tools.adminPolicy.tokenEnvVar",
            "security.dynamicRegistrationEnabled",
            "security.allowArbitraryCodeTools",
            "aacp.defaultTtlMs",
            "aacp.callbacks.allowedHosts",
            "aacp.callbacks.allowPrivate",
            "store.path",
            "store.key.env",
            "store.key.file",
            "store.key.command",
            "store.sync",
            "store.retentionDays",
            "store.auditRetentionDays",
            "store.maxBytes",
            "audit.keyFile",
            "audit.keyEnvVar",
            "audit.keyCommand",
            "audit.anchors",
            "audit.headSeconds",
            "audit.headEntries",
            "audit.witnesses",
            "audit.witnessTokenEnvVar",
            "audit.witnessCaFile",
            "audit.requireWitness",
            "secrets.key.env",
            "secrets.key.file",
            "secrets.key.command",
            "secrets.named.*",
            "sandbox.mode",
            "sessions.sharedRoots",
            "sandbox.readable",
            "http.listen",
            "http.allowedHosts",
            "http.allowedOrigins",
            "workflows.env",
            "workflows.exec.sharedDirectories",
            "workflows.exec.templates.*",
            "workflows.http.allowedHosts",
            "workflows.http.allowPrivate",
            "workflows.agents.*",
            "models.default",
            "models.answers",
            "models.providers.*",
            "sessions.port",
            "sessions.keyTtlMs",
            "sessions.cwd",
            "sessions.folder",
            "sessions.systemPrompt",
            "sessions.bash",
            "knowledge.artifacts.allowedHosts",
            "knowledge.webhooks.allowedHosts",
            "knowledge.webhooks.allowPrivate",
            "knowledge.publicUrl",
            "knowledge.webBase",
            "knowledge.testMode",
            "knowledge.security.allowUnsigned",
            "knowledge.pubsub.enabled",
            "knowledge.embedder.kind",
            "knowledge.embedder.file",
            "knowledge.embedder.model",
            "knowledge.embedder.baseUrl",
            "knowledge.embedder.dimensions",
            "knowledge.embedder.multilingual",
            "knowledge.embedder.keyVariable",
            "knowledge.embedder.keySecret",
            "knowledge.embedder.batch",
            "knowledge.embedder.timeoutMs",
            "knowledge.vectors.engine",
            "knowledge.vectors.url",
            "knowledge.vectors.keyVariable",
            "knowledge.vectors.collection",
            "workspace.bootstrapSecretEnvVar",
            "gateway.tenantPrograms",
            "gateway.allowedHosts",
            "gateway.allowPrivate",
            "workspace.selfApproval",
            "mcpServers.*",
        ],
    ),
];

impl Setting {
    pub fn trust(&self) -> TrustClass {
        let item = self.key.find(['[', '*']).map(|wild| self.key[..=wild].replace('[', "[]"));
        let key = item.as_deref().unwrap_or(self.key);
        let class = CLASSES.iter().find(|(_, keys)| keys.contains(&key));
        class.map_or(TrustClass::Unclassified, |(class, _)| *class)
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shape;
    use super::super::table::SETTINGS;
    use super::*;

    /// A new setting needs a decision: what may a planted configuration do with it?
    #[test]
    fn every_setting_has_a_trust_class() {
        for setting in SETTINGS {
            assert_ne!(
                setting.trust(),
                TrustClass::Unclassified,
                "{} is in no list of trust_class.rs",
                setting.key
            );
        }
    }

    #[test]
    fn every_key_is_of_a_setting_and_in_one_list() {
        let all: Vec<&str> = CLASSES.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        for (index, key) in all.iter().enumerate() {
            assert!(
                SETTINGS
                    .iter()
                    .any(|setting| setting.key == *key || setting.key.starts_with(&format!("{key}."))),
                "{key}"
            );
            assert!(!all[..index].contains(key), "{key} is there twice");
        }
    }

    /// What such keys name is never harmless.
    #[test]
    fn programs_addresses_keys_and_paths_are_never_free() {
        const WORDS: [&str; 22] = [
            "url",
            "listen",
            "host",
            "origin",
            "port",
            "key",
            "variable",
            "secret",
            "token",
            "header",
            "path",
            "file",
            "folder",
            "command",
            "args",
            "env",
            "cwd",
            "exec",
            "bash",
            "roots",
            "auth",
            "retention",
        ];
        for setting in SETTINGS.iter().filter(|setting| setting.trust() == TrustClass::Free) {
            let last = setting.segments().last().unwrap_or_default().to_lowercase();
            let is_number = matches!(setting.shape, Shape::Int { .. });
            assert!(is_number || !WORDS.iter().any(|word| last.contains(word)), "{}", setting.key);
            assert!(
                !setting.key.contains(['[', '*']) && !setting.key.starts_with("store."),
                "{}",
                setting.key
            );
        }
    }
}
